//! The options that limit a command to some of the items.

use std::fmt;
use std::str::FromStr;

use canonry_domain::{ItemState, ItemType};

/// Which items are meant.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct ItemFilterOptions {
    /// Only items of this type: issue, pr or all
    #[arg(long = "type", value_name = "TYPE", default_value = "all", value_parser = one_or_all::<ItemType>)]
    item_type: OneOrAll<ItemType>,
    /// Only items in this state: open, closed or all
    #[arg(long, value_name = "STATE", default_value = "all", value_parser = one_or_all::<ItemState>)]
    state: OneOrAll<ItemState>,
}

impl ItemFilterOptions {
    /// The type in the filter; `None` for all types.
    pub(crate) fn item_type(self) -> Option<ItemType> {
        self.item_type.one()
    }

    /// The state in the filter; `None` for all states.
    pub(crate) fn state(self) -> Option<ItemState> {
        self.state.one()
    }
}

/// One word of several, or all of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OneOrAll<T> {
    One(T),
    All,
}

impl<T> OneOrAll<T> {
    /// The single value; `None` for all.
    pub(crate) fn one(self) -> Option<T> {
        match self {
            Self::One(word) => Some(word),
            Self::All => None,
        }
    }
}

/// Parses a value of `T`, or `all`.
pub(crate) fn one_or_all<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<OneOrAll<T>, String> {
    if text == "all" {
        return Ok(OneOrAll::All);
    }
    text.parse().map(OneOrAll::One).map_err(|error: T::Err| format!("{error}, all"))
}
