//! Recurring jobs, queued once for all replicas, and jobs without a signal.

use std::sync::Arc;
use std::time::Duration;

use canonry_domain::GithubId;
use canonry_github::{Clock as _, ManualClock, ScaledClock};
use canonry_server::{AttemptEnd, JobError, JobHandler, LeasedJob, Scheduler, Schedules, ServeParts, Worker};
use canonry_store::{
    DeliveryAction, Job, JobFilter, JobKind, JobScope, JobState, NewDelivery, NewJob, PackedText, RepoAccess, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use futures_util::future::{BoxFuture, ready};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::world::{CAPS, Running};

/// Reports the job it was given, and does nothing.
struct Tells(mpsc::UnboundedSender<String>);

impl JobHandler for Tells {
    fn handle<'a>(&'a self, work: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
        self.0.send(work.job.key.clone()).expect("somebody listens");
        Box::pin(ready(Ok(())))
    }
}

/// A store with two repositories that are synced, one without access, and one that was only imported.
async fn filled(database: &TestDatabase, now: Timestamp) -> Store {
    let store = Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
    for (name, id) in [("tide/pool", Some(1)), ("tide/ebb", Some(2)), ("tide/gone", Some(3)), ("tide/imported", None)] {
        let repo = store.repos().ensure(&name.parse().expect("a name"), now).await.expect("stored");
        if let Some(id) = id {
            store.repos().identify(repo.id, GithubId(id), &repo.name).await.expect("stored").expect("its own name");
        }
        if name == "tide/gone" {
            store.repos().set_access(repo.id, RepoAccess::Removed, now).await.expect("stored");
        }
    }
    store
}

/// The key of the next job that runs.
async fn next(told: &mut mpsc::UnboundedReceiver<String>) -> String {
    let next = tokio::time::timeout(Duration::from_secs(60), told.recv()).await;
    next.expect("one is done").expect("the service runs")
}

fn start() -> Timestamp {
    "2026-03-01T00:00:00Z".parse().expect("valid")
}

async fn queued(store: &Store) -> Vec<Job> {
    let filter = JobFilter { state: Some(JobState::Queued), ..JobFilter::default() };
    store.jobs().list(&filter, 100).await.expect("reads")
}

async fn queued_keys(store: &Store) -> Vec<String> {
    let mut keys: Vec<String> = queued(store).await.into_iter().map(|job| job.key).collect();
    keys.sort();
    keys
}

/// Runs everything that is due within a minute: two nightly syncs are that far apart.
async fn work_off(store: &Store, clock: &Arc<ManualClock>) {
    clock.advance(SignedDuration::from_mins(1));
    let (tells, _told) = mpsc::unbounded_channel();
    let (store, clock, scope) = (store.clone(), clock.clone(), JobScope::All);
    let worker = Worker { store, handler: Arc::new(Tells(tells)), clock, caps: CAPS, tries: 3, scope };
    while let Some(ended) = worker.work_once("w", 0.0).await.expect("works") {
        assert_eq!(ended, AttemptEnd::Done);
    }
}

