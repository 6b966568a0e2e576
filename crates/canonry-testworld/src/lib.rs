#![doc = include_str!("../README.md")]

mod accounts;
mod test_world;
mod world_clock;

pub use accounts::{APP, APP_ID, OWN, TOKEN, app_auth, client, token_auth, world_with_app, world_with_token};
pub use test_world::{TestWorld, number, plain};
pub use world_clock::WorldClock;
