//! Mentions in review threads: they are about the thread's finding, or about the item.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::world::mention_world::{AUTHOR, MAINTAINER, MentionWorld, OWN, POOL, STRANGER, plain};

/// Canonry's answers to a comment in a thread.
fn answered(setting: &MentionWorld, number: u64, comment: u64) -> (Vec<String>, Vec<String>) {
    let world = setting.emulator.world();
    let comments = &world.pull(POOL, number).review_comments;
    let at = comments.iter().position(|one| one.id == comment).expect("it is there");
    let after = comments[at + 1..].iter().take_while(|one| one.author == OWN);
    let reactions = comments[at].reactions.iter().filter(|reaction| reaction.author == OWN);
    (after.map(|one| plain(&one.body)).collect(), reactions.map(|reaction| reaction.content.clone()).collect())
}

on_both_engines! {
    async fn a_finding_is_explained_and_dismissed_where_it_stands(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let pull = setting.pull("flow");
        setting.settle().await;
        let finding = {
            let world = setting.emulator.world();
            let found = world.review_comments_by(POOL, pull, OWN);
            found.first().unwrap_or_else(|| panic!("no finding:\n{}", world.conversation(POOL, pull))).id
        };
        let reply = async |by: &str, text: &str| {
            let comment = setting.meanwhile(|world| world.reply_in_thread(POOL, finding, by, text));
            setting.settle().await;
            answered(&setting, pull, comment)
        };
        let (replies, reactions) = reply(STRANGER, "/canonry why").await;
        assert_eq!((replies.len(), reactions.len()), (1, 0), "{replies:?} {reactions:?}");
        let why = "**Merge conflict markers are committed** is shown at its line. It is a major correctness finding, reported by builtin";
        assert!(replies[0].starts_with(why) && !replies[0].contains('%'), "{}", replies[0]);
        let (replies, _) = reply(STRANGER, "/canonry not useful").await;
        assert_eq!(replies, ["Only maintainers and the author can use `not useful` here."]);
        // A major finding about correctness: the author alone cannot dismiss it.
        let (replies, _) = reply(AUTHOR, "/canonry not useful").await;
        let recorded = format!("Recorded by `{AUTHOR}`: this finding is serious, so it stays open until a maintainer dismisses it too.");
        assert_eq!(replies, [recorded]);
        let (replies, _) = reply(MAINTAINER, "/canonry not useful, thanks").await;
        let dismissed = format!("Dismissed by `{MAINTAINER}`: Canonry will not post it again while this code stays the same.");
        assert_eq!(replies, [dismissed]);
        setting.stop().await;
    }
}

on_both_engines! {
    async fn in_somebody_elses_thread_the_item_is_meant(database: TestDatabase) {
        let setting = MentionWorld::new(database, "review: {enabled: false}\n").await;
        let pull = setting.pull("ebb");
        setting.settle().await;
        let thread = setting.meanwhile(|world| world.comment_on_line(POOL, pull, STRANGER, "src/ebb.rs", 1, "/canonry help"));
        setting.settle().await;
        let (replies, _) = answered(&setting, pull, thread);
        assert!(replies.len() == 1 && replies[0].starts_with("| Command | Who | What it does |"), "{replies:?}");
        let comment = setting.meanwhile(|world| world.reply_in_thread(POOL, thread, MAINTAINER, "/canonry not useful"));
        setting.settle().await;
        let (replies, _) = answered(&setting, pull, comment);
        assert_eq!(replies, ["`not useful` works under a finding: reply `/canonry not useful` to its comment."]);
        setting.stop().await;
    }
}
