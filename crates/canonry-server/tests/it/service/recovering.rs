//! Failed deliveries: requested again, and the gap closed by a sync.

use canonry_domain::{ItemNumber, ItemType};
use canonry_server::{AttemptEnd, Scheduler, Schedules};
use canonry_store::{
    DeliveryAction, EmbedFilter, EmbeddingKey, Job, JobFilter, JobKind, JobState, NewDelivery, NewJob, PackedText,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewIssue};
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::world::As;
use crate::world::job_world::{JobWorld, REPO};

impl JobWorld {
    /// A person opens an issue, and its delivery is answered with this status; returns its id.
    fn opened(&self, status: u16) -> String {
        self.emulator.world().open(REPO, "ann", NewIssue::new("Water is cold", "Brr."));
        self.answered(status)
    }

    /// Pending deliveries are answered with this status; returns the id of the last one.
    fn answered(&self, status: u16) -> String {
        let pending = self.emulator.pending_deliveries();
        for delivery in &pending {
            self.emulator.note_attempt(delivery.id, status);
        }
        pending.last().expect("something is on its way").guid.clone()
    }

    async fn recover(&self) -> Option<AttemptEnd> {
        let now = self.clock.now();
        let job = NewJob { key: "recover", repo: None, kind: JobKind::Recover, payload: &json!({}) };
        self.store.jobs().enqueue_once(&job, now, now).await.expect("stored").expect("none is queued");
        self.work().await
    }

    /// The ids of deliveries that were requested again since the last call.
    fn asked_again(&self) -> Vec<String> {
        let writes = self.emulator.writes();
        let asked = writes.iter().filter_map(|write| {
            let id = write.path.strip_prefix("/app/hook/deliveries/")?.strip_suffix("/attempts")?;
            Some(id.parse().expect("a number"))
        });
        let asked: Vec<u64> = asked.collect();
        self.emulator.forget_requests();
        let world = self.emulator.world();
        let guid = |id: &u64| world.deliveries.iter().find(|delivery| delivery.id == *id).expect("known").guid.clone();
        asked.iter().map(guid).collect()
    }

    /// The delivery arrives after all.
    async fn store_delivery(&self, id: &str) {
        let new = NewDelivery {
            id,
            event: "issues",
            action: Some("opened"),
            repo: None,
            number: None,
            payload: &PackedText::pack("{}"),
            fate: DeliveryAction::Ignored("only its arrival counts here"),
        };
        self.store.deliveries().accept(&new, self.clock.now()).await.expect("stored");
    }

    async fn unfinished(&self) -> Vec<Job> {
        let mut jobs = self.store.jobs().list(&JobFilter::default(), 100).await.expect("reads");
        jobs.retain(|job| job.state == JobState::Queued);
        jobs
    }
}

