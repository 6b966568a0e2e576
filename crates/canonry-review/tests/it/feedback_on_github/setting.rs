//! Provides pull requests on an emulated GitHub, and reviews whose findings are posted there as comments.

use std::sync::Arc;

use canonry_domain::review::PatternFeedback;
use canonry_domain::{GithubId, ItemNumber, Login};
use canonry_github::GitHub;
use canonry_review::{
    FindingReactionsReport, FindingThread, ReviewReport, poll_finding_reactions, poll_reactions_of_pull,
};
use canonry_store::{FindingId, Repo};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, NewPull, Permission, World};
use jiff::{SignedDuration, Timestamp};

use crate::pipeline::project::{Project, code, login, pull, the};
use canonry_testworld::{TOKEN, WorldClock, client, token_auth};

pub(crate) const REPO: &str = "tide/pool";
pub(crate) use canonry_testworld::OWN;
/// The findings of each review: one that feedback may hide, and one that it may not.
pub(crate) const MILD: &str = "Odd name";
pub(crate) const GRAVE: &str = "Key in the code";

pub(crate) struct Setting {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) github: GitHub,
    pub(crate) project: Project,
    pub(crate) repo: Repo,
    base: canonry_domain::review::CommitSha,
}

/// A review whose findings are posted as comments.
pub(crate) struct Posted {
    pub(crate) number: ItemNumber,
    pub(crate) report: ReviewReport,
    comments: Vec<(FindingId, GithubId)>,
}

impl Posted {
    pub(crate) fn finding(&self, title: &str) -> FindingId {
        the(&self.report, title).id.expect("stored")
    }

    pub(crate) fn comment(&self, title: &str) -> u64 {
        let finding = self.finding(title);
        let comment = self.comments.iter().find(|(id, _)| *id == finding).expect("it was posted").1;
        u64::try_from(comment.0).expect("positive")
    }

    pub(crate) fn thread(&self, setting: &Setting, title: &str) -> FindingThread {
        let thread = GithubId(i64::try_from(self.comment(title)).expect("small"));
        FindingThread { repo: setting.repo.id, number: self.number, thread }
    }
}

impl Setting {
    /// A repository that `maint` maintains.
    pub(crate) async fn new(database: &TestDatabase) -> Self {
        let mut world = World::new();
        world.repo(REPO);
        world.token(TOKEN, OWN);
        world.collaborator(REPO, OWN, Permission::Write);
        world.collaborator(REPO, "maint", Permission::Maintain);
        for name in ["ann", "ada", "bea", "cleo"] {
            world.user(name);
        }
        world.bot("stale[bot]");
        let emulator = Arc::new(Emulator::start(world).await);
        let github = client(&emulator, Arc::new(WorldClock(Arc::clone(&emulator))), token_auth());
        let mut project = Project::new(database).await;
        let base = project.git.write("a.js", code("a();")).commit("base");
        project.git.branch("topic").write("a.js", code("b();")).commit("push A");
        project.reported(&[(MILD, "a.js", 30, "minor", "style"), (GRAVE, "a.js", 30, "critical", "security")]);
        let repo = project.store.repos().find(&project.name).await.expect("reads").expect("stored");
        Self { emulator, github, project, repo, base }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.emulator.world().now
    }

    pub(crate) fn later(&self, hours: i64) {
        self.emulator.world().now += SignedDuration::from_hours(hours);
    }

    /// Opens a pull request by an author, reviews it, and posts the findings.
    pub(crate) async fn pull_by(&mut self, author: &str) -> Posted {
        let number = {
            let mut world = self.emulator.world();
            let branch = format!("topic-{}", world.get(REPO).issues.len());
            world.commit(REPO, &branch, &[("a.js", Some(&code("b();")))]);
            world.open_pull(REPO, author, &branch, NewPull::new("A change"))
        };
        let number = ItemNumber::new(i64::try_from(number).expect("small")).expect("positive");
        self.project.subject = pull(number.get());
        let report = self.project.review(&self.base).await;
        let comments = self.post(number, &report).await;
        Posted { number, report, comments }
    }

    /// Posts a review's findings as comments; repeated calls post them again.
    pub(crate) async fn post(&self, number: ItemNumber, report: &ReviewReport) -> Vec<(FindingId, GithubId)> {
        let mut comments = Vec::new();
        for one in &report.findings {
            let of = u64::try_from(number.get()).expect("positive");
            let comment = self.emulator.world().comment_on_line(REPO, of, OWN, "a.js", 30, &one.sighting.finding.title);
            comments.push((one.id.expect("stored"), GithubId(i64::try_from(comment).expect("small"))));
        }
        let (run, now) = (report.review.expect("stored"), self.now());
        let posted = self.project.store.findings().record_posted(self.repo.id, number, run, &comments, now);
        posted.await.expect("stored");
        comments
    }

    pub(crate) fn react(&self, comment: u64, reactions: &[(&str, &str)]) {
        let mut world = self.emulator.world();
        for (by, content) in reactions {
            world.advance(1);
            world.react_to_review_comment(REPO, comment, by, content);
        }
    }

    pub(crate) async fn poll(&self) -> FindingReactionsReport {
        let own = login(OWN);
        poll_finding_reactions(&self.project.store, &self.github, &own, self.now()).await.expect("polled")
    }

    pub(crate) async fn poll_pull(&self, number: ItemNumber) -> FindingReactionsReport {
        let (store, own) = (&self.project.store, login(OWN));
        poll_reactions_of_pull(store, &self.github, &own, &self.repo, number, self.now()).await.expect("polled")
    }

    /// The feedback on a pattern, by its title.
    pub(crate) async fn feedback(&self, title: &str) -> PatternFeedback {
        let patterns = self.project.store.findings().pattern_feedback(self.repo.id).await.expect("reads");
        let found = patterns.into_iter().find(|pattern| pattern.title == title);
        found.map(|pattern| pattern.feedback).unwrap_or_default()
    }

    pub(crate) async fn set_maintainers(&self, logins: &[&str]) {
        let logins: Vec<Login> = logins.iter().map(|name| login(name)).collect();
        let source = canonry_store::MaintainerSource::Set;
        self.project.store.repos().set_maintainers(self.repo.id, source, &logins, self.now()).await.expect("stored");
    }
}
