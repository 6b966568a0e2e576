//! Data of a running service: batches of deliveries, jobs without a delivery, schedules, signals, settings, costs.

use std::collections::HashSet;
use std::sync::LazyLock;
use std::time::Duration;

use canonry_domain::{GithubId, ItemNumber, ItemType, RepoName, WriteKey, WriteKind, WriteOrigin};
use canonry_store::{
    DeliveryAction, DeliveryReceipt, DeliveryState, Job, JobCaps, JobEnd, JobFilter, JobKind, JobLease, JobScope,
    JobState, LlmTotals, NewDelivery, NewJob, NewLlmCall, NewOutboxEntry, OutboxScope, PackedText, QueueStatus,
    RepoAccess, Store, StoredSettings,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use futures_util::FutureExt;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::fixtures::{at, open_store};

/// Caps that no test here reaches.
const WIDE: JobCaps = JobCaps { per_repo: 1_000, in_all: 1_000 };

static BODY: LazyLock<PackedText> = LazyLock::new(|| PackedText::pack("{}"));

fn delivery<'a>(id: &'a str, key: &'a str, repo: &'a RepoName) -> NewDelivery<'a> {
    let job = NewJob { key, repo: Some(repo), kind: JobKind::Webhook, payload: &Value::Null };
    NewDelivery {
        id,
        event: "issues",
        action: Some("opened"),
        repo: Some(repo),
        number: ItemNumber::new(1).ok(),
        payload: &BODY,
        fate: DeliveryAction::Job(job),
    }
}

fn job<'a>(key: &'a str, kind: JobKind) -> NewJob<'a> {
    NewJob { key, repo: None, kind, payload: &Value::Null }
}

async fn lease(store: &Store, second: i64) -> Option<Job> {
    store.jobs().lease("w", WIDE, JobScope::All, at(second), at(second + 60)).await.expect("leases")
}

async fn end(store: &Store, job: &Job, end: JobEnd<'_>, second: i64) {
    assert!(store.jobs().end(JobLease { id: job.id, owner: "w" }, end, at(second)).await.expect("ends"));
}

