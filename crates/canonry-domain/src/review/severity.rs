//! How much a finding matters.

use serde::{Deserialize, Serialize};

use crate::text::text_enum::words;

/// How much a finding matters, least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Minor,
    Medium,
    /// Should be fixed before merging.
    Major,
    /// Must be fixed; never filtered, suppressed or capped.
    Critical,
}

words!(Severity, "a severity", Minor = "minor", Medium = "medium", Major = "major", Critical = "critical");
