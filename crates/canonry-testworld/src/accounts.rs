//! Canonry's accounts on the emulated GitHub: a plain token and an App.

use std::sync::Arc;
use std::time::Duration;

use canonry_clock::Clock;
use canonry_github::{AppKey, Auth, ClientOptions, GitHub, Secret};
use canonry_testkit::github::{Emulator, Permission, TEST_APP_PRIVATE_KEY, World};

pub const TOKEN: &str = "ghp_emulatedTokenOfCanonry0123456789abcd";
/// The account of the plain token, and that of the App.
pub const OWN: &str = "canonry-bot";
pub const APP: &str = "canonry[bot]";
pub const APP_ID: u64 = 4711;

pub fn token_auth() -> Auth {
    Auth::Token(Secret::new(TOKEN))
}

pub fn app_auth() -> Auth {
    Auth::App(AppKey::new(&APP_ID.to_string(), &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key"))
}

/// A world with one repository that the token may write to, and with a rate limit that no test reaches by accident.
pub fn world_with_token(repo: &str) -> World {
    let mut world = World::new();
    world.token(TOKEN, OWN);
    world.repo(repo);
    world.collaborator(repo, OWN, Permission::Write);
    world.rate.limit = 10_000_000;
    world
}

/// The same with an App that may write in these areas and read the rest it needs.
pub fn world_with_app(repo: &str, areas: &[&str]) -> World {
    let mut world = world_with_token(repo);
    world.add_app(APP_ID, "canonry");
    let mut permissions: Vec<(&str, &str)> = areas.iter().map(|area| (*area, "write")).collect();
    if !areas.contains(&"contents") {
        permissions.push(("contents", "read"));
    }
    permissions.push(("metadata", "read"));
    let owner = repo.split('/').next().expect("an owner");
    world.install_app(owner, &permissions);
    world
}

/// A client without jitter in its waits.
pub fn client(emulator: &Emulator, clock: Arc<dyn Clock>, auth: Auth) -> GitHub {
    let options = ClientOptions {
        api: emulator.url().parse().expect("a URL"),
        clock,
        jitter: Arc::new(|| 0.0),
        request_timeout: Duration::from_secs(10),
        ..ClientOptions::new(auth)
    };
    GitHub::new(options).expect("a client")
}
