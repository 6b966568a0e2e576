//! Outbox entries: one per key, one worker at a time, in order, with one rate limit.

use std::collections::HashSet;
use std::sync::Arc;

use canonry_domain::{WriteKey, WriteKind};
use canonry_store::{
    NewOutboxEntry, OutboxEnd, OutboxEntry, OutboxLease, OutboxScope, OutboxState, Repo, Reservation, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::fixtures::{at, number, open_with};

async fn open(database: &TestDatabase) -> (Store, Repo) {
    open_with(database, []).await
}

async fn enqueue(store: &Store, repo: &Repo, item: i64, key: &str) -> OutboxEntry {
    let payload = json!({ "body": key });
    let new = NewOutboxEntry {
        repo: repo.id,
        number: number(item),
        kind: WriteKind::Comment,
        key: &WriteKey::other(key),
        payload: &payload,
        refused: None,
    };
    store.outbox().enqueue(&new, at(0)).await.expect("stored")
}

fn lease<'a>(entry: &OutboxEntry, owner: &'a str, until: i64) -> OutboxLease<'a> {
    OutboxLease { id: entry.id, owner, until: at(until) }
}

on_both_engines! {
    async fn a_key_stands_for_one_entry(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let first = enqueue(&store, &repo, 1, "a").await;
        let payload = json!("something else");
        let new = NewOutboxEntry { repo: repo.id, number: number(2), kind: WriteKind::Label, key: &WriteKey::other("a"), payload: &payload, refused: Some("no") };
        assert_eq!(store.outbox().enqueue(&new, at(9)).await.expect("stored"), first);
        assert_eq!(store.outbox().of_key("a").await.expect("reads"), Some(first.clone()));
        assert_eq!((first.state, first.attempts, first.payload["body"].as_str()), (OutboxState::Pending, 0, Some("a")));
        let refused = NewOutboxEntry { key: &WriteKey::other("b"), ..new };
        let refused = store.outbox().enqueue(&refused, at(9)).await.expect("stored");
        assert_eq!((refused.state, refused.reason.as_deref()), (OutboxState::Refused, Some("no")));
        assert_eq!(store.outbox().of_item(repo.id, number(1)).await.expect("reads"), [first]);
    }

    async fn entries_of_an_item_go_in_order_and_those_of_others_do_not_wait(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let first = enqueue(&store, &repo, 1, "first").await;
        enqueue(&store, &repo, 1, "second").await;
        let other = enqueue(&store, &repo, 2, "other").await;
        let claim = async |scope: OutboxScope, owner: &str, now: i64| {
            store.outbox().claim(scope, owner, at(now), at(now + 300)).await.expect("claims").map(|entry| entry.key)
        };
        assert_eq!(claim(OutboxScope::All, "x", 1).await.as_deref(), Some("first"));
        assert_eq!(claim(OutboxScope::All, "y", 1).await.as_deref(), Some("other"));
        assert_eq!(claim(OutboxScope::All, "z", 1).await, None);
        // A postponed entry still goes first.
        assert!(store.outbox().postpone(lease(&first, "x", 0), &json!(1), at(60), Some("why"), at(2)).await.expect("stored"));
        assert_eq!(claim(OutboxScope::Item(repo.id, number(1)), "z", 59).await, None);
        assert_eq!(store.outbox().next_moment(OutboxScope::Item(repo.id, number(1))).await.expect("reads"), Some(at(60)));
        assert_eq!(claim(OutboxScope::Item(repo.id, number(1)), "z", 60).await.as_deref(), Some("first"));
        assert!(store.outbox().finish(lease(&first, "z", 0), OutboxEnd::Sent(&json!({"id": 1})), at(61)).await.expect("stored"));
        assert_eq!(claim(OutboxScope::Item(repo.id, number(1)), "z", 61).await.as_deref(), Some("second"));
        let done = store.outbox().get(first.id).await.expect("reads").expect("there");
        assert_eq!((done.state, done.answer, done.step), (OutboxState::Sent, Some(json!({"id": 1})), None));
        // The other worker's lease expires.
        assert_eq!(store.outbox().next_moment(OutboxScope::Item(repo.id, number(2))).await.expect("reads"), Some(at(301)));
        assert_eq!(claim(OutboxScope::Item(repo.id, number(2)), "z", 301).await.as_deref(), Some("other"));
        assert!(!store.outbox().record_step(lease(&other, "y", 999), &json!(2), at(302)).await.expect("asked"));
    }

    async fn whoever_lost_the_lease_stores_nothing(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let entry = enqueue(&store, &repo, 1, "a").await;
        store.outbox().claim(OutboxScope::All, "old", at(0), at(10)).await.expect("claims").expect("there");
        store.outbox().claim(OutboxScope::All, "new", at(10), at(99)).await.expect("claims").expect("there");
        let old = lease(&entry, "old", 50);
        let step = json!("sending");
        assert!(!store.outbox().record_step(old, &step, at(11)).await.expect("asked"));
        assert!(!store.outbox().postpone(old, &step, at(12), None, at(11)).await.expect("asked"));
        assert!(!store.outbox().finish(old, OutboxEnd::Failed("x"), at(11)).await.expect("asked"));
        let sent = store.outbox().reserve_send(old, &step, at(11), at(0), |_| at(11)).await.expect("asked");
        assert_eq!(sent, Reservation::LeaseLost);
        let kept = store.outbox().get(entry.id).await.expect("reads").expect("there");
        assert_eq!((kept.state, kept.attempts, kept.step), (OutboxState::Pending, 0, None));
        // An ended entry does not change, even for its owner.
        let new = lease(&entry, "new", 99);
        assert!(store.outbox().finish(new, OutboxEnd::Refused("no"), at(12)).await.expect("stored"));
        assert!(!store.outbox().finish(new, OutboxEnd::Failed("late"), at(13)).await.expect("asked"));
    }

    async fn many_workers_never_share_an_entry(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        for item in 1..=30 {
            enqueue(&store, &repo, item, &format!("key {item}")).await;
        }
        let workers: Vec<_> = (0..6).map(|worker| {
            let store = store.clone();
            tokio::spawn(async move {
                let owner = format!("worker {worker}");
                let mut keys = Vec::new();
                while let Some(entry) =
                    store.outbox().claim(OutboxScope::All, &owner, at(1), at(500)).await.expect("claims")
                {
                    keys.push(entry.key);
                }
                keys
            })
        }).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.await.expect("works"));
        }
        assert_eq!((all.len(), all.iter().collect::<HashSet<_>>().len()), (30, 30));
    }

    async fn all_senders_keep_one_pace(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let at_most_three = |earlier: &[Timestamp]| if earlier.len() < 3 { at(5) } else { at(65) };
        let mut senders = Vec::new();
        for item in 1..=10 {
            let entry = enqueue(&store, &repo, item, &format!("key {item}")).await;
            let owner: Arc<str> = format!("owner {item}").into();
            let scope = OutboxScope::Item(repo.id, number(item));
            store.outbox().claim(scope, &owner, at(1), at(500)).await.expect("claims").expect("there");
            let store = store.clone();
            senders.push(tokio::spawn(async move {
                let step = Value::from("sending");
                let lease = OutboxLease { id: entry.id, owner: &owner, until: at(500) };
                store.outbox().reserve_send(lease, &step, at(5), at(0), at_most_three).await.expect("asked")
            }));
        }
        let mut reservations = Vec::new();
        for sender in senders {
            reservations.push(sender.await.expect("works"));
        }
        let go = reservations.iter().filter(|&&reservation| reservation == Reservation::Go).count();
        let later = reservations.iter().filter(|&&reservation| reservation == Reservation::Later(at(65))).count();
        assert_eq!((go, later), (3, 7), "{reservations:?}");
        let mut attempts = 0;
        for item in 1..=10 {
            attempts += store.outbox().of_item(repo.id, number(item)).await.expect("reads")[0].attempts;
        }
        assert_eq!(attempts, 3);
    }

    async fn the_marker_secret_is_made_once(database: TestDatabase) {
        let (store, _) = open(&database).await;
        assert_eq!(store.outbox().marker_secret([1; 32], at(0)).await.expect("stored"), [1; 32]);
        assert_eq!(store.outbox().marker_secret([2; 32], at(0) + SignedDuration::from_secs(1)).await.expect("stored"), [1; 32]);
    }
}
