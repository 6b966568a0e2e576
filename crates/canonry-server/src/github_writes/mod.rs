//! Sends the outbox's writes to GitHub, with a recheck before each write.

pub(crate) mod publisher;
pub(crate) mod recheck;

pub use publisher::Publish;
