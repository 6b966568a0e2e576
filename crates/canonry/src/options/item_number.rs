//! The issue or pull request that a command is about.

use canonry_domain::{ItemNumber, ItemType};

/// The number of an item; `--number N` is how it was written before.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ItemOption {
    /// The number of the issue or pull request
    #[arg(value_name = "NUMBER", required = true)]
    item: Option<ItemNumber>,
    #[arg(long, value_name = "NUMBER", hide = true, conflicts_with = "item")]
    number: Option<ItemNumber>,
    /// Its type: issue or pr [default: whichever has that number]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) item_type: Option<ItemType>,
}

impl ItemOption {
    pub(crate) fn number(self) -> ItemNumber {
        self.item.or(self.number).expect("invariant: clap requires one of the two")
    }
}

/// The numbers of one or several items.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ItemsOption {
    /// The numbers of the issues or pull requests
    #[arg(value_name = "NUMBER", required = true)]
    items: Vec<ItemNumber>,
    #[arg(long, value_name = "NUMBER", hide = true, conflicts_with = "items")]
    number: Vec<ItemNumber>,
    /// Their type: issue or pr [default: whichever has that number]
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) item_type: Option<ItemType>,
}

impl ItemsOption {
    /// The numbers in the order in which they were given.
    pub(crate) fn numbers(&self) -> &[ItemNumber] {
        if self.items.is_empty() { &self.number } else { &self.items }
    }
}
