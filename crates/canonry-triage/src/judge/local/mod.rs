//! The judge without a model.

pub(crate) mod answer;
pub(crate) mod features;
pub(crate) mod item_facts;
pub(crate) mod titles;
pub(crate) mod weights;

pub use answer::{LOCAL_JUDGE, LocalCandidate, LocalText, judge_locally};
pub use features::{FEATURES, PairFeatures, compare};
