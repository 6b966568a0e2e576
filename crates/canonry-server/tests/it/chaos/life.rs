//! The emulated GitHub of the chaos test, and its people.

use std::collections::{BTreeMap, BTreeSet};

use canonry_testkit::github::{CloseReason, Fault, NewIssue, Permission, State, World};
use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// Part of every text, title, comment and secret, and of nothing else: if it appears elsewhere, something has leaked.
pub(crate) const CANARY: &str = "zanzi";
pub(crate) const SECRET: &str = "zanzisecret of the webhook";
pub(crate) const REASONING: &str = "zanzireason: both stop at the same wave.";
pub(crate) const OWN: &str = "canonry[bot]";
pub(crate) const APP_ID: u64 = 77;
pub(crate) const REPOS: [&str; 3] = ["tide/kelp", "tide/crab", "tide/squid"];
/// How many times faster than the machine's clock all clocks run.
pub(crate) const FACTOR: u32 = 60;

/// The issues of each repository before Canonry is installed.
const ORIGINALS: u64 = 8;
/// Topics from this number on have only one report.
const LONELY: u64 = 1_000;

/// A world with the App installed on three repositories in the mode `suggest`. Webhooks are queued from now on.
pub(crate) fn world(anchor: Timestamp) -> World {
    let mut world = World::new();
    world.runs_faster(anchor, FACTOR);
    world.rate.limit = 10_000_000;
    world.bot("stale[bot]");
    for name in ["ann", "ben", "cleo"] {
        world.user(name);
    }
    for repo in REPOS {
        world.repo(repo).file(".canonry.yml", "triage:\n  mode: suggest\n");
        world.collaborator(repo, "maint", Permission::Maintain);
        for topic in 0..ORIGINALS {
            world.open(repo, "ann", report(topic, None, topic));
        }
    }
    world.add_app(APP_ID, "canonry");
    world.send_webhooks_to("http://127.0.0.1:9/chosen-by-the-test", SECRET);
    let permissions = [("issues", "write"), ("pull_requests", "write"), ("contents", "read"), ("metadata", "read")];
    world.install_app("tide", &permissions);
    world
}

/// GitHub's faults: 10 % of calls fail, 5 % time out, 2 % are applied and their answers dropped.
pub(crate) fn faults(seed: u64) -> Vec<canonry_testkit::github::ArmedFault> {
    let any = |chance: f64, which: u64| Fault::on("*", "/**").sometimes(chance, seed.wrapping_mul(31) + which);
    vec![
        any(0.05, 1).answer(502),
        any(0.03, 2).answer(500),
        any(0.02, 3).drop_connection(),
        any(0.025, 4).hang(),
        any(0.025, 5).apply_and_hang(),
        any(0.02, 6).apply_and_drop(),
    ]
}

fn report(topic: u64, alike: Option<u64>, salt: u64) -> NewIssue {
    let alike = alike.map(|alike| format!(" alike{alike}")).unwrap_or_default();
    let title = format!("zanzititle: the tide stops at topic{topic}{alike}");
    NewIssue::new(&title, &format!("zanzibody {salt}: it stops with the error E{salt:04} and never comes back."))
}

/// What a person knows about an issue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Watched {
    /// It was opened as a duplicate of an original, and its text still says so.
    pub(crate) planted: bool,
    pub(crate) was_closed: bool,
}

/// People who open, edit, close, reopen, label and comment.
pub(crate) struct Life {
    pub(crate) random: StdRng,
    pub(crate) issues: BTreeMap<(&'static str, u64), Watched>,
    most: usize,
    salt: u64,
}

impl Life {
    /// People who open at most this many issues.
    pub(crate) fn new(seed: u64, most: usize) -> Self {
        Self { random: StdRng::seed_from_u64(seed), issues: BTreeMap::new(), most, salt: 1_000 }
    }

    /// One random action of a person, which causes at least one delivery.
    pub(crate) fn go_on(&mut self, world: &mut World) {
        let before = world.deliveries.len();
        while world.deliveries.len() == before {
            self.salt += 1;
            match self.random.random_range(0..100) {
                _ if self.issues.len() < 3 => self.open(world),
                0..40 if self.issues.len() < self.most => self.open(world),
                0..10 => self.redeliver(world),
                10..12 => world.ping(),
                _ => self.touch(world),
            }
        }
    }

