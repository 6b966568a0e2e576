//! A repository whose plans are applied and undone by orders, with a clock that moves when workers wait.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use canonry_domain::{ItemNumber, ItemType, Login, Probability, RowSnapshot, TargetPolicy};
use canonry_server::{Service, Worker};
use canonry_store::{
    CloseRunId, Job, JobCaps, JobFilter, JobId, JobScope, JobState, NewPlan, NewPlanRow, PlanOrigin, Repo,
    Representation,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, Event, EventKind, NewIssue, Permission, State, World};
use canonry_triage::{SyncOptions, refresh_maintainers, sync};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::world::clocks::WaitingMoves;
use crate::world::{As, ServiceWorld, TOKEN, WorldBuilder, item};

pub(crate) const REPO: &str = "acme/widgets";
pub(crate) const OWN: &str = "canonry-bot";
pub(crate) const MAINTAINER: &str = "maint";
/// A job with more tries than this never ends.
const MOST_TRIES: usize = 200;

pub(crate) struct CloseWorld {
    world: ServiceWorld,
    pub(crate) repo: Repo,
    url: String,
    _database: TestDatabase,
}

impl Deref for CloseWorld {
    type Target = ServiceWorld;

    fn deref(&self) -> &ServiceWorld {
        &self.world
    }
}

/// What GitHub shows of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) open: bool,
    pub(crate) closes: usize,
    pub(crate) comments: usize,
    pub(crate) labels: Vec<String>,
}

