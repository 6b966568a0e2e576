//! Finds dependencies that a change adds to a `Cargo.toml` and that no Rust file of the crate names.
//!
//! The definition is the one that was measured on released crates (docs/benchmarks.md, "The built-in rules"). Whatever it
//! does not cover is left alone: a wrong finding costs more than a missed one.

mod cargo_manifest;
mod crate_code;
mod new_dependency;
mod search;
mod toml_entries;

pub(crate) use search::{find_unused_dependencies, manifests_to_recheck};
