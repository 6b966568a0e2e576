//! The whole service on an emulated GitHub, with a clock that only the test moves.

use std::collections::BTreeMap;
use std::ops::Deref;

use canonry_domain::{ItemType, LessonKind, Thresholds};
use canonry_github::Clock as _;
use canonry_server::{Scheduler, Schedules};
use canonry_store::{DeliveryFilter, DeliveryState, NewTriageRecord, Repo, StoredTriageAction};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewIssue, Permission, World};
use jiff::SignedDuration;

use crate::world::whole_service::WholeService;
use crate::world::{As, WorldBuilder, item};

pub(crate) const OWN: &str = "canonry[bot]";
pub(crate) const SUGGEST: &str = "triage:\n  mode: suggest\n  excludeLabels: [question]\nreview: {enabled: false}\n";
/// Each repository begins with this many issues; the topic of each is its number less one.
pub(crate) const ORIGINALS: u64 = 6;

pub(crate) struct TriageWorld {
    whole: WholeService,
    scheduler: Scheduler,
}

impl Deref for TriageWorld {
    type Target = WholeService;

    fn deref(&self) -> &WholeService {
        &self.whole
    }
}

impl TriageWorld {
    /// The App was just installed on these repositories; nothing has been delivered.
    pub(crate) async fn new(database: TestDatabase, repos: &[&str]) -> Self {
        Self::with(database, world(repos)).await
    }

    /// The same with a given world.
    pub(crate) async fn with(database: TestDatabase, world: World) -> Self {
        let permissions = [
            ("issues", "write"),
            ("pull_requests", "write"),
            ("checks", "write"),
            ("contents", "read"),
            ("metadata", "read"),
        ];
        let whole = WholeService::start(database, world, &permissions, WorldBuilder::new(As::App)).await;
        let (store, clock) = (whole.store.clone(), whole.clock.clone());
        let scheduler = Scheduler { store, clock, schedules: Schedules::App };
        Self { whole, scheduler }
    }

    /// Advances the time and runs the schedules.
    pub(crate) async fn later(&self, time: SignedDuration) {
        self.move_to(self.clock.now() + time);
        self.scheduler.tick().await.expect("ticks");
        self.settle().await;
    }

    /// Delivers and runs everything, however far in the future it is due.
    pub(crate) async fn settle(&self) {
        self.settle_within(None, |_| false).await;
    }

    pub(crate) async fn repo(&self, name: &str) -> Repo {
        self.repo_named(name).await
    }

    /// A person reports the problem of `topic`, a minute after the last event.
    pub(crate) fn report(&self, repo: &str, topic: u64, alike: u64) -> u64 {
        self.report_as(repo, "ann", &format!("It stops: topic{topic} alike{alike}"), &[])
    }

    pub(crate) fn report_as(&self, repo: &str, by: &str, title: &str, labels: &[&str]) -> u64 {
        let mut world = self.emulator.world();
        world.advance(60);
        let body = format!("It stops with the error E{} and never comes back.", world.now.as_second());
        let new = labels.iter().fold(NewIssue::new(title, &body), |new, label| new.label(label));
        world.open(repo, by, new)
    }

    /// A person closes it, a minute after the last event.
    pub(crate) fn close(&self, repo: &str, number: u64, by: &str, reason: CloseReason) {
        let mut world = self.emulator.world();
        world.advance(60);
        world.close(repo, number, by, reason);
    }

    /// A maintainer closes it as a duplicate of the original of its topic.
    pub(crate) fn confirm(&self, repo: &str, number: u64) {
        let id = {
            let world = self.emulator.world();
            let topic = world.issue(repo, number).title.split("topic").nth(1).expect("a topic");
            let topic: String = topic.chars().take_while(char::is_ascii_digit).collect();
            world.issue(repo, topic.parse::<u64>().expect("digits") + 1).id
        };
        self.close(repo, number, "maint", CloseReason::Duplicate(Some(id)));
    }

    pub(crate) fn said(&self, repo: &str, number: u64) -> Vec<String> {
        self.emulator.world().comments_by(repo, number, OWN).iter().map(|comment| comment.body.clone()).collect()
    }

    pub(crate) fn is_labelled(&self, repo: &str, number: u64) -> bool {
        self.emulator.world().issue(repo, number).labels.iter().any(|label| label == "possible-duplicate")
    }

