//! A clock that was ahead is set back: nothing waits for the times that it wrote.

use canonry_domain::{ItemNumber, WriteKey, WriteKind};
use canonry_store::{
    FutureTimes, JobCaps, JobKind, JobScope, NewJob, NewOutboxEntry, OutboxLease, OutboxScope, Reservation, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

const FOUR_DAYS: SignedDuration = SignedDuration::from_hours(96);
const CAPS: JobCaps = JobCaps { per_repo: 4, in_all: 4 };

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).expect("in range")
}

fn minute() -> SignedDuration {
    SignedDuration::from_mins(1)
}

/// Does everything that a service does by the clock at this time: a schedule fires, one job is leased and one is
/// queued, and one write is sent while another is pending.
async fn live(store: &Store, now: Timestamp) {
    let repo = store.repos().ensure(&"tide/pool".parse().expect("a name"), now).await.expect("stored");
    store.jobs().fire_schedule("grace", SignedDuration::from_mins(10), &[], now).await.expect("fires");
    let payload = json!({});
    for key in ["leased", "waiting"] {
        let job = NewJob { key, repo: None, kind: JobKind::Sync, payload: &payload };
        store.jobs().enqueue(&job, now, now).await.expect("queued");
    }
    store.jobs().lease("killed", CAPS, JobScope::All, now, now + minute()).await.expect("reads").expect("due");
    for number in 1..=2 {
        let (number, key) = (ItemNumber::new(number).expect("a number"), format!("triage:{number}"));
        let new = NewOutboxEntry {
            repo: repo.id,
            number,
            kind: WriteKind::Comment,
            key: &WriteKey::other(&key),
            payload: &payload,
            refused: None,
        };
        store.outbox().enqueue(&new, now).await.expect("stored");
    }
    let claimed = store.outbox().claim(OutboxScope::All, "killed", now, now + minute()).await.expect("reads");
    let lease = OutboxLease { id: claimed.expect("due").id, owner: "killed", until: now + minute() };
    let window = now - SignedDuration::from_hours(1);
    let sent = store.outbox().reserve_send(lease, &payload, now, window, |_| now).await.expect("stored");
    assert_eq!(sent, Reservation::Go);
    assert!(store.close().take_lease(repo.id, "killed", now, now + minute()).await.expect("taken"));
}

on_both_engines! {
    async fn what_waits_for_the_future_is_due(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("a URL"), now()).await.expect("opens");
        live(&store, now() + FOUR_DAYS).await;
        let job = async || store.jobs().lease("later", CAPS, JobScope::All, now(), now() + minute()).await.expect("reads");
        assert_eq!(job().await, None, "without a remedy nothing is due for four days");

        let corrected = store.maintenance().correct_future_times(now).await.expect("corrected");
        assert_eq!(corrected, FutureTimes { schedules: 1, jobs: 2, writes: 2, sent: 1, close_leases: 1 });
        assert_eq!(store.maintenance().correct_future_times(now).await.expect("corrected"), FutureTimes::default(), "once");

        assert!(store.jobs().fire_schedule("grace", SignedDuration::from_mins(10), &[], now()).await.expect("fires"));
        let mut keys = vec![job().await.expect("due").key, job().await.expect("due").key];
        keys.sort();
        assert_eq!(keys, ["leased", "waiting"]);
        for _ in 0..2 {
            let claimed = store.outbox().claim(OutboxScope::All, "later", now(), now() + minute()).await.expect("reads");
            let lease = OutboxLease { id: claimed.expect("due").id, owner: "later", until: now() + minute() };
            let (payload, window) = (json!({}), now() - SignedDuration::from_hours(1));
            let sent = store.outbox().reserve_send(lease, &payload, now(), window, |earlier| {
                assert!(earlier.iter().all(|sent| *sent <= now()), "{earlier:?}");
                now()
            });
            assert_eq!(sent.await.expect("stored"), Reservation::Go);
        }
        let repo = store.repos().find(&"tide/pool".parse().expect("a name")).await.expect("reads").expect("known");
        assert!(store.close().take_lease(repo.id, "later", now(), now() + minute()).await.expect("taken"));
    }

    async fn a_clock_that_is_a_little_ahead_is_left_alone(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("a URL"), now()).await.expect("opens");
        live(&store, now() + SignedDuration::from_secs(100)).await;
        assert_eq!(store.maintenance().correct_future_times(now).await.expect("looked"), FutureTimes::default());
    }
}
