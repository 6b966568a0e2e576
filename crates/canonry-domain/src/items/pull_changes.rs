//! What a pull request changes: its paths and its changed lines.

use serde::{Deserialize, Serialize};

/// The changes of a pull request, as an import file or GitHub tells them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullChanges {
    /// The changed paths, in the order they were told.
    pub files: Vec<String>,
    /// The changed lines, each behind `+` or `-`.
    pub diff: String,
}

impl PullChanges {
    /// Whether nothing is known of the changes.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.diff.is_empty()
    }
}
