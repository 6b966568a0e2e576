//! Writes a report in the formats that people and programs read.

pub mod columns;
mod counts;
mod diagnostic;
mod github;
mod gitlab;
mod json;
mod junit;
mod rdjsonl;
mod run_facts;
mod sarif;
mod sarif_rules;
mod source_links;
mod text;

pub use counts::{counts, gaps};
pub(crate) use counts::{gaps_of, skipped_files};
pub use github::github;
pub use gitlab::gitlab;
pub use json::json;
pub use junit::junit;
pub use rdjsonl::rdjsonl;
pub(crate) use run_facts::notes;
pub use run_facts::{model_in_words, reviewers_in_words};
pub use sarif::{code_scanning, sarif};
pub use source_links::SourceLinks;
pub use text::text;

#[cfg(test)]
mod read_back;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod text_snapshots;
