//! One answer to each comment, however often it is delivered; and few answers to a person who asks again and again.

use canonry_store::MentionOutcome;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::mention_world::{AUTHOR, MAINTAINER, MentionWorld, POOL, STRANGER};

on_both_engines! {
    async fn a_comment_is_answered_once(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("Something else: topic500");
        setting.settle().await;
        let asked = setting.say(number, STRANGER, "/canonry help");
        let told = setting.emulator.pending_deliveries().pop().expect("a delivery");
        setting.settle().await;
        assert_eq!(setting.answered(number, asked).replies.len(), 1);
        // The same delivery again; the same event by another hook; the comment edited.
        setting.meanwhile(|world| world.redeliver(&told.guid));
        setting.settle().await;
        setting.meanwhile(|world| {
            let mut other = told.clone();
            other.guid = "another-hook".to_owned();
            other.id += 1_000_000;
            world.deliveries.push(other);
        });
        setting.settle().await;
        setting.meanwhile(|world| world.edit_comment(POOL, asked, STRANGER, "/canonry help me"));
        setting.settle().await;
        let answered = setting.answered(number, asked);
        assert_eq!((answered.replies.len(), answered.reactions.len()), (1, 0), "{answered:?}");
        setting.stop().await;
    }
}

on_both_engines! {
    async fn the_first_of_two_commands_counts(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("Something else: topic501");
        let answered = setting.ask(number, MAINTAINER, "/canonry resume\n/canonry pause").await;
        assert_eq!(answered.only(), "Canonry is not paused here.");
        let answered = setting.ask(number, MAINTAINER, "> /canonry pause\n\n```\n/canonry pause\n```\n`/canonry pause`").await;
        assert!(answered.replies.is_empty() && answered.reactions.is_empty(), "{answered:?}");
        let answered = setting.ask(number, STRANGER, "What about @canonry and @canonrybot?\n\n@canonrybot pause").await;
        assert!(answered.replies.is_empty() && answered.reactions.is_empty(), "{answered:?}");
        setting.stop().await;
    }
}

on_both_engines! {
    async fn who_is_told_no_is_told_once_a_day(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("Something else: topic502");
        let refused = "Only maintainers can use `pause` here.";
        assert_eq!(setting.ask(number, STRANGER, "/canonry pause").await.only(), refused);
        assert_eq!(setting.ask(number, STRANGER, "/canonry pause").await.only(), "confused");
        assert_eq!(setting.ask(number, STRANGER, "/canonry resume").await.only(), "confused");
        assert_eq!(setting.ask(number, AUTHOR, "/canonry pause").await.only(), refused, "somebody else");
        let unknown = "Unknown command. `/canonry help` lists the commands.";
        assert_eq!(setting.ask(number, STRANGER, "/canonry sing").await.only(), unknown);
        assert_eq!(setting.ask(number, STRANGER, "/canonry dance").await.only(), "confused");
        let other = setting.issue("Something else: topic503");
        assert_eq!(setting.ask(other, STRANGER, "/canonry pause").await.only(), refused, "another item");
        setting.emulator.world().now += SignedDuration::from_hours(25);
        assert_eq!(setting.ask(number, STRANGER, "/canonry pause").await.only(), refused, "another day");
        setting.stop().await;
    }
}

on_both_engines! {
    async fn who_asks_all_day_long_gets_faces(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("Something else: topic504");
        let mut asked = Vec::new();
        for _ in 0..12 {
            setting.emulator.world().now += SignedDuration::from_mins(10);
            asked.push(setting.say(number, STRANGER, "/canonry why"));
            setting.settle().await;
        }
        let outcomes = async |comment: u64| setting.noted(comment).await.expect("noted").outcome;
        assert_eq!(outcomes(asked[9]).await, MentionOutcome::Done);
        assert_eq!(outcomes(asked[10]).await, MentionOutcome::Refused);
        assert_eq!(setting.answered(number, asked[11]).reactions, ["confused"]);
        setting.stop().await;
    }
}

on_both_engines! {
    async fn a_repository_may_call_it_something_else(database: TestDatabase) {
        let setting = MentionWorld::new(database, "mentions: {handle: tide-helper}\n").await;
        let number = setting.issue("Something else: topic505");
        let unknown = "Unknown command. `/tide-helper help` lists the commands.";
        assert_eq!(setting.ask(number, STRANGER, "@Tide-Helper sing").await.only(), unknown);
        assert_eq!(setting.ask(number, MAINTAINER, "/canonry resume").await.only(), "Canonry is not paused here.");
        let paused = format!("Paused in this repository by `{MAINTAINER}`, until a maintainer writes `/tide-helper resume`.");
        assert_eq!(setting.ask(number, MAINTAINER, "/tide-helper pause").await.only(), paused);
        let strangers = setting.ask(number, MAINTAINER, "@canonry resume").await;
        assert!(strangers.replies.is_empty() && strangers.reactions.is_empty(), "{strangers:?}");
        // Settings on a branch have no effect.
        setting.meanwhile(|world| world.push(POOL, "draft", "mallory", ".canonry.yml", "mentions: {handle: mallory}\n"));
        setting.settle().await;
        assert!(setting.ask(number, MAINTAINER, "/mallory resume").await.reactions.is_empty());
        setting.stop().await;
    }
}
