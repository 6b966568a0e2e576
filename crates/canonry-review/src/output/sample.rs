//! Builds reports for tests.

use canonry_domain::review::{
    Category, CodeHash, Confidence, ConfidenceSigns, Finding, FindingStatus, Fingerprint, HiddenBy, LineRange,
    PatternFeedback, PatternKey, RepoPath, ReviewSubject, ReviewerName, ScopeReason, Severity, ShownAs, Sighting,
    Witness, confidence,
};

use crate::run::report::{Coverage, ReportedFinding, ReviewReport, ReviewerRun, SkippedFile};

pub(super) fn report(findings: Vec<ReportedFinding>) -> ReviewReport {
    ReviewReport {
        review: None,
        repo: "octo/widgets".parse().expect("a name"),
        subject: ReviewSubject::Branch("topic".into()),
        base: "a".repeat(40).parse().expect("an id"),
        head: "b".repeat(40).parse().expect("an id"),
        reason: ScopeReason::NoPriorReview,
        coverage: Coverage { files_changed: 2, files_read: 2, lines_read: 40, ..Coverage::default() },
        reviewers: vec![ReviewerRun {
            name: "semgrep".into(),
            findings: findings.len(),
            files: 2,
            problems: Vec::new(),
            notes: Vec::new(),
        }],
        findings,
        hidden_patterns: 0,
        notes: Vec::new(),
        model: None,
        names_bots: false,
        referee: None,
    }
}

/// A new security finding of the linter on one line, shown inline.
pub(super) fn finding(path: &str, line: u32, title: &str, severity: Severity) -> ReportedFinding {
    let rule = format!("rule-{line}");
    let reviewer = ReviewerName::tool("semgrep");
    let key = PatternKey::of_rule(reviewer.as_str(), &rule);
    let finding = Finding {
        title: title.to_owned(),
        message: String::new(),
        path: RepoPath::exact(path).expect("a path"),
        lines: LineRange::new(line, line),
        severity,
        category: Category::Security,
        fingerprint: Fingerprint::of_title(title),
        code: Some(CodeHash::of([title])),
        around: None,
        witnesses: vec![Witness { reviewer, rule: Some(rule), key }],
        partial: Default::default(),
        tags: Default::default(),
        fix: None,
        replacement: None,
        unproven: false,
    };
    ReportedFinding {
        id: None,
        confidence: sure(severity, finding.category),
        sighting: Sighting {
            finding,
            earlier: None,
            status: FindingStatus::New,
            reported: true,
            code_unchanged: false,
        },
        excerpt: None,
        shown: ShownAs::Inline,
        hidden_by: None,
        grounded: true,
        said_inline: false,
        moved_from: None,
        history: None,
    }
}

/// Sets what the comparison with an earlier review found.
pub(super) fn with_status(mut one: ReportedFinding, status: FindingStatus, code_unchanged: bool) -> ReportedFinding {
    (one.sighting.earlier, one.sighting.status) = (Some(0), status);
    one.sighting.code_unchanged = code_unchanged;
    one
}

pub(super) fn hidden(mut one: ReportedFinding, by: HiddenBy) -> ReportedFinding {
    (one.shown, one.hidden_by) = (ShownAs::Suppressed, Some(by));
    one
}

pub(super) fn skipped(path: &str, why: &str, gap: bool) -> SkippedFile {
    SkippedFile::new(RepoPath::exact(path).expect("a path"), why, gap)
}

fn sure(severity: Severity, category: Category) -> Confidence {
    confidence(ConfidenceSigns { severity, category, confirmed: false, feedback: PatternFeedback::default() })
}
