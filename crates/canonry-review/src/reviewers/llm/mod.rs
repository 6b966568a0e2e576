//! A language model that reads the change.
//!
//! What it is shown was written by strangers, and what it says may be wrong. So every text from outside stands behind a
//! mark at each of its lines, secrets are taken out before anything leaves, an answer counts only in its exact form, and
//! what the model calls grave has to stand up to a second reading, which can lower it by one step and no more: what was
//! critical stays at least major. Nothing here can fail a review: what went wrong, and what was not read, is told.

mod answer;
mod batches;
mod budget;
mod claims;
mod fence;
mod file_risk;
mod model_session;
mod prompt;
mod readable;
#[cfg(test)]
mod reading_tests;
mod refute;
mod reviewer;
#[cfg(test)]
mod scripted_model;
mod shown_file;

pub use budget::LlmReviewBudget;
pub use reviewer::{LlmAnswer, LlmInput, LlmReviewer};
