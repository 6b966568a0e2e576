//! Closes that were applied earlier: which of them still stand, and which items people reopened.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::{ItemNumber, ItemState, PlanInput, PlanItem, Rulings, StateReason};

/// A close that Canonry applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierClose {
    pub number: ItemNumber,
    /// The item that it was closed as a duplicate of. An item that was re-pointed has a later close with its new
    /// target.
    pub target: ItemNumber,
    pub closed_at: Timestamp,
    /// When the close was undone or objected to.
    pub reversed_at: Option<Timestamp>,
}

/// The earlier closes of a repository, prepared for a plan.
pub(crate) struct EarlierCloses {
    /// The last time that each item was closed, or its close was undone.
    touched_at: BTreeMap<ItemNumber, Timestamp>,
    /// The items that stay closed as duplicates, by the item they point at.
    pointing: BTreeMap<ItemNumber, BTreeSet<ItemNumber>>,
}

impl EarlierCloses {
    pub(crate) fn of(input: &PlanInput<'_>) -> Self {
        let mut touched_at: BTreeMap<ItemNumber, Timestamp> = BTreeMap::new();
        let mut latest: BTreeMap<ItemNumber, &EarlierClose> = BTreeMap::new();
        for close in input.earlier {
            let at = close.reversed_at.map_or(close.closed_at, |reversed| reversed.max(close.closed_at));
            let touched = touched_at.entry(close.number).or_insert(at);
            *touched = (*touched).max(at);
            let known = latest.entry(close.number).or_insert(close);
            if close.closed_at >= known.closed_at {
                *known = close;
            }
        }
        let mut pointing: BTreeMap<ItemNumber, BTreeSet<ItemNumber>> = BTreeMap::new();
        for close in latest.into_values() {
            // An item that is open again points at nothing.
            let stays_closed = input
                .items
                .get(&close.number)
                .is_some_and(|known| known.item.state == ItemState::Closed && known.item.gone.is_none());
            if stays_closed && close.reversed_at.is_none() && close.number != close.target {
                pointing.entry(close.target).or_default().insert(close.number);
            }
        }
        Self { touched_at, pointing }
    }

    /// Whether closed items point at this item.
    pub(crate) fn is_target(&self, number: ItemNumber) -> bool {
        self.pointing.contains_key(&number)
    }

    /// The closed items that point at this item, directly or through others.
    pub(crate) fn pointing_at(&self, number: ItemNumber) -> BTreeSet<ItemNumber> {
        let mut found = BTreeSet::new();
        let mut waiting = vec![number];
        while let Some(target) = waiting.pop() {
            for source in self.pointing.get(&target).into_iter().flatten() {
                if *source != number && found.insert(*source) {
                    waiting.push(*source);
                }
            }
        }
        found
    }

    /// Whether a person reopened this open item or undid a close of it, and no maintainer has ruled since that it is a
    /// duplicate after all.
    pub(crate) fn was_reopened(&self, known: &PlanItem<'_>, rulings: &Rulings) -> bool {
        let number = known.item.number;
        let last = known.reopened_at.max(self.touched_at.get(&number).copied());
        match (last, rulings.said_duplicate_at(number)) {
            (Some(last), Some(said)) => said <= last,
            (Some(_), None) => true,
            // GitHub's state reason alone has no time. It is the only source for an item that was first imported after
            // it was reopened, and no person could rule about the item before that.
            (None, said) => known.item.state_reason == Some(StateReason::Reopened) && said.is_none(),
        }
    }
}
