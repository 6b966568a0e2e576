//! A small repository with people, and a client for it.

use canonry_testkit::github::{Emulator, NewIssue, Permission, World};

use crate::client::Client;

pub(crate) const REPO: &str = "acme/widgets";
pub(crate) const ISSUES: &str = "/repos/acme/widgets/issues";

/// One repository with a maintainer, a stranger, their tokens and three issues of the stranger.
pub(crate) fn small_world() -> World {
    let mut world = World::new();
    world.repo(REPO);
    world.repo("acme/other");
    world.collaborator(REPO, "maint", Permission::Write);
    world.token("maint-token", "maint");
    world.token("stranger-token", "stranger");
    for title in ["One", "Two", "Three"] {
        world.open(REPO, "stranger", NewIssue::new(title, "text"));
    }
    world
}

pub(crate) async fn small() -> (Emulator, Client) {
    let emulator = Emulator::start(small_world()).await;
    let client = Client::new(&emulator, Some("maint-token"));
    (emulator, client)
}
