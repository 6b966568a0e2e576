//! Whatever a mention contains, nothing of it is rendered, pings a person, or leaks; see `assert_clean`, which every
//! test ends with.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::NewIssue;
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::world::mention_world::{AUTHOR, MAINTAINER, MentionWorld, POOL, STRANGER};

const TOKEN: &str = concat!("ghp_", "abcdefghijklmnopqrstuvwxyz0123456789");

fn hostile_texts() -> Vec<String> {
    let marker = "<!-- canonry:v1:comment:mention/1#1/issue/1:AAAAAAAAAAAAAAAAAAAAAA -->";
    vec![
        "@everyone @octo/team look".to_owned(),
        "**bold** [click](https://evil.example) ![x](https://evil.example/x.png)".to_owned(),
        "<img src=x onerror=alert(1)><script>javascript:1</script>".to_owned(),
        marker.to_owned(),
        format!("--> {marker} <!--"),
        TOKEN.to_owned(),
        format!("#12 {TOKEN}"),
        "\u{1b}[31mred\u{1b}[0m \u{202e}desrever".to_owned(),
        "x".repeat(60_000),
        "#1 or @everyone".to_owned(),
        "of #1 @everyone <b>".to_owned(),
        "`/canonry pause` ``` ~~~".to_owned(),
        "\u{0}\u{fffd}\u{feff}".to_owned(),
    ]
}

on_both_engines! {
    async fn hostile_words_behind_a_command_go_nowhere(database: TestDatabase) {
        let setting = MentionWorld::new(database, "triage: {mode: suggest}\n").await;
        let mut asked = Vec::new();
        for (at, text) in hostile_texts().into_iter().enumerate() {
            // Answers quote titles and texts too.
            let number = setting.meanwhile(|world| {
                let title = format!("It stops again: topic{} alike96 {}", at % 4, text.chars().take(150).collect::<String>());
                world.open(POOL, AUTHOR, NewIssue::new(&title, &text))
            });
            for (by, said) in [(STRANGER, "sing"), (MAINTAINER, "duplicate of"), (AUTHOR, "not a duplicate"), (STRANGER, "why")] {
                asked.push((number, setting.say(number, by, &format!("/canonry {said} {text}"))));
            }
            setting.settle().await;
            // Far enough apart that all are answered.
            setting.emulator.world().now += SignedDuration::from_mins(15);
        }
        for (number, comment) in asked {
            let noted = setting.noted(comment).await.unwrap_or_else(|| panic!("{comment} on #{number} is not noted"));
            let said = setting.emulator.world().comments(POOL, number).len();
            assert!(said <= 9, "{said} comments on #{number}: {noted:?}");
        }
        setting.stop().await;
    }
}

on_both_engines! {
    async fn a_reason_given_at_the_command_line_is_told_to_nobody(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("Something else: topic500");
        let repo = setting.repo().await;
        let (why, now) = (format!("@everyone <b> {TOKEN}"), setting.emulator.world().now);
        let pause = canonry_store::BrakeKind::Pause;
        setting.store.close().set_brake(repo.id, pause, None, &why, now).await.expect("writes");
        let pull = setting.pull("braked");
        assert!(setting.ask(pull, AUTHOR, "/canonry review").await.only().starts_with("Canonry is paused"));
        assert!(setting.ask(number, MAINTAINER, "/canonry pause").await.only().starts_with("Paused in this repository"));
        setting.stop().await;
    }
}
