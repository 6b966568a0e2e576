//! Judges whether two items are duplicates: the judges, their cases and decisions, and people's rulings.

pub(crate) mod canonicalize;
pub(crate) mod compared_texts;
pub(crate) mod control_question;
pub(crate) mod judge_case;
pub(crate) mod judge_items;
pub(crate) mod judge_pairs;
pub(crate) mod known_duplicates;
pub(crate) mod local;
pub(crate) mod pair_decision;
pub(crate) mod pair_reading;
pub(crate) mod proven_judge;
pub(crate) mod redact_secrets;
pub(crate) mod rulings;

pub use canonicalize::{CanonicalizeReport, CanonicalizedCluster, ClusterMember, canonicalize, cluster_of};
pub use judge_case::Judge;
pub use judge_items::{DecisionLine, JudgeError, JudgeOptions, JudgeReport, judge};
pub use judge_pairs::PairsReport;
pub use local::*;
pub use pair_reading::{PairReading, PairReadingError, read_pair};
pub use proven_judge::is_judge_proven;
pub use rulings::{RulingError, Statement, rule_pair, ruled_since};
