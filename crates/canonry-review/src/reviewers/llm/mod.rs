//! Reads the change with a language model.
//!
//! The model is shown text by strangers, and its answers may be wrong. So every line of untrusted text follows a mark,
//! secrets are removed before anything is sent, and an answer counts only in its exact form. A second reading has to quote the
//! line of each finding and say how it fails; what it cannot prove is stored and not shown. It lowers a critical finding by
//! one step and no more: the author of the code would like it to go away. Nothing here can fail a review: problems and
//! unread files are reported.

mod answer;
mod batches;
mod budget;
mod claims;
mod context_plan;
mod file_risk;
mod model_session;
mod overview;
mod prompt;
mod readable;
#[cfg(test)]
mod reading_tests;
mod reviewer;
mod safe_text;
#[cfg(test)]
mod scripted_model;
mod second_reading;
mod shown_file;

pub use budget::LlmReviewBudget;
pub(crate) use file_risk::{WrittenBy, written_by};
pub use reviewer::{LlmAnswer, LlmInput, LlmReviewer};
