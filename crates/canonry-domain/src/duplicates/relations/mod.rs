//! Pairs that look alike and are related in another way than as duplicates.

pub(crate) mod citation;
pub(crate) mod pair_relation;
pub(crate) mod pull_relation;
pub(crate) mod recurring_title;
pub(crate) mod series_title;

pub use pair_relation::{PairRelation, pair_relation};
pub use series_title::SENT_TWICE_HOURS;
