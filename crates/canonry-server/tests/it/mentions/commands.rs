//! What each command does, and its answer.

use canonry_domain::mention::mention_help;
use canonry_domain::{ItemType, OverrideKind};
use canonry_store::{BrakeKind, MentionOutcome};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::CloseReason;
use canonry_testkit::on_both_engines;

use crate::world::item;
use crate::world::mention_world::{AUTHOR, MAINTAINER, MentionWorld, POOL, STRANGER};

const SUGGEST: &str = "triage: {mode: suggest}\nreview: {triggers: {onOpened: false}}\n";

on_both_engines! {
    async fn a_pause_holds_everything_back_until_it_is_lifted(database: TestDatabase) {
        let setting = MentionWorld::new(database, SUGGEST).await;
        let number = setting.issue("Something else: topic500");
        let paused = format!("Paused in this repository by `{MAINTAINER}`, until a maintainer writes `/canonry resume`.");
        assert_eq!(setting.ask(number, MAINTAINER, "@canonry pause, please").await.only(), paused);
        let repo = setting.repo().await;
        let pause = setting.store.close().brake_in_force(repo.id, BrakeKind::Pause).await.expect("reads").expect("in force");
        assert_eq!((pause.set_by.expect("a person").as_str(), pause.why), (MAINTAINER, format!("asked for in #{number}")));
        assert_eq!(setting.ask(number, MAINTAINER, "/canonry pause").await.only(), paused, "it is paused all the same");

        let held = setting.issue("It stops again: topic2 alike96");
        let pull = setting.pull("held");
        setting.settle().await;
        assert!(setting.emulator.world().comments(POOL, held).is_empty(), "nothing is said");
        let answer = setting.ask(pull, MAINTAINER, "/canonry review").await;
        assert_eq!(answer.only(), "Canonry is paused in this repository. A maintainer can end that with `/canonry resume`.");
        assert_eq!(setting.ask(number, STRANGER, "/canonry why").await.replies.len(), 1, "answers still come");

        setting.store.close().set_brake(repo.id, BrakeKind::Breaker, None, "3 objections", pause.set_at).await.expect("writes");
        let resumed = format!("Resumed in this repository by `{MAINTAINER}`.");
        assert_eq!(setting.ask(number, MAINTAINER, "/canonry resume").await.only(), resumed);
        for kind in [BrakeKind::Pause, BrakeKind::Breaker] {
            assert_eq!(setting.store.close().brake_in_force(repo.id, kind).await.expect("reads"), None);
        }
        setting.settle().await;
        let said = setting.emulator.world().comments(POOL, held).len();
        assert_eq!(said, 1, "what was held back is said");
        assert_eq!(setting.ask(number, MAINTAINER, "/canonry resume").await.only(), "Canonry is not paused here.");
        setting.stop().await;
    }
}

on_both_engines! {
    async fn a_review_is_asked_for_where_it_makes_sense(database: TestDatabase) {
        let setting = MentionWorld::new(database, SUGGEST).await;
        let issue = setting.issue("Something else: topic501");
        let answer = setting.ask(issue, AUTHOR, "/canonry review").await;
        assert_eq!(answer.only(), "`review` works on pull requests; this is an issue.");
        let pull = setting.pull("flow");
        setting.settle().await;
        let asked = setting.say(pull, AUTHOR, "@canonry review");
        setting.settle().await;
        assert_eq!(setting.noted(asked).await.map(|noted| noted.outcome), Some(MentionOutcome::Done));
        let reactions = setting.answered(pull, asked).reactions;
        assert_eq!(reactions, ["eyes"]);
        let reviews = setting.emulator.world().reviews_by(POOL, pull, crate::world::mention_world::OWN).len();
        assert_eq!(reviews, 1, "the review that was asked for");
        setting.meanwhile(|world| world.close(POOL, pull, MAINTAINER, CloseReason::Completed));
        let answer = setting.ask(pull, MAINTAINER, "/canonry full review").await;
        assert_eq!(answer.only(), "This pull request is closed. Reopen it and ask again.");
        setting.stop().await;
    }
}

on_both_engines! {
    async fn reviews_that_are_switched_off_stay_off(database: TestDatabase) {
        let setting = MentionWorld::new(database, "review: {enabled: false}\n").await;
        let pull = setting.pull("off");
        let answer = setting.ask(pull, MAINTAINER, "/canonry full review").await;
        assert_eq!(answer.only(), "Reviews are off here. A maintainer can set `review: {enabled: true}` in `.canonry.yml` on the default branch.");
        setting.stop().await;
    }
}

