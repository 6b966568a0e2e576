//! Issues and pull requests: the item type, its states and its numbers.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ContentHash, Login, PullChanges, text_enum};

/// An issue or a pull request as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub item_type: ItemType,
    pub number: ItemNumber,
    /// GitHub's id, which stays the same when an item moves; `None` for items that were imported without one.
    pub github_id: Option<GithubId>,
    pub title: String,
    /// The body as it was written; empty if there is none.
    pub body: String,
    pub state: ItemState,
    /// `None` if GitHub gave no reason.
    pub state_reason: Option<StateReason>,
    pub merged: bool,
    pub draft: bool,
    /// `None` if unknown.
    pub author: Option<Login>,
    /// `None` if unknown; an empty list means that nobody is assigned.
    pub assignees: Option<Vec<Login>>,
    /// `None` if unknown.
    pub has_milestone: Option<bool>,
    /// Whether only collaborators may comment; `None` if unknown.
    pub locked: Option<bool>,
    pub labels: Vec<String>,
    pub comments: u32,
    pub review_comments: u32,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub url: Option<String>,
    /// The item of which people said that this item is a duplicate.
    pub duplicate_of: Option<ItemNumber>,
    /// The changes of a pull request; `None` if unknown.
    pub changes: Option<PullChanges>,
    /// The branch into which a pull request is merged; `None` if unknown.
    pub base_branch: Option<String>,
    /// The hash of the normalised title and body.
    pub content_hash: ContentHash,
    /// Increases by one whenever the hash changes.
    pub content_version: ContentVersion,
    /// When the item was last fetched from GitHub; `None` if it was only imported.
    pub last_synced_at: Option<Timestamp>,
    /// Why the item is no longer in the repository; `None` while it is there.
    pub gone: Option<GoneReason>,
}

text_enum! {
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum ItemType: "a type" {
        Issue = "issue",
        Pr = "pr",
    }
}

text_enum! {
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum ItemState: "a state" {
        Open = "open",
        Closed = "closed",
    }
}

text_enum! {
    /// GitHub's reason for an item's state.
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum StateReason: "a state reason" {
        Completed = "completed",
        NotPlanned = "not_planned",
        Duplicate = "duplicate",
        /// Open again after it was closed.
        Reopened = "reopened",
    }
}

text_enum! {
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum GoneReason: "a way to be gone" {
        Deleted = "deleted",
        Transferred = "transferred",
        Converted = "converted",
    }
}

impl ItemType {
    /// The given type, or all types.
    pub fn one_or_all(one: Option<Self>) -> Vec<Self> {
        one.map_or_else(|| Self::ALL.to_vec(), |one| vec![one])
    }

    /// `issue` or `pull request`.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Pr => "pull request",
        }
    }
}

/// The number of an item in its repository: at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(try_from = "i64", into = "i64")]
pub struct ItemNumber(i64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an item's number; numbers begin at 1")]
pub struct InvalidNumber(i64);

impl ItemNumber {
    pub const fn new(number: i64) -> Result<Self, InvalidNumber> {
        if number >= 1 { Ok(Self(number)) } else { Err(InvalidNumber(number)) }
    }

    pub const fn get(self) -> i64 {
        self.0
    }
}

impl TryFrom<i64> for ItemNumber {
    type Error = InvalidNumber;

    fn try_from(number: i64) -> Result<Self, Self::Error> {
        Self::new(number)
    }
}

impl From<ItemNumber> for i64 {
    fn from(number: ItemNumber) -> Self {
        number.0
    }
}

impl FromStr for ItemNumber {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        let number: i64 =
            digits.parse().map_err(|_| format!("{text:?} is not an item's number; write it as 12 or #12"))?;
        Self::new(number).map_err(|invalid| invalid.to_string())
    }
}

impl fmt::Display for ItemNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// GitHub's id of an issue, a pull request or a repository. It always has 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GithubId(pub i64);

/// The version of an item's text; it starts at 1 and increases with each change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentVersion(i64);

impl ContentVersion {
    /// The version of an item that is imported for the first time.
    pub const FIRST: Self = Self(1);

    /// Wraps a version that was read from the store.
    pub const fn stored(version: i64) -> Self {
        Self(version)
    }

    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub const fn get(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::ItemNumber;

    #[test]
    fn numbers_begin_at_one() {
        assert!(ItemNumber::new(0).is_err());
        assert_eq!("#12".parse::<ItemNumber>().expect("valid").get(), 12);
        assert!("9223372036854775808".parse::<ItemNumber>().is_err());
        assert!(serde_json::from_str::<ItemNumber>("-1").is_err());
    }
}
