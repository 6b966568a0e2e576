//! Reads the change with a language model.
//!
//! The model is shown text by strangers, and its answers may be wrong. So every line of untrusted text follows a mark,
//! secrets are removed before anything is sent, an answer counts only in its exact form, and a second reading checks
//! findings that the model calls severe. The second reading can lower a finding by one step and no more: a critical
//! finding stays at least major. Nothing here can fail a review: problems and unread files are reported.

mod answer;
mod batches;
mod budget;
mod claims;
mod file_risk;
mod model_session;
mod prompt;
mod readable;
#[cfg(test)]
mod reading_tests;
mod refute;
mod reviewer;
mod safe_text;
#[cfg(test)]
mod scripted_model;
mod shown_file;

pub use budget::LlmReviewBudget;
pub use reviewer::{LlmAnswer, LlmInput, LlmReviewer};
