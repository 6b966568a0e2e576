//! The sections of the settings file, each of which is validated by itself.

use std::fmt;

use serde::Serialize;

/// A top-level key of the settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Section {
    /// What is reviewed, by whom, and which findings are shown.
    Review,
    /// What people's reactions to findings may change.
    Feedback,
    /// What is remembered between reviews, and with whom it is shared.
    Knowledge,
    /// What happens to a new item that looks like a duplicate.
    Triage,
    /// When a duplicate may be closed, and what always keeps it open.
    Close,
    /// How people call Canonry in a comment.
    Mentions,
    /// What hosted models may cost.
    Budget,
}

impl Section {
    /// Every section, in the order of the reference.
    pub const ALL: [Self; 7] =
        [Self::Review, Self::Feedback, Self::Knowledge, Self::Triage, Self::Close, Self::Mentions, Self::Budget];

    /// The key as it is written in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Review => "review",
            Self::Feedback => "feedback",
            Self::Knowledge => "knowledge",
            Self::Triage => "triage",
            Self::Close => "close",
            Self::Mentions => "mentions",
            Self::Budget => "budget",
        }
    }

    /// The section of that name.
    pub(crate) fn named(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|section| section.as_str() == key)
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
