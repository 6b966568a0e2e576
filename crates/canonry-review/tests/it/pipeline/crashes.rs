//! Tests a process that dies in the middle of a review.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use canonry_domain::review::CommitSha;
use canonry_review::{ReviewOutcome, ReviewReport};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use futures_util::FutureExt as _;

use crate::pipeline::project::{Asked, Project, code, pull, statuses};

/// Two pushes; the first is reviewed for each pull request before the second one crashes.
async fn two_pushes(database: &TestDatabase) -> (Project, CommitSha, [CommitSha; 2]) {
    let project = Project::new(database).await;
    let base = project.git.write("a.js", code("a();")).write("b.js", code("b();")).commit("base");
    let first =
        project.git.branch("topic").write("a.js", code("debugger;")).write("b.js", code("debugger;")).commit("A");
    let second = project.git.write("a.js", code("done();")).write("c.js", "debugger;\n").commit("B");
    (project, base, [first, second])
}

async fn reviewed(project: &Project, base: &CommitSha, head: &CommitSha) -> ReviewReport {
    match project.try_review(base, head, Asked::default()).await.expect("a review") {
        ReviewOutcome::Reviewed(report) | ReviewOutcome::AlreadyReviewed(report) => *report,
        other => panic!("not reviewed: {other:?}"),
    }
}

/// The review after a crash is complete, and everything is stored once.
async fn expect_whole(project: &Project, base: &CommitSha, head: &CommitSha, when: &str) {
    project.wait_an_hour();
    let report = reviewed(project, base, head).await;
    assert_eq!(statuses(&report), ["a.js:30 fixed", "b.js:30 same", "c.js:1 new!"], "{when}");
    assert_eq!(project.stored_reviews().await, 2, "{when}");
    let ledger = project.store.review().ledger(project.repo, &project.subject).await.expect("ledger");
    assert_eq!(ledger.len(), 3, "{when}");
    let sightings = project.store.review().sightings(report.review.expect("stored")).await.expect("sightings");
    assert_eq!(sightings.len(), 3, "{when}");
}

on_both_engines! {
    async fn a_crash_at_every_step_is_made_good(database: TestDatabase) {
        let (mut project, base, [first, second]) = two_pushes(&database).await;
        // Each step reads the clock; the process dies at the nth read.
        let mut crashes = 0;
        for step in 0..50 {
            project.subject = pull(i64::try_from(step).expect("small") + 1);
            reviewed(&project, &base, &first).await;
            let asked = AtomicUsize::new(0);
            let clock = || {
                assert!(asked.fetch_add(1, Ordering::Relaxed) < step, "the process dies");
                project.now()
            };
            let run = project.review_by(&base, &second, Asked::default(), &clock);
            let crashed = AssertUnwindSafe(run).catch_unwind().await.is_err();
            expect_whole(&project, &base, &second, &format!("step {step}")).await;
            if !crashed {
                break;
            }
            crashes += 1;
        }
        assert!((5..50).contains(&crashes), "{crashes} steps");
    }

    async fn a_run_dropped_at_any_moment_is_made_good(database: TestDatabase) {
        let (mut project, base, [first, second]) = two_pushes(&database).await;
        let mut ended = false;
        for moment in 0..60 {
            project.subject = pull(moment + 1);
            reviewed(&project, &base, &first).await;
            let mut polls = moment * 4;
            let mut run = Box::pin(project.try_review(&base, &second, Asked::default()));
            let dropped = std::future::poll_fn(|context| {
                if polls == 0 {
                    return Poll::Ready(true);
                }
                polls -= 1;
                run.as_mut().poll(context).map(|_| false)
            });
            ended = !dropped.await;
            drop(run);
            expect_whole(&project, &base, &second, &format!("moment {moment}")).await;
            if ended {
                break;
            }
        }
        assert!(ended, "the run ends within its moments");
    }
}
