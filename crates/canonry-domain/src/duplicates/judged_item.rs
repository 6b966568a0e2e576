//! The input of the gates: a source, its candidates, and the similarities between the candidates.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{Item, ItemNumber, ItemState, ItemType, Login, PullChanges, Similarity, has_content};

/// An item as the gates see it.
#[derive(Debug, Clone, Copy)]
pub struct JudgedItem<'a> {
    pub number: ItemNumber,
    pub state: ItemState,
    pub item_type: ItemType,
    /// The item's own title ([`crate::Boilerplate`]).
    pub title: &'a str,
    pub body: &'a str,
    pub labels: &'a [String],
    pub origin: ItemOrigin<'a>,
}

/// Who filed an item and when, and what a pull request changes. Each is `None` if unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct ItemOrigin<'a> {
    pub author: Option<&'a Login>,
    pub created_at: Option<Timestamp>,
    pub changes: Option<&'a PullChanges>,
    /// The branch that a pull request is to be merged into.
    pub base_branch: Option<&'a str>,
}

impl JudgedItem<'_> {
    /// Whether the item has content that can be compared. A pull request always has: its changes.
    pub(crate) fn has_content(&self) -> bool {
        self.item_type == ItemType::Pr || has_content(self.title, self.body)
    }
}

impl<'a> From<&'a Item> for JudgedItem<'a> {
    fn from(item: &'a Item) -> Self {
        Self {
            number: item.number,
            state: item.state,
            item_type: item.item_type,
            title: &item.title,
            body: &item.body,
            labels: &item.labels,
            origin: ItemOrigin {
                author: item.author.as_ref(),
                created_at: item.created_at,
                changes: item.changes.as_ref(),
                base_branch: item.base_branch.as_deref(),
            },
        }
    }
}

/// A neighbour of the source.
#[derive(Debug, Clone, Copy)]
pub struct GateCandidate<'a> {
    pub item: JudgedItem<'a>,
    pub score: Similarity,
    /// The known cluster of the candidate, named by one member that is the same for all, such as the canonical.
    pub cluster: Option<ItemNumber>,
}

impl GateCandidate<'_> {
    /// Whether both are known to be duplicates of each other. A canonical represents its own cluster.
    pub(crate) fn shares_cluster(&self, other: &Self) -> bool {
        let of = |candidate: &Self| candidate.cluster.unwrap_or(candidate.item.number);
        of(self) == of(other)
    }
}

/// The similarities between candidates, independent of the order in a pair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PairScores(BTreeMap<(ItemNumber, ItemNumber), Similarity>);

impl PairScores {
    /// Records the score of a pair; a later score replaces an earlier one.
    pub fn insert(&mut self, one: ItemNumber, other: ItemNumber, score: Similarity) {
        self.0.insert((one.min(other), one.max(other)), score);
    }

    pub fn get(&self, one: ItemNumber, other: ItemNumber) -> Option<Similarity> {
        self.0.get(&(one.min(other), one.max(other))).copied()
    }
}

impl FromIterator<(ItemNumber, ItemNumber, Similarity)> for PairScores {
    fn from_iter<I: IntoIterator<Item = (ItemNumber, ItemNumber, Similarity)>>(pairs: I) -> Self {
        let mut scores = Self::default();
        pairs.into_iter().for_each(|(one, other, score)| scores.insert(one, other, score));
        scores
    }
}
