//! How jobs end: done, retried, failed, lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use canonry_github::{Clock, ManualClock};
use canonry_server::{AttemptEnd, JobError, JobHandler, LeasedJob, Worker, retry_jobs};
use canonry_store::{
    DeliveryAction, DeliveryReceipt, DeliveryState, Job, JobCaps, JobEnd, JobFilter, JobKind, JobLease, JobScope,
    JobState, NewDelivery, NewJob, PackedText, Store, StoreError,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Does what the delivery's body says.
#[derive(Default)]
struct Scripted {
    calls: AtomicUsize,
    gate: Notify,
}

impl JobHandler for Scripted {
    fn handle<'a>(&'a self, work: &'a LeasedJob) -> BoxFuture<'a, Result<(), JobError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let (_, body) = work.delivery.as_ref().expect("every job here has one");
            match body.as_str() {
                "done" => Ok(()),
                "fail" => Err(JobError::Retry("no luck".to_owned())),
                "outage" => Err(JobError::Unavailable("nobody answers".to_owned())),
                "hopeless" => Err(JobError::Hopeless("never".to_owned())),
                "gate" => {
                    self.gate.notified().await;
                    Ok(())
                }
                "panic" => panic!("the handler broke"),
                "wait" => {
                    let until = "2026-03-01T00:10:00Z".parse().expect("valid");
                    Err(JobError::Postpone { reason: "the tide is out".to_owned(), until })
                }
                // Until the test ends it.
                _ => std::future::pending().await,
            }
        })
    }
}

/// A clock whose beats the test triggers, so that no test waits for the seconds between them.
struct Drummed {
    clock: Arc<ManualClock>,
    drum: Arc<Notify>,
}

impl Clock for Drummed {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        self.clock.sleep_until(until)
    }

    fn beat(&self, _: SignedDuration) -> BoxFuture<'_, ()> {
        Box::pin(self.drum.notified())
    }
}

struct Bench {
    store: Store,
    clock: Arc<ManualClock>,
    handler: Arc<Scripted>,
    worker: Worker,
}

impl Bench {
    async fn new(database: &TestDatabase) -> Self {
        Self::at(database.url()).await
    }

    async fn at(url: &str) -> Self {
        let start: Timestamp = "2026-03-01T00:00:00Z".parse().expect("valid");
        let store = Store::open(&url.parse().expect("a URL"), start).await.expect("opens");
        let (clock, handler) = (Arc::new(ManualClock::new(start)), Arc::new(Scripted::default()));
        let caps = JobCaps { per_repo: 2, in_all: 8 };
        let (doing, ticking) = (handler.clone(), clock.clone());
        let worker =
            Worker { store: store.clone(), handler: doing, clock: ticking, caps, tries: 3, scope: JobScope::All };
        Self { store, clock, handler, worker }
    }

    /// A delivery whose handler does `what`.
    async fn deliver(&self, id: &str, what: &str) {
        let job = NewJob { key: id, repo: None, kind: JobKind::Webhook, payload: &Value::Null };
        let new = NewDelivery {
            id,
            event: "issues",
            action: None,
            repo: None,
            number: None,
            payload: &PackedText::pack(what),
            fate: DeliveryAction::Job(job),
        };
        assert_eq!(
            self.store.deliveries().accept(&new, self.clock.now()).await.expect("stored"),
            DeliveryReceipt::Queued
        );
    }

    /// A running worker that renews its leases at each beat of the drum.
    fn drummed(&self) -> (Arc<Notify>, JoinHandle<Result<Option<AttemptEnd>, StoreError>>) {
        let drum = Arc::new(Notify::new());
        let clock = Arc::new(Drummed { clock: self.clock.clone(), drum: drum.clone() });
        let worker = Worker { clock, ..self.worker.clone() };
        (drum, tokio::spawn(async move { worker.work_once("drummed", 0.0).await }))
    }

    async fn work(&self) -> Option<AttemptEnd> {
        self.worker.work_once("w", 0.0).await.expect("works")
    }

    /// Waits until the handler has begun.
    async fn begun(&self) {
        let begun = async {
            while self.handler.calls.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), begun).await.expect("it begins");
    }

    async fn job(&self) -> Job {
        self.store.jobs().list(&JobFilter::default(), 1).await.expect("reads").remove(0)
    }

    async fn delivery(&self, id: &str) -> (DeliveryState, Option<String>) {
        let delivery = self.store.deliveries().get(id).await.expect("reads").expect("known");
        (delivery.state, delivery.reason)
    }
}

