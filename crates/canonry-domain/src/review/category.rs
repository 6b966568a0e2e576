//! What a finding is about.

use serde::{Deserialize, Serialize};

use crate::text::text_enum::words;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    Security,
    Correctness,
    /// The program is slower or larger than it should be.
    Performance,
    /// The code is harder to read than it should be.
    Style,
    Documentation,
}

words!(
    Category,
    "a category",
    Security = "security",
    Correctness = "correctness",
    Performance = "performance",
    Style = "style",
    Documentation = "documentation",
);
