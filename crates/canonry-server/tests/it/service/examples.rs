//! GitHub's own webhook examples, each handled completely.

use canonry_server::AttemptEnd;
use canonry_store::{DeliveryFilter, DeliveryState, JobFilter};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde::Deserialize;
use serde_json::Value;

use crate::world::As;
use crate::world::job_world::JobWorld;

/// npm `@octokit/webhooks-examples`, `api.github.com/index.json`.
const EXAMPLES: &str = "CANONRY_TEST_WEBHOOK_EXAMPLES";

#[derive(Deserialize)]
struct Examples {
    name: String,
    examples: Vec<Value>,
}

fn examples() -> Vec<(String, Value)> {
    let path =
        std::env::var(EXAMPLES).unwrap_or_else(|_| panic!("{EXAMPLES} is not set: run through `cargo xtask test`"));
    let all: Vec<Examples> = serde_json::from_slice(&std::fs::read(path).expect("reads")).expect("JSON");
    all.into_iter().flat_map(|event| event.examples.into_iter().map(move |body| (event.name.clone(), body))).collect()
}

async fn all_end(database: &TestDatabase, who: As) {
    let (setting, examples) = (JobWorld::new(database, who).await, examples());
    for (at, (event, payload)) in examples.iter().enumerate() {
        setting.deliver(&format!("example-{at}"), event, payload).await;
    }
    // Jobs that wait for a corpus are retried until the sync has found that there is none.
    for _ in 0..5 {
        if setting.work_off().await.iter().all(|ended| *ended == AttemptEnd::Done) {
            break;
        }
        setting.emulator.world().advance(60);
    }
    let deliveries = setting.store.deliveries().list(&DeliveryFilter::default(), 1_000).await.expect("reads");
    assert_eq!(deliveries.len(), 329);
    for delivery in deliveries {
        let jobs = JobFilter { delivery: Some(delivery.id.clone()), ..JobFilter::default() };
        let job = setting.store.jobs().list(&jobs, 1).await.expect("reads").remove(0);
        assert!(
            matches!(delivery.state, DeliveryState::Done | DeliveryState::Ignored),
            "{} {:?}: {:?}, {:?} after {} tries ({:?})",
            delivery.event,
            delivery.action,
            delivery.state,
            delivery.reason,
            job.attempts,
            job.error
        );
    }
}

on_both_engines! {
    async fn every_example_is_handled_without_github(database: TestDatabase) {
        all_end(&database, As::Nobody).await;
    }

    async fn every_example_is_handled_with_github(database: TestDatabase) {
        all_end(&database, As::Token).await;
    }
}
