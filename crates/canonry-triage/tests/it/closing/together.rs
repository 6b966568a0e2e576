//! Several processes that apply plans at once.

use std::sync::Arc;

use canonry_domain::UndoReason;
use canonry_github::{Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, Fault};
use canonry_testkit::on_both_engines;
use canonry_triage::{ApplyError, ClosingError, RowResult};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use canonry_testworld::{client, token_auth};

use crate::closing::setting::{Setting, TOKEN};
use canonry_testworld::WorldClock;

/// The world's clock, but short waits do not advance it; they only let other tasks run. Polling each second must not
/// make minutes pass.
struct PatientClock(Arc<Emulator>);

impl Clock for PatientClock {
    fn now(&self) -> Timestamp {
        self.0.world().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if until.duration_since(self.now()) > SignedDuration::from_secs(1) {
                let mut world = self.0.world();
                world.now = world.now.max(until);
            } else {
                tokio::task::yield_now().await;
            }
        })
    }
}

impl Setting {
    fn patient_client(&self) -> canonry_github::GitHub {
        client(&self.emulator, Arc::new(PatientClock(Arc::clone(&self.emulator))), token_auth())
    }
}

on_both_engines! {
    async fn one_plan_applied_twice_at_once_is_applied_once(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(4);
        let pairs: Vec<_> = duplicates.iter().map(|duplicate| (*duplicate, original)).collect();
        let plan = setting.plan(&pairs).await;
        let (one, two) = (setting.patient_client(), setting.patient_client());
        let (first, second) = (setting.outbox(&one).await, setting.outbox(&two).await);
        let (first, second) = tokio::join!(
            setting.apply_with(&one, &first, plan, false),
            setting.apply_with(&two, &second, plan, false)
        );
        let (first, second) = (first.expect("applied"), second.expect("applied"));
        assert_eq!((first.applied + second.applied, first.failed + second.failed), (4, 0));
        for duplicate in &duplicates {
            setting.assert_closed(*duplicate, original, "at once");
        }
        setting.assert_back_link(original, &duplicates, "at once");
    }

    async fn two_plans_at_once_neither_chain_nor_close_both_sides(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (one, two, three) = (setting.open("Sync stops"), setting.open("Sync stops too"), setting.open("And again"));
        setting.sync().await;
        setting.later(5);
        // Created at the same time, so that neither is newer in a way that would refuse the other.
        let rows = [setting.row(two, one).await, setting.row(three, one).await];
        let forth = setting.store_plan(&rows[..1]).await;
        let (left, right) = (setting.patient_client(), setting.patient_client());
        let (outbox, other_outbox) = (setting.outbox(&left).await, setting.outbox(&right).await);
        let back = setting.row(one, two).await;
        let (fault, mut gate) = Fault::on("GET", &format!("/repos/*/*/issues/{two}/timeline")).hold();
        setting.emulator.fault(fault);
        let second = async {
            gate.arrived().await;
            let back = setting.store_plan(&[back, rows[1].clone()]).await;
            gate.release();
            setting.apply_with(&right, &other_outbox, back, false).await
        };
        let (first, second) = tokio::join!(setting.apply_with(&left, &outbox, forth, false), second);
        let (first, second) = (first.expect("applied"), second.expect("applied"));
        assert_eq!(first.rows[0].result, RowResult::Applied, "{first:?}");
        let backwards = second.rows.iter().find(|row| row.number == one).expect("a row");
        assert_eq!((backwards.result, backwards.reason.as_deref()), (RowResult::Skipped, Some("drift:target_closed")));
        setting.assert_closed(two, one, "forth");
        setting.assert_closed(three, one, "the other row of the second plan");
        assert!(setting.shown(one).open);
        setting.assert_back_link(one, &[two, three], "both plans");
    }

    async fn an_undo_waits_for_the_apply(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(3);
        let pairs: Vec<_> = duplicates.iter().map(|duplicate| (*duplicate, original)).collect();
        let plan = setting.plan(&pairs).await;
        let (one, two) = (setting.patient_client(), setting.patient_client());
        let (outbox, other) = (setting.outbox(&one).await, setting.outbox(&two).await);
        let (fault, mut gate) = Fault::on("PATCH", &format!("/repos/*/*/issues/{}", duplicates[0])).hold();
        setting.emulator.fault(fault);
        let undoing = async {
            gate.arrived().await;
            gate.release();
            setting.undo_with(&two, &other, plan, None, UndoReason::Other).await
        };
        let (applied, undone) = tokio::join!(setting.apply_with(&one, &outbox, plan, false), undoing);
        assert_eq!(applied.expect("applied").applied, 3);
        assert_eq!(undone.expect("undone").applied, 3);
        for duplicate in duplicates {
            let shown = setting.shown(duplicate);
            assert_eq!((shown.open, shown.closes, shown.comments.len(), shown.labels.len()), (true, 1, 2, 0));
        }
    }

    async fn a_process_that_was_held_up_finds_that_another_took_over(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(2);
        let pairs: Vec<_> = duplicates.iter().map(|duplicate| (*duplicate, original)).collect();
        let plan = setting.plan(&pairs).await;
        // Held during the check of the first item right before its comment.
        let (fault, mut gate) = Fault::on("GET", &format!("/repos/*/*/issues/{}/timeline", duplicates[0])).nth(2).hold();
        setting.emulator.fault(fault);
        let second = async {
            gate.arrived().await;
            // On this clock a minute of polling passes at once, and so does the entry's own lease.
            let report = setting.apply(plan).await;
            gate.release();
            report
        };
        let (first, second) = tokio::join!(setting.try_apply(plan, false), second);
        let first = first.expect("applied");
        assert_eq!((second.applied, second.failed), (2, 0), "{second:?}");
        assert_eq!(first.failed, 0, "{first:?}");
        for duplicate in &duplicates {
            setting.assert_closed(*duplicate, original, "taken over");
        }
        setting.assert_back_link(original, &duplicates, "taken over");
    }

    async fn whoever_waits_too_long_is_told_who_is_at_work(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(1);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        let now = setting.emulator.world().now;
        let until = now + SignedDuration::from_mins(3);
        assert!(setting.store.close().take_lease(setting.repo.id, "the night shift", now, until).await.expect("taken"));
        let options = ClientOptions {
            api: setting.emulator.url().parse().expect("a URL"),
            clock: Arc::new(WorldClock(Arc::clone(&setting.emulator))),
            longest_wait: SignedDuration::from_mins(1),
            ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
        };
        let github = GitHub::new(options).expect("a client");
        let outbox = setting.outbox(&github).await;
        let result = setting.apply_with(&github, &outbox, plan, false).await;
        let Err(ApplyError::Ended(ClosingError::Busy(words))) = result else { panic!("{result:?}") };
        assert!(words.contains("the night shift"), "{words}");
        setting.assert_untouched(duplicates[0], "busy");
    }
}
