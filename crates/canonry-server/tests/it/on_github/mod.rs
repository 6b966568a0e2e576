//! Whole stories on the emulated GitHub: webhooks in, reviews out, and what people and strangers do in between.

mod conversation;
mod hostile;
mod linter;
mod outbound;
mod permission;
mod races;
mod whole;