on_both_engines! {
    async fn rulings_are_kept_and_the_last_word_holds(database: TestDatabase) {
        let setting = MentionWorld::new(database, SUGGEST).await;
        let number = setting.issue("It stops again: topic2 alike96");
        setting.settle().await;
        assert_eq!(setting.emulator.world().comments(POOL, number).len(), 1, "it is named what it looks like");
        let repo = setting.repo().await;
        let rulings = async || {
            let all = setting.store.duplicates().overrides(repo.id, Some(ItemType::Issue)).await.expect("reads");
            all.into_iter().map(|ruled| (ruled.kind, ruled.item, ruled.other)).collect::<Vec<_>>()
        };
        let apart = |by: &str| format!("Recorded by `{by}`: not the same as #3, so Canonry will not suggest #3 here again.");
        let answer = setting.ask(number, AUTHOR, "/canonry not a duplicate, it stops elsewhere").await;
        assert_eq!(answer.only(), apart(AUTHOR));
        assert_eq!(rulings().await, [(OverrideKind::NotDuplicate, item(number), Some(item(3)))]);

        let answer = setting.ask(number, MAINTAINER, "/canonry duplicate of #3").await;
        assert_eq!(
            answer.only(),
            format!("Recorded by `{MAINTAINER}`: the same as #3, so the next close plan can close this issue.")
        );
        assert_eq!(rulings().await, [(OverrideKind::Duplicate, item(number), Some(item(3)))]);
        let answer = setting.ask(number, AUTHOR, "/canonry not a duplicate").await;
        assert_eq!(answer.only(), "A maintainer ruled that this is the same as #3; only a maintainer can change that.");
        let answer = setting.ask(number, MAINTAINER, "/canonry not a duplicate of #3!").await;
        assert_eq!(answer.only(), apart(MAINTAINER));
        assert_eq!(rulings().await, [(OverrideKind::NotDuplicate, item(number), Some(item(3)))]);

        for (said, answer) in [
            (format!("/canonry duplicate of #{number}"), "That is the number of this issue. Name the other number.".to_owned()),
            ("/canonry duplicate of #4000".to_owned(), "There is no issue with the number 4000 in this repository.".to_owned()),
            ("/canonry undo".to_owned(), "Nothing to undo: Canonry did not close this.".to_owned()),
        ] {
            assert_eq!(setting.ask(number, MAINTAINER, &said).await.only(), answer, "{said}");
        }
        let lonely = setting.issue("Something else: topic502");
        let answer = setting.ask(lonely, AUTHOR, "/canonry not a duplicate").await;
        assert_eq!(
            answer.only(),
            "Canonry has not called this a duplicate. To rule out a pair, name the other number: `/canonry not a duplicate of #12`."
        );
        setting.stop().await;
    }
}

on_both_engines! {
    async fn why_tells_what_was_found_and_what_decided(database: TestDatabase) {
        let setting = MentionWorld::new(database, SUGGEST).await;
        let named = setting.issue("It stops again: topic2 alike96");
        let below = setting.issue("It stops again: topic1 alike80");
        setting.settle().await;
        let answer = setting.ask(named, STRANGER, "/canonry why?").await;
        assert_eq!(
            answer.only(),
            "This looks like the same problem as #3. Canonry commented because the match is at or above this repository's threshold.

> Both stop at the same wave."
        );
        let answer = setting.ask(below, STRANGER, "/canonry why did you say nothing").await;
        assert_eq!(
            answer.only(),
            "This may be the same problem as #2. Canonry did not comment because the match is below this repository's threshold.

> Both stop at the same wave."
        );
        setting.stop().await;
    }
}

on_both_engines! {
    async fn help_and_feedback_are_for_everybody(database: TestDatabase) {
        let setting = MentionWorld::new(database, SUGGEST).await;
        let number = setting.issue("Something else: topic503");
        assert_eq!(setting.ask(number, STRANGER, "/canonry help").await.only(), mention_help("canonry"));
        let nothing = "No reactions to findings count here yet.";
        assert_eq!(setting.ask(number, STRANGER, "/canonry feedback status").await.only(), nothing);
        assert_eq!(setting.ask(number, STRANGER, "/canonry feedback list").await.only(), nothing);
        assert_eq!(
            setting.ask(number, MAINTAINER, "/canonry feedback clear fp-79e99c7e").await.only(),
            "Nothing to clear: nobody reacted to `fp-79e99c7e`."
        );
        let answer = setting.ask(number, AUTHOR, "/canonry not useful").await;
        assert_eq!(
            answer.only(),
            "`not useful` works under a finding: reply `/canonry not useful` to its comment."
        );
        setting.stop().await;
    }
}

on_both_engines! {
    async fn a_ruled_duplicate_is_closed_in_the_mode_grace_and_opened_again(database: TestDatabase) {
        let setting = MentionWorld::new(database, "triage: {mode: grace}\n").await;
        let number = setting.issue("It stops again: topic2 alike70");
        setting.settle().await;
        let answer = setting.ask(number, MAINTAINER, "/canonry duplicate of #3").await;
        assert!(
            answer.replies[0].contains("`: the same as #3, so this issue will be closed shortly"),
            "{answer:?}"
        );
        assert!(setting.emulator.world().issue(POOL, number).closed_at.is_some(), "it is closed");
        let undone = setting.say(number, MAINTAINER, "/canonry undo");
        setting.settle().await;
        assert!(setting.emulator.world().issue(POOL, number).closed_at.is_none(), "it is open again");
        assert_eq!(setting.answered(number, undone).reactions, ["+1"]);
        setting.stop().await;
    }
}
