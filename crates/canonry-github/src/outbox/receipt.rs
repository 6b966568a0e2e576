//! What is kept of a write that is on GitHub.

use canonry_domain::GithubId;
use canonry_store::OutboxEntry;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A comment of ours on GitHub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenComment {
    pub id: GithubId,
    /// When GitHub says it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
}

/// What is kept of an entry that was sent: [`OutboxEntry::answer`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<WrittenComment>,
    /// Everything was so already, and nothing was sent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub already: bool,
    /// It was carried out, and somebody has taken it back before we knew.
    #[serde(default, skip_serializing_if = "is_false")]
    pub objected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<WrittenReview>,
}

impl Receipt {
    /// What is kept of an entry; `None` for one that was not sent.
    pub fn of_entry(entry: &OutboxEntry) -> Option<Self> {
        entry.answer.as_ref().and_then(|answer| Self::deserialize(answer).ok())
    }
}

/// What has become of a review of ours. Each comment's key is either among `comments` or among `left_out`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenReview {
    /// Its id; `None` where an earlier version posted nothing, since GitHub took none of its comments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<GithubId>,
    #[serde(default)]
    pub comments: Vec<WrittenInline>,
    /// The keys of the comments that it was posted without, since GitHub does not take them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// A comment of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenInline {
    pub key: String,
    pub comment: GithubId,
}

fn is_false(value: &bool) -> bool {
    !value
}