    fn open(&mut self, world: &mut World) {
        let repo = REPOS[self.random.random_range(0..REPOS.len())];
        let planted = self.random.random_bool(0.7);
        let new = if planted {
            let alike = self.random.random_range(93..=99);
            report(self.random.random_range(0..ORIGINALS), Some(alike), self.salt)
        } else {
            report(LONELY + self.salt, None, self.salt)
        };
        let number = world.open(repo, self.person(), new);
        self.issues.insert((repo, number), Watched { planted, was_closed: false });
    }

    /// GitHub, or a person in the App's settings, redelivers something.
    fn redeliver(&mut self, world: &mut World) {
        let at = self.random.random_range(0..world.deliveries.len());
        let guid = world.deliveries[at].guid.clone();
        world.redeliver(&guid);
    }

    fn touch(&mut self, world: &mut World) {
        let at = self.random.random_range(0..self.issues.len());
        let (&(repo, number), &watched) = self.issues.iter().nth(at).expect("there are some");
        let issue = world.issue(repo, number).clone();
        let (is_open, salt) = (issue.state == State::Open, self.salt);
        let original = world.get(repo).issues.values().find(|other| {
            let topic = issue.title.split("topic").nth(1).and_then(|rest| rest.split(' ').next());
            topic.is_some_and(|topic| other.number <= ORIGINALS && other.title.ends_with(&format!("topic{topic}")))
        });
        let (original, original_id) = original.map_or((1, None), |original| (original.number, Some(original.id)));
        let by = self.person();
        match self.random.random_range(0..100) {
            0..15 => world.edit_body(repo, number, by, &format!("zanzibody {salt}: it still stops.")),
            15..25 => {
                let title = issue.title.split(" (").next().unwrap_or_default();
                world.edit_title(repo, number, by, &format!("{title} (zanzititle {salt})"));
            }
            25..28 if watched.planted => {
                self.issues.insert((repo, number), Watched { planted: false, ..watched });
                let title = format!("zanzititle: something else, topic{}", LONELY + salt);
                world.edit_title(repo, number, by, &title);
            }
            28..45 => drop(world.comment(repo, number, by, &format!("zanzicomment {salt}: the same here."))),
            45..60 => world.label(repo, number, "maint", ["area/surf", "area/sand", "bug"][salt as usize % 3]),
            // Most suggestions are right, so that the threshold does not rise and each planted duplicate must get a
            // suggestion.
            60..63 if is_open && watched.planted => {
                world.comment(repo, number, "maint", &format!("Duplicate of #{original}. zanzicomment"));
                self.close(world, repo, number, "maint", CloseReason::Duplicate(None));
            }
            63..65 if is_open && watched.planted => {
                self.close(world, repo, number, "maint", CloseReason::Duplicate(original_id));
            }
            65..66 if is_open && watched.planted => {
                self.close(world, repo, number, "maint", CloseReason::Completed);
                world.label(repo, number, "maint", "duplicate");
            }
            66..67 if is_open => self.close(world, repo, number, "maint", CloseReason::Completed),
            67..68 if is_open => self.close(world, repo, number, "stale[bot]", CloseReason::NotPlanned),
            68..85 if !is_open => world.reopen(repo, number, by),
            _ => {}
        }
    }

    /// The planted issues that were never closed.
    pub(crate) fn still_planted(&self) -> BTreeSet<(String, u64)> {
        let planted = self.issues.iter().filter(|(_, watched)| watched.planted && !watched.was_closed);
        planted.map(|((repo, number), _)| ((*repo).to_owned(), *number)).collect()
    }

    /// A maintainer closes everything that is open; one in six was not a duplicate.
    pub(crate) fn close_everything(&mut self, world: &mut World) {
        for ((repo, number), watched) in self.issues.clone() {
            let wrong = !watched.planted || self.random.random_range(0..6) == 0;
            let reason = if wrong { CloseReason::Completed } else { CloseReason::Duplicate(None) };
            self.close(world, repo, number, "maint", reason);
        }
    }

    fn close(&mut self, world: &mut World, repo: &'static str, number: u64, by: &str, reason: CloseReason) {
        self.issues.entry((repo, number)).or_default().was_closed = true;
        world.close(repo, number, by, reason);
    }

    fn person(&mut self) -> &'static str {
        ["ann", "ben", "cleo", "maint"][self.random.random_range(0..4)]
    }
}
