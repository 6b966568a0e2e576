//! A repository without a settings file: everything is recorded, and nothing at all is written.

use canonry_config::Preset;
use canonry_domain::review::ReviewSubject;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewPull};
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::item;
use crate::world::triage_world::{OWN, TriageWorld};

const POOL: &str = "tide/pool";
const CODE: &str = "export function fill(pool) {\n  debugger;\n  return pool;\n}\n";

on_both_engines! {
    async fn without_a_file_nothing_is_public(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.settle().await;
        whatever_happens(&setting).await;
        setting.stop().await;
    }

    async fn with_the_preset_shadow_nothing_is_public(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.emulator.world().get_mut(POOL).file(".canonry.yml", &Preset::Shadow.file());
        setting.settle().await;
        whatever_happens(&setting).await;
        setting.stop().await;
    }

    async fn with_the_preset_review_pull_requests_alone_are_spoken_to(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.emulator.world().get_mut(POOL).file(".canonry.yml", &Preset::Review.file());
        setting.settle().await;
        let issue = setting.report(POOL, 2, 97);
        let pull = opened(&setting);
        setting.settle().await;
        setting.assert_silent(POOL, issue);
        assert_eq!(setting.emulator.world().reviews_by(POOL, pull, OWN).len(), 1);
        setting.stop().await;
    }

    async fn with_the_preset_suggest_issues_alone_are_spoken_to(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.emulator.world().get_mut(POOL).file(".canonry.yml", &Preset::Suggest.file());
        setting.settle().await;
        let issue = setting.report(POOL, 2, 97);
        let pull = opened(&setting);
        setting.settle().await;
        setting.assert_said(POOL, issue, 3);
        let said = &setting.emulator.world().comments(POOL, issue)[0].body.clone();
        assert!(!said.contains("closed on"), "{said}");
        assert_eq!(setting.emulator.world().reviews_by(POOL, pull, OWN).len(), 0);
        setting.stop().await;
    }
}

fn opened(setting: &TriageWorld) -> u64 {
    setting.meanwhile(|world| {
        world.commit(POOL, "fix", &[("src/pool.js", Some(CODE))]);
        world.open_pull(POOL, "ann", "fix", NewPull::new("Fill the pool: topic300"))
    })
}

/// Events on issues and pull requests; none of them is answered.
async fn whatever_happens(setting: &TriageWorld) {
    let issue = setting.report(POOL, 2, 97);
    let pull = opened(setting);
    setting.settle().await;
    let acts: [&dyn Fn(&mut canonry_testkit::github::World); 13] = [
        &|world| world.edit_title(POOL, issue, "ann", "It stops: topic3 alike98"),
        &|world| world.label(POOL, issue, "maint", "possible-duplicate"),
        &|world| world.unlabel(POOL, issue, "maint", "possible-duplicate"),
        &|world| {
            world.comment(POOL, issue, "ben", "Is it not the same as #3?");
        },
        &|world| world.close(POOL, issue, "maint", CloseReason::Duplicate(None)),
        &|world| world.reopen(POOL, issue, "ann"),
        &|world| world.close(POOL, issue, "maint", CloseReason::Completed),
        &|world| world.edit_title(POOL, pull, "ann", "Fill the pool again"),
        &|world| world.request_review(POOL, pull, "maint", OWN),
        &|world| {
            world.push_pull(POOL, pull, "ann", &[("src/pool.js", Some("debugger;\n"))]);
        },
        &|world| world.convert_to_draft(POOL, pull, "ann"),
        &|world| world.ready_for_review(POOL, pull, "ann"),
        &|world| world.close(POOL, pull, "ann", CloseReason::Completed),
    ];
    for act in acts {
        setting.meanwhile(|world| act(world));
        setting.settle().await;
    }
    setting.later(SignedDuration::from_hours(24 * 8)).await;
    let repo = setting.repo(POOL).await;
    assert!(!setting.records(POOL, issue).await.is_empty(), "it was looked at");
    let runs = setting.store.review().runs(repo.id, Some(&ReviewSubject::Pull(item(pull))), 9).await.expect("reads");
    assert_eq!((setting.writes(), runs.len()), (Vec::<String>::new(), 0));
}
