//! The whole service on an emulated GitHub with one repository: a maintainer, an author, a stranger, and bots.

use std::ops::Deref;

use canonry_domain::GithubId;
use canonry_store::{Mention, MentionPlace, Repo};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Delivery, NewIssue, NewPull, Permission, World};
use jiff::SignedDuration;

use crate::world::review_world::reviewing;
use crate::world::whole_service::WholeService;
use crate::world::{As, WorldBuilder};

pub(crate) const POOL: &str = "tide/pool";
pub(crate) const OWN: &str = "canonry[bot]";
pub(crate) const MAINTAINER: &str = "maint";
pub(crate) const AUTHOR: &str = "ann";
pub(crate) const STRANGER: &str = "ben";
pub(crate) const BOT: &str = "stale[bot]";
/// Issues that exist from the beginning: `topic0` is #1, and so on.
const ORIGINALS: u64 = 4;

pub(crate) struct MentionWorld {
    whole: WholeService,
}

impl Deref for MentionWorld {
    type Target = WholeService;

    fn deref(&self) -> &WholeService {
        &self.whole
    }
}

/// Canonry's answers to one comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    /// The comments on the item after the comment, without markers.
    pub(crate) replies: Vec<String>,
    pub(crate) reactions: Vec<String>,
}

impl Answered {
    /// The only answer, whether a reply or a reaction.
    pub(crate) fn only(&self) -> &str {
        let all: Vec<&String> = self.replies.iter().chain(&self.reactions).collect();
        assert_eq!(all.len(), 1, "{self:?}");
        all[0]
    }
}

impl MentionWorld {
    /// The App is installed, with these settings on the default branch.
    pub(crate) async fn new(database: TestDatabase, settings: &str) -> Self {
        Self::on(database, world(settings)).await
    }

    /// The same with a given world.
    pub(crate) async fn on(database: TestDatabase, world: World) -> Self {
        let permissions = [
            ("issues", "write"),
            ("pull_requests", "write"),
            ("contents", "write"),
            ("checks", "write"),
            ("metadata", "read"),
        ];
        let builder = WorldBuilder::new(As::App).longest_wait(SignedDuration::from_secs(5));
        let setting = Self { whole: WholeService::start(database, world, &permissions, builder).await };
        setting.settle().await;
        setting
    }

    /// Delivers and runs everything that is due within the hour.
    pub(crate) async fn settle(&self) {
        self.settle_until(|_| false).await;
    }

    /// The same, or until the world is as wanted, whatever is still to be done then.
    pub(crate) async fn settle_until(&self, is_enough: impl Fn(&World) -> bool) {
        self.settle_within(Some(SignedDuration::from_hours(1)), is_enough).await;
    }

    pub(crate) async fn repo(&self) -> Repo {
        self.repo_named(POOL).await
    }

    pub(crate) fn issue(&self, title: &str) -> u64 {
        self.meanwhile(|world| world.open(POOL, AUTHOR, NewIssue::new(title, "It stops, and it never comes back.")))
    }

    /// A new pull request of the author, with a finding of the built-in reviewer.
    pub(crate) fn pull(&self, branch: &str) -> u64 {
        self.meanwhile(|world| {
            let text = "fn tide() {}\n<<<<<<< ours\nfn ebb() {}\n=======\nfn flow() {}\n>>>>>>> theirs\n";
            world.commit(POOL, branch, &[(&format!("src/{branch}.rs"), Some(text))]);
            world.open_pull(POOL, AUTHOR, branch, NewPull::new(&format!("Let it flow: {branch}")))
        })
    }

    /// A person comments; nothing is delivered yet.
    pub(crate) fn say(&self, number: u64, by: &str, text: &str) -> u64 {
        self.meanwhile(|world| world.comment(POOL, number, by, text))
    }

    /// A person comments, and the delivery fails; returns the delivery too.
    pub(crate) fn say_unheard(&self, number: u64, by: &str, text: &str) -> (u64, Delivery) {
        let comment = self.say(number, by, text);
        let told = self.emulator.pending_deliveries().pop().expect("a delivery");
        self.emulator.world().deliveries.retain(|delivery| delivery.guid != told.guid);
        (comment, told)
    }

