//! Provides a client of an emulated GitHub, with one clock for both.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use canonry_domain::{ItemNumber, RepoName};
use canonry_github::{Auth, ClientOptions, GitHub, Secret, WaitReason};
use canonry_testkit::github::{Emulator, NewIssue, World};
use jiff::Timestamp;

use canonry_testworld::WorldClock;

pub(crate) const TOKEN: &str = "ghp_emulatedTokenOfCanonry0123456789abcd";
pub(crate) const REPO: &str = "acme/widgets";

pub(crate) struct Setting {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) github: GitHub,
    /// Every wait: its reason, and its end in seconds after the start of the world.
    pub(crate) waits: Arc<Mutex<Vec<(WaitReason, i64)>>>,
    pub(crate) begin: Timestamp,
}

impl Setting {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}, Auth::Token(Secret::new(TOKEN)), |_| {}).await
    }

    /// A setting with its own world and options.
    pub(crate) async fn with(
        fill: impl FnOnce(&mut World),
        auth: Auth,
        adjust: impl FnOnce(&mut ClientOptions),
    ) -> Self {
        let mut world = World::new();
        world.token(TOKEN, "canonry-dev");
        world.repo(REPO);
        fill(&mut world);
        let begin = world.now;
        let emulator = Arc::new(Emulator::start(world).await);
        let waits = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&waits);
        let mut options = ClientOptions {
            api: emulator.url().parse().expect("a URL"),
            clock: Arc::new(WorldClock(Arc::clone(&emulator))),
            jitter: Arc::new(|| 0.0),
            on_wait: Arc::new(move |waiting| {
                let seconds = waiting.until.as_second() - begin.as_second();
                seen.lock().expect("not poisoned").push((waiting.reason, seconds));
            }),
            request_timeout: Duration::from_secs(5),
            ..ClientOptions::new(auth)
        };
        adjust(&mut options);
        Self { emulator, github: GitHub::new(options).expect("a client"), waits, begin }
    }

    pub(crate) fn waits(&self) -> Vec<(WaitReason, i64)> {
        self.waits.lock().expect("not poisoned").clone()
    }

    pub(crate) fn request_count(&self) -> usize {
        self.emulator.requests().len()
    }
}

pub(crate) fn repo() -> RepoName {
    REPO.parse().expect("a name")
}

pub(crate) fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("a number")
}

pub(crate) fn open_issues(world: &mut World, count: usize) {
    world.user("ann");
    for index in 1..=count {
        world.open(REPO, "ann", NewIssue::new(&format!("Issue {index}"), "It breaks."));
    }
}
