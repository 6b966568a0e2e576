#![doc = include_str!("../README.md")]

mod close;
mod console;
mod corpus;
mod deliveries;
mod duplicates;
mod engine;
mod jobs;
mod learning;
mod models;
mod outbox;
mod review;

pub use close::*;
pub use console::*;
pub use corpus::*;
pub use deliveries::*;
pub use duplicates::*;
pub use engine::*;
pub use jobs::*;
pub use learning::*;
pub use models::*;
pub use outbox::*;
pub use review::*;
