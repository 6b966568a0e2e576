//! The whole service on an emulated GitHub, in a time that only the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use canonry_domain::{ItemNumber, ItemType, LessonKind, Thresholds};
use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{
    ReviewParts, Scheduler, Schedules, ServeParts, Served, Service, ServiceOptions, ServiceParts, serve,
};
use canonry_store::{
    DeliveryFilter, DeliveryState, JobCaps, JobFilter, JobState, NewTriageRecord, OutboxScope, Repo, Store,
    StoredTriageAction,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Emulator, NewIssue, Permission, TEST_APP_PRIVATE_KEY, World};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

use crate::topics::Topics;

pub(crate) const OWN: &str = "canonry[bot]";
pub(crate) const SUGGEST: &str = "triage:\n  mode: suggest\n  excludeLabels: [question]\nreview: {enabled: false}\n";
/// Topics of the issues that each repository has from the beginning, as their numbers less one.
pub(crate) const ORIGINALS: u64 = 6;
const SECRET: &str = "the tide comes in";
const APP_ID: u64 = 77;

/// The world's time. Who sleeps waits until somebody else has moved it; loops look often.
struct WorldClock {
    emulator: Arc<Emulator>,
    moved: watch::Sender<()>,
}

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.emulator.world().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut moved = self.moved.subscribe();
            while self.now() < until {
                moved.changed().await.expect("the clock lives");
            }
        })
    }

    fn beat(&self, length: SignedDuration) -> BoxFuture<'_, ()> {
        Box::pin(async move { tokio::time::sleep(length.unsigned_abs() / 200).await })
    }
}

pub(crate) struct Setting {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    clock: Arc<WorldClock>,
    scheduler: Scheduler,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<Served>>,
    _database: TestDatabase,
}

impl Setting {
    /// The App is just being installed on these repositories; nothing has been delivered.
    pub(crate) async fn new(database: TestDatabase, repos: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let emulator = Arc::new(Emulator::start(world(repos, &format!("http://{address}/webhooks/github"))).await);
        let clock = Arc::new(WorldClock { emulator: Arc::clone(&emulator), moved: watch::channel(()).0 });
        let store = Store::open(&database.url().parse().expect("a URL"), clock.now()).await.expect("opens");
        let key = AppKey::new(&APP_ID.to_string(), &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key");
        let options = ClientOptions {
            api: emulator.url().parse().expect("a URL"),
            clock: clock.clone(),
            jitter: Arc::new(|| 0.0),
            request_timeout: Duration::from_secs(10),
            ..ClientOptions::new(Auth::App(key))
        };
        let wake_publisher = Arc::new(Notify::new());
        let service = Arc::new(Service::new(ServiceParts {
            store: store.clone(),
            github: Some(GitHub::new(options).expect("a client")),
            is_app: true,
            detectors: Arc::new(Topics::new("Both stop at the same wave.")),
            reviewers: ReviewParts::default(),
            clock: clock.clone(),
            monthly_cost: None,
            prices: None,
            retrieval: RetrievalMode::Dense,
            wake_publisher: Arc::clone(&wake_publisher),
        }));
        let mut parts = ServeParts::new(service.clone());
        parts.publisher = Some(service);
        parts.wake_publisher = wake_publisher;
        let options = ServiceOptions {
            secret: Secret::new(SECRET),
            workers: 2,
            caps: JobCaps { per_repo: 2, in_all: 8 },
            tries: 3,
            schedules: Schedules::App,
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (served, ticking) = (store.clone(), clock.clone());
        let task = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            serve(listener, served, parts, ticking, options, stopped).await
        });
        let scheduler = Scheduler { store: store.clone(), clock: clock.clone(), schedules: Schedules::App };
        Self { emulator, store, clock, scheduler, stop, task, _database: database }
    }

    /// Lets time pass, and the schedules see it.
    pub(crate) async fn later(&self, time: SignedDuration) {
        self.emulator.world().now += time;
        self.clock.moved.send_replace(());
        self.scheduler.tick().await.expect("ticks");
        self.settle().await;
    }

