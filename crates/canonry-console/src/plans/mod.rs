//! Close plans: the list, one plan's page, and what maintainers do with it.

pub(crate) mod actions;
pub(crate) mod list;
pub(crate) mod pair;
pub(crate) mod pair_comparison;
pub(crate) mod plan_page;
pub(crate) mod progress;
pub(crate) mod rows;
pub(crate) mod selection;
pub(crate) mod state;
