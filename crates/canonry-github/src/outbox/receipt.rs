//! Defines what is stored about a write that is on GitHub.

use canonry_domain::GithubId;
use canonry_store::OutboxEntry;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A comment of ours on GitHub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenComment {
    pub id: GithubId,
    /// The time according to GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
}

/// What is stored about a sent entry: [`OutboxEntry::answer`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<WrittenComment>,
    /// The wanted state was already there, and nothing was sent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub already: bool,
    /// It was carried out, and a person undid it before we knew.
    #[serde(default, skip_serializing_if = "is_false")]
    pub objected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<WrittenReview>,
}

impl Receipt {
    /// The receipt of an entry; `None` if it was not sent.
    pub fn of_entry(entry: &OutboxEntry) -> Option<Self> {
        entry.answer.as_ref().and_then(|answer| Self::deserialize(answer).ok())
    }
}

/// A review of ours on GitHub. Each comment's key is either in `comments` or in `left_out`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenReview {
    /// `None` if an earlier version posted nothing because GitHub refused all its comments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<GithubId>,
    #[serde(default)]
    pub comments: Vec<WrittenInline>,
    /// The keys of the comments that were left out because GitHub refuses them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenInline {
    pub key: String,
    pub comment: GithubId,
}

fn is_false(value: &bool) -> bool {
    !value
}
