//! GitHub's times are whole seconds, and its deliveries come in any order.

use canonry_domain::{ItemState, ItemType, LessonKind};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::CloseReason;
use canonry_testkit::on_both_engines;

use crate::world::item;
use crate::world::triage_world::{SUGGEST, TriageWorld};

const POOL: &str = "tide/pool";

on_both_engines! {
    /// "Close with comment" sends two deliveries of one second; here the close comes first.
    async fn a_comment_that_arrives_after_the_closing_reopens_nothing(database: TestDatabase) {
        let setting = TriageWorld::new(database, &[POOL]).await;
        setting.emulator.world().get_mut(POOL).file(".canonry.yml", SUGGEST);
        setting.settle().await;
        let number = setting.report(POOL, 0, 95);
        setting.settle().await;
        setting.meanwhile(|world| {
            world.comment(POOL, number, "maint", "Duplicate of #1.");
            world.close(POOL, number, "maint", CloseReason::Duplicate(None));
            world.deliveries.reverse();
        });
        let order: Vec<String> = setting.emulator.pending_deliveries().into_iter().map(|delivery| delivery.event).collect();
        assert_eq!(order, ["issues", "issue_comment"]);
        let closing = setting.emulator.pending_deliveries().remove(0);
        // The other one is delivered only after the close was handled.
        let comment = setting.emulator.pending_deliveries().remove(1);
        setting.emulator.note_attempt(comment.id, 202);
        setting.settle().await;
        assert!(setting.store.deliveries().get(&closing.guid).await.expect("reads").is_some());
        setting.meanwhile(|world| world.redeliver(&comment.guid));
        setting.settle().await;
        let id = setting.repo(POOL).await.id;
        let stored = setting.store.corpus().item(id, ItemType::Issue, item(number)).await.expect("reads").expect("known");
        assert_eq!(stored.state, ItemState::Closed);
        assert_eq!(setting.lesson(POOL, number).await, Some(LessonKind::Confirmed));
        assert_eq!(setting.counts(POOL).await, [1, 0, 0, 0, 1]);
        setting.stop().await;
    }
}