impl CloseWorld {
    pub(crate) async fn new(database: TestDatabase) -> Self {
        let mut world = World::new();
        world.token(TOKEN, OWN);
        world.repo(REPO);
        world.user("ann");
        world.collaborator(REPO, OWN, Permission::Admin);
        world.collaborator(REPO, MAINTAINER, Permission::Maintain);
        world.rate.limit = 10_000_000;
        let emulator = Arc::new(Emulator::start(world).await);
        let clock = Arc::new(WaitingMoves::new(&emulator, Some(Duration::from_millis(20))));
        let url = database.url().to_owned();
        let world = WorldBuilder::new(As::Token).topics().start(&emulator, clock, &url).await;
        let (name, store) = (REPO.parse().expect("a name"), &world.store);
        store.repos().ensure(&name, world.clock.now()).await.expect("stored");
        sync(store, &world.github, &name, SyncOptions::default(), &mut |_| {}).await.expect("synced");
        refresh_maintainers(store, &world.github, &name).await.expect("told");
        let repo = store.repos().find(&name).await.expect("reads").expect("known");
        Self { world, repo, url, _database: database }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A maintainer pushes settings to the default branch.
    pub(crate) fn settings(&self, text: &str) {
        self.emulator.world().push(REPO, "main", MAINTAINER, ".canonry.yml", text);
    }

    /// Opens a new item with this many duplicates, and makes a plan that closes them.
    pub(crate) async fn plan(&self, duplicates: usize) -> (CloseRunId, ItemNumber, Vec<ItemNumber>) {
        let open = |title: &str| {
            let mut world = self.emulator.world();
            world.advance(60);
            item(world.open(REPO, "ann", NewIssue::new(title, "It stops with the error E0599 at once.")))
        };
        let original = open("Sync stops");
        let duplicates: Vec<ItemNumber> = (0..duplicates).map(|_| open("Sync stops too")).collect();
        self.sync().await;
        let mut rows = Vec::new();
        for duplicate in &duplicates {
            let (one, other) = (self.item(*duplicate).await, self.item(original).await);
            rows.push(NewPlanRow {
                item_type: ItemType::Issue,
                number: *duplicate,
                target: Some(original),
                skip: None,
                confidence: Some(Probability::new(0.95).expect("a probability")),
                evidence: json!({ "facts": ["the error `E0599`"] }),
                snapshot: serde_json::to_value(RowSnapshot::of(&one, &other)).expect("plain data"),
            });
        }
        let new = NewPlan {
            representation: Representation::Raw,
            target_policy: TargetPolicy::CanonicalOnly,
            min_close: Probability::new(0.9).expect("a probability"),
            config_hash: "hash",
            run_id: "planned",
        };
        self.emulator.world().advance(5);
        let plan = self.store.plans().create(self.repo.id, &new, &rows, self.now()).await.expect("stored");
        (plan, original, duplicates)
    }

    pub(crate) async fn approve(&self, plan: CloseRunId, numbers: &[ItemNumber]) {
        let stored =
            self.store.plans().set_approved(plan, ItemType::Issue, numbers, Some(true), None, self.now()).await;
        assert_eq!(stored.expect("stored"), numbers.len());
    }

    pub(crate) async fn sync(&self) {
        sync(&self.store, &self.github, &self.repo.name, SyncOptions::default(), &mut |_| {}).await.expect("synced");
    }

    async fn item(&self, number: ItemNumber) -> canonry_domain::Item {
        self.store.corpus().item(self.repo.id, ItemType::Issue, number).await.expect("reads").expect("known")
    }

    /// A service with its own connections, like another process.
    pub(crate) async fn service(&self) -> Arc<Service> {
        self.another_service(&self.url).await
    }

    async fn own_worker(&self) -> Worker {
        self.worker(self.service().await, JobCaps { per_repo: 2, in_all: 4 }, JobScope::All)
    }

    pub(crate) async fn one_try(&self) {
        let ended = self.own_worker().await.work_once("one", 0.0).await.expect("works");
        assert!(ended.is_some(), "nothing is due");
    }

    /// The number of plans that a run has made.
    pub(crate) async fn plans_of(&self, run_id: &str) -> usize {
        let plans = self.store.plans().list(self.repo.id, PlanOrigin::Person, None, 1_000).await.expect("reads");
        plans.iter().filter(|plan| plan.run.run_id == run_id).count()
    }

    /// Runs everything that is queued, and returns how often a job was started.
    pub(crate) async fn work(&self) -> usize {
        let worker = self.own_worker().await;
        let mut begun = 0;
        for tries in 0..MOST_TRIES {
            if worker.work_once(&format!("worker-{tries}"), 0.0).await.expect("works").is_some() {
                begun += 1;
                continue;
            }
            let queued = JobFilter { state: Some(JobState::Queued), ..JobFilter::default() };
            let jobs = self.store.jobs().list(&queued, 100).await.expect("reads");
            match jobs.iter().map(|job| job.run_after).min() {
                Some(next) => self.clock.sleep_until(next).await,
                None => return begun,
            }
        }
        panic!("it does not end: {:#?}", self.store.jobs().list(&JobFilter::default(), 5).await.expect("reads"));
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.store.jobs().get(id).await.expect("reads").expect("stored")
    }

    pub(crate) async fn ended(&self, id: JobId) -> (JobState, Option<String>) {
        let job = self.job(id).await;
        (job.state, job.error)
    }

    pub(crate) fn shown(&self, number: ItemNumber) -> Shown {
        let world = self.emulator.world();
        let issue = world.issue(REPO, plain(number));
        let ours = |event: &&Event| event.actor == OWN && matches!(event.kind, EventKind::Closed { .. });
        Shown {
            open: issue.state == State::Open,
            closes: issue.events.iter().filter(ours).count(),
            comments: world.comments_by(REPO, plain(number), OWN).len(),
            labels: issue.labels.clone(),
        }
    }

    /// Each has one close, one comment and one label.
    pub(crate) fn assert_closed(&self, numbers: &[ItemNumber], context: &str) {
        for number in numbers {
            let shown = self.shown(*number);
            assert_eq!((shown.open, shown.closes, shown.comments), (false, 1, 1), "{context}: #{number} {shown:?}");
            assert_eq!(shown.labels, ["possible-duplicate"], "{context}: #{number}");
        }
    }

    /// Canonry wrote nothing on any of them.
    pub(crate) fn assert_untouched(&self, numbers: &[ItemNumber], context: &str) {
        for number in numbers {
            let shown = self.shown(*number);
            let expected = Shown { open: true, closes: 0, comments: 0, labels: Vec::new() };
            assert_eq!(shown, expected, "{context}: #{number}");
        }
    }

    /// Lets the hour of the write limits pass.
    pub(crate) fn next_hour(&self) {
        self.emulator.forget_requests();
        self.emulator.world().now += SignedDuration::from_hours(2);
    }
}

pub(crate) fn maintainer() -> Option<Login> {
    Some(MAINTAINER.parse().expect("a login"))
}

pub(crate) fn plain(number: ItemNumber) -> u64 {
    u64::try_from(number.get()).expect("positive")
}
