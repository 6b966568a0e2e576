//! A story against the emulated GitHub with a moved clock: Canonry is installed, watches, speaks, and learns from what
//! people do with what it says.

mod calm_and_storm;
mod no_file;
mod outcomes;
mod same_second;
mod shadow_and_suggest;
mod without_webhooks;
