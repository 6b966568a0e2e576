//! A store and an emulated GitHub with one repository, for processes that are started and killed.

use canonry_boxed::boxed;
use std::sync::Arc;

use canonry_domain::{GithubId, ItemNumber};
use canonry_github::outbox::Outbox;
use canonry_github::{Auth, GitHub};
use canonry_store::{Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, World};
use jiff::Timestamp;

use crate::accounts::client;
use crate::world_clock::WorldClock;

pub struct TestWorld {
    pub emulator: Arc<Emulator>,
    pub store: Store,
    pub repo: Repo,
    pub auth: Auth,
    /// Removed at the end of the test.
    pub database: TestDatabase,
}

#[boxed]
impl TestWorld {
    /// Serves a world, with its repository in the store.
    pub async fn start(database: TestDatabase, world: World, repo: &str, auth: Auth) -> Self {
        let now = world.now;
        let emulator = Arc::new(Emulator::start(world).await);
        let store = Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
        let repo = store.repos().ensure(&repo.parse().expect("a name"), now).await.expect("stored");
        Self { emulator, store, repo, auth, database }
    }

    /// The same with the repository's GitHub id in the store.
    pub async fn identified(mut self) -> Self {
        let name = self.repo.name.to_string();
        let id = self.emulator.world().repos.iter().find(|repo| repo.full_name() == name).expect("there").id;
        let id = GithubId(i64::try_from(id).expect("small"));
        let repo = self.store.repos().identify(self.repo.id, id, &self.repo.name).await.expect("stored");
        self.repo = repo.expect("a repository");
        self
    }

    /// The client of a newly started process; waiting moves the world's time.
    pub fn github(&self) -> GitHub {
        client(&self.emulator, Arc::new(WorldClock(Arc::clone(&self.emulator))), self.auth.clone())
    }

    pub async fn outbox(&self) -> Outbox {
        Outbox::open(self.store.clone(), self.github(), [7; 32]).await.expect("an outbox")
    }

    pub fn now(&self) -> Timestamp {
        self.emulator.world().now
    }

    pub fn advance(&self, seconds: i64) {
        self.emulator.world().advance(seconds);
    }
}

/// A number of the emulated GitHub as an item number of the store.
pub fn number(number: u64) -> ItemNumber {
    ItemNumber::new(i64::try_from(number).expect("small")).expect("positive")
}

pub fn plain(number: ItemNumber) -> u64 {
    u64::try_from(number.get()).expect("positive")
}
