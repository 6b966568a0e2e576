//! What people say to findings on GitHub, and what the next review makes of it.

mod answers;
mod reviewed;
#[path = "../reviews/setting.rs"]
#[allow(dead_code, reason = "the other tests use the rest of it")]
mod setting;
mod suppression;
mod threads;
