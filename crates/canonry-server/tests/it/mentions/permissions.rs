//! Every command by every role: carried out, politely refused, or ignored.

use std::collections::BTreeSet;

use canonry_domain::mention::MentionVerb;
use canonry_store::MentionOutcome;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::world::mention_world::{AUTHOR, BOT, MAINTAINER, MentionWorld, OWN, STRANGER};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comes {
    /// It is carried out, or answered as well as possible there.
    Through,
    ToNothing,
    Unheard,
}
use Comes::{Through, ToNothing, Unheard};

const ROLES: [&str; 5] = [MAINTAINER, AUTHOR, STRANGER, BOT, OWN];

/// Who may use which command: maintainer, author, stranger, bot, Canonry itself.
const SETTLED: [(&str, [Comes; 5]); 14] = [
    ("pause", [Through, ToNothing, ToNothing, Unheard, Unheard]),
    ("resume", [Through, ToNothing, ToNothing, Unheard, Unheard]),
    ("feedback clear", [Through, ToNothing, ToNothing, Unheard, Unheard]),
    ("feedback restore", [Through, ToNothing, ToNothing, Unheard, Unheard]),
    ("undo", [Through, ToNothing, ToNothing, Unheard, Unheard]),
    ("duplicate of #1", [Through, ToNothing, ToNothing, Unheard, Unheard]),
    ("review", [Through, Through, ToNothing, Unheard, Unheard]),
    ("full review", [Through, Through, ToNothing, Unheard, Unheard]),
    ("not a duplicate of #1", [Through, Through, ToNothing, Unheard, Unheard]),
    ("not useful", [Through, Through, ToNothing, Unheard, Unheard]),
    ("why", [Through, Through, Through, Unheard, Unheard]),
    ("help", [Through, Through, Through, Unheard, Unheard]),
    ("feedback status", [Through, Through, Through, Unheard, Unheard]),
    ("feedback list", [Through, Through, Through, Unheard, Unheard]),
];

on_both_engines! {
    async fn every_command_by_every_role(database: TestDatabase) {
        let setting = MentionWorld::new(database, "triage: {mode: shadow}\n").await;
        let listed: BTreeSet<&str> = MentionVerb::ALL.iter().map(|verb| verb.as_str()).collect();
        let settled: BTreeSet<&str> = SETTLED.iter().map(|(said, _)| said.split(" #").next().expect("words")).collect();
        let settled: BTreeSet<&str> = settled.iter().map(|said| if *said == "not a duplicate of" { "not a duplicate" } else { *said }).collect();
        assert_eq!(listed, settled, "a command that nobody settled who may ask for");
        let mut asked = Vec::new();
        for (at, (said, comes)) in SETTLED.iter().enumerate() {
            for (role, comes) in ROLES.iter().zip(comes) {
                let number = setting.issue(&format!("Something else: topic{}", 500 + at));
                let call = if at % 2 == 0 { "/canonry" } else { "@canonry" };
                asked.push((*said, *role, *comes, number, setting.say(number, role, &format!("{call} {said}"))));
            }
            // One after the other: of many within an hour some would not be answered.
            setting.settle().await;
        }
        for (said, role, comes, number, comment) in asked {
            let (answered, noted) = (setting.answered(number, comment), setting.noted(comment).await);
            let context = format!("{said:?} by {role}: {answered:?}, {noted:?}");
            match comes {
                Through => {
                    assert!(!answered.only().starts_with("Only "), "{context}");
                    let noted = noted.unwrap_or_else(|| panic!("{context}"));
                    assert!(said.starts_with(noted.command.as_deref().expect("understood")), "{context}");
                }
                ToNothing => {
                    assert!(answered.only().starts_with("Only maintainers"), "{context}");
                    assert_eq!(noted.map(|noted| noted.outcome), Some(MentionOutcome::Refused), "{context}");
                }
                Unheard => {
                    assert!(answered.replies.is_empty() && answered.reactions.is_empty(), "{context}");
                    assert_eq!(noted, None, "{context}");
                }
            }
        }
        setting.stop().await;
    }
}

on_both_engines! {
    async fn who_maintains_is_asked_of_github_unless_a_list_was_set(database: TestDatabase) {
        let setting = MentionWorld::new(database, "").await;
        let number = setting.issue("Something else: topic600");
        // The triage permission is not enough to be a maintainer.
        assert!(setting.ask(number, "sorter", "/canonry pause").await.only().starts_with("Only maintainers"));
        assert!(setting.ask(number, MAINTAINER, "/canonry pause").await.only().starts_with("Paused in this repository"));
        let repo = setting.repo().await;
        let ben = STRANGER.parse().expect("a login");
        let now = setting.emulator.world().now;
        let set = canonry_store::MaintainerSource::Set;
        setting.store.repos().set_maintainers(repo.id, set, &[ben], now).await.expect("writes");
        assert!(setting.ask(number, MAINTAINER, "/canonry resume").await.only().starts_with("Only maintainers"));
        let resumed = setting.ask(number, "BEN", "/canonry resume").await;
        assert!(resumed.only().starts_with("Resumed in this repository"), "letter case is no matter: {resumed:?}");
        setting.stop().await;
    }
}