on_both_engines! {
    async fn a_batch_is_accepted_as_if_one_by_one(database: TestDatabase) {
        let store = open_store(&database).await;
        let repo: RepoName = "tide/pool".parse().expect("a name");
        assert_eq!(store.deliveries().accept_all(&[], at(0)).await.expect("stored"), []);
        let ids: Vec<String> = (0..40).map(|id| format!("d{id:02}")).collect();
        let mut batch: Vec<_> = ids.iter().rev().map(|id| delivery(id, "tide/pool#1", &repo)).collect();
        batch.push(NewDelivery { id: "star", event: "star", action: None, repo: None, number: None, payload: &BODY, fate: DeliveryAction::Ignored("not for us") });
        batch.extend_from_within(..1);
        batch.extend_from_within(40..41);
        let accepted = store.deliveries().accept_all(&batch, at(1)).await.expect("stored");
        assert_eq!(accepted[..40], [DeliveryReceipt::Queued; 40]);
        assert_eq!(accepted[40..], [DeliveryReceipt::Ignored, DeliveryReceipt::Known(DeliveryState::Queued), DeliveryReceipt::Known(DeliveryState::Ignored)]);
        // Jobs with the same key run in the order of the batch.
        let jobs = store.jobs().list(&JobFilter::default(), 99).await.expect("reads");
        let order: Vec<_> = jobs.iter().rev().filter_map(|job| job.delivery_id.as_deref()).collect();
        assert_eq!(order, ids.iter().rev().map(String::as_str).collect::<Vec<_>>());
        // A failed delivery is queued again, once; the others do not change.
        let first = lease(&store, 2).await.expect("due");
        end(&store, &first, JobEnd::Dead("broken"), 3).await;
        let dead = first.delivery_id.expect("a delivery");
        let again = [delivery(&dead, "x", &repo), delivery("d00", "x", &repo), delivery("new", "y", &repo), delivery(&dead, "x", &repo)];
        let accepted = store.deliveries().accept_all(&again, at(4)).await.expect("stored");
        let known = DeliveryReceipt::Known(DeliveryState::Queued);
        assert_eq!(accepted, [DeliveryReceipt::Requeued, known, DeliveryReceipt::Queued, known]);
        assert_eq!(store.jobs().list(&JobFilter::default(), 99).await.expect("reads").len(), 41);
        let known = store.deliveries().stored_ids(&["d01", "never", "star"]).await.expect("reads");
        assert_eq!(known, HashSet::from(["d01".to_owned(), "star".to_owned()]));
        assert_eq!(store.deliveries().counts().await.expect("reads"), [(DeliveryState::Ignored, 1), (DeliveryState::Queued, 41)]);
    }

    async fn the_same_deliveries_at_once_are_stored_once(database: TestDatabase) {
        let store = open_store(&database).await;
        let takers: Vec<_> = (0..6).map(|taker| {
            let store = store.clone();
            tokio::spawn(async move {
                let repo: RepoName = "tide/pool".parse().expect("a name");
                let mut ids: Vec<String> = (0..50).map(|id| format!("d{id}")).collect();
                if taker % 2 == 1 { ids.reverse(); }
                let batch: Vec<_> = ids.iter().map(|id| delivery(id, "tide/pool#1", &repo)).collect();
                let accepted = store.deliveries().accept_all(&batch, at(0)).await.expect("stored");
                accepted.into_iter().filter(|accepted| *accepted == DeliveryReceipt::Queued).count()
            })
        }).collect();
        let mut queued = 0;
        for taker in takers {
            queued += taker.await.expect("runs");
        }
        assert_eq!((queued, store.jobs().list(&JobFilter::default(), 99).await.expect("reads").len()), (50, 50));
    }

    async fn jobs_are_queued_for_later_once_and_postponed(database: TestDatabase) {
        let store = open_store(&database).await;
        let id = store.jobs().enqueue(&job("a", JobKind::Sync), at(10), at(0)).await.expect("queued");
        assert_eq!(store.jobs().enqueue_once(&job("a", JobKind::Sync), at(0), at(1)).await.expect("asked"), None);
        let other = store.jobs().enqueue_once(&job("a", JobKind::Reactions), at(30), at(1)).await.expect("asked").expect("queued");
        assert_eq!(store.jobs().last_of("a", JobKind::Sync).await.expect("reads").map(|job| job.id), Some(id));
        assert_eq!(store.jobs().last_of("b", JobKind::Sync).await.expect("reads"), None);
        assert_eq!(store.jobs().status(at(9)).await.expect("reads"), QueueStatus { queued: 2, ..QueueStatus::default() });
        assert_eq!(lease(&store, 9).await, None);
        let running = lease(&store, 10).await.expect("due");
        assert_eq!((running.id, running.attempts), (id, 1));
        // While it runs, the next one may be queued.
        assert!(store.jobs().enqueue_once(&job("a", JobKind::Sync), at(12), at(11)).await.expect("asked").is_some());
        end(&store, &running, JobEnd::Postponed("the corpus is not there", at(50)), 12).await;
        let waiting = store.jobs().get(id).await.expect("reads").expect("known");
        assert_eq!((waiting.state, waiting.attempts, waiting.run_after, waiting.error.as_deref()), (JobState::Queued, 0, at(50), Some("the corpus is not there")));
        assert_eq!(lease(&store, 49).await, None, "later ones of its key wait for it");
        let running = lease(&store, 50).await.expect("due");
        assert_eq!((running.id, running.attempts), (id, 1));
        let status = store.jobs().status(at(50)).await.expect("reads");
        assert_eq!(status, QueueStatus { queued: 2, running: 1, dead: 0, oldest_due: Some(at(12)), oldest_running: Some(at(50)) });
        end(&store, &running, JobEnd::Dead("broken"), 51).await;
        assert_eq!(store.jobs().status(at(51)).await.expect("reads").dead, 1);
        assert_eq!(lease(&store, 52).await.map(|job| job.id), Some(other));
    }

    async fn a_schedule_fires_once_a_period_among_many(database: TestDatabase) {
        let store = open_store(&database).await;
        let day = SignedDuration::from_hours(24);
        for (second, expected_jobs) in [(0, 2), (24 * 3600, 2)] {
            let replicas: Vec<_> = (0..6).map(|_| {
                let store = store.clone();
                tokio::spawn(async move { store.jobs().fire_schedule("sync", day, &[(job("sync/a", JobKind::Sync), at(second)), (job("sync/b", JobKind::Sync), at(second + 5))], at(second)).await.expect("asked") })
            }).collect();
            let mut fired = 0;
            for replica in replicas {
                fired += usize::from(replica.await.expect("runs"));
            }
            assert_eq!(fired, 1);
            // The jobs of the first day are still queued, so none is added.
            assert_eq!(store.jobs().list(&JobFilter::default(), 9).await.expect("reads").len(), expected_jobs);
        }
        let moments: Vec<_> = store.jobs().list(&JobFilter::default(), 9).await.expect("reads").iter().map(|job| job.run_after).collect();
        assert_eq!(moments, [at(5), at(0)], "each from its own moment on");
        assert!(!store.jobs().fire_schedule("sync", day, &[], at(48 * 3600 - 1)).await.expect("asked"));
        assert!(store.jobs().fire_schedule("other", day, &[], at(48 * 3600 - 1)).await.expect("asked"));
    }

    async fn a_job_once_is_one_among_many(database: TestDatabase) {
        let store = open_store(&database).await;
        let askers: Vec<_> = (0..8).map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.jobs().enqueue_once(&job("sync/a", JobKind::Sync), at(0), at(0)).await.expect("asked").is_some() })
        }).collect();
        let mut queued = 0;
        for asker in askers {
            queued += usize::from(asker.await.expect("runs"));
        }
        assert_eq!(queued, 1);
    }

    async fn repositories_come_and_go(database: TestDatabase) {
        let store = open_store(&database).await;
        let a = store.repos().ensure(&"tide/a".parse().expect("a name"), at(0)).await.expect("stored");
        let b = store.repos().ensure(&"tide/b".parse().expect("a name"), at(0)).await.expect("stored");
        assert_eq!(store.repos().access(a.id).await.expect("reads"), RepoAccess::Active);
        store.repos().set_installation(a.id, Some(GithubId(44))).await.expect("noted");
        assert_eq!(store.repos().of_installation(GithubId(44)).await.expect("reads"), std::slice::from_ref(&a));
        for access in [RepoAccess::Removed, RepoAccess::Suspended, RepoAccess::Archived, RepoAccess::Deleted] {
            store.repos().set_access(a.id, access, at(1)).await.expect("noted");
            assert_eq!(store.repos().access(a.id).await.expect("reads"), access);
            assert_eq!(access.as_str().parse(), Ok(access));
            assert_eq!(store.repos().active().await.expect("reads"), std::slice::from_ref(&b));
        }
        store.repos().set_access(a.id, RepoAccess::Active, at(2)).await.expect("noted");
        assert_eq!(store.repos().active().await.expect("reads"), [a.clone(), b]);

        assert_eq!(store.repos().settings(a.id).await.expect("reads"), None);
        store.repos().expire_settings(a.id).await.expect("nothing to expire");
        store.repos().write_settings(a.id, Some("triage: {}"), at(3)).await.expect("kept");
        store.repos().expire_settings(a.id).await.expect("expired");
        let expired = StoredSettings { text: Some("triage: {}".to_owned()), fetched_at: Timestamp::UNIX_EPOCH };
        assert_eq!(store.repos().settings(a.id).await.expect("reads"), Some(expired));
        store.repos().write_settings(a.id, None, at(4)).await.expect("kept");
        assert_eq!(store.repos().settings(a.id).await.expect("reads"), Some(StoredSettings { text: None, fetched_at: at(4) }));
    }

    async fn what_models_cost_is_added_up(database: TestDatabase) {
        let store = open_store(&database).await;
        let repo = store.repos().ensure(&"tide/a".parse().expect("a name"), at(0)).await.expect("stored");
        let call = |cost_usd, error: Option<&str>| NewLlmCall {
            purpose: "judge", provider: "openai", model: "m".to_owned(), input_tokens: Some(100), output_tokens: None, cost_usd,
            latency: Duration::from_millis(5), error: error.map(str::to_owned),
        };
        assert_eq!(store.models().spent_since(repo.id, at(0)).await.expect("reads"), 0.0);
        assert_eq!(store.models().totals().await.expect("reads"), []);
        store.models().record_calls(Some(repo.id), "r", &[call(Some(0.25), None), call(None, Some("timed out"))], at(1)).await.expect("noted");
        store.models().record_calls(Some(repo.id), "r", &[call(Some(0.5), None)], at(5)).await.expect("noted");
        assert_eq!((store.models().spent_since(repo.id, at(1)).await.expect("reads"), store.models().spent_since(repo.id, at(2)).await.expect("reads")), (0.75, 0.5));
        let totals = LlmTotals {
            repo: Some(repo.name), provider: "openai".to_owned(), model: "m".to_owned(), calls: 3, failed: 1, input_tokens: 300, output_tokens: 0, cost_usd: 0.75,
        };
        assert_eq!(store.models().totals().await.expect("reads"), [totals]);
    }

    async fn what_nobody_watches_never_closes(database: TestDatabase) {
        let store = open_store(&database).await;
        let repo = store.repos().ensure(&"tide/a".parse().expect("a name"), at(0)).await.expect("stored");
        let number = |number| ItemNumber::new(number).expect("a number");
        for (of, origin, kind) in [
            (1, WriteOrigin::Close, WriteKind::Close),
            (1, WriteOrigin::TriageComment, WriteKind::Comment),
            (2, WriteOrigin::TriageLabel, WriteKind::Label),
            (2, WriteOrigin::Reopen, WriteKind::Reopen),
        ] {
            let key = &WriteKey::of_item(origin, 1, ItemType::Issue, number(of));
            let new = NewOutboxEntry { repo: repo.id, number: number(of), kind, key, payload: &json!({}), refused: None };
            store.outbox().enqueue(&new, at(of)).await.expect("stored");
        }
        assert_eq!(store.outbox().next_moment(OutboxScope::Unattended).await.expect("reads"), Some(at(2)));
        let claim = async || store.outbox().claim(OutboxScope::Unattended, "w", at(9), at(60)).await.expect("claims").map(|entry| entry.key);
        assert_eq!(claim().await.as_deref(), Some("triage-label:1:issue:2"));
        assert_eq!(claim().await, None, "a close that is owed holds back what triage says");
    }
}

