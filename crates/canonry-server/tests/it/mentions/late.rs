//! Comments whose webhooks arrive long after they were written: later comments and actions win.

use canonry_domain::{ItemType, OverrideKind};
use canonry_store::{BrakeKind, MentionOutcome};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::world::item;
use crate::world::mention_world::{MAINTAINER, MentionWorld, POOL, STRANGER};

const OVERTAKEN: &str = "Not done: something changed after this was written. Repeat the command if you still want it.";

on_both_engines! {
    async fn a_late_ruling_loses_against_a_later_one(database: TestDatabase) {
        let setting = MentionWorld::new(database, "triage: {mode: grace}\n").await;
        let number = setting.issue("It stops again: topic2 alike70");
        setting.settle().await;
        let (early, told) = setting.say_unheard(number, MAINTAINER, "/canonry duplicate of #3");
        setting.ask(number, MAINTAINER, "/canonry not a duplicate of #3").await;
        setting.deliver_late(told).await;
        let repo = setting.repo().await;
        let rulings = setting.store.duplicates().overrides(repo.id, Some(ItemType::Issue)).await.expect("reads");
        let rulings: Vec<_> = rulings.into_iter().map(|ruled| (ruled.kind, ruled.item, ruled.other)).collect();
        assert_eq!(rulings, [(OverrideKind::NotDuplicate, item(number), Some(item(3)))]);
        assert!(setting.emulator.world().issue(POOL, number).closed_at.is_none(), "it stays open");
        assert_eq!(setting.last_word(number).as_deref(), Some(OVERTAKEN));
        assert_eq!(setting.noted(early).await.map(|noted| noted.outcome), Some(MentionOutcome::Refused));
        setting.stop().await;
    }
}

on_both_engines! {
    async fn late_words_hold_where_nothing_speaks_against_them(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("It stops again: topic2 alike70");
        setting.settle().await;
        let (first, one) = setting.say_unheard(number, MAINTAINER, "/canonry not a duplicate of #3");
        let (second, other) = setting.say_unheard(number, MAINTAINER, "/canonry duplicate of #3");
        // In the order in which they were written, however late.
        setting.deliver_late(one).await;
        setting.deliver_late(other).await;
        for comment in [first, second] {
            assert_eq!(setting.noted(comment).await.map(|noted| noted.outcome), Some(MentionOutcome::Done));
        }
        let rulings = setting.store.duplicates().overrides(setting.repo().await.id, None).await.expect("reads");
        assert_eq!(rulings.iter().map(|ruled| ruled.kind).collect::<Vec<_>>(), [OverrideKind::Duplicate]);
        setting.stop().await;
    }
}

on_both_engines! {
    async fn a_late_pause_or_resume_loses_against_a_later_word(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("Something else: topic500");
        setting.settle().await;
        let repo = setting.repo().await;
        let is_paused =
            async || setting.store.close().brake_in_force(repo.id, BrakeKind::Pause).await.expect("reads").is_some();

        let (_, pause) = setting.say_unheard(number, MAINTAINER, "/canonry pause");
        assert_eq!(setting.ask(number, MAINTAINER, "/canonry resume").await.only(), "Canonry is not paused here.");
        setting.deliver_late(pause).await;
        assert!(!is_paused().await, "it was resumed since");
        assert_eq!(setting.last_word(number).as_deref(), Some(OVERTAKEN));

        let (_, resume) = setting.say_unheard(number, MAINTAINER, "/canonry resume");
        assert!(setting.ask(number, MAINTAINER, "/canonry pause").await.only().starts_with("Paused in this repository"));
        setting.deliver_late(resume).await;
        assert!(is_paused().await, "it was paused since");

        // A comment from before the breaker tripped cannot have meant the breaker.
        assert!(setting.ask(number, MAINTAINER, "/canonry resume").await.only().starts_with("Resumed in this repository"));
        let (_, resume) = setting.say_unheard(number, MAINTAINER, "/canonry resume");
        let pulled = setting.meanwhile(|world| world.now);
        setting.store.close().set_brake(repo.id, BrakeKind::Breaker, None, "3 objections", pulled).await.expect("writes");
        setting.deliver_late(resume).await;
        assert!(setting.store.close().brake_in_force(repo.id, BrakeKind::Breaker).await.expect("reads").is_some());
        setting.stop().await;
    }
}

on_both_engines! {
    async fn a_comment_that_was_taken_back_asks_for_nothing(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("Something else: topic500");
        setting.settle().await;
        let (deleted, first) = setting.say_unheard(number, MAINTAINER, "/canonry pause");
        setting.meanwhile(|world| world.delete_comment(POOL, deleted, MAINTAINER));
        let (edited, second) = setting.say_unheard(number, MAINTAINER, "/canonry pause");
        setting.meanwhile(|world| world.edit_comment(POOL, edited, MAINTAINER, "Never mind."));
        let (stands, third) = setting.say_unheard(number, STRANGER, "/canonry why");
        setting.meanwhile(|world| world.edit_comment(POOL, stands, STRANGER, "/canonry why\n\nPlease."));
        for told in [first, second, third] {
            setting.deliver_late(told).await;
        }
        let brake = setting.store.close().brake_in_force(setting.repo().await.id, BrakeKind::Pause).await.expect("reads");
        assert_eq!(brake, None);
        for comment in [deleted, edited] {
            assert_eq!(setting.noted(comment).await, None, "nobody is answered");
        }
        assert_eq!(setting.noted(stands).await.map(|noted| noted.outcome), Some(MentionOutcome::Done));
        setting.stop().await;
    }
}
