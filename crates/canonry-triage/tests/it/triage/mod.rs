//! Triage of single items against the emulated GitHub, on both engines: what is said and when nothing is, one comment
//! per item whatever happens in between, and what people's reactions and closings teach.

mod actors;
mod again;
mod reactions;
mod saying;
pub(crate) mod setting;
mod thresholds;
mod unsaid;
