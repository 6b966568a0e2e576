//! Changes without a webhook: found by the nightly sync, or requested again.

use canonry_domain::LessonKind;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::CloseReason;
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::triage_world::{SUGGEST, TriageWorld};

const POOL: &str = "tide/pool";

on_both_engines! {
    async fn what_no_webhook_told_is_learned_all_the_same(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.emulator.world().get_mut(POOL).file(".canonry.yml", SUGGEST);
        setting.settle().await;
        let (person, bot, duplicate) = (setting.report(POOL, 0, 95), setting.report(POOL, 1, 95), setting.report(POOL, 2, 95));
        setting.settle().await;
        let webhook = setting.emulator.world().webhook.take();
        setting.close(POOL, person, "maint", CloseReason::Completed);
        setting.close(POOL, bot, "stale[bot]", CloseReason::NotPlanned);
        setting.confirm(POOL, duplicate);
        setting.emulator.world().webhook = webhook;
        setting.settle().await;
        assert_eq!(setting.counts(POOL).await[4], 0, "nobody has told");
        setting.later(SignedDuration::from_hours(25)).await;
        assert_eq!(setting.lesson(POOL, person).await, Some(LessonKind::FalsePositive));
        assert_eq!(setting.lesson(POOL, bot).await, None, "a stale bot");
        assert_eq!(setting.lesson(POOL, duplicate).await, Some(LessonKind::Confirmed));
        assert_eq!(setting.counts(POOL).await, [1, 1, 0, 0, 2]);
        setting.stop().await;
    }

    async fn what_could_not_be_delivered_is_asked_for_again(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.emulator.world().get_mut(POOL).file(".canonry.yml", SUGGEST);
        setting.settle().await;
        let number = setting.report(POOL, 0, 95);
        // GitHub tried to deliver, and the service was down.
        let lost = setting.emulator.pending_deliveries().pop().expect("a delivery");
        setting.emulator.note_attempt(lost.id, 0);
        setting.settle().await;
        assert_eq!(setting.store.deliveries().get(&lost.guid).await.expect("reads"), None);
        setting.later(SignedDuration::from_hours(2)).await;
        setting.assert_said(POOL, number, 1);
        let again = setting.emulator.world().deliveries.iter().filter(|delivery| delivery.guid == lost.guid).count();
        assert_eq!(again, 2, "it was asked for once");
    }
}
