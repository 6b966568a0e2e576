//! The changes of a pull request: its paths and its changed lines.

use serde::{Deserialize, Serialize};

/// The changes of a pull request, from an import file or from GitHub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullChanges {
    /// The changed paths, in the order of the source.
    pub files: Vec<String>,
    /// The changed lines, each after `+` or `-`.
    pub diff: String,
}

impl PullChanges {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.diff.is_empty()
    }
}
