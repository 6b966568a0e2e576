//! A long scenario against the emulated GitHub with a moved clock: Canonry is installed, watches, comments, and
//! learns from people's reactions.

mod calm_and_storm;
mod fixed_before;
mod no_file;
mod outcomes;
mod same_second;
mod shadow_and_suggest;
mod without_webhooks;
