//! A close that is undone by a comment: completely, whatever GitHub answers in between, and only by people with
//! permission.

use canonry_domain::{ContentVersion, ItemType, OverrideKind};
use canonry_store::{MentionOutcome, NewGrace};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault, NewIssue};
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::item;
use crate::world::mention_world::{AUTHOR, MAINTAINER, MentionWorld, POOL, STRANGER};

const GRACE: &str = "triage: {mode: grace}\n";

/// A new issue that Canonry closed as a duplicate of #3, because a maintainer ruled so.
async fn closed(setting: &MentionWorld) -> u64 {
    let number = setting.issue("It stops again: topic2 alike70");
    setting.settle().await;
    setting.ask(number, MAINTAINER, "/canonry duplicate of #3").await;
    assert!(setting.emulator.world().issue(POOL, number).closed_at.is_some(), "it is closed");
    number
}

on_both_engines! {
    async fn what_github_did_not_take_at_once_is_gone_on_with(database: TestDatabase) {
        let setting = MentionWorld::new(database, GRACE).await;
        for said in ["/canonry undo", "/canonry not a duplicate"] {
            let number = closed(&setting).await;
            let path = format!("/repos/*/*/issues/{number}/comments");
            let fault = setting.emulator.fault(Fault::on("POST", &path).answer(502));
            let asked = setting.say(number, MAINTAINER, said);
            setting.settle().await;
            assert_eq!(fault.hits(), 1, "the comment met it");
            assert_eq!(setting.noted(asked).await.map(|noted| noted.outcome), Some(MentionOutcome::Done), "{said}");
            let answered = setting.answered(number, asked);
            assert_eq!((answered.replies.len(), &*answered.reactions), (1, &["+1".to_owned()][..]), "{answered:?}");
            let repo = setting.repo().await;
            let closes = setting.store.plans().applied_closes(repo.id, ItemType::Issue).await.expect("reads");
            let last = closes.iter().rfind(|close| close.number == item(number)).expect("it was closed");
            assert!(last.undone_at.is_some(), "it is recorded");
            let rulings = setting.store.duplicates().overrides(repo.id, Some(ItemType::Issue)).await.expect("reads");
            let rulings = rulings.into_iter().filter(|ruled| ruled.item == item(number));
            assert_eq!(rulings.map(|ruled| ruled.kind).collect::<Vec<_>>(), [OverrideKind::NotDuplicate]);
            let world = setting.emulator.world();
            assert!(world.issue(POOL, number).closed_at.is_none(), "it is open");
            assert!(world.issue(POOL, number).labels.is_empty(), "without the label");
        }
        setting.stop().await;
    }
}

on_both_engines! {
    async fn the_other_items_author_does_not_undo_a_maintainers_ruling(database: TestDatabase) {
        let setting = MentionWorld::new(database, "triage: {mode: suggest}\n").await;
        let other = setting.meanwhile(|world| world.open(POOL, STRANGER, NewIssue::new("Else: topic900", "It flows.")));
        let number = setting.issue("Something else: topic901");
        setting.settle().await;
        setting.ask(number, MAINTAINER, &format!("/canonry duplicate of #{other}")).await;
        let rulings = async || {
            let all = setting.store.duplicates().overrides(setting.repo().await.id, Some(ItemType::Issue)).await.expect("reads");
            all.into_iter().map(|ruled| (ruled.kind, ruled.item, ruled.other)).collect::<Vec<_>>()
        };
        let ruled = [(OverrideKind::Duplicate, item(number), Some(item(other)))];
        for (on, by, of) in [(other, STRANGER, number), (number, AUTHOR, other)] {
            let answer = setting.ask(on, by, &format!("/canonry not a duplicate of #{of}")).await;
            let please_ask = format!("A maintainer ruled that this is the same as #{of}; only a maintainer can change that.");
            assert_eq!(answer.only(), please_ask);
            assert_eq!(rulings().await, ruled);
        }
        setting.ask(other, MAINTAINER, &format!("/canonry not a duplicate of #{number}")).await;
        assert_eq!(rulings().await, [(OverrideKind::NotDuplicate, item(other), Some(item(number)))]);
        setting.stop().await;
    }
}

on_both_engines! {
    async fn a_no_while_it_is_being_closed_opens_it_again(database: TestDatabase) {
        let setting = MentionWorld::new(database, GRACE).await;
        let number = setting.issue("It stops again: topic2 alike70");
        setting.settle().await;
        // GitHub closes it and answers with an error: for a minute the result is unknown.
        let path = format!("/repos/*/*/issues/{number}");
        let fault = setting.emulator.fault(Fault::on("PATCH", &path).apply_and_answer(502));
        setting.say(number, MAINTAINER, "/canonry duplicate of #3");
        setting.settle_until(|world| world.issue(POOL, number).closed_at.is_some()).await;
        assert_eq!(fault.hits(), 1);
        let asked = setting.emulator.world().comment(POOL, number, MAINTAINER, "/canonry not a duplicate");
        setting.settle().await;
        assert_eq!(setting.noted(asked).await.map(|noted| noted.outcome), Some(MentionOutcome::Done));
        let repo = setting.repo().await;
        let closes = setting.store.plans().applied_closes(repo.id, ItemType::Issue).await.expect("reads");
        assert!(closes.iter().all(|close| close.undone_at.is_some()), "{closes:?}");
        let world = setting.emulator.world();
        assert!(world.issue(POOL, number).closed_at.is_none(), "it is open");
        drop(world);
        setting.stop().await;
    }
}

on_both_engines! {
    async fn what_somebody_closed_after_an_undo_is_theirs(database: TestDatabase) {
        let setting = MentionWorld::new(database, GRACE).await;
        let number = closed(&setting).await;
        setting.ask(number, MAINTAINER, "/canonry undo").await;
        let again = setting.ask(number, MAINTAINER, "/canonry undo").await;
        assert_eq!(again.only(), "Nothing to undo: this is open.");
        setting.meanwhile(|world| world.close(POOL, number, MAINTAINER, CloseReason::Completed));
        let theirs = setting.ask(number, MAINTAINER, "/canonry undo").await;
        assert_eq!(theirs.only(), "Not reopened: somebody else closed this after Canonry did.");
        setting.stop().await;
    }
}

on_both_engines! {
    async fn why_tells_of_a_pause_and_of_a_close_that_did_not_come(database: TestDatabase) {
        let setting = MentionWorld::new(database, GRACE).await;
        let number = setting.issue("It stops again: topic2 alike96");
        setting.settle().await;
        let (repo, now) = (setting.repo().await, setting.meanwhile(|world| world.now));
        let grace = NewGrace {
            item_type: ItemType::Issue,
            number: item(number),
            target: item(3),
            triage_id: None,
            comment_key: None,
            approved_by: None,
            content_version: ContentVersion::FIRST,
            began_at: now,
            due_at: now + SignedDuration::from_hours(72),
        };
        assert!(setting.store.close().begin_grace(repo.id, &grace).await.expect("writes"));
        setting.ask(number, AUTHOR, "But it is another one.").await;
        setting.ask(number, MAINTAINER, "/canonry pause").await;
        let answer = setting.ask(number, STRANGER, "/canonry why").await;
        let left_open = "It was not closed as a duplicate of #3 because somebody commented.";
        let paused = "Canonry is paused in this repository.";
        assert!(answer.only().contains(&format!("{left_open} {paused}")), "{answer:?}");
        setting.stop().await;
    }
}
