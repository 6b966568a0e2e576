//! Reviews, findings and patterns: what the pages show about a filled store, to whom, and what clearing does.

mod findings;
mod lists;
mod patterns;
