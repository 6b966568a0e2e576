//! Tests reviewers that fail, and runs that cannot be completed.

use canonry_domain::review::FindingStatus;
use canonry_review::{ReviewError, ReviewOutcome, ReviewerChoice};
use canonry_store::ReviewState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::pipeline::project::{Asked, Project, code, count, statuses, telling};

on_both_engines! {
    async fn a_reviewer_that_fails_is_told_and_fixes_nothing(database: TestDatabase) {
        let (mut project, base, _) = Project::pushed(&database, "b();").await;
        project.reported(&[("Slow", "a.js", 30, "minor", "performance")]);
        project.review(&base).await;
        project.git.write("a.js", format!("x();\n{}", code("b();"))).commit("push B");
        project.reviewers = vec![
            ReviewerChoice::Builtin,
            ReviewerChoice::Sarif("/nowhere/lint.sarif".into()),
            telling(std::path::Path::new("/nowhere/findings.json")),
            ReviewerChoice::Llm,
        ];
        let report = project.review(&base).await;
        assert_eq!(statuses(&report), ["a.js:31 moved"]);
        let problems: Vec<_> = report.reviewers.iter().map(|one| (one.name.as_str(), one.files, one.problems.len())).collect();
        assert_eq!(problems, [("builtin", 1, 0), ("lint.sarif", 0, 1), ("cat", 0, 1), ("llm", 0, 1)]);
        // The next time it runs and reports nothing: now the finding is fixed.
        project.git.write("a.js", format!("y();\n{}", code("b();"))).commit("push C");
        project.reported(&[]);
        assert_eq!(count(&project.review(&base).await, FindingStatus::Fixed), 1);
    }

    async fn a_run_in_which_nobody_read_anything_has_failed(database: TestDatabase) {
        let (mut project, base, head) = Project::pushed(&database, "debugger;").await;
        project.reviewers = vec![ReviewerChoice::Llm];
        let error = project.try_review(&base, &head, Asked::default()).await.expect_err("nobody read it");
        assert!(matches!(&error, ReviewError::NobodyRead { .. }), "{error}");
        project.reviewers = Vec::new();
        let error = project.try_review(&base, &head, Asked::default()).await.expect_err("nobody is named");
        assert_eq!(error.to_string(), "review the change: no reviewer is configured");
        assert_eq!(project.stored_reviews().await, 0);
        let runs = project.store.review().runs(project.repo, None, 10).await.expect("runs");
        assert!(runs.iter().all(|run| run.state == ReviewState::Failed), "{runs:?}");
        assert_eq!(runs[0].error.as_deref(), Some("review the change: no reviewer is configured"));
        // A failed run does not prevent another try.
        project.reviewers = vec![ReviewerChoice::Builtin];
        assert_eq!(statuses(&project.review(&base).await), ["a.js:30 new!"]);
    }

    async fn a_change_that_git_cannot_tell_fails_the_run(database: TestDatabase) {
        let project = Project::new(&database).await;
        let base = project.git.write("a.js", code("a();")).commit("base");
        let nobody = "1234567890123456789012345678901234567890".parse().expect("an id");
        let error = project.try_review(&base, &nobody, Asked::default()).await.expect_err("no such commit");
        assert!(matches!(error, ReviewError::Change(_)), "{error}");
        let runs = project.store.review().runs(project.repo, None, 10).await.expect("runs");
        assert_eq!((runs.len(), runs[0].state), (1, ReviewState::Failed));
        // It does not block another head.
        let head = project.git.branch("topic").write("a.js", code("debugger;")).commit("push A");
        let outcome = project.try_review(&base, &head, Asked::default()).await.expect("a review");
        assert!(matches!(outcome, ReviewOutcome::Reviewed(_)), "{outcome:?}");
    }

    async fn a_report_that_comes_later_is_read_on_request(database: TestDatabase) {
        let (mut project, base, head) = Project::pushed(&database, "debugger;").await;
        project.review(&base).await;
        let rdjson = concat!(
            r#"{"source": {"name": "lint"}, "diagnostics": [{"message": "Slow", "severity": "INFO","#,
            r#" "location": {"path": "a.js", "range": {"start": {"line": 30}}}}]}"#
        );
        project.reviewers = vec![ReviewerChoice::Builtin, ReviewerChoice::Rdjson(project.file(rdjson))];
        let report = project.review_asked(&base, Asked { requested: true, ..Asked::default() }).await;
        assert_eq!(report.reason.to_string(), format!("no-changes-since-{}", head.short()));
        assert_eq!(statuses(&report), ["a.js:30 new!", "a.js:30 same"]);
        let names: Vec<_> = report.reviewers.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["lint"]);
    }
}
