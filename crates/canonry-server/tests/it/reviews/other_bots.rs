//! Comments of other review bots, which the service reads when it reviews.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::NewPull;
use canonry_testkit::on_both_engines;

use crate::world::As;
use crate::world::review_world::{REMARKABLE, REPO, ReviewWorld};

const SAID: &str =
    "Debugging code is left in. It stops the program or prints its inner state; remove it before merging.";
const WITH_BOT: &str = "review: {referee: {bots: [ci]}, triggers: {onSynchronize: true}}";
const WITHOUT: &str = "review: {triggers: {onSynchronize: true}}";

async fn reviewed(database: &TestDatabase, settings: &str) -> (ReviewWorld, u64) {
    let setting = ReviewWorld::new(database, As::App, settings).await;
    let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
    setting.meanwhile(|world| world.comment_on_line(REPO, number, "ci[bot]", "src/pool.js", 2, SAID));
    setting.meanwhile(|world| {
        world.comment_on_line(REPO, number, "ci[bot]", "src/pool.js", 3, "Why is the pool returned?")
    });
    setting.settle().await;
    (setting, number)
}

on_both_engines! {
    async fn a_listed_bot_is_a_witness(database: TestDatabase) {
        let (setting, number) = reviewed(&database, WITH_BOT).await;
        assert_eq!((setting.posted(number), setting.conclusion(&setting.head(number)).as_deref()), ((1, 0), Some("neutral")));
        let text = setting.check_text(number);
        // The detector of this world finds all texts alike, so that both comments are about one problem.
        assert!(text.contains("Other reviewers: 1 open problem<"), "{text}");
        assert!(text.contains("`ci[bot]` already reported this problem in [this thread](https://github.com/tide/pool/pull/"), "{text}");
        // A push that changes nothing about it posts nothing.
        setting.push(number, &format!("{REMARKABLE}\nexport const depth = 3;\n"));
        setting.settle().await;
        assert_eq!(setting.posted(number), (1, 0));
    }

    async fn without_a_list_nothing_changes(database: TestDatabase) {
        let (setting, number) = reviewed(&database, WITHOUT).await;
        assert_eq!(setting.posted(number), (1, 1));
        assert!(!setting.check_text(number).contains("Other reviewers"));
    }
}
