//! Provides a repository under review: its code in git, its reviews in a store, and a clock.

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use canonry_config::RepoConfig;
use canonry_domain::review::{CommitSha, FindingStatus, ReviewSubject};
use canonry_domain::{ItemNumber, ItemRecord, ItemType, Login, RepoName};
use canonry_models::Embedder;
use canonry_review::reviewers::CommandReviewer;
use canonry_review::reviewers::llm::{LlmReviewBudget, LlmReviewer};
use canonry_review::{
    LintedCommit, PullDescription, ReportedFinding, Repository, ReviewError, ReviewOutcome, ReviewReport,
    ReviewRequest, ReviewerChoice, review,
};
use canonry_store::{FindingId, RepoId, Store};
use canonry_testkit::database::TestDatabase;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::repositories::test_repository::TestRepository;

pub(crate) struct Project {
    pub(crate) git: TestRepository,
    pub(crate) store: Store,
    pub(crate) name: RepoName,
    pub(crate) repo: RepoId,
    pub(crate) subject: ReviewSubject,
    pub(crate) settings: RepoConfig,
    pub(crate) reviewers: Vec<ReviewerChoice>,
    pub(crate) llm_budget: LlmReviewBudget,
    pub(crate) description: Option<PullDescription>,
    pub(crate) base_reports: Vec<PathBuf>,
    pub(crate) base_ledger: Option<ReviewSubject>,
    pub(crate) repository: Repository,
    files: TempDir,
    seconds: AtomicI64,
    counter: AtomicU32,
}

#[derive(Default, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) requested: bool,
    pub(crate) full: bool,
    pub(crate) embedder: Option<&'a dyn Embedder>,
    pub(crate) llm: Option<&'a LlmReviewer>,
    /// Replaces the project's reviewers.
    pub(crate) reviewers: Option<&'a [ReviewerChoice]>,
}

pub(crate) fn pull(number: i64) -> ReviewSubject {
    ReviewSubject::Pull(ItemNumber::new(number).expect("a number"))
}

pub(crate) fn login(name: &str) -> Login {
    name.parse().expect("a login")
}

/// A time, in seconds after a fixed one.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("in range")
}

impl Project {
    /// An empty repository, reviewed by the built-in rules as pull request 1.
    pub(crate) async fn new(database: &TestDatabase) -> Self {
        let store = Store::open(&database.url().parse().expect("a URL"), at(0)).await.expect("opens");
        Self::named(store, "tide/pool").await
    }

    /// A repository with one line of `a.js` changed to `line`, its base and its head.
    pub(crate) async fn pushed(database: &TestDatabase, line: &str) -> (Self, CommitSha, CommitSha) {
        let project = Self::new(database).await;
        let base = project.git.write("a.js", code("a();")).commit("base");
        let head = project.git.branch("topic").write("a.js", code(line)).commit("push A");
        (project, base, head)
    }

