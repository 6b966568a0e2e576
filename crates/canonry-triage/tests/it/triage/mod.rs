//! Triage of single items against the emulated GitHub, on both engines: what is posted and when nothing is, one
//! comment per item whatever happens in between, and what is learned from people's reactions and closes.

mod actors;
mod again;
mod controls;
mod descriptions;
mod fixed_before;
mod reactions;
mod saying;
pub(crate) mod setting;
mod thresholds;
mod unsaid;
