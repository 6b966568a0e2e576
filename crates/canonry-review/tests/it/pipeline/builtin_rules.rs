//! Tests that the built-in rules answer for changed lines only and obey the settings.

use canonry_domain::review::{Severity, ShownAs};
use canonry_review::ReviewReport;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::pipeline::project::{Project, the};

const WORKFLOW: &str = ".github/workflows/ci.yml";

const BEFORE: &str = "\
on: pull_request_target
permissions: write-all
jobs:
  build:
    steps:
      - uses: octo/old@main
      - uses: actions/cache@0123456789abcdef0123456789abcdef01234567
";

const ADDED: &str = "\
      - uses: octo/new@main
      - uses: actions/checkout@v4
        with:
          ref: ${{ github.event.pull_request.head.sha }}
      - run: echo \"${{ github.event.pull_request.title }}\"
";

/// `rule path:line` of each finding that is shown or listed, in order.
fn places(report: &ReviewReport) -> Vec<String> {
    let standing =
        report.findings.iter().filter(|one| one.shown != ShownAs::Suppressed).map(|one| &one.sighting.finding);
    let mut places: Vec<String> = standing
        .map(|finding| {
            let rule = finding.witnesses[0].rule.clone().unwrap_or_default();
            format!("{rule} {}:{}", finding.path, finding.lines.map_or(0, |lines| lines.first))
        })
        .collect();
    places.sort();
    places
}

async fn pushed(database: &TestDatabase) -> (Project, canonry_domain::review::CommitSha) {
    let project = Project::new(database).await;
    let base = project.git.write(WORKFLOW, BEFORE).write("src/a.rs", "fn a() {}\n").commit("base");
    let hash =
        format!("INSERT INTO users VALUES ('mona', '$2y$12${}');\n", "k9Zr2mX4hJ7kQ9zR2mX4".repeat(3).split_at(53).0);
    let git = project.git.branch("topic");
    git.write(WORKFLOW, format!("{BEFORE}{ADDED}")).write("src/a.rs", "fn a() {}\nfn b() { dbg!(1); }\n");
    git.write("db/users.sql", hash).write(".netrc", "machine a.dev login mona password summer7\n");
    git.write("a_test.go", "func TestA(t *testing.T) {\n\tt.Skip()\n}\n")
        .write("notes.txt", "a\n<<<<<<< HEAD\nb\n=======\nc\n");
    git.commit("push A");
    (project, base)
}

on_both_engines! {
    async fn rules_answer_for_changed_lines(database: TestDatabase) {
        let (project, base) = pushed(&database).await;
        let report = project.review(&base).await;
        assert_eq!(
            places(&report),
            [
                "conflict-marker notes.txt:2",
                "debug-leftover src/a.rs:2",
                "disabled-test a_test.go:2",
                "leaked-credential .netrc:1",
                "leaked-credential db/users.sql:1",
                "unpinned-action .github/workflows/ci.yml:8",
                "workflow-injection .github/workflows/ci.yml:12",
                "workflow-untrusted-checkout .github/workflows/ci.yml:11",
            ]
        );
        let credential = report.findings.iter().find(|one| one.sighting.finding.path.as_str() == ".netrc");
        let credential = &credential.expect("found").sighting.finding;
        assert_eq!(credential.severity, Severity::Major);
        assert!(!credential.message.contains("summer7"), "{}", credential.message);
    }

    async fn settings_silence_rules(database: TestDatabase) {
        let (mut project, base) = pushed(&database).await;
        project.settings = canonry_config::parse("review:\n  skipPaths: ['.github/**', '.netrc']\n  ignoredAreas: [security]\n  suppressions: ['Debugging code is left in']\n").config;
        let report = project.review(&base).await;
        assert_eq!(places(&report), ["conflict-marker notes.txt:2", "disabled-test a_test.go:2"]);
        assert_eq!(the(&report, "Debugging code is left in").shown, ShownAs::Suppressed);
        assert!(report.findings.iter().all(|one| !one.sighting.finding.path.as_str().starts_with(".github")));
    }
}
