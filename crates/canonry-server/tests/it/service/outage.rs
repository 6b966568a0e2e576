//! The database goes away and comes back; the service keeps running.

use std::sync::Arc;

use canonry_github::SystemClock;
use canonry_server::{JobError, JobHandler, LeasedJob, Schedules, ServeParts};
use canonry_store::{JobState, NewJob, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::loopback_client;
use futures_util::future::{BoxFuture, ready};
use jiff::Timestamp;
use reqwest::StatusCode;
use serde_json::Value;

use crate::world::{Running, until};

struct Nothing;

impl JobHandler for Nothing {
    fn handle<'a>(&'a self, _: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
        Box::pin(ready(Ok(())))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_service_outlives_its_database() {
    let database = TestDatabase::postgres().await;
    let (proxy, url) = database.proxied().await;
    let store = Store::open(&url.parse().expect("a URL"), Timestamp::now()).await.expect("opens");
    let parts = ServeParts::new(Arc::new(Nothing));
    let running = Running::start(store.clone(), parts, Arc::new(SystemClock), Schedules::Token).await;
    let ready = async || {
        let answer = loopback_client().get(format!("{}/readyz", running.url)).send().await.expect("answers");
        answer.status()
    };
    assert_eq!(ready().await, StatusCode::OK);
    proxy.cut();
    until("it says that it is not ready", async || ready().await == StatusCode::SERVICE_UNAVAILABLE).await;
    proxy.restore();
    until("it is ready again", async || ready().await == StatusCode::OK).await;
    let job = NewJob { key: "after", repo: None, kind: canonry_store::JobKind::Sync, payload: &Value::Null };
    let id = store.jobs().enqueue(&job, Timestamp::now(), Timestamp::now()).await.expect("stored");
    until("jobs are done again", async || {
        store.jobs().get(id).await.expect("reads").expect("stored").state == JobState::Done
    })
    .await;
    assert!(running.stop().await.drained);
}
