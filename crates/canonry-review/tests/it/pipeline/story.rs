//! Tests a pull request from its first push to its last.

use canonry_domain::review::{DismissalKind, Dismisser, HiddenBy, ReviewMode, Severity, ShownAs};
use canonry_review::{ReviewOutcome, ReviewReport, ReviewerChoice};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::pipeline::project::{Asked, Project, code, id_at, login, statuses, the};

on_both_engines! {
    async fn findings_are_followed_from_push_to_push(database: TestDatabase) {
        let project = Project::new(&database).await;
        let git = &project.git;
        git.write("kept.js", code("a();")).write("moved.js", code("b();")).write("fixed.js", code("c();"));
        let base = git.write("dismissed.js", code("d();")).commit("base");
        git.branch("topic");
        for file in ["kept.js", "moved.js", "fixed.js", "dismissed.js"] {
            git.write(file, code("debugger;"));
        }
        let push_a = git.commit("push A");
        let first = project.review(&base).await;
        assert_eq!((first.reason.to_string().as_str(), first.mode()), ("no-prior-review", ReviewMode::Full));
        assert_eq!(
            statuses(&first),
            ["dismissed.js:30 new!", "fixed.js:30 new!", "kept.js:30 new!", "moved.js:30 new!"]
        );
        assert_eq!((first.coverage.files_changed, first.coverage.files_read, first.coverage.lines_read), (4, 4, 8));
        assert!(first.findings.iter().all(|one| one.shown == ShownAs::Inline && one.grounded && one.id.is_some()));
        assert_eq!(first.notes, Vec::<String>::new());

        let dismissed = id_at(&first, "dismissed.js");
        let by = login("ada");
        let stored =
            project.store.findings().dismiss(dismissed, None, DismissalKind::NotUseful, Dismisser::Author, &by, project.now());
        assert!(stored.await.expect("stored"));

        // Push B: one stays, one moves through a rename and two hundred lines, one is fixed, one is edited elsewhere.
        let top: String = (1..=200).map(|line| format!("first{line}();\n")).collect();
        git.run(&["mv", "moved.js", "elsewhere.js"]);
        git.write("elsewhere.js", top + &code("debugger;")).write("fixed.js", code("done();"));
        git.write("dismissed.js", format!("one();\n{}", code("  debugger;"))).commit("push B");
        let second = project.review(&base).await;
        assert_eq!(second.reason.to_string(), format!("incremental-from-{}", push_a.short()));
        assert_eq!(
            statuses(&second),
            ["dismissed.js:31 dismissed", "elsewhere.js:230 moved", "fixed.js:30 fixed", "kept.js:30 same"]
        );
        // Since the base, so many lines were added that git shows the move as a new file and a deleted one.
        assert_eq!((second.coverage.files_changed, second.coverage.files_read), (5, 4));
        assert_eq!(second.reviewers[0].files, 4);
        for one in &second.findings {
            let expected = match one.sighting.finding.path.as_str() {
                "dismissed.js" => (ShownAs::Suppressed, Some(HiddenBy::Dismissal)),
                "fixed.js" => (ShownAs::Details, None),
                _ => (ShownAs::Inline, None),
            };
            assert_eq!((one.shown, one.hidden_by.clone()), expected, "{}", one.sighting.finding.path);
        }
        assert!(second.findings.last().expect("findings").is_fixed());
        let moved = second.findings.iter().find(|one| one.moved_from.is_some()).expect("a moved one");
        assert_eq!(moved.moved_from.as_ref().map(|(path, _)| path.as_str()), Some("moved.js"));
        assert_eq!(moved.id, Some(id_at(&first, "moved.js")));

        // Push C: the fixed one comes back, and the dismissed one is now on other code.
        git.write("fixed.js", code("debugger;")).write("dismissed.js", code("if (x) { debugger; }")).commit("push C");
        let third = project.review(&base).await;
        assert_eq!(
            statuses(&third),
            ["dismissed.js:30 moved!", "elsewhere.js:230 same", "fixed.js:30 reopened!", "kept.js:30 same"]
        );
        assert!(third.findings.iter().all(|one| one.shown == ShownAs::Inline));
        let mut ids: Vec<_> = third.findings.iter().filter_map(|one| one.id).collect();
        ids.sort();
        let mut first_ids: Vec<_> = first.findings.iter().filter_map(|one| one.id).collect();
        first_ids.sort();
        assert_eq!(ids, first_ids);

        // For the same head the earlier report is returned; a requested review gets its own run.
        let again = project.try_review(&base, &git.head(), Asked::default()).await.expect("an answer");
        let ReviewOutcome::AlreadyReviewed(again) = again else { panic!("{again:?}") };
        assert_eq!(statuses(&again), statuses(&third));
        assert_eq!(again.coverage, third.coverage);
        assert_eq!((&again.reason, &again.reviewers, &again.notes), (&third.reason, &third.reviewers, &third.notes));
        for (one, told) in again.findings.iter().zip(&third.findings) {
            assert_eq!((one.id, one.shown, one.confidence, one.grounded), (told.id, told.shown, told.confidence, told.grounded));
            assert_eq!((&one.moved_from, &one.sighting.finding), (&told.moved_from, &told.sighting.finding));
        }
        let asked = project.review_asked(&base, Asked { requested: true, ..Asked::default() }).await;
        assert_eq!(asked.reason.to_string(), format!("no-changes-since-{}", git.head().short()));
        assert_eq!(
            statuses(&asked),
            ["dismissed.js:30 same", "elsewhere.js:230 same", "fixed.js:30 same", "kept.js:30 same"]
        );
        assert_eq!(asked.coverage.files_read, 0);
        let full = project.review_asked(&base, Asked { requested: true, full: true, ..Asked::default() }).await;
        assert_eq!((full.reason.to_string().as_str(), full.coverage.files_read), ("full-requested", 5));
        assert_eq!(statuses(&full), statuses(&asked));
        assert_eq!(project.stored_reviews().await, 5);
    }

    async fn a_dismissal_by_the_author_does_not_silence_what_is_grave(database: TestDatabase) {
        let (mut project, base, _) = Project::pushed(&database, "b();").await;
        project.reported(&[("Key in the code", "a.js", 30, "critical", "security"), ("Odd", "a.js", 30, "minor", "style")]);
        let first = project.review(&base).await;
        for one in &first.findings {
            let id = one.id.expect("stored");
            let by = login("ada");
            let said =
                project.store.findings().dismiss(id, None, DismissalKind::WontFix, Dismisser::Author, &by, project.now());
            assert!(said.await.expect("stored"));
        }
        project.git.write("a.js", format!("x();\n{}", code("b();"))).commit("push B");
        project.reported(&[("Key in the code", "a.js", 31, "critical", "security"), ("Odd", "a.js", 31, "minor", "style")]);
        let second = project.review(&base).await;
        let shown: Vec<_> = second.findings.iter().map(|one| (one.sighting.finding.title.as_str(), one.shown)).collect();
        assert_eq!(shown, [("Key in the code", ShownAs::Inline), ("Odd", ShownAs::Suppressed)]);
    }

    async fn a_ceiling_lowers_no_serious_finding_that_a_later_review_carries_on(database: TestDatabase) {
        let (mut project, base, _) = Project::pushed(&database, "b();").await;
        let result = |rule: &str, properties: Value| {
            json!({"ruleId": rule, "level": "error", "message": {"text": rule}, "properties": properties, "locations":
                [{"physicalLocation": {"artifactLocation": {"uri": "a.js"}, "region": {"startLine": 30}}}]})
        };
        let results = [result("js/xss", json!({"security-severity": "8.0"})), result("js/shadowed", json!({}))];
        let log = json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "CodeQL"}}, "results": results}]});
        project.reviewers = vec![ReviewerChoice::Builtin, ReviewerChoice::Sarif(project.file(&log.to_string()))];
        let severities = |report: &ReviewReport| ["js/xss", "js/shadowed"].map(|title| the(report, title).sighting.finding.severity);
        assert_eq!(severities(&project.review(&base).await), [Severity::Major, Severity::Major]);
        let lowered = "review: {severityCeilings: [{pattern: 'glob:codeql/*', severity: minor}]}";
        project.settings = canonry_config::parse(lowered).config;
        // A ceiling that is newer than the finding lowers it once it is reported again.
        let without = Asked { requested: true, reviewers: Some(&[ReviewerChoice::Builtin]), ..Asked::default() };
        assert_eq!(severities(&project.review_asked(&base, without).await), [Severity::Major, Severity::Major]);
        let again = Asked { requested: true, ..Asked::default() };
        assert_eq!(severities(&project.review_asked(&base, again).await), [Severity::Major, Severity::Minor]);
        assert_eq!(severities(&project.review_asked(&base, without).await), [Severity::Major, Severity::Minor]);
    }
}