    /// Delivers what GitHub has to tell until nobody has anything left to do. Time moves only to the next moment that
    /// somebody waits for.
    pub(crate) async fn settle(&self) {
        let settling = async {
            let mut idle = 0;
            while idle < 2 {
                let mut still = true;
                self.clock.moved.send_replace(());
                for delivery in self.emulator.deliver_pending().await {
                    assert_eq!(delivery.attempt.map(|attempt| attempt.status), Some(202), "{}", delivery.event);
                    still = false;
                }
                let now = self.clock.now();
                let jobs = self.store.queue_status(now).await.expect("reads");
                let next = [self.next_job().await, self.next_write().await].into_iter().flatten().min();
                if jobs.running > 0 || next.is_some_and(|next| next <= now) {
                    idle = 0;
                } else if let Some(next) = next {
                    // A lease that is held looks the same as a wait: give who holds it the time to end.
                    idle = 0;
                    for _ in 0..20 {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        still &= self.store.queue_status(now).await.expect("reads").running == 0;
                    }
                    let again = [self.next_job().await, self.next_write().await].into_iter().flatten().min();
                    if still && again == Some(next) {
                        self.emulator.world().now = next;
                        self.clock.moved.send_replace(());
                    }
                } else {
                    idle += usize::from(still);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(90), settling).await.is_err() {
            let jobs = self.store.jobs(&JobFilter::default(), 10).await.expect("reads");
            panic!("it does not settle at {}: {jobs:#?}, next write {:?}", self.clock.now(), self.next_write().await);
        }
    }

    async fn next_job(&self) -> Option<Timestamp> {
        let queued = JobFilter { state: Some(JobState::Queued), ..JobFilter::default() };
        let jobs = self.store.jobs(&queued, 1_000).await.expect("reads");
        jobs.iter().map(|job| job.run_after).min()
    }

    async fn next_write(&self) -> Option<Timestamp> {
        self.store.next_outbox_moment(OutboxScope::Unattended).await.expect("reads")
    }

    pub(crate) async fn repo(&self, name: &str) -> Repo {
        self.store.repo(&name.parse().expect("a name")).await.expect("reads").expect("known")
    }

    /// Somebody reports what `topic` is about, a minute after the last thing that happened.
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

    /// Somebody closes it, a minute after the last thing that happened.
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

    /// Does something as people do, a minute later.
    pub(crate) fn meanwhile<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.emulator.world();
        world.advance(60);
        act(&mut world)
    }

    /// What Canonry says under an issue.
    pub(crate) fn said(&self, repo: &str, number: u64) -> Vec<String> {
        self.emulator.world().comments_by(repo, number, OWN).iter().map(|comment| comment.body.clone()).collect()
    }

    pub(crate) fn is_labelled(&self, repo: &str, number: u64) -> bool {
        self.emulator.world().issue(repo, number).labels.iter().any(|label| label == "possible-duplicate")
    }

    /// One comment that names the target, and the label.
    pub(crate) fn assert_said(&self, repo: &str, number: u64, target: u64) {
        let said = self.said(repo, number);
        assert_eq!((said.len(), self.is_labelled(repo, number)), (1, true), "{repo}#{number}: {said:?}");
        assert!(said[0].contains(&format!("#{target}")), "{repo}#{number}: {said:?}");
    }

    pub(crate) fn assert_silent(&self, repo: &str, number: u64) {
        let said = self.said(repo, number);
        assert_eq!((said.len(), self.is_labelled(repo, number)), (0, false), "{repo}#{number}: {said:?}");
    }

    /// What Canonry did about an issue last, and why.
    pub(crate) async fn action(&self, repo: &str, number: u64) -> StoredTriageAction {
        let id = self.repo(repo).await.id;
        let mut actions = self.store.triage_actions_of(id, ItemType::Issue, item(number)).await.expect("reads");
        assert!(!actions.is_empty(), "{repo}#{number} has no action");
        actions.remove(0)
    }

    pub(crate) async fn records(&self, repo: &str, number: u64) -> Vec<NewTriageRecord> {
        let id = self.repo(repo).await.id;
        let stored = self.store.triage_records_of(id, ItemType::Issue, item(number)).await.expect("reads");
        stored.into_iter().map(|stored| stored.record).collect()
    }

    /// What an issue teaches; `None` when nothing is known of an outcome.
    pub(crate) async fn lesson(&self, repo: &str, number: u64) -> Option<LessonKind> {
        let id = self.repo(repo).await.id;
        let stored = self.store.issue_outcome(id, item(number)).await.expect("reads");
        stored.map(|stored| stored.lesson.kind()).filter(|kind| *kind != LessonKind::Unknown)
    }

    /// The thresholds as they are stored, which is as the log says they are.
    pub(crate) async fn thresholds(&self, repo: &str) -> Thresholds {
        let id = self.repo(repo).await.id;
        let stored = self.store.thresholds(id).await.expect("reads");
        assert_eq!(stored, self.store.recomputed_thresholds(id).await.expect("reads"), "{repo}");
        stored
    }

    /// The repository's current threshold; `None` when it has fallen silent.
    pub(crate) async fn current(&self, repo: &str) -> Option<u8> {
        self.thresholds(repo).await.repository.current.threshold().map(canonry_domain::Threshold::get)
    }

    /// How many lessons of each kind count: confirmed, false positives, missed, true negatives, all.
    pub(crate) async fn counts(&self, repo: &str) -> [u64; 5] {
        let counts = self.thresholds(repo).await.repository.counts;
        [counts.confirmed, counts.false_positives, counts.missed, counts.true_negatives, counts.total]
    }

    /// How many deliveries ended in each state.
    pub(crate) async fn deliveries(&self) -> BTreeMap<&'static str, usize> {
        let mut counted = BTreeMap::new();
        for delivery in self.store.deliveries(&DeliveryFilter::default(), 10_000).await.expect("reads") {
            assert!(delivery.state != DeliveryState::Queued, "{delivery:?}");
            *counted.entry(delivery.state.as_str()).or_default() += 1;
        }
        counted
    }

    /// What was written to GitHub, but for tokens.
    pub(crate) fn writes(&self) -> Vec<String> {
        let writes = self.emulator.writes().into_iter().filter(|request| !request.path.ends_with("/access_tokens"));
        writes.map(|request| format!("{} {}", request.method, request.named_path)).collect()
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).expect("it listens");
        let served = self.task.await.expect("runs").expect("serves");
        assert!(served.drained);
        self.store.close().await;
    }
}

pub(crate) fn item(number: u64) -> ItemNumber {
    ItemNumber::new(i64::try_from(number).expect("small")).expect("positive")
}

fn world(repos: &[&str], webhooks: &str) -> World {
    let mut world = World::new();
    world.rate.limit = 10_000_000;
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
    world.add_app(APP_ID, "canonry");
    world.send_webhooks_to(webhooks, SECRET);
    let permissions = [("issues", "write"), ("pull_requests", "write"), ("contents", "read"), ("metadata", "read")];
    world.install_app("tide", &permissions);
    world
}
