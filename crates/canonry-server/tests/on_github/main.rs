//! Whole stories on the emulated GitHub: webhooks in, reviews out, and what people and strangers do in between.

mod conversation;
mod hostile;
mod linter;
mod outbound;
mod permission;
mod races;
#[path = "../reviews/setting.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod setting;
#[path = "../topics/mod.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod topics;
mod whole;
