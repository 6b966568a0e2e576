//! Long scenarios on the emulated GitHub: webhooks in, reviews out, with people and strangers in between.

mod conversation;
mod hostile;
mod linter;
pub(crate) mod outbound;
mod permission;
mod races;
mod whole;
