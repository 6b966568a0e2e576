//! Deliveries and jobs: stored once and together, processed in order, one worker per key, within the caps.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use canonry_domain::{ItemNumber, RepoName};
use canonry_store::{
    DeliveryAction, DeliveryFilter, DeliveryReceipt, DeliveryState, Job, JobCaps, JobEnd, JobFilter, JobId, JobKind,
    JobLease, JobScope, JobState, NewDelivery, NewJob, PackedText, PruneCounts, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::fixtures::{at, open_store};

/// Caps that no test here reaches.
const WIDE: JobCaps = JobCaps { per_repo: 1_000, in_all: 1_000 };

fn repo() -> RepoName {
    "tide/pool".parse().expect("a name")
}

/// Accepts an `issues` webhook about this item.
async fn accept(store: &Store, id: &str, item: i64, second: i64) -> DeliveryReceipt {
    accept_of(store, &repo(), id, item, second).await
}

async fn accept_of(store: &Store, repo: &RepoName, id: &str, item: i64, second: i64) -> DeliveryReceipt {
    let (key, payload) = (format!("{repo}#{item}"), json!({ "event": "issues" }));
    let job = NewJob { key: &key, repo: Some(repo), kind: JobKind::Webhook, payload: &payload };
    let new = NewDelivery {
        id,
        event: "issues",
        action: Some("opened"),
        repo: Some(repo),
        number: Some(ItemNumber::new(item).expect("a number")),
        payload: &PackedText::pack(r#"{"issue":{"title":"a\u0000b"}}"#),
        fate: DeliveryAction::Job(job),
    };
    store.deliveries().accept(&new, at(second)).await.expect("stored")
}

async fn lease(store: &Store, owner: &str, second: i64) -> Option<Job> {
    store.jobs().lease(owner, WIDE, JobScope::All, at(second), at(second + 60)).await.expect("leases")
}

async fn end(store: &Store, job: &Job, owner: &str, end: JobEnd<'_>, second: i64) -> bool {
    store.jobs().end(JobLease { id: job.id, owner }, end, at(second)).await.expect("ends")
}

fn delivery_of(job: Option<Job>) -> Option<String> {
    job.and_then(|job| job.delivery_id)
}

async fn state(store: &Store, id: &str) -> (DeliveryState, Option<String>) {
    let delivery = store.deliveries().get(id).await.expect("reads").expect("known");
    assert_eq!(delivery.finished_at.is_some(), delivery.state != DeliveryState::Queued);
    (delivery.state, delivery.reason)
}

/// The number of deliveries in the test with many workers, and of the items they are about.
const DELIVERIES: i64 = 48;
const KEYS: i64 = 6;

/// The record of what concurrent workers do.
#[derive(Default)]
struct Book {
    in_work: HashSet<String>,
    begun: HashMap<String, Vec<JobId>>,
}

/// Works until every delivery was started; the bound only ends a test that has already failed.
async fn work_all(store: Store, owner: String, book: Arc<Mutex<Book>>) {
    for _ in 0..20_000 {
        if book.lock().expect("whole").begun.values().map(Vec::len).sum::<usize>() as i64 == DELIVERIES {
            return;
        }
        let Some(job) = lease(&store, &owner, 100).await else {
            tokio::task::yield_now().await;
            continue;
        };
        {
            let mut book = book.lock().expect("whole");
            assert!(book.in_work.insert(job.key.clone()), "two workers on {}", job.key);
            book.begun.entry(job.key.clone()).or_default().push(job.id);
        }
        tokio::task::yield_now().await;
        assert!(book.lock().expect("whole").in_work.remove(&job.key));
        assert!(end(&store, &job, &owner, JobEnd::Done, 100).await);
    }
}

on_both_engines! {
    async fn a_delivery_and_its_job_are_one(database: TestDatabase) {
        let store = open_store(&database).await;
        assert_eq!(accept(&store, "d1", 7, 0).await, DeliveryReceipt::Queued);
        assert_eq!(accept(&store, "d1", 7, 1).await, DeliveryReceipt::Known(DeliveryState::Queued));
        let job = lease(&store, "w1", 2).await.expect("due");
        assert_eq!((job.key.as_str(), job.state, job.attempts, job.run_after), ("tide/pool#7", JobState::Running, 1, at(0)));
        assert_eq!((job.payload["event"].as_str(), job.repo.clone()), (Some("issues"), Some(repo())));
        assert!(end(&store, &job, "w1", JobEnd::Done, 3).await);
        assert_eq!(state(&store, "d1").await, (DeliveryState::Done, None));
        assert_eq!(accept(&store, "d1", 7, 4).await, DeliveryReceipt::Known(DeliveryState::Done));
        assert_eq!(lease(&store, "w1", 5).await, None);
        assert_eq!(store.jobs().list(&JobFilter::default(), 10).await.expect("reads").len(), 1);
        let payload = store.deliveries().payload("d1").await.expect("reads");
        assert_eq!(payload.as_deref(), Some(r#"{"issue":{"title":"a\u0000b"}}"#));
    }

    async fn what_is_ignored_has_no_job(database: TestDatabase) {
        let store = open_store(&database).await;
        let new = NewDelivery { id: "star", event: "star", action: None, repo: None, number: None, payload: &PackedText::pack("[]"), fate: DeliveryAction::Ignored("not for us") };
        assert_eq!(store.deliveries().accept(&new, at(0)).await.expect("stored"), DeliveryReceipt::Ignored);
        assert_eq!(store.deliveries().accept(&new, at(1)).await.expect("stored"), DeliveryReceipt::Known(DeliveryState::Ignored));
        assert_eq!(state(&store, "star").await, (DeliveryState::Ignored, Some("not for us".to_owned())));
        assert_eq!(lease(&store, "w1", 2).await, None);
        let job = NewJob { key: "star", repo: None, kind: JobKind::Webhook, payload: &Value::Null };
        assert!(store.deliveries().replay("star", &job, at(3)).await.expect("queued"));
        let replayed = lease(&store, "w1", 3).await.expect("due");
        assert!(end(&store, &replayed, "w1", JobEnd::Ignored("still not"), 4).await);
        assert_eq!(state(&store, "star").await, (DeliveryState::Ignored, Some("still not".to_owned())));
    }

    async fn jobs_of_a_key_go_in_order_and_those_of_others_do_not_wait(database: TestDatabase) {
        let store = open_store(&database).await;
        for (id, item) in [("a1", 1), ("a2", 1), ("b1", 2)] {
            accept(&store, id, item, 0).await;
        }
        let first = lease(&store, "w1", 1).await.expect("due");
        assert_eq!(first.delivery_id.as_deref(), Some("a1"));
        assert_eq!(delivery_of(lease(&store, "w2", 1).await).as_deref(), Some("b1"));
        assert_eq!(lease(&store, "w3", 1).await, None);
        // A failed attempt keeps its place: the later job waits until the earlier one has ended.
        assert!(end(&store, &first, "w1", JobEnd::Retry("no luck", at(30)), 2).await);
        assert_eq!(lease(&store, "w3", 3).await, None);
        let again = lease(&store, "w3", 30).await.expect("due");
        assert_eq!((again.id, again.attempts, again.error.as_deref()), (first.id, 2, Some("no luck")));
        assert!(end(&store, &again, "w3", JobEnd::Dead("given up"), 31).await);
        assert_eq!(state(&store, "a1").await, (DeliveryState::Dead, Some("given up".to_owned())));
        assert_eq!(delivery_of(lease(&store, "w3", 32).await).as_deref(), Some("a2"));
    }

    async fn a_lease_that_ran_out_is_taken_over_and_its_owner_can_do_nothing(database: TestDatabase) {
        let store = open_store(&database).await;
        accept(&store, "d1", 1, 0).await;
        accept(&store, "d2", 1, 0).await;
        let job = lease(&store, "slow", 0).await.expect("due");
        let slow = JobLease { id: job.id, owner: "slow" };
        assert!(store.jobs().renew(slow, at(90)).await.expect("renews"));
        assert_eq!(lease(&store, "fast", 80).await, None);
        let taken = lease(&store, "fast", 90).await.expect("it ran out");
        assert_eq!((taken.id, taken.attempts), (job.id, 2));
        assert!(!store.jobs().renew(slow, at(200)).await.expect("asks"));
        for late in [JobEnd::Done, JobEnd::Ignored("x"), JobEnd::Retry("x", at(0)), JobEnd::Dead("x")] {
            assert!(!end(&store, &job, "slow", late, 91).await, "{late:?}");
        }
        assert_eq!(state(&store, "d1").await.0, DeliveryState::Queued);
        assert!(end(&store, &taken, "fast", JobEnd::Done, 92).await);
        assert!(!end(&store, &taken, "fast", JobEnd::Dead("x"), 93).await);
        assert_eq!(state(&store, "d1").await, (DeliveryState::Done, None));
    }

    async fn the_dead_come_back(database: TestDatabase) {
        let store = open_store(&database).await;
        let give_up = async |second| {
            let job = lease(&store, "w", second).await.expect("due");
            assert_eq!(job.attempts, 1, "tries are counted anew");
            assert!(end(&store, &job, "w", JobEnd::Dead("broken"), second).await);
            job.id
        };
        accept(&store, "d1", 1, 0).await;
        let job = give_up(1).await;
        // Requeued by a redelivery from GitHub,
        assert_eq!(accept(&store, "d1", 1, 2).await, DeliveryReceipt::Requeued);
        assert_eq!(state(&store, "d1").await, (DeliveryState::Queued, None));
        assert_eq!(give_up(3).await, job);
        // by the job,
        assert!(store.jobs().requeue(job, at(4)).await.expect("queued"));
        assert_eq!(state(&store, "d1").await, (DeliveryState::Queued, None));
        assert_eq!(give_up(5).await, job);
        // or by a replay of the delivery, which also works for a done delivery.
        let again = NewJob { key: "unused", repo: None, kind: JobKind::Webhook, payload: &Value::Null };
        assert!(store.deliveries().replay("d1", &again, at(6)).await.expect("queued"));
        assert!(!store.deliveries().replay("d1", &again, at(6)).await.expect("asked"), "it waits already");
        let running = lease(&store, "w", 7).await.expect("due");
        assert!(!store.jobs().requeue(job, at(7)).await.expect("asked"), "it runs");
        assert!(end(&store, &running, "w", JobEnd::Done, 8).await);
        assert!(!store.jobs().requeue(job, at(8)).await.expect("asked"), "it is done");
        assert_eq!(state(&store, "d1").await, (DeliveryState::Done, None));
        assert!(store.deliveries().replay("d1", &again, at(9)).await.expect("queued"));
        assert_eq!(give_up(10).await, job);
    }

    async fn caps_hold_per_repository_and_in_all(database: TestDatabase) {
        let store = open_store(&database).await;
        let other: RepoName = "tide/lab".parse().expect("a name");
        for item in 1..=3 {
            accept(&store, &format!("pool{item}"), item, 0).await;
        }
        for item in 1..=3 {
            accept_of(&store, &other, &format!("lab{item}"), item, 0).await;
        }
        let caps = JobCaps { per_repo: 2, in_all: 3 };
        let mut leased = Vec::new();
        while let Some(job) = store.jobs().lease("w", caps, JobScope::All, at(1), at(61)).await.expect("leases") {
            leased.push(job);
        }
        let order: Vec<_> = leased.iter().filter_map(|job| job.delivery_id.as_deref()).collect();
        assert_eq!(order, ["pool1", "pool2", "lab1"]);
        assert!(end(&store, &leased[0], "w", JobEnd::Done, 2).await);
        assert_eq!(delivery_of(store.jobs().lease("w", caps, JobScope::All, at(2), at(62)).await.expect("leases")).as_deref(), Some("pool3"));
    }

    async fn what_webhooks_cause_does_not_wait_for_what_schedules_ask(database: TestDatabase) {
        let store = open_store(&database).await;
        let take = async |scope| store.jobs().lease("w", WIDE, scope, at(9), at(69)).await.expect("leases").map(|job| job.key);
        for key in ["sync/1", "sync/2", "tide/pool#3"] {
            store.jobs().enqueue(&NewJob { key, repo: None, kind: JobKind::Sync, payload: &Value::Null }, at(0), at(0)).await.expect("queued");
        }
        assert_eq!(take(JobScope::Caused).await, None);
        assert_eq!(take(JobScope::All).await.as_deref(), Some("sync/1"));
        for (id, item) in [("d1", 1), ("d2", 2), ("d3", 3)] {
            accept(&store, id, item, 1).await;
        }
        assert_eq!(take(JobScope::Caused).await.as_deref(), Some("tide/pool#1"));
        assert_eq!(take(JobScope::All).await.as_deref(), Some("tide/pool#2"));
        // The order within a key stays the same in both scopes.
        assert_eq!(take(JobScope::Caused).await, None);
        assert_eq!(take(JobScope::All).await.as_deref(), Some("sync/2"));
        assert_eq!(take(JobScope::All).await.as_deref(), Some("tide/pool#3"));
        assert_eq!(take(JobScope::All).await, None);
    }

    async fn one_place_of_a_repository_is_kept_for_webhooks(database: TestDatabase) {
        let store = open_store(&database).await;
        let name = repo();
        for key in ["review/1#1", "review/1#2", "review/1#3"] {
            let new = NewJob { key, repo: Some(&name), kind: JobKind::Review, payload: &Value::Null };
            store.jobs().enqueue(&new, at(0), at(0)).await.expect("queued");
        }
        let take = async |per_repo| {
            let caps = JobCaps { per_repo, in_all: 9 };
            store.jobs().lease("w", caps, JobScope::All, at(1), at(61)).await.expect("leases").map(|job| job.key)
        };
        assert_eq!(take(2).await.as_deref(), Some("review/1#1"));
        assert_eq!(take(2).await, None);
        accept(&store, "d1", 1, 0).await;
        assert_eq!(take(2).await.as_deref(), Some("tide/pool#1"));
        assert_eq!(take(4).await.as_deref(), Some("review/1#2"));
        assert_eq!(take(4).await.as_deref(), Some("review/1#3"));
    }

    async fn a_job_that_waits_does_the_next_ones_work_too(database: TestDatabase) {
        let store = open_store(&database).await;
        let name = repo();
        let sum = |one: &Value, other: &Value| json!(one.as_i64().unwrap_or_default() + other.as_i64().unwrap_or_default());
        let queue = async |amount: i64, from| {
            let new = NewJob { key: "review/1#1", repo: Some(&name), kind: JobKind::Review, payload: &json!(amount) };
            store.jobs().enqueue_joined(&new, sum, at(from), at(0)).await.expect("queued")
        };
        let first = queue(1, 50).await;
        assert_eq!(queue(2, 5).await, first);
        assert_eq!(queue(4, 90).await, first);
        assert!(lease(&store, "w", 4).await.is_none(), "it waits for the earliest of them");
        let running = lease(&store, "w", 5).await.expect("due");
        assert_eq!((running.id, &running.payload, running.attempts), (first, &json!(7), 1));
        // A running job may have read too early.
        let second = queue(8, 6).await;
        assert_ne!(second, first);
        assert!(lease(&store, "v", 7).await.is_none(), "one of a key at a time");
        assert!(end(&store, &running, "w", JobEnd::Retry("failed", at(40)), 8).await);
        // Now both jobs are queued, and the new payload goes to the older one.
        assert_eq!(queue(16, 9).await, first);
        let again = lease(&store, "w", 9).await.expect("due");
        assert_eq!((again.id, &again.payload, again.attempts), (first, &json!(23), 1));
        assert!(end(&store, &again, "w", JobEnd::Done, 10).await);
        assert_eq!(lease(&store, "w", 11).await.map(|job| (job.id, job.payload)), Some((second, json!(8))));
    }

    async fn a_job_is_queued_once_while_one_for_the_same_waits_or_runs(database: TestDatabase) {
        let store = open_store(&database).await;
        let name = repo();
        let queue = async |plan: i64, second| {
            let payload = json!({ "plan": plan });
            let new = NewJob { key: "repo/1/closing", repo: Some(&name), kind: JobKind::ApplyClose, payload: &payload };
            let is_same = |other: &Value| other["plan"] == plan;
            store.jobs().enqueue_unless_active(&new, is_same, at(second), at(second)).await.expect("asked")
        };
        let (one, two, three) = tokio::join!(queue(7, 0), queue(7, 0), queue(7, 0));
        let queued: Vec<JobId> = [one, two, three].into_iter().flatten().collect();
        assert_eq!(queued.len(), 1, "{queued:?}");
        let other = queue(8, 1).await.expect("of another plan");
        let running = lease(&store, "w", 2).await.expect("due");
        assert_eq!((running.id, queue(7, 3).await), (queued[0], None), "it runs");
        let unfinished = async || {
            let jobs = store.jobs().unfinished_of_key("repo/1/closing", JobKind::ApplyClose).await.expect("reads");
            jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()
        };
        assert_eq!(unfinished().await, [other, queued[0]]);
        assert!(end(&store, &running, "w", JobEnd::Dead("so"), 4).await);
        assert_eq!(unfinished().await, [other]);
        let again = queue(7, 5).await.expect("the first has ended");
        let after = store.jobs().of_key_after("repo/1/closing", JobKind::ApplyClose, queued[0]).await.expect("reads");
        assert_eq!(after.iter().map(|job| job.id).collect::<Vec<_>>(), [again, other]);
    }

    async fn what_is_old_is_thrown_away_with_its_jobs(database: TestDatabase) {
        let store = open_store(&database).await;
        let payload = async |id| store.deliveries().payload(id).await.expect("reads");
        for (item, id) in (1..).zip(["done", "ignored", "dead", "late", "queued"]) {
            accept(&store, id, item, 0).await;
        }
        for (ending, second) in [(JobEnd::Done, 1), (JobEnd::Ignored("not for us"), 2), (JobEnd::Dead("broken"), 3), (JobEnd::Done, 50)] {
            let job = lease(&store, "w", 1).await.expect("due");
            assert!(end(&store, &job, "w", ending, second).await);
        }
        for (key, ending) in [("sync/1", JobEnd::Done), ("sync/2", JobEnd::Done), ("sync/3", JobEnd::Dead("broken"))] {
            store.jobs().enqueue(&NewJob { key, repo: None, kind: JobKind::Sync, payload: &Value::Null }, at(0), at(0)).await.expect("queued");
            let job = store.jobs().lease("w", WIDE, JobScope::All, at(1), at(61)).await.expect("leases").expect("due");
            let job = if job.key == key { job } else {
                // The queued delivery comes first.
                store.jobs().lease("w", WIDE, JobScope::All, at(1), at(61)).await.expect("leases").expect("due")
            };
            assert_eq!(job.key, key);
            assert!(end(&store, &job, "w", ending, 4).await);
        }
        let prune = async |before, limit| store.maintenance().prune(at(before), limit).await.expect("pruned");
        assert_eq!(prune(1, 10).await, PruneCounts::default());
        assert_eq!(prune(40, 1).await, PruneCounts { deliveries: 1, jobs: 1, console: 0 });
        assert_eq!((payload("done").await, payload("ignored").await.is_some()), (None, true), "the oldest first");
        assert_eq!(prune(40, 10).await, PruneCounts { deliveries: 1, jobs: 1, console: 0 });
        assert_eq!(prune(40, 10).await, PruneCounts::default());
        for (id, kept) in [("done", false), ("ignored", false), ("dead", true), ("late", true), ("queued", true)] {
            assert_eq!(payload(id).await.is_some(), kept, "{id}");
        }
        assert_eq!(payload("never").await, None);
        assert_eq!(accept(&store, "late", 4, 60).await, DeliveryReceipt::Known(DeliveryState::Done));
        let left = store.jobs().list(&JobFilter::default(), 99).await.expect("reads");
        let alone: Vec<_> = left.iter().filter(|job| job.delivery_id.is_none()).map(|job| job.key.as_str()).collect();
        assert_eq!((left.len(), alone), (4, vec!["sync/3"]), "the jobs of a deleted delivery are deleted with it");
        // GitHub repeats no delivery that is as old as that.
        assert_eq!(accept(&store, "done", 1, 60).await, DeliveryReceipt::Queued);
    }

    async fn workers_at_once_never_share_a_key_and_keep_its_order(database: TestDatabase) {
        let store = open_store(&database).await;
        // GitHub delivers each of them twice at the same time.
        let accepts = (0..DELIVERIES * 2).map(|turn| {
            let (store, number) = (store.clone(), turn / 2);
            tokio::spawn(async move { accept(&store, &format!("d{number:02}"), number % KEYS + 1, number).await })
        });
        let accepts: Vec<_> = accepts.collect();
        let mut queued = 0;
        for accepted in accepts {
            queued += i64::from(accepted.await.expect("runs") == DeliveryReceipt::Queued);
        }
        assert_eq!(queued, DELIVERIES);
        let book = Arc::new(Mutex::new(Book::default()));
        let workers = (0..6).map(|worker| tokio::spawn(work_all(store.clone(), format!("w{worker}"), Arc::clone(&book))));
        let workers: Vec<_> = workers.collect();
        for worker in workers {
            worker.await.expect("runs");
        }
        let begun = std::mem::take(&mut book.lock().expect("whole").begun);
        assert_eq!(begun.len() as i64, KEYS);
        for (key, ids) in begun {
            assert_eq!(ids.len() as i64, DELIVERIES / KEYS, "{key}");
            assert!(ids.is_sorted(), "{key}: {ids:?}");
        }
        let done = DeliveryFilter { state: Some(DeliveryState::Done), ..DeliveryFilter::default() };
        assert_eq!(store.deliveries().list(&done, 100).await.expect("reads").len() as i64, DELIVERIES);
    }

    async fn lists_are_filtered_and_the_latest_come_first(database: TestDatabase) {
        let store = open_store(&database).await;
        store.ping().await.expect("it is there");
        accept(&store, "d1", 1, 0).await;
        accept_of(&store, &"tide/lab".parse().expect("a name"), "d2", 1, 1).await;
        let ids = async |filter: DeliveryFilter, limit| {
            let listed = store.deliveries().list(&filter, limit).await.expect("reads");
            listed.into_iter().map(|delivery| delivery.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(DeliveryFilter::default(), 9).await, ["d2", "d1"]);
        assert_eq!(ids(DeliveryFilter::default(), 1).await, ["d2"]);
        assert_eq!(ids(DeliveryFilter { repo: Some("Tide/POOL".parse().expect("a name")), ..DeliveryFilter::default() }, 9).await, ["d1"]);
        assert!(ids(DeliveryFilter { event: Some("push".to_owned()), ..DeliveryFilter::default() }, 9).await.is_empty());
        let of_delivery = JobFilter { delivery: Some("d1".to_owned()), ..JobFilter::default() };
        let jobs = store.jobs().list(&of_delivery, 9).await.expect("reads");
        assert_eq!((jobs.len(), jobs[0].delivery_id.as_deref()), (1, Some("d1")));
        assert_eq!(store.jobs().get(jobs[0].id).await.expect("reads"), Some(jobs[0].clone()));
    }
}
