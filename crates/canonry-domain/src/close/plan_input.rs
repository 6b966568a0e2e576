//! Everything that clusters and close plans are made from.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{EarlierClose, Edge, Item, ItemNumber, ItemState, ItemType, Maintainers, Override};

/// What is known of one repository, one type of item and one representation.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    /// The type of all items here; numbers of different types never mix.
    pub item_type: ItemType,
    /// Every item that an edge, an override, a stored canonical or an earlier close names. What is
    /// missing here takes no part.
    pub items: &'a BTreeMap<ItemNumber, PlanItem<'a>>,
    /// The accepted edges that are not superseded, stale ones too.
    pub edges: &'a [Edge],
    /// The overrides in force, in any order.
    pub overrides: &'a [Override],
    /// The canonicals as they were stored last: item → canonical.
    pub stored: &'a BTreeMap<ItemNumber, ItemNumber>,
    /// Every close that Canonry ever applied, whatever the representation.
    pub earlier: &'a [EarlierClose],
    pub maintainers: &'a Maintainers,
}

/// An item with what the corpus knows beside it.
#[derive(Debug, Clone, Copy)]
pub struct PlanItem<'a> {
    pub item: &'a Item,
    /// Whether it has text of its own ([`crate::has_content`]).
    pub has_content: bool,
    /// When a person last reopened it.
    pub reopened_at: Option<Timestamp>,
    /// An open pull request that says it fixes this issue.
    pub fixed_by: Option<ItemNumber>,
    /// How many of its comments Canonry wrote, which are no activity.
    pub own_comments: u32,
}

impl PlanInput<'_> {
    /// Whether an item is known, still in the repository and open.
    pub(crate) fn is_open(&self, number: ItemNumber) -> bool {
        self.items.get(&number).is_some_and(|known| known.item.state == ItemState::Open && known.item.gone.is_none())
    }
}
