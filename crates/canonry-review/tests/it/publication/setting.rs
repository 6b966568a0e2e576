//! Provides a store, an emulated GitHub with one pull request, and processes that review it and end.

use std::ops::{ControlFlow, Deref};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use canonry_config::RepoConfig;
use canonry_domain::ItemNumber;
use canonry_domain::review::{CommitSha, ReviewSubject};
use canonry_github::outbox::{Outbox, OutboxError};
use canonry_github::{Auth, GitHub};
use canonry_review::reviewers::CommandReviewer;
use canonry_review::reviewers::llm::{LlmReviewBudget, LlmReviewer};
use canonry_review::{
    FetchedRepository, LintedCommit, Publication, PublicationError, PublicationRecheck, PublicationResult, Remote,
    Repository, ReviewOutcome, ReviewReport, ReviewRequest, ReviewerChoice, review,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{NewPull, Permission, ReviewState};
pub(crate) use canonry_testworld::{APP, OWN};
use canonry_testworld::{TestWorld, app_auth, number, token_auth, world_with_app};
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const REPO: &str = "acme/widgets";
/// The permissions with which an App can do everything.
pub(crate) const ALL: [&str; 4] = ["issues", "pull_requests", "checks", "contents"];

pub(crate) struct Setting {
    world: TestWorld,
    pub(crate) pull: ItemNumber,
    pub(crate) settings: RepoConfig,
    pub(crate) own: &'static str,
    pub(crate) llm: Option<LlmReviewer>,
    files: TempDir,
    counter: AtomicU32,
}

impl Deref for Setting {
    type Target = TestWorld;

    fn deref(&self) -> &TestWorld {
        &self.world
    }
}

impl Setting {
    /// A pull request that adds `src/app.js` with these lines, and an App with the permissions `areas`.
    pub(crate) async fn with_app(database: TestDatabase, areas: &[&str], lines: &str) -> Self {
        Self::with(database, APP, app_auth(), areas, lines).await
    }

    pub(crate) async fn with_token(database: TestDatabase, lines: &str) -> Self {
        Self::with(database, OWN, token_auth(), &ALL, lines).await
    }

    async fn with(database: TestDatabase, own: &'static str, auth: Auth, areas: &[&str], lines: &str) -> Self {
        let mut world = world_with_app(REPO, areas);
        world.user("ann");
        world.collaborator(REPO, "mona", Permission::Write);
        world.commit(REPO, "main", &[("README.md", Some("# Widgets\n"))]);
        world.commit(REPO, "topic", &[("src/app.js", Some(lines))]);
        let pull = world.open_pull(REPO, "ann", "topic", NewPull::new("Add the app"));
        let world = TestWorld::start(database, world, REPO, auth).await.identified().await;
        Self {
            world,
            pull: number(pull),
            settings: RepoConfig::default(),
            own,
            llm: None,
            files: tempfile::tempdir().expect("a folder"),
            counter: AtomicU32::new(0),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        u64::try_from(self.pull.get()).expect("positive")
    }

    pub(crate) fn push(&self, lines: &str) -> String {
        self.emulator.world().push_pull(REPO, self.number(), "ann", &[("src/app.js", Some(lines))])
    }

    pub(crate) fn force_push(&self, lines: &str) -> String {
        self.emulator.world().force_push_pull(REPO, self.number(), "ann", &[("src/app.js", Some(lines))])
    }

    fn another(&self, what: &str) -> String {
        format!("{what}-{}", self.counter.fetch_add(1, Ordering::Relaxed))
    }

    fn file(&self, content: &str) -> PathBuf {
        let path = self.files.path().join(self.another("file"));
        std::fs::write(&path, content).expect("a file");
        path
    }

    pub(crate) fn telling(&self, findings: &[Value]) -> ReviewerChoice {
        let path = self.file(&json!({ "findings": findings }).to_string());
        let folder = self.files.path().join(self.another("folder"));
        std::fs::create_dir(&folder).expect("a folder");
        let program = folder.join("linter");
        std::fs::write(&program, format!("#!/bin/sh\ncat {}\n", path.display())).expect("a program");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
        let line = program.to_str().expect("UTF-8");
        ReviewerChoice::Command(CommandReviewer::from_line(line).expect("a program"))
    }

    /// Reviews the live head with these findings.
    pub(crate) async fn review(&self, findings: &[Value]) -> ReviewReport {
        self.review_by(&[ReviewerChoice::Builtin, self.telling(findings)], true).await
    }

    pub(crate) async fn review_by(&self, reviewers: &[ReviewerChoice], requested: bool) -> ReviewReport {
        match self.try_review(reviewers, requested).await {
            ReviewOutcome::Reviewed(report) | ReviewOutcome::AlreadyReviewed(report) => *report,
            other => panic!("not reviewed: {other:?}"),
        }
    }

    async fn try_review(&self, reviewers: &[ReviewerChoice], requested: bool) -> ReviewOutcome {
        let github = self.github();
        let live = github.pull(&self.repo.name, self.pull).await.expect("a pull request");
        let sha = |text: &str| text.parse::<CommitSha>().expect("an id");
        let (base, head) = (sha(&live.base.sha), sha(&live.head.sha));
        let token = github.git_token(&self.repo.name).await.expect("a token");
        let remote = Remote::new(&github.clone_url(&self.repo.name), Some(token.expose())).expect("an address");
        let folder = self.files.path().join(self.another("clone"));
        let fetched = FetchedRepository::fetch(&folder, &remote, &base, &head).await.expect("fetched");
        let request = ReviewRequest {
            repo: self.repo.id,
            name: &self.repo.name,
            subject: &ReviewSubject::Pull(self.pull),
            repository: &Repository::Fetched(fetched),
            root: Some(self.files.path()),
            base: &base,
            base_branch: Some(&live.base.branch),
            head: &head,
            asked_at: self.tick(),
            requested,
            full: false,
            settings: &self.settings,
            description: None,
            notes: &[],
            reviewers,
            linted: LintedCommit::Reported { checkout: None },
            base_reports: &[],
            base_ledger: None,
            llm_budget: LlmReviewBudget::default(),
            owner: &self.another("worker"),
        };
        review(&self.store, &request, self.llm.as_ref(), None, &|| self.tick()).await.expect("a review")
    }

    fn tick(&self) -> Timestamp {
        let mut world = self.emulator.world();
        world.advance(1);
        world.now
    }

    /// Publishes as a newly started process does.
    pub(crate) async fn publish(&self, report: &ReviewReport) -> PublicationResult {
        let outbox = self.outbox().await;
        self.publish_with(report, &outbox).await.expect("published")
    }

    /// Publishes until the process "dies" at its `steps`-th point; `None` if it died.
    pub(crate) async fn publish_until(&self, report: &ReviewReport, steps: usize) -> Option<PublicationResult> {
        let passed = AtomicUsize::new(0);
        self.publish_while(report, move || passed.fetch_add(1, Ordering::SeqCst) < steps).await
    }

    /// Publishes until the process "dies" at the first point at which `lives` returns false; `None` if it died.
    pub(crate) async fn publish_while(
        &self,
        report: &ReviewReport,
        lives: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Option<PublicationResult> {
        let checkpoint = move |_| if lives() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let outbox = self.outbox().await.with_checkpoint(Arc::new(checkpoint));
        match self.publish_with(report, &outbox).await {
            Ok(published) => Some(published),
            Err(PublicationError::Outbox(OutboxError::Stopped(_))) => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn publish_with(
        &self,
        report: &ReviewReport,
        outbox: &Outbox,
    ) -> Result<PublicationResult, PublicationError> {
        let github = self.github();
        let recheck = PublicationRecheck { store: self.store.clone(), github: github.clone() };
        self.publication(&github, outbox, &recheck).publish(report).await
    }

    pub(crate) fn publication<'a>(
        &'a self,
        github: &'a GitHub,
        outbox: &'a Outbox,
        recheck: &'a PublicationRecheck,
    ) -> Publication<'a> {
        Publication {
            store: &self.store,
            github,
            outbox,
            repo: &self.repo,
            number: self.pull,
            check_runs: github.is_app(),
            recheck,
            handle: Some("canonry"),
        }
    }

    /// The pull request as people see it.
    pub(crate) fn conversation(&self) -> String {
        self.emulator.world().conversation(REPO, self.number())
    }

    /// How many of our reviews people see, and how many inline comments these have.
    pub(crate) fn own_reviews(&self) -> (usize, usize) {
        let world = self.emulator.world();
        let reviews = world.reviews_by(REPO, self.number(), self.own);
        let shown = reviews.iter().filter(|review| review.state == ReviewState::Commented).count();
        (shown, world.review_comments_by(REPO, self.number(), self.own).len())
    }

    /// The bodies of our visible reviews, without their markers.
    pub(crate) fn own_bodies(&self) -> Vec<String> {
        let world = self.emulator.world();
        let reviews = world.reviews_by(REPO, self.number(), self.own);
        let shown = reviews.iter().filter(|review| review.state == ReviewState::Commented);
        shown.map(|review| review.body.split("\n\n<!--").next().unwrap_or_default().to_owned()).collect()
    }

    /// The texts of our comments in the conversation.
    pub(crate) fn own_comments(&self) -> Vec<String> {
        let world = self.emulator.world();
        world.comments_by(REPO, self.number(), self.own).iter().map(|comment| comment.body.clone()).collect()
    }

    /// The state of the newest check run, and its title.
    pub(crate) fn check(&self) -> Option<(String, Option<String>, String)> {
        let world = self.emulator.world();
        let head = world.pull(REPO, self.number()).head_sha.clone();
        let run = world.get(REPO).check_runs.iter().rfind(|run| run.head_sha == head)?;
        Some((run.status.clone(), run.conclusion.clone(), run.title.clone().unwrap_or_default()))
    }

    /// The text of the newest check run.
    pub(crate) fn check_text(&self) -> String {
        let world = self.emulator.world();
        let head = world.pull(REPO, self.number()).head_sha.clone();
        let run = world.get(REPO).check_runs.iter().rfind(|run| run.head_sha == head).expect("a check run");
        run.summary.clone().unwrap_or_default()
    }

    /// The inline comment of the finding with this title.
    pub(crate) fn comment_about(&self, title: &str) -> u64 {
        let world = self.emulator.world();
        let comments = world.review_comments_by(REPO, self.number(), self.own);
        comments.iter().rfind(|comment| comment.body.contains(title)).expect("a comment").id
    }
}

/// A finding in the format of a reviewing program.
pub(crate) fn finding(title: &str, line: u32, severity: &str, category: &str) -> Value {
    let rule = title.to_lowercase().replace(' ', "-");
    json!({ "title": title, "path": "src/app.js", "line": line, "severity": severity, "category": category, "rule": rule })
}

pub(crate) fn saying(mut finding: Value, message: &str) -> Value {
    finding["message"] = json!(message);
    finding
}

/// Lines of code, some of them replaced by `own`.
pub(crate) fn code(own: &[(u32, &str)]) -> String {
    let line = |number| match own.iter().find(|(at, _)| *at == number) {
        Some((_, code)) => format!("{code}\n"),
        None => format!("step{number}();\n"),
    };
    (1..=40).map(line).collect()
}

pub(crate) fn done(published: &PublicationResult) -> (usize, bool, usize) {
    match published {
        PublicationResult::Done { inline, wrote_summary, settled, refused } if refused.is_empty() => {
            (*inline, *wrote_summary, *settled)
        }
        other => panic!("not done: {other:?}"),
    }
}
