//! The code beside a finding, as it is in the commit under review.

use canonry_domain::review::{
    ConfidenceSigns, FindingStatus, LineRange, PatternFeedback, ReviewSubject, ShownAs, Sighting, confidence,
};
use canonry_review::output::{Excerpts, text};
use canonry_review::reviewers::read_with_rules;
use canonry_review::{
    Coverage, HeadTexts, ReportedFinding, ReviewReport, ReviewerRun, ScopeRequest, find_scope, merge_findings,
};

use crate::repositories::test_repository::TestRepository;

#[tokio::test]
async fn the_code_is_that_of_the_commit_and_not_of_the_work_tree() {
    let repository = TestRepository::new();
    let base = repository.write("a b.js", "start();\n").commit("base");
    repository.branch("topic").write("a b.js", "start();\r\n\tdebugger;\r\nend();\r\n");
    let head = repository.commit("a leftover");
    repository.write("a b.js", "not committed\n");

    let local = repository.local();
    let request = ScopeRequest { base: &base, head: &head, last: None, full: false };
    let scope = find_scope(&local, request).await.expect("a scope");
    let texts = HeadTexts::read(local.git(), &head, &scope.changes, &Default::default()).await.expect("texts");
    let files: Vec<_> = scope.files_read().map(|change| texts.file(change)).collect();
    let found = merge_findings(vec![read_with_rules(&files)], &texts);
    let findings = found.into_iter().map(|finding| {
        let (severity, category) = (finding.severity, finding.category);
        let signs = ConfidenceSigns { severity, category, confirmed: false, feedback: PatternFeedback::default() };
        ReportedFinding {
            id: None,
            sighting: Sighting {
                finding,
                earlier: None,
                status: FindingStatus::New,
                reported: true,
                code_unchanged: false,
            },
            shown: ShownAs::Inline,
            hidden_by: None,
            confidence: confidence(signs),
            grounded: true,
            said_inline: false,
            moved_from: None,
            history: None,
        }
    });
    let mut report = ReviewReport {
        review: None,
        repo: "octo/widgets".parse().expect("a name"),
        subject: ReviewSubject::Branch("topic".into()),
        base,
        head,
        reason: scope.reason,
        findings: findings.collect(),
        coverage: Coverage::default(),
        reviewers: vec![ReviewerRun {
            name: "builtin".into(),
            findings: 1,
            files: 1,
            problems: Vec::new(),
            notes: Vec::new(),
        }],
        hidden_patterns: 0,
        notes: Vec::new(),
        model: None,
    };
    assert_eq!(report.findings.len(), 1);
    let excerpts = Excerpts::read(local.git(), &report).await.expect("excerpts");
    assert_eq!(excerpts, Excerpts::of(&report, &texts));
    let shown = text(&report, &excerpts, 80);
    let shown = anstream::adapter::strip_str(&shown).to_string();
    assert!(shown.contains("      1 │ start();\n    > 2 │     debugger;\n      3 │ end();\n"), "{shown}");

    // A finding on lines that the file does not have is shown without code.
    report.findings[0].sighting.finding.lines = LineRange::new(7, 7);
    assert!(!text(&report, &excerpts, 80).contains('│'));
}
