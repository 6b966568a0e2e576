//! A story against the emulated GitHub with a moved clock: Canonry is installed, watches, speaks, and learns from what
//! people do with what it says.

mod calm_and_storm;
mod outcomes;
mod same_second;
mod setting;
mod shadow_and_suggest;
#[path = "../topics/mod.rs"]
mod topics;
mod without_webhooks;
