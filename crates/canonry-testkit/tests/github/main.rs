//! What the emulator does, seen from outside.

mod checks;
#[path = "../client/mod.rs"]
mod client;
mod cloning;
mod faults;
mod gone;
mod limits;
mod listing;
mod pulls;
mod reviewing;
mod rights;
mod threads;
mod webhooks;

use canonry_testkit::github::{Emulator, NewIssue, Permission, World};
use client::Client;

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

#[tokio::test]
#[should_panic(expected = "the emulator has no route for: GET /repos/acme/widgets/zen")]
async fn an_unknown_route_fails_the_test() {
    let (emulator, client) = small().await;
    assert_eq!(client.get("/repos/acme/widgets/zen").await.status, 404);
    drop(emulator);
}

#[tokio::test]
async fn every_request_is_recorded() {
    let (emulator, client) = small().await;
    client.get(&format!("{ISSUES}?state=all&since=2026-01-01T00%3A00%3A00Z")).await;
    client.write("POST", &format!("{ISSUES}/1/comments"), serde_json::json!({ "body": "Hi" })).await;
    let requests = emulator.requests();
    assert_eq!(requests[0].query("since"), Some("2026-01-01T00:00:00Z"));
    let writes = emulator.writes();
    assert_eq!(writes.len(), 1);
    assert_eq!(writes[0].user.as_deref(), Some("maint"));
    assert_eq!(writes[0].status, Some(201));
    assert_eq!(writes[0].field("body"), Some(&serde_json::json!("Hi")));
    assert_eq!(writes[0].route, Some("/repos/{owner}/{repo}/issues/{issue_number}/comments"));
    emulator.forget_requests();
    assert!(emulator.requests().is_empty());
}
