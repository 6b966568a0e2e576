//! One story against the emulated GitHub with a moved clock: suggestions announce closes, people call them off, what
//! nobody objects to is closed, and what people take back stops all closing.

#[path = "../story/setting.rs"]
#[expect(dead_code, reason = "the story of triage uses all of it")]
mod setting;
mod story;
#[path = "../topics/mod.rs"]
mod topics;
