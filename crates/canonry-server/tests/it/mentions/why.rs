//! What `why` says about Canonry's comment after the item or the settings have changed.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::world::mention_world::{AUTHOR, MAINTAINER, MentionWorld, POOL, STRANGER};
use crate::world::review_world::reviewing;

const SUGGEST: &str = "triage: {mode: suggest}\n";
const SHADOW: &str = "triage: {mode: shadow}\n";

/// The first paragraph of the answer.
async fn why(setting: &MentionWorld, number: u64) -> String {
    let answer = setting.ask(number, STRANGER, "/canonry why").await;
    answer.only().lines().next().unwrap_or_default().to_owned()
}

async fn edit(setting: &MentionWorld, number: u64, title: &str) {
    setting.meanwhile(|world| world.edit_title(POOL, number, AUTHOR, title));
    setting.settle().await;
}

async fn configure(setting: &MentionWorld, settings: &str) {
    let file = reviewing(settings);
    setting.meanwhile(|world| world.push(POOL, "main", MAINTAINER, ".canonry.yml", &file));
    setting.settle().await;
}

on_both_engines! {
    async fn why_knows_that_its_comment_stands_or_was_withdrawn(database: TestDatabase) {
        let setting = MentionWorld::new(database, SUGGEST).await;
        let number = setting.issue("It stops again: topic2 alike96");
        setting.settle().await;
        let above = "Canonry commented because the match is at or above this repository's threshold.";
        assert_eq!(why(&setting, number).await, format!("This looks like the same problem as #3. {above}"));

        let stands = "This may be the same problem as #3. Canonry's earlier comment stands. Canonry would not comment now because";
        edit(&setting, number, "It stops again: topic2 alike84").await;
        let below = "the match is below this repository's threshold.";
        assert_eq!(why(&setting, number).await, format!("{stands} {below}"));
        configure(&setting, SHADOW).await;
        edit(&setting, number, "It stops again: topic2 alike83").await;
        assert_eq!(why(&setting, number).await, format!("{stands} the mode is `shadow`."));

        configure(&setting, SUGGEST).await;
        edit(&setting, number, "It stops again: topic1 alike84").await;
        let withdrew = "This may be the same problem as #2. Canonry withdrew its earlier comment";
        assert_eq!(why(&setting, number).await, format!("{withdrew} because the match has changed."));
        edit(&setting, number, "It stops again: topic1 alike83").await;
        assert_eq!(why(&setting, number).await, format!("{withdrew} and did not comment again because {below}"));
        setting.stop().await;
    }
}