on_both_engines! {
    async fn what_never_arrived_is_asked_for_and_the_gap_is_synced(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::App).await;
        let missed = setting.opened(0);
        // Only our answer was lost.
        let stored = setting.opened(504);
        setting.store_delivery(&stored).await;
        // A person has requested it by hand.
        let repeated = setting.opened(503);
        setting.emulator.world().redeliver(&repeated);
        setting.answered(202);
        setting.opened(202);
        assert_eq!(setting.recover().await, Some(AttemptEnd::Done));
        assert_eq!(setting.asked_again(), [missed]);

        let jobs = setting.unfinished().await;
        let [sync] = jobs.as_slice() else { panic!("one repository is concerned: {jobs:?}") };
        assert_eq!((sync.kind.as_str(), sync.key.as_str(), sync.repo.as_ref()), ("sync", setting.sync_key().as_str(), Some(&setting.repo.name)));
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        for number in 1..=4 {
            let number = ItemNumber::new(number).expect("valid");
            let item = setting.store.corpus().item(setting.repo.id, ItemType::Issue, number).await.expect("reads").expect("taken in");
            assert_eq!(item.title, "Water is cold");
        }
        let filter = EmbedFilter { item_type: None, state: None, only_changed: true };
        let left = setting.store.corpus().items_to_embed(setting.repo.id, &EmbeddingKey::raw("plain"), filter, None, 10).await;
        assert_eq!(left.expect("reads").len(), 0, "all are embedded");
        let progress = setting.store.corpus().sync_progress(setting.repo.id).await.expect("reads");
        assert!(progress.finished_at.is_some() && progress.swept_at.is_some(), "{progress:?}");
    }

    async fn what_fails_again_is_asked_for_again_an_hour_later(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::App).await;
        let missed = setting.opened(503);
        assert_eq!(setting.recover().await, Some(AttemptEnd::Done));
        assert_eq!(setting.asked_again(), [missed.as_str()]);
        assert_eq!(setting.work().await, Some(AttemptEnd::Done), "the sync");
        // The service was still down.
        setting.answered(503);
        setting.emulator.world().advance(10 * 60);
        assert_eq!(setting.recover().await, Some(AttemptEnd::Done));
        assert_eq!(setting.asked_again(), [""; 0]);
        setting.emulator.world().advance(51 * 60);
        assert_eq!(setting.recover().await, Some(AttemptEnd::Done));
        assert_eq!(setting.asked_again(), [missed.as_str()]);
        assert_eq!(setting.work().await, Some(AttemptEnd::Done), "the sync");
        setting.answered(202);
        setting.store_delivery(&missed).await;
        setting.emulator.world().advance(61 * 60);
        assert_eq!(setting.recover().await, Some(AttemptEnd::Done));
        assert_eq!((setting.asked_again(), setting.unfinished().await), (Vec::new(), Vec::new()));
    }

    async fn what_may_not_have_been_repeated_is_looked_at_again_soon(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::App).await;
        let missed = setting.opened(503);
        setting.emulator.fault(Fault::on("POST", "/app/hook/deliveries/*/attempts").answer(502));
        assert_eq!(setting.recover().await, Some(AttemptEnd::Postponed));
        assert_eq!(setting.asked_again(), [missed.as_str()]);
        assert_eq!(setting.work().await, Some(AttemptEnd::Done), "the sync");
        setting.emulator.world().advance(5 * 60);
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        assert_eq!(setting.asked_again(), [missed.as_str()]);
    }

    async fn what_fails_again_is_not_lost_between_two_recoveries(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::App).await;
        let scheduler = Scheduler { store: setting.store.clone(), clock: setting.clock.clone(), schedules: Schedules::App };
        let asked_for = async || {
            scheduler.tick().await.expect("ticks");
            while setting.work().await.is_some() {}
            setting.asked_again()
        };
        let missed = setting.opened(503);
        assert_eq!(asked_for().await, [missed.as_str()]);
        setting.emulator.world().advance(5);
        setting.answered(503);
        setting.emulator.world().advance(3595);
        assert_eq!(asked_for().await, [missed.as_str()], "the next hour");
        // It fails late, shortly before the next recovery: the one after that still finds it.
        setting.emulator.world().advance(3595);
        setting.answered(503);
        setting.emulator.world().advance(5);
        assert_eq!(asked_for().await, [""; 0], "it failed a moment ago");
        setting.emulator.world().advance(3600);
        assert_eq!(asked_for().await, [missed.as_str()]);
    }

    async fn many_are_asked_for_a_few_hundred_at_a_time(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::App).await;
        for _ in 0..310 {
            setting.emulator.world().ping();
        }
        setting.answered(0);
        assert_eq!(setting.recover().await, Some(AttemptEnd::Postponed));
        let first = setting.asked_again();
        setting.answered(202);
        assert_eq!(setting.work().await, None, "not yet");
        setting.emulator.world().advance(5 * 60);
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        let second = setting.asked_again();
        assert_eq!((first.len(), second.len()), (300, 10));
        assert!(second.iter().all(|id| !first.contains(id)));
    }

    async fn without_an_app_only_the_gap_is_synced(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::Token).await;
        setting.opened(0);
        assert_eq!(setting.recover().await, Some(AttemptEnd::Done));
        assert_eq!(setting.emulator.requests().len(), 0);
        let scheduler = Scheduler { store: setting.store.clone(), clock: setting.clock.clone(), schedules: Schedules::Token };
        scheduler.catch_up().await.expect("queued");
        let kinds: Vec<String> = setting.unfinished().await.iter().map(|job| job.kind.to_string()).collect();
        assert_eq!(kinds, ["sync", "objections", "grace", "reactions"]);
        for _ in kinds {
            assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        }
        let first = ItemNumber::new(1).expect("valid");
        assert!(setting.store.corpus().item(setting.repo.id, ItemType::Issue, first).await.expect("reads").is_some());
    }

    async fn only_what_is_new_since_the_last_recovery_is_listed(database: TestDatabase) {
        let setting = JobWorld::new(&database, As::App).await;
        let scheduler = Scheduler { store: setting.store.clone(), clock: setting.clock.clone(), schedules: Schedules::App };
        let begun = setting.clock.now();
        scheduler.catch_up().await.expect("queued");
        let since = async || {
            let jobs = setting.store.jobs().list(&JobFilter::default(), 10).await.expect("reads");
            let job = jobs.into_iter().find(|job| job.kind == JobKind::Recover).expect("queued");
            job.payload["since"].clone()
        };
        let hours = |hours: i64| Value::String((begun + jiff::SignedDuration::from_hours(hours)).to_string());
        assert_eq!(since().await, hours(-72), "as far back as GitHub goes");
        for _ in 0..260 {
            setting.emulator.world().ping();
        }
        setting.answered(202);
        // New deliveries come first in the list.
        setting.emulator.world().advance(5 * 3600);
        setting.opened(202);
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        let listed = || setting.emulator.requests().iter().filter(|request| request.path == "/app/hook/deliveries").count();
        assert_eq!(listed(), 3);
        while setting.work().await.is_some() {}
        setting.emulator.forget_requests();
        setting.emulator.world().advance(3600);
        scheduler.catch_up().await.expect("queued");
        assert_eq!(since().await, hours(2), "three hours before the end of the last one");
        assert_eq!(setting.work().await, Some(AttemptEnd::Done));
        assert_eq!(listed(), 1);
    }
}
