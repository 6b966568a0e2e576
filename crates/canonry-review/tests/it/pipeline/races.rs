//! Tests two runs at once.

use std::path::{Path, PathBuf};
use std::process::Command;

use canonry_review::ReviewOutcome;
use canonry_store::ReviewState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use tokio::io::AsyncWriteExt as _;

use crate::pipeline::project::{Asked, Project, code, findings_json, statuses, telling};

/// A report for which a program waits until a test writes it.
fn awaited_report(project: &Project) -> PathBuf {
    let path = project.folder().join(project.another("pipe"));
    assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo runs").success());
    path
}

/// Opens the report; blocks until a reviewer waits for it.
async fn once_awaited(path: &Path) -> tokio::fs::File {
    tokio::fs::OpenOptions::new().write(true).open(path).await.expect("a reader")
}

async fn tell(mut report: tokio::fs::File) {
    let text = findings_json(&[("Slow", "a.js", 30, "minor", "performance")]);
    report.write_all(text.as_bytes()).await.expect("written");
    report.shutdown().await.expect("closed");
}

on_both_engines! {
    async fn the_newer_head_wins_and_the_older_writes_nothing(database: TestDatabase) {
        let (project, base, old) = Project::pushed(&database, "debugger;").await;
        let new = project.git.write("a.js", code("debugger; // 2")).commit("push B");
        let first = project.now();
        let pipe = awaited_report(&project);
        let slow = [telling(&pipe)];
        let asked = Asked { reviewers: Some(&slow), ..Asked::default() };
        let older = project.try_review(&base, &old, asked);
        let newer = async {
            let report = once_awaited(&pipe).await;
            let outcome = project.try_review(&base, &new, Asked::default()).await.expect("a review");
            tell(report).await;
            outcome
        };
        let (older, newer) = tokio::join!(older, newer);
        assert_eq!(older.expect("an answer"), ReviewOutcome::Superseded { by: None });
        let ReviewOutcome::Reviewed(newer) = newer else { panic!("{newer:?}") };
        assert_eq!(statuses(&newer), ["a.js:30 new!"]);
        let runs = project.store.review().runs(project.repo, None, 10).await.expect("runs");
        let states: Vec<_> = runs.iter().map(|run| (run.head.clone(), run.state)).collect();
        assert_eq!(states, [(new.clone(), ReviewState::Completed), (old.clone(), ReviewState::Superseded)]);
        assert_eq!(project.stored_reviews().await, 1);
        let ledger = project.store.review().ledger(project.repo, &project.subject).await.expect("ledger");
        assert_eq!(ledger.len(), 1);
        // A request for the older head from before the request for the newer one comes too late; a new request is
        // reviewed.
        let late = project.review_by(&base, &old, Asked::default(), &|| first).await.expect("an answer");
        assert_eq!(late, ReviewOutcome::Superseded { by: newer.review });
        assert_eq!(project.stored_reviews().await, 1);
        let back = project.try_review(&base, &old, Asked::default()).await.expect("a review");
        assert!(matches!(back, ReviewOutcome::Reviewed(_)), "{back:?}");
        assert_eq!(project.stored_reviews().await, 2);
    }

    async fn one_head_is_reviewed_by_one_process_at_a_time(database: TestDatabase) {
        let (mut project, base, head) = Project::pushed(&database, "b();").await;
        let pipe = awaited_report(&project);
        project.reviewers = vec![telling(&pipe)];
        let first = project.try_review(&base, &head, Asked::default());
        let second = async {
            let report = once_awaited(&pipe).await;
            let outcome = project.try_review(&base, &head, Asked::default()).await.expect("an answer");
            tell(report).await;
            outcome
        };
        let (first, second) = tokio::join!(first, second);
        assert!(matches!(second, ReviewOutcome::Busy { .. }), "{second:?}");
        let ReviewOutcome::Reviewed(first) = first.expect("a review") else { panic!("not reviewed") };
        assert_eq!(statuses(&first), ["a.js:30 new!"]);
        assert_eq!(project.stored_reviews().await, 1);
    }
}