    /// Asserts one comment that names the target, and the label.
    pub(crate) fn assert_said(&self, repo: &str, number: u64, target: u64) {
        let said = self.said(repo, number);
        assert_eq!((said.len(), self.is_labelled(repo, number)), (1, true), "{repo}#{number}: {said:?}");
        assert!(said[0].contains(&format!("#{target}")), "{repo}#{number}: {said:?}");
    }

    pub(crate) fn assert_silent(&self, repo: &str, number: u64) {
        let said = self.said(repo, number);
        assert_eq!((said.len(), self.is_labelled(repo, number)), (0, false), "{repo}#{number}: {said:?}");
    }

    /// What Canonry last did about an issue, and why.
    pub(crate) async fn action(&self, repo: &str, number: u64) -> StoredTriageAction {
        let id = self.repo(repo).await.id;
        let mut actions =
            self.store.duplicates().triage_actions_of(id, ItemType::Issue, item(number)).await.expect("reads");
        assert!(!actions.is_empty(), "{repo}#{number} has no action");
        actions.remove(0)
    }

    pub(crate) async fn records(&self, repo: &str, number: u64) -> Vec<NewTriageRecord> {
        let id = self.repo(repo).await.id;
        let stored = self.store.duplicates().triage_records_of(id, ItemType::Issue, item(number)).await.expect("reads");
        stored.into_iter().map(|stored| stored.record).collect()
    }

    /// The lesson of an issue; `None` if its outcome is unknown.
    pub(crate) async fn lesson(&self, repo: &str, number: u64) -> Option<LessonKind> {
        let id = self.repo(repo).await.id;
        let stored = self.store.learning().issue_outcome(id, item(number)).await.expect("reads");
        stored.map(|stored| stored.lesson.kind()).filter(|kind| *kind != LessonKind::Unknown)
    }

    /// The stored thresholds; asserts that they match the log.
    pub(crate) async fn thresholds(&self, repo: &str) -> Thresholds {
        let id = self.repo(repo).await.id;
        let stored = self.store.learning().thresholds(id).await.expect("reads");
        assert_eq!(stored, self.store.learning().recomputed_thresholds(id).await.expect("reads"), "{repo}");
        stored
    }

    /// The repository's current threshold; `None` if it is silent.
    pub(crate) async fn current(&self, repo: &str) -> Option<u8> {
        self.thresholds(repo).await.repository.current.threshold().map(canonry_domain::Threshold::get)
    }

    /// How many lessons of each kind count: confirmed, false positives, missed, true negatives, all.
    pub(crate) async fn counts(&self, repo: &str) -> [u64; 5] {
        let counts = self.thresholds(repo).await.repository.counts;
        [counts.confirmed, counts.false_positives, counts.missed, counts.true_negatives, counts.total]
    }

    /// The number of deliveries in each state.
    pub(crate) async fn deliveries(&self) -> BTreeMap<&'static str, usize> {
        let mut counted = BTreeMap::new();
        for delivery in self.store.deliveries().list(&DeliveryFilter::default(), 10_000).await.expect("reads") {
            assert!(delivery.state != DeliveryState::Queued, "{delivery:?}");
            *counted.entry(delivery.state.as_str()).or_default() += 1;
        }
        counted
    }

    /// The writes to GitHub, without token requests.
    pub(crate) fn writes(&self) -> Vec<String> {
        let writes = self.emulator.writes().into_iter().filter(|request| !request.path.ends_with("/access_tokens"));
        writes.map(|request| format!("{} {}", request.method, request.named_path)).collect()
    }

    pub(crate) async fn stop(self) {
        self.whole.stop().await;
    }
}

pub(crate) fn world(repos: &[&str]) -> World {
    let mut world = World::new();
    for name in ["ann", "ben", "cleo"] {
        world.user(name);
    }
    world.bot("stale[bot]");
    for repo in repos {
        world.repo(repo);
        world.collaborator(repo, "maint", Permission::Maintain);
        for topic in 0..ORIGINALS {
            world.advance(60);
            let title = format!("The tide stops: topic{topic}");
            world.open(repo, "maint", NewIssue::new(&title, "It stops, and this is where it is looked into."));
        }
    }
    world
}
