//! Shared helpers of the review tests: claims, findings, records of them.

use canonry_domain::ItemNumber;
use canonry_domain::review::{
    Category, CodeHash, CommitSha, Confidence, Finding, FindingStatus, Fingerprint, HiddenBy, LineRange, PatternKey,
    RepoPath, ReviewMode, ReviewSubject, ReviewerName, Severity, ShownAs, Witness,
};
use canonry_store::{
    ClaimOutcome, FindingId, FindingRecord, Repo, ReviewClaim, ReviewId, ReviewRecord, ReviewRun, ReviewState, Store,
};
use canonry_testkit::database::TestDatabase;
use serde_json::{Value, json};

pub(crate) use crate::fixtures::at;

/// How long a claim lasts, in seconds.
pub(crate) const LEASE: i64 = 60;

pub(crate) async fn open(database: &TestDatabase) -> (Store, Repo) {
    let store = Store::open(&database.url().parse().expect("valid"), at(0)).await.expect("opens");
    let repo = store.repos().ensure(&"tide/pool".parse().expect("valid"), at(0)).await.expect("created");
    (store, repo)
}

pub(crate) fn pull(number: i64) -> ReviewSubject {
    ReviewSubject::Pull(ItemNumber::new(number).expect("positive"))
}

/// A commit whose id is one letter, repeated.
pub(crate) fn sha(letter: char) -> CommitSha {
    letter.to_string().repeat(40).parse().expect("an id")
}

/// A request to review a subject at a head.
pub(crate) struct Wish<'a> {
    pub(crate) repo: &'a Repo,
    pub(crate) subject: ReviewSubject,
    pub(crate) head: char,
    pub(crate) owner: &'a str,
    pub(crate) requested: bool,
    pub(crate) full: bool,
    /// The second of the trigger; `None` means the second of the claim.
    pub(crate) asked: Option<i64>,
    /// The target branch of the pull request.
    pub(crate) branch: Option<&'a str>,
}

impl<'a> Wish<'a> {
    pub(crate) fn new(repo: &'a Repo, head: char, owner: &'a str) -> Self {
        Self { repo, subject: pull(1), head, owner, requested: false, full: false, asked: None, branch: None }
    }

    pub(crate) async fn claim(&self, store: &Store, second: i64) -> ClaimOutcome {
        let (base, head) = (sha('0'), sha(self.head));
        let claim = ReviewClaim {
            repo: self.repo.id,
            subject: &self.subject,
            base: &base,
            base_branch: self.branch,
            head: &head,
            requested: self.requested,
            full: self.full,
            asked_at: at(self.asked.unwrap_or(second)),
            owner: self.owner,
            until: at(second + LEASE),
        };
        store.review().claim(&claim, at(second)).await.expect("claims")
    }

    /// Claims a run and expects to get it.
    pub(crate) async fn run(&self, store: &Store, second: i64) -> ReviewRun {
        match self.claim(store, second).await {
            ClaimOutcome::Run(run) => run,
            other => panic!("not a run: {other:?}"),
        }
    }
}

/// A finding of a tool's rule on one line.
pub(crate) fn finding(path: &str, line: u32, title: &str) -> Finding {
    let tool = ReviewerName::tool("eslint");
    let rule = title.to_lowercase();
    Finding {
        title: title.to_owned(),
        message: format!("{title}, at length."),
        path: RepoPath::new(path).expect("a path"),
        lines: LineRange::new(line, line),
        severity: Severity::Medium,
        category: Category::Style,
        fingerprint: Fingerprint::of_title(title),
        code: Some(CodeHash::of([title])),
        around: None,
        witnesses: vec![Witness { key: PatternKey::of_rule(tool.as_str(), &rule), reviewer: tool, rule: Some(rule) }],
        partial: [("primary".to_owned(), "\u{0}1".to_owned())].into(),
        tags: ["cwe-1".to_owned()].into(),
        fix: None,
        replacement: None,
        unproven: false,
    }
}

pub(crate) fn confidence(points: u8) -> Confidence {
    serde_json::from_value(json!(points)).expect("points")
}

/// The record of a new finding that is shown.
pub(crate) fn new(finding: &Finding) -> FindingRecord<'_> {
    FindingRecord {
        earlier: None,
        finding,
        excerpt: None,
        status: FindingStatus::New,
        shown: ShownAs::Inline,
        hidden_by: None,
        confidence: confidence(60),
        grounded: true,
        said_inline: false,
        reported: true,
        code_unchanged: false,
    }
}

/// The record of a finding that already exists.
pub(crate) fn again(id: FindingId, finding: &Finding, status: FindingStatus) -> FindingRecord<'_> {
    FindingRecord { earlier: Some(id), status, ..new(finding) }
}

pub(crate) fn hidden<'a>(finding: &'a Finding, by: &'a HiddenBy) -> FindingRecord<'a> {
    FindingRecord { shown: ShownAs::Suppressed, hidden_by: Some(by), ..new(finding) }
}

/// The record of a run with these findings.
pub(crate) fn record<'a>(
    run: ReviewId,
    owner: &'a str,
    reviewers: &'a Value,
    findings: &'a [FindingRecord<'a>],
) -> ReviewRecord<'a> {
    ReviewRecord {
        run,
        owner,
        mode: ReviewMode::Full,
        reason: "no-prior-review",
        files_read: 2,
        lines_read: 40,
        notes: &[],
        reviewers,
        model: None,
        cost_usd: 0.0,
        findings,
    }
}

pub(crate) async fn complete(
    store: &Store,
    run: ReviewId,
    owner: &str,
    findings: &[FindingRecord<'_>],
    second: i64,
) -> Option<Vec<FindingId>> {
    store.review().complete(&record(run, owner, &json!({}), findings), at(second)).await.expect("no failure")
}

/// A whole review of a subject: claimed and completed with these findings.
pub(crate) async fn reviewed(
    store: &Store,
    repo: &Repo,
    subject: ReviewSubject,
    head: char,
    findings: &[FindingRecord<'_>],
    second: i64,
) -> (ReviewId, Vec<FindingId>) {
    let wish = Wish { subject, ..Wish::new(repo, head, "whole") };
    let run = wish.run(store, second).await;
    let ids = complete(store, run.id, "whole", findings, second).await.expect("it is ours");
    (run.id, ids)
}

/// Returns the states of a subject's runs, oldest first.
pub(crate) async fn states(store: &Store, repo: &Repo) -> Vec<ReviewState> {
    let runs = store.review().runs(repo.id, Some(&pull(1)), 100).await.expect("reads");
    runs.into_iter().rev().map(|run| run.state).collect()
}
