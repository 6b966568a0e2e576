//! Duplicates from the import to the closed issue, through the command line: scripted vectors, a scripted judge and
//! an emulated GitHub. Numbers in the tests' descriptions are those of the conformance cases.

mod applying;
mod auditing;
mod backtesting;
mod bad_input;
mod canonicals;
mod detecting;
mod drifting;
mod first_steps;
mod gates;
mod hostile_texts;
mod judging;
mod large_groups;
mod on_github;
mod plans;
mod questions;
mod related_pairs;
mod rulings;
pub(crate) mod setting;
mod troubled_applying;
mod unchanged_sets;