#[tokio::test]
async fn a_clock_that_is_wrong_is_told_on_postgres() {
    let store = open_store(&TestDatabase::sqlite()).await;
    assert_eq!(store.clock_skew(Timestamp::now()).await.expect("asked"), None);
    let database = TestDatabase::postgres().await;
    let store = open_store(&database).await;
    for minutes in [-30, 0, 30] {
        let wrong = SignedDuration::from_mins(minutes);
        let skew = store.clock_skew(Timestamp::now() - wrong).await.expect("asked").expect("it has a clock");
        assert!((skew - wrong).abs() < SignedDuration::from_mins(1), "{skew:?} for {wrong:?}");
    }
}

/// Every process is notified of every newly queued job; a lost connection is a signal too.
#[tokio::test]
async fn queued_jobs_are_told_on_postgres() {
    let database = TestDatabase::postgres().await;
    let store = open_store(&database).await;
    let elsewhere = open_store(&database).await;
    let mut signal = elsewhere.jobs().signal().await.expect("listens");
    let repo: RepoName = "tide/pool".parse().expect("a name");
    store.deliveries().accept(&delivery("d1", "k", &repo), at(0)).await.expect("stored");
    store.jobs().notify_workers().await.expect("told");
    signal.next().await;
    let running = lease(&store, 1).await.expect("due");
    end(&store, &running, JobEnd::Dead("broken"), 1).await;
    assert!(store.jobs().requeue(running.id, at(2)).await.expect("queued"));
    signal.next().await;
    store.jobs().enqueue(&job("a", JobKind::Sync), at(0), at(0)).await.expect("queued");
    signal.next().await;
    assert!(
        store
            .jobs()
            .fire_schedule("s", SignedDuration::from_hours(1), &[(job("b", JobKind::Sync), at(0))], at(0))
            .await
            .expect("asked")
    );
    signal.next().await;
    database.end_connections().await;
    signal.next().await;
    store.jobs().enqueue(&job("c", JobKind::Sync), at(0), at(0)).await.expect("queued");
    signal.next().await;
}