    pub(crate) async fn named(store: Store, name: &str) -> Self {
        let name: RepoName = name.parse().expect("a name");
        let repo = store.repos().ensure(&name, at(0)).await.expect("a repository").id;
        let git = TestRepository::new();
        Self {
            repository: git.local(),
            git,
            store,
            name,
            repo,
            subject: pull(1),
            settings: RepoConfig::default(),
            reviewers: vec![ReviewerChoice::Builtin],
            llm_budget: LlmReviewBudget::default(),
            description: None,
            base_reports: Vec::new(),
            base_ledger: None,
            files: tempfile::tempdir().expect("a folder"),
            seconds: AtomicI64::new(0),
            counter: AtomicU32::new(0),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        at(self.seconds.fetch_add(1, Ordering::Relaxed))
    }

    /// Advances the clock past the end of every earlier lease.
    pub(crate) fn wait_an_hour(&self) {
        self.seconds.fetch_add(3_600, Ordering::Relaxed);
    }

    /// A unique name.
    pub(crate) fn another(&self, what: &str) -> String {
        format!("{what}-{}", self.counter.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn file(&self, content: &str) -> PathBuf {
        let path = self.files.path().join(self.another("file"));
        std::fs::write(&path, content).expect("a file");
        path
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.files.path()
    }

    pub(crate) async fn store_issue(&self, number: ItemNumber, title: &str, body: &str) {
        let repo = self.store.repos().ensure(&self.name, self.now()).await.expect("a repository");
        let record = ItemRecord { body: Some(body.to_owned()), ..ItemRecord::new(ItemType::Issue, number, title) };
        self.store.corpus().upsert_items(&repo, vec![record], self.now()).await.expect("stored");
    }

    /// Lets a program report these findings: title, path, line, severity, category.
    pub(crate) fn reported(&mut self, findings: &[(&str, &str, u32, &str, &str)]) {
        let path = self.file(&findings_json(findings));
        self.reviewers = vec![ReviewerChoice::Builtin, telling(&path)];
    }

    pub(crate) async fn try_review(
        &self,
        base: &CommitSha,
        head: &CommitSha,
        asked: Asked<'_>,
    ) -> Result<ReviewOutcome, ReviewError> {
        self.review_by(base, head, asked, &|| self.now()).await
    }

    pub(crate) async fn review_by(
        &self,
        base: &CommitSha,
        head: &CommitSha,
        asked: Asked<'_>,
        clock: &(dyn Fn() -> Timestamp + Send + Sync),
    ) -> Result<ReviewOutcome, ReviewError> {
        let request = ReviewRequest {
            repo: self.repo,
            name: &self.name,
            subject: &self.subject,
            repository: &self.repository,
            root: Some(self.git.folder()),
            base,
            base_branch: None,
            head,
            asked_at: clock(),
            requested: asked.requested,
            full: asked.full,
            settings: &self.settings,
            description: self.description.as_ref(),
            notes: &[],
            reviewers: asked.reviewers.unwrap_or(&self.reviewers),
            linted: LintedCommit::Reported { checkout: None },
            base_reports: &self.base_reports,
            base_ledger: self.base_ledger.as_ref(),
            llm_budget: self.llm_budget,
            owner: &self.another("worker"),
        };
        review(&self.store, &request, asked.llm, asked.embedder, clock).await
    }

    /// Reviews the head; panics if that fails.
    pub(crate) async fn review(&self, base: &CommitSha) -> ReviewReport {
        self.review_asked(base, Asked::default()).await
    }

    pub(crate) async fn review_asked(&self, base: &CommitSha, asked: Asked<'_>) -> ReviewReport {
        match self.try_review(base, &self.git.head(), asked).await.expect("a review") {
            ReviewOutcome::Reviewed(report) => *report,
            other => panic!("not reviewed: {other:?}"),
        }
    }

    /// How many reviews of the subject are stored.
    pub(crate) async fn stored_reviews(&self) -> usize {
        self.store.review().list(self.repo, Some(&self.subject), 1_000).await.expect("reviews").len()
    }
}

pub(crate) fn telling(path: &std::path::Path) -> ReviewerChoice {
    let line = format!("cat {}", path.display());
    ReviewerChoice::Command(CommandReviewer::from_line(&line).expect("a program"))
}

pub(crate) fn findings_json(findings: &[(&str, &str, u32, &str, &str)]) -> String {
    let finding = |(title, path, line, severity, category): &(&str, &str, u32, &str, &str)| json!({"title": title, "path": path, "line": line, "severity": severity, "category": category});
    let findings: Vec<Value> = findings.iter().map(finding).collect();
    json!({ "findings": findings }).to_string()
}

/// The place and status of each finding, by place; `!` marks findings that were not posted before.
pub(crate) fn statuses(report: &ReviewReport) -> Vec<String> {
    let mut all: Vec<String> = report.findings.iter().map(status).collect();
    all.sort();
    all
}

fn status(one: &ReportedFinding) -> String {
    let (finding, status) = (&one.sighting.finding, one.sighting.status);
    let line = finding.lines.map_or(0, |lines| lines.first);
    let known = if one.sighting.is_known() { "" } else { "!" };
    format!("{}:{line} {}{known}", finding.path, status.as_str())
}

pub(crate) fn the<'a>(report: &'a ReviewReport, title: &str) -> &'a ReportedFinding {
    let found = report.findings.iter().find(|one| one.sighting.finding.title == title);
    found.unwrap_or_else(|| panic!("no finding {title:?} in {:?}", statuses(report)))
}

pub(crate) fn id_at(report: &ReviewReport, path: &str) -> FindingId {
    let found = report.findings.iter().find(|one| one.sighting.finding.path.as_str() == path);
    found.and_then(|one| one.id).unwrap_or_else(|| panic!("no finding in {path}"))
}

pub(crate) fn count(report: &ReviewReport, status: FindingStatus) -> usize {
    report.findings.iter().filter(|one| one.sighting.status == status).count()
}

/// Sixty lines of code, with `own` as line 30.
pub(crate) fn code(own: &str) -> String {
    (1..=60).map(|line| if line == 30 { format!("{own}\n") } else { format!("step{line}();\n") }).collect()
}
