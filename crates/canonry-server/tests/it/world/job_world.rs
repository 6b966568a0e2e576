//! A service whose jobs the test runs one by one; it does not listen for webhooks.

use std::ops::Deref;
use std::sync::Arc;

use canonry_github::outbox::Outbox;
use canonry_server::{AttemptEnd, Schedules};
use canonry_store::{JobScope, Repo};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, Permission, World};

use crate::world::clocks::WaitingMoves;
use crate::world::{APP_ID, As, CAPS, Running, ServiceWorld, TOKEN, WorldBuilder};

pub(crate) const REPO: &str = "tide/pool";
pub(crate) const OWN: &str = "canonry-bot";

pub(crate) struct JobWorld {
    world: ServiceWorld,
    pub(crate) repo: Repo,
}

impl Deref for JobWorld {
    type Target = ServiceWorld;

    fn deref(&self) -> &ServiceWorld {
        &self.world
    }
}

impl JobWorld {
    pub(crate) async fn new(database: &TestDatabase, who: As) -> Self {
        let mut world = World::new();
        world.repo(REPO);
        world.user("ann");
        world.token(TOKEN, OWN);
        world.collaborator(REPO, OWN, Permission::Write);
        world.add_app(APP_ID, "canonry");
        world.install_app("tide", &[("issues", "write"), ("metadata", "read"), ("contents", "read")]);
        // No server listens there: a test sets the result of a delivery itself.
        world.send_webhooks_to("http://127.0.0.1:9/webhooks/github", "secret");
        let emulator = Arc::new(Emulator::start(world).await);
        let clock = Arc::new(WaitingMoves::new(&emulator, None));
        let world = WorldBuilder::new(who).start(&emulator, clock, database.url()).await;
        let repo = world.known_repo(REPO).await;
        Self { world, repo }
    }

    pub(crate) async fn work(&self) -> Option<AttemptEnd> {
        self.work_once("w", CAPS, JobScope::All).await
    }

    /// An outbox like that of another process.
    pub(crate) async fn outbox(&self) -> Outbox {
        Outbox::open(self.store.clone(), self.github.clone(), [7; 32]).await.expect("an outbox")
    }

    /// Runs everything except the schedules.
    pub(crate) async fn serve(&self) -> Running {
        Running::start(self.store.clone(), self.publishing_parts(), Arc::clone(&self.clock), Schedules::Off).await
    }
}