on_both_engines! {
    async fn what_fails_is_tried_again_later_and_given_up_in_the_end(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        bench.deliver("d1", "fail").await;
        for (try_number, pause) in [(1, 5), (2, 10)] {
            assert_eq!(bench.work().await, Some(AttemptEnd::Retried));
            let job = bench.job().await;
            assert_eq!((job.state, job.attempts, job.error.as_deref()), (JobState::Queued, try_number, Some("no luck")));
            assert_eq!(job.run_after, bench.clock.now() + SignedDuration::from_secs(pause));
            assert_eq!(bench.work().await, None, "not before its moment");
            bench.clock.advance(SignedDuration::from_secs(pause));
        }
        assert_eq!(bench.work().await, Some(AttemptEnd::Dead));
        assert_eq!(bench.delivery("d1").await, (DeliveryState::Dead, Some("no luck".to_owned())));
        bench.clock.advance(SignedDuration::from_hours(24));
        assert_eq!((bench.work().await, bench.handler.calls.load(Ordering::SeqCst)), (None, 3));
    }

    async fn a_panic_is_a_failure_and_what_is_hopeless_is_given_up_at_once(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        bench.deliver("d1", "panic").await;
        assert_eq!(bench.work().await, Some(AttemptEnd::Retried));
        assert_eq!(bench.job().await.error.as_deref(), Some("the handler ended without an answer (it panicked)"));
        bench.deliver("d2", "hopeless").await;
        assert_eq!(bench.work().await, Some(AttemptEnd::Dead));
        assert_eq!(bench.delivery("d2").await, (DeliveryState::Dead, Some("never".to_owned())));
        bench.deliver("d3", "done").await;
        assert_eq!(bench.work().await, Some(AttemptEnd::Done));
        assert_eq!(bench.delivery("d3").await, (DeliveryState::Done, None));
    }

    async fn a_job_that_kills_its_workers_is_given_up(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        bench.deliver("d1", "done").await;
        for killed in ["k1", "k2", "k3"] {
            let now = bench.clock.now();
            let leased = bench.store.jobs().lease(killed, bench.worker.caps, JobScope::All, now, now + SignedDuration::from_secs(20)).await;
            assert_eq!(leased.expect("leases").expect("due").delivery_id.as_deref(), Some("d1"));
            assert_eq!(bench.work().await, None, "its lease lives");
            bench.clock.advance(SignedDuration::from_secs(20));
        }
        assert_eq!(bench.work().await, Some(AttemptEnd::Dead));
        assert_eq!(bench.delivery("d1").await, (DeliveryState::Dead, Some("failed: none of 3 tries finished".to_owned())));
        assert_eq!(bench.handler.calls.load(Ordering::SeqCst), 0);
    }

    async fn work_ends_when_its_lease_is_lost(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        bench.deliver("d1", "pending").await;
        let (drum, working) = bench.drummed();
        bench.begun().await;
        // The process slept past its lease; another one leases the job and ends it.
        bench.clock.advance(SignedDuration::from_secs(20));
        let now = bench.clock.now();
        let taken = bench.store.jobs().lease("fast", bench.worker.caps, JobScope::All, now, now + SignedDuration::from_secs(20)).await.expect("leases").expect("free");
        assert!(bench.store.jobs().end(JobLease { id: taken.id, owner: "fast" }, JobEnd::Done, now).await.expect("ends"));
        drum.notify_one();
        assert_eq!(working.await.expect("runs").expect("works"), Some(AttemptEnd::LeaseLost));
        assert_eq!(bench.delivery("d1").await, (DeliveryState::Done, None));
    }

    async fn an_outage_is_waited_out_for_days_and_not_for_ever(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        bench.deliver("d1", "outage").await;
        let mut waits = Vec::new();
        while bench.clock.now() < "2026-03-04T00:00:00Z".parse().expect("valid") {
            assert_eq!(bench.work().await, Some(AttemptEnd::Postponed));
            let job = bench.job().await;
            assert_eq!((job.state, job.attempts, job.error.as_deref()), (JobState::Queued, 0, Some("nobody answers")));
            waits.push(job.run_after.duration_since(bench.clock.now()).as_secs());
            bench.clock.advance(job.run_after.duration_since(bench.clock.now()));
        }
        assert_eq!(waits[..7], [5, 5, 5, 5, 5, 6, 7]);
        assert!(waits.is_sorted() && waits.last() == Some(&1_800), "{waits:?}");
        // From now on it is a failure like any other.
        assert_eq!(bench.work().await, Some(AttemptEnd::Retried));
        bench.clock.advance(SignedDuration::from_secs(5));
        assert_eq!(bench.work().await, Some(AttemptEnd::Retried));
        bench.clock.advance(SignedDuration::from_secs(10));
        assert_eq!(bench.work().await, Some(AttemptEnd::Dead));
        assert_eq!(bench.delivery("d1").await, (DeliveryState::Dead, Some("nobody answers".to_owned())));
    }

    async fn of_many_failed_jobs_the_oldest_are_retried(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        for id in ["d1", "d2", "d3"] {
            bench.deliver(id, "hopeless").await;
            assert_eq!(bench.work().await, Some(AttemptEnd::Dead));
        }
        let dead = JobFilter { state: Some(JobState::Dead), ..JobFilter::default() };
        let retried = retry_jobs(&bench.store, dead, |_| true, 2, bench.clock.now()).await.expect("retries");
        assert_eq!(retried.queued, 2);
        let mut states = Vec::new();
        for id in ["d1", "d2", "d3"] {
            states.push(bench.delivery(id).await.0);
        }
        assert_eq!(states, [DeliveryState::Queued, DeliveryState::Queued, DeliveryState::Dead]);
    }

    async fn what_hangs_is_ended_and_tried_again(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        bench.deliver("d1", "pending").await;
        let (drum, working) = bench.drummed();
        bench.begun().await;
        bench.clock.advance(SignedDuration::from_mins(15));
        drum.notify_one();
        assert_eq!(working.await.expect("runs").expect("works"), Some(AttemptEnd::Retried));
        assert_eq!(bench.job().await.error.as_deref(), Some("the job reached its limit of 15 minutes"));
    }

    async fn webhooks_never_wait_for_what_is_done_by_the_clock(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        let now = bench.clock.now();
        let sync = NewJob { key: "sync/1", repo: None, kind: JobKind::Sync, payload: &Value::Null };
        bench.store.jobs().enqueue(&sync, now, now).await.expect("stored");
        bench.deliver("d1", "done").await;
        let only_webhooks = Worker { scope: JobScope::Caused, ..bench.worker.clone() };
        // It came later and goes first, whichever worker leases it.
        assert_eq!(bench.work().await, Some(AttemptEnd::Done));
        assert_eq!(bench.delivery("d1").await, (DeliveryState::Done, None));
        assert_eq!(only_webhooks.work_once("w", 0.0).await.expect("looks"), None, "the sync is left to others");
        bench.deliver("d2", "done").await;
        assert_eq!(only_webhooks.work_once("w", 0.0).await.expect("works"), Some(AttemptEnd::Done));
    }

    async fn those_who_wait_for_one_moment_do_not_come_together(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        bench.deliver("d1", "wait").await;
        assert_eq!(bench.worker.work_once("w", 1.0).await.expect("works"), Some(AttemptEnd::Postponed));
        assert_eq!(bench.job().await.run_after, bench.clock.now() + SignedDuration::from_mins(11));
    }

    async fn what_has_to_wait_is_not_tried_in_vain(database: TestDatabase) {
        let bench = Bench::new(&database).await;
        bench.deliver("d1", "wait").await;
        // More often than a job is tried.
        for _ in 0..5 {
            assert_eq!(bench.work().await, Some(AttemptEnd::Postponed));
            let job = bench.job().await;
            assert_eq!((job.state, job.attempts, job.error.as_deref()), (JobState::Queued, 0, Some("the tide is out")));
            assert_eq!(bench.delivery("d1").await.0, DeliveryState::Queued);
            let wait = job.run_after.duration_since(bench.clock.now());
            if wait.is_positive() {
                assert_eq!((wait, bench.work().await), (SignedDuration::from_mins(10), None));
                bench.clock.advance(wait);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_is_not_repeated_because_the_database_was_away_at_its_end() {
    let database = TestDatabase::postgres().await;
    let (proxy, url) = database.proxied().await;
    let bench = Bench::at(&url).await;
    bench.deliver("d1", "gate").await;
    let worker = bench.worker.clone();
    let working = tokio::spawn(async move { worker.work_once("w", 0.0).await });
    bench.begun().await;
    proxy.cut();
    bench.handler.gate.notify_one();
    // The database is away long enough to be noticed.
    assert!(bench.store.ping().await.is_err());
    proxy.restore();
    assert_eq!(working.await.expect("runs").expect("works"), Some(AttemptEnd::Done));
    assert_eq!((bench.delivery("d1").await.0, bench.job().await.attempts), (DeliveryState::Done, 1));
}
