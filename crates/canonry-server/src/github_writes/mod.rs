//! Sending what the outbox holds, and the recheck before each write.

pub(crate) mod publisher;
pub(crate) mod recheck;

pub use publisher::Publish;
