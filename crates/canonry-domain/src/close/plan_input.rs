//! The input from which clusters and close plans are made.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{EarlierClose, Edge, Item, ItemNumber, ItemState, ItemType, Maintainers, Override};

/// The data of one repository, one type of item and one representation.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// The type of all items here; numbers of different types never mix.
    pub item_type: ItemType,
    /// Every item that an edge, an override, a stored canonical or an earlier close names. An item that is missing
    /// here is ignored.
    pub items: &'a BTreeMap<ItemNumber, PlanItem<'a>>,
    /// The accepted edges that are not superseded, including stale ones.
    pub edges: &'a [Edge],
    /// The overrides in force, in any order.
    pub overrides: &'a [Override],
    /// The canonicals that were stored last: item → canonical.
    pub stored: &'a BTreeMap<ItemNumber, ItemNumber>,
    /// Every close that Canonry ever applied, in any representation.
    pub earlier: &'a [EarlierClose],
    pub maintainers: &'a Maintainers,
}

/// An item with derived facts from the corpus.
#[derive(Debug, Clone, Copy)]
pub struct PlanItem<'a> {
    pub item: &'a Item,
    /// Whether it has text of its own ([`crate::has_content`]).
    pub has_content: bool,
    pub reopened_at: Option<Timestamp>,
    /// An open pull request that says it fixes this issue.
    pub fixed_by: Option<ItemNumber>,
    /// The number of its comments that Canonry wrote. They do not count as activity.
    pub own_comments: u32,
}

impl PlanInput<'_> {
    /// Whether an item is known, still in the repository and open.
    pub(crate) fn is_open(&self, number: ItemNumber) -> bool {
        self.items.get(&number).is_some_and(|known| known.item.state == ItemState::Open && known.item.gone.is_none())
    }
}
