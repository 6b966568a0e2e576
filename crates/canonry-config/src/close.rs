//! The section `close`: when a duplicate may be closed, and what keeps it open.

use canonry_domain::TargetPolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a duplicate may be closed, and what always keeps it open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CloseSettings {
    /// The lowest confidence at which two items count as duplicates.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_edge: f64,
    /// The lowest confidence at which an item is closed.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_close: f64,
    /// Which pair must have been judged before a duplicate is closed as a duplicate of its cluster's canonical item.
    pub target_policy: TargetPolicy,
    /// How many hours people have to object before an item is closed in the mode `grace`.
    #[schemars(range(min = 1, max = 8760))]
    pub grace_hours: u32,
    /// Labels whose items are never closed.
    #[schemars(length(max = 200), inner(length(min = 1, max = 100)))]
    pub protected_labels: Vec<String>,
    /// How many items are closed in a day at most without a person's approval.
    #[schemars(range(min = 0, max = 1000))]
    pub max_per_day: u32,
    /// Your own template for the closing comment, with `{target}`, `{title}`, `{evidence}` and `{objection}`; the target
    /// and how to object are added where the template leaves them out. Null uses Canonry's.
    #[schemars(length(min = 1, max = 4000))]
    pub message: Option<String>,
}