    /// GitHub delivers the failed delivery an hour later, and all work is done.
    pub(crate) async fn deliver_late(&self, told: Delivery) {
        {
            let mut world = self.emulator.world();
            world.advance(3_600);
            world.deliveries.push(told);
        }
        self.settle().await;
    }

    /// Canonry's last comment on an item, if it is the last of all.
    pub(crate) fn last_word(&self, number: u64) -> Option<String> {
        let world = self.emulator.world();
        let comments = world.comments(POOL, number);
        comments.last().filter(|comment| comment.author == OWN).map(|comment| plain(&comment.body))
    }

    /// A person comments, and all work is done.
    pub(crate) async fn ask(&self, number: u64, by: &str, text: &str) -> Answered {
        let comment = self.say(number, by, text);
        self.settle().await;
        self.answered(number, comment)
    }

    /// Canonry's comments on an item after a comment and before the next person's, and its reactions to the comment.
    pub(crate) fn answered(&self, number: u64, comment: u64) -> Answered {
        let world = self.emulator.world();
        let comments = world.comments(POOL, number);
        let at = comments.iter().position(|one| one.id == comment).expect("it is there");
        let reactions = comments[at].reactions.iter().filter(|reaction| reaction.author == OWN);
        let after = comments[at + 1..].iter().take_while(|one| one.author == OWN);
        Answered {
            replies: after.map(|one| plain(&one.body)).collect(),
            reactions: reactions.map(|reaction| reaction.content.clone()).collect(),
        }
    }

    /// The stored mention of a conversation's comment.
    pub(crate) async fn noted(&self, comment: u64) -> Option<Mention> {
        let repo = self.repo().await;
        let id = GithubId(i64::try_from(comment).expect("small"));
        self.store.deliveries().mention_in(repo.id, MentionPlace::Issue, id).await.expect("reads")
    }

    pub(crate) async fn stop(self) {
        let emulator = self.whole.stop().await;
        emulator.assert_no_unknown_routes();
        assert_clean(&emulator.bodies_sent());
    }
}

/// A text without the marker at its end.
pub(crate) fn plain(body: &str) -> String {
    let end = body.find("<!-- canonry:").unwrap_or(body.len());
    body[..end].trim_end().to_owned()
}

/// No text that was ever sent pings a person, renders what a stranger wrote, or contains a secret.
pub(crate) fn assert_clean(bodies: &[String]) {
    for body in bodies {
        let said = plain(body);
        assert!(body.matches("<!--").count() <= 1, "a marker of another's: {body}");
        // Canonry's own texts have folded and small parts.
        let own = ["<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>"];
        let markup = own.iter().fold(said, |text, tag| text.replace(tag, ""));
        assert!(!markup.contains('<'), "markup: {body}");
        assert!(!markup.replace("\\](", "").contains("]("), "a link: {body}");
        let calls = markup.match_indices('@').any(|(at, _)| markup[at + 1..].starts_with(char::is_alphanumeric));
        assert!(!calls, "somebody is called: {body}");
        for forbidden in ["ghp_", "\u{1b}", "\u{202e}"] {
            assert!(!body.contains(forbidden), "{forbidden:?}: {body}");
        }
        assert!(body.chars().count() < 20_000, "{} characters", body.chars().count());
    }
}

pub(crate) fn world(settings: &str) -> World {
    let mut world = World::new();
    for name in [AUTHOR, STRANGER, "mallory"] {
        world.user(name);
    }
    world.bot(BOT);
    world.repo(POOL).file(".canonry.yml", &reviewing(settings));
    world.collaborator(POOL, MAINTAINER, Permission::Write);
    world.collaborator(POOL, "sorter", Permission::Triage);
    for topic in 0..ORIGINALS {
        world.advance(60);
        let title = format!("The tide stops: topic{topic}");
        world.open(POOL, MAINTAINER, NewIssue::new(&title, "It stops, and this is where it is looked into."));
    }
    world
}
