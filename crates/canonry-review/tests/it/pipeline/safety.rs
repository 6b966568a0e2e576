//! Tests findings that nothing may hide.

use canonry_domain::review::{Category, HiddenBy, Severity, ShownAs};
use canonry_review::ReviewerChoice;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::pipeline::feedback::two_pulls;
use crate::pipeline::project::{Project, telling, the};

const GRAVE: [(&str, &str, u32, &str, &str); 4] = [
    ("Key in the code", "a.js", 30, "critical", "security"),
    ("Wrong sum", "a.js", 30, "major", "correctness"),
    ("Slow loop", "a.js", 30, "major", "performance"),
    ("Odd name", "a.js", 30, "minor", "style"),
];

on_both_engines! {
    async fn what_is_critical_is_never_hidden_and_never_capped(database: TestDatabase) {
        let mut rejected = two_pulls(&database, &GRAVE).await;
        for (at, (title, ..)) in GRAVE.iter().enumerate() {
            rejected.reject(10 * i64::try_from(at).expect("small") + 1, title).await;
        }
        let settings = &mut rejected.project.settings;
        settings.feedback.auto_suppress.enabled = true;
        settings.review.max_comments = 1;
        settings.review.min_confidence = 100;
        let report = rejected.third().await;
        let shown: Vec<_> = report.findings.iter().map(|one| (one.sighting.finding.title.as_str(), one.shown)).collect();
        assert_eq!(
            shown,
            [
                ("Key in the code", ShownAs::Inline),
                ("Wrong sum", ShownAs::Inline),
                ("Slow loop", ShownAs::Suppressed),
                ("Odd name", ShownAs::Suppressed),
            ]
        );
        assert_eq!(report.hidden_patterns, 2);

        // The settings can hide a major finding, and never a critical one.
        let review = &mut rejected.project.settings.review;
        review.suppressions = canonry_config::parse("review:\n  suppressions: [key, sum, 'regex:.*']\n").config.review.suppressions;
        review.ignored_areas = vec![Category::Security, Category::Correctness];
        review.focus_areas = vec![Category::Style];
        review.severity.min_level = Severity::Critical;
        let report = rejected.third().await;
        let visible: Vec<_> = report.standing().map(|one| one.sighting.finding.title.as_str()).collect();
        assert_eq!(visible, ["Key in the code"]);
        assert_eq!(the(&report, "Key in the code").shown, ShownAs::Inline);
        assert_eq!(the(&report, "Key in the code").hidden_by, None);
        assert_eq!(the(&report, "Wrong sum").hidden_by, Some(HiddenBy::Pattern("sum".to_owned())));
        // Hidden findings are stored and logged.
        let stored = rejected.project.store.review().sightings(report.review.expect("stored")).await.expect("read");
        assert_eq!(stored.iter().filter(|one| one.shown == ShownAs::Suppressed).count(), 3);
    }

    async fn a_rejected_title_does_not_hide_a_grave_finding_of_the_same_name(database: TestDatabase) {
        let mut rejected = two_pulls(&database, &[("Unsafe call", "a.js", 30, "minor", "style")]).await;
        rejected.reject(1, "Unsafe call").await;
        rejected.project.settings.feedback.auto_suppress.enabled = true;
        assert_eq!(the(&rejected.third().await, "Unsafe call").shown, ShownAs::Suppressed);
        rejected.project.reported(&[("Unsafe call", "a.js", 30, "critical", "security")]);
        let report = rejected.third().await;
        assert_eq!((the(&report, "Unsafe call").shown, report.hidden_patterns), (ShownAs::Inline, 0));
    }

    async fn a_floor_raises_before_anything_hides(database: TestDatabase) {
        let (mut project, base, _) = Project::pushed(&database, "b();").await;
        project.reported(&[("SQL injection in query", "a.js", 30, "minor", "style")]);
        let text = "review:\n  severityFloors: [{pattern: 'regex:sql injection', severity: critical}]\n  suppressions: [injection]\n";
        project.settings = canonry_config::parse(text).config;
        let report = project.review(&base).await;
        let one = the(&report, "SQL injection in query");
        assert_eq!((one.sighting.finding.severity, one.shown), (Severity::Critical, ShownAs::Inline));
        let ledger = project.store.review().ledger(project.repo, &project.subject).await.expect("read");
        assert_eq!(ledger[0].earlier.finding.severity, Severity::Critical);
    }

    async fn a_floor_counts_whoever_of_two_reviewers_says_the_words(database: TestDatabase) {
        let (mut project, base, _) = Project::pushed(&database, "b();").await;
        let told = |message: &str| {
            json!({"findings": [{"title": "Unsafe query text", "message": message, "path": "a.js", "line": 30,
                "severity": "minor", "category": "security"}]})
            .to_string()
        };
        let rdjson = json!({"source": {"name": "lint"}, "diagnostics": [{"message": "Unsafe query text\nThis is an SQL injection.",
            "severity": "INFO", "location": {"path": "a.js", "range": {"start": {"line": 30}}}}]});
        let rdjson = project.file(&rdjson.to_string());
        project.reviewers = vec![telling(&project.file(&told("Odd."))), ReviewerChoice::Rdjson(rdjson)];
        let text = "review:\n  severityFloors: [{pattern: 'sql injection', severity: critical}]\n";
        project.settings = canonry_config::parse(text).config;
        let report = project.review(&base).await;
        let one = the(&report, "Unsafe query text");
        assert_eq!((report.findings.len(), one.sighting.finding.witnesses.len()), (1, 2));
        assert_eq!(one.sighting.finding.severity, Severity::Critical);
    }

    async fn two_reviewers_of_one_finding_are_two_witnesses(database: TestDatabase) {
        let (mut project, base, _) = Project::pushed(&database, "b();").await;
        let one = r#"{"findings": [{"title": "Unused variable", "path": "a.js", "line": 30, "severity": "minor", "category": "style"}]}"#;
        let other = concat!(
            r#"{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "lint"}}, "results": [{"ruleId": "no-unused", "level": "note","#,
            r#""message": {"text": "Unused variable"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.js"}, "region": {"startLine": 30}}}]}]}]}"#
        );
        project.reviewers = vec![telling(&project.file(one)), ReviewerChoice::Sarif(project.file(other))];
        let report = project.review(&base).await;
        let finding = the(&report, "Unused variable");
        assert_eq!((report.findings.len(), finding.sighting.finding.witnesses.len()), (1, 2));
        assert_eq!(finding.confidence.get(), 55);
        let names: Vec<_> = report.reviewers.iter().map(|one| (one.name.as_str(), one.findings, one.files)).collect();
        assert_eq!(names, [("cat", 1, 1), ("lint", 1, 1)]);
    }
}
