//! People's answers to findings on GitHub, and their effect on the next review.

mod answers;
pub(crate) mod reviewed;
mod suppression;
mod threads;