#[tokio::test]
async fn there_is_nothing_to_hear_on_sqlite() {
    let database = TestDatabase::sqlite();
    let store = open_store(&database).await;
    let mut signal = store.jobs().signal().await.expect("there is one");
    store.jobs().enqueue(&job("a", JobKind::Sync), at(0), at(0)).await.expect("queued");
    assert!(signal.next().now_or_never().is_none());
}

/// If a caller stops waiting while its transaction begins, the connection is not in a transaction for its next user,
/// whose statements would never be committed.
#[tokio::test]
async fn a_dropped_begin_loses_nothing_on_postgres() {
    let database = TestDatabase::postgres().await;
    let (store, elsewhere) = (open_store(&database).await, open_store(&database).await);
    let repo = store.repos().ensure(&"tide/a".parse().expect("a name"), at(0)).await.expect("stored");
    for polls in 0..100 {
        let new = job("dropped", JobKind::Sync);
        let mut dropped = Box::pin(store.jobs().enqueue(&new, at(0), at(0)));
        for _ in 0..polls * 3 {
            if FutureExt::now_or_never(&mut dropped).is_some() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(dropped);
        // Enough writes for every connection of the pool to be used.
        let writes = (0..8).map(|_| store.repos().write_settings(repo.id, None, at(polls)));
        for written in futures_util::future::join_all(writes).await {
            written.expect("written");
        }
        let seen = elsewhere.repos().settings(repo.id).await.expect("reads").map(|settings| settings.fetched_at);
        assert_eq!(seen, Some(at(polls)), "it was never committed");
    }
}