on_both_engines! {
    async fn a_schedule_fires_in_one_of_two_replicas(database: TestDatabase) {
        let store = filled(&database, start()).await;
        let other = Store::open(&database.url().parse().expect("a URL"), start()).await.expect("opens");
        let clock = Arc::new(ManualClock::new(start()));
        let replicas = [store.clone(), other]
            .map(|store| Scheduler { store, clock: clock.clone(), schedules: Schedules::App });
        for (hours, expected) in [
            (0, vec!["grace", "objections", "prune", "reactions", "recover", "sync"]),
            (1, vec!["recover"]),
            (2, vec!["recover"]),
            (3, vec!["recover"]),
            (4, vec!["objections", "reactions", "recover"]),
            (24, vec!["grace", "objections", "prune", "reactions", "recover", "sync"]),
        ] {
            let moment = start() + SignedDuration::from_hours(hours);
            let mut keys = Vec::new();
            if let Some(before) = (moment > clock.now()).then(|| moment - SignedDuration::from_mins(1)) {
                // A minute too early only more frequent schedules fire, unless hours were skipped.
                clock.advance(before.duration_since(clock.now()));
                if hours < 5 {
                    assert_eq!(replicas[0].tick().await.expect("ticks"), ["grace"], "before hour {hours}");
                    keys.push("grace");
                }
                clock.advance(SignedDuration::from_mins(1));
            }
            let (one, two) = tokio::join!(replicas[0].tick(), replicas[1].tick());
            let mut fired = one.expect("ticks");
            fired.extend(two.expect("ticks"));
            fired.sort_unstable();
            assert_eq!(fired, expected, "at hour {hours}");
            for name in &expected {
                match *name {
                    "sync" => keys.extend(["sync/1", "sync/2"]),
                    "prune" => {}
                    name => keys.push(name),
                }
            }
            assert_eq!(queued_keys(&store).await, keys, "at hour {hours}");
            work_off(&store, &clock).await;
        }
    }

    async fn schedules_go_on_after_the_clock_was_set_back(database: TestDatabase) {
        let store = filled(&database, start()).await;
        let scheduler = |now| Scheduler { store: store.clone(), clock: Arc::new(ManualClock::new(now)), schedules: Schedules::App };
        let ahead = scheduler(start() + SignedDuration::from_hours(96));
        assert_eq!(ahead.tick().await.expect("ticks").len(), 6);
        let right = scheduler(start());
        assert_eq!(right.tick().await.expect("ticks").len(), 6, "what fired in the future is due");
        assert_eq!(right.tick().await.expect("ticks").len(), 0);
        let clock = Arc::new(ManualClock::new(start()));
        work_off(&store, &clock).await;
        assert_eq!(queued_keys(&store).await, Vec::<String>::new(), "no job waits for four days");
    }

    async fn a_start_catches_up_but_a_loop_of_starts_does_not_hammer(database: TestDatabase) {
        let store = filled(&database, start()).await;
        let clock = Arc::new(ManualClock::new(start()));
        let scheduler = Scheduler { store: store.clone(), clock: clock.clone(), schedules: Schedules::App };
        let all = ["grace", "objections", "reactions", "recover", "sync/1", "sync/2"];
        for _ in 0..3 {
            scheduler.catch_up().await.expect("queued");
            assert_eq!(queued_keys(&store).await, all);
        }
        let moment = async |key| queued(&store).await.into_iter().find(|job| job.key == key).expect("queued").run_after;
        assert_eq!((moment("sync/2").await, moment("sync/1").await), (start(), start() + SignedDuration::from_mins(1)));
        work_off(&store, &clock).await;
        clock.advance(SignedDuration::from_mins(2));
        scheduler.catch_up().await.expect("queued");
        assert_eq!(queued_keys(&store).await, all[3..], "reactions can wait for their hour");
        let moments: Vec<Timestamp> = queued(&store).await.into_iter().map(|job| job.run_after).collect();
        assert_eq!(moments, [start() + SignedDuration::from_mins(5); 3]);
        clock.advance(SignedDuration::from_mins(3));
        work_off(&store, &clock).await;
        let off = Scheduler { schedules: Schedules::Off, ..scheduler };
        clock.advance(SignedDuration::from_hours(48));
        off.catch_up().await.expect("nothing to do");
        assert_eq!(off.tick().await.expect("nothing to do"), [""; 0]);
        assert_eq!(queued_keys(&store).await, [""; 0]);
    }

    async fn what_is_old_is_deleted_each_day(database: TestDatabase) {
        let store = filled(&database, start()).await;
        let clock = Arc::new(ManualClock::new(start()));
        let job = NewJob { key: "a", repo: None, kind: JobKind::Webhook, payload: &Value::Null };
        for (id, fate) in [("done", DeliveryAction::Job(job)), ("ignored", DeliveryAction::Ignored("no reason"))] {
            let new = NewDelivery { id, event: "issues", action: None, repo: None, number: None, payload: &PackedText::pack("{}"), fate };
            store.deliveries().accept(&new, clock.now()).await.expect("stored");
        }
        let sync = NewJob { key: "sync/1", repo: None, kind: JobKind::Sync, payload: &Value::Null };
        store.jobs().enqueue(&sync, clock.now(), clock.now()).await.expect("stored");
        work_off(&store, &clock).await;
        let scheduler = Scheduler { store: store.clone(), clock: clock.clone(), schedules: Schedules::Alone };
        let left = async || {
            scheduler.catch_up().await.expect("pruned");
            let jobs = store.jobs().list(&JobFilter::default(), 10).await.expect("reads").len();
            (store.deliveries().payload("done").await.expect("reads"), store.deliveries().payload("ignored").await.expect("reads"), jobs)
        };
        let body = Some("{}".to_owned());
        assert_eq!(left().await, (body.clone(), body, 2));
        clock.advance(SignedDuration::from_hours(31 * 24));
        assert_eq!(left().await, (None, None, 0), "the job of a delivery is deleted with it");
        canonry_server::replay(&store, "done", clock.now()).await.expect_err("there is nothing to replay");
    }

    async fn jobs_are_found_without_a_signal(database: TestDatabase) {
        let anchor = Timestamp::now();
        let clock = Arc::new(ScaledClock::new(anchor, 60));
        let store = Store::open(&database.url().parse().expect("a URL"), anchor).await.expect("opens");
        let (tells, mut told) = mpsc::unbounded_channel();
        let running = Running::start(store.clone(), ServeParts::new(Arc::new(Tells(tells))), clock.clone(), Schedules::Off).await;
        // Another process queues the job, and it becomes due later: no signal is sent then.
        let other = Store::open(&database.url().parse().expect("a URL"), anchor).await.expect("opens");
        let queue = async |key: &'static str, wait: SignedDuration| {
            let now = clock.now();
            let job = NewJob { key, repo: None, kind: JobKind::Sync, payload: &Value::Null };
            other.jobs().enqueue(&job, now + wait, now).await.expect("stored");
        };
        queue("later", SignedDuration::from_secs(20)).await;
        assert_eq!(next(&mut told).await, "later");
        // Its end is stored before the connections end: otherwise it would run again.
        let is_done = async || other.jobs().list(&JobFilter::default(), 10).await.expect("reads")[0].state == JobState::Done;
        while !is_done().await {
            tokio::task::yield_now().await;
        }
        // Every connection ends, the listening one too; the workers reconnect.
        database.end_connections().await;
        let mut tries = 0;
        while other.ping().await.is_err() {
            tries += 1;
            assert!(tries < 1_000, "the database does not come back");
            tokio::task::yield_now().await;
        }
        queue("after", SignedDuration::ZERO).await;
        assert_eq!(next(&mut told).await, "after");
        assert!(running.stop().await.drained);
    }

    async fn a_service_with_schedules_catches_up_by_itself(database: TestDatabase) {
        let anchor = Timestamp::now();
        let store = filled(&database, anchor).await;
        let clock = Arc::new(ScaledClock::new(anchor, 60));
        let (tells, mut told) = mpsc::unbounded_channel();
        let parts = ServeParts::new(Arc::new(Tells(tells)));
        let running = Running::start(store.clone(), parts, clock, Schedules::Token).await;
        let mut keys = Vec::new();
        for _ in 0..5 {
            keys.push(next(&mut told).await);
        }
        keys.sort();
        assert!(running.stop().await.drained);
        assert_eq!(keys, ["grace", "objections", "reactions", "sync/1", "sync/2"]);
    }
}
