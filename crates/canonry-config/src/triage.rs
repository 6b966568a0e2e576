//! The section `triage`: what happens to a new item that looks like a duplicate.

use canonry_domain::{ThresholdRule, TriageMode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to a new issue or pull request that looks like a duplicate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TriageSettings {
    /// What Canonry does with a duplicate: `off` nothing, `shadow` only records it, `suggest` comments, `grace` comments and closes after the grace period.
    pub mode: TriageMode,
    /// Canonry comments at this score (in %) and above, until it has learned another threshold.
    #[schemars(range(min = 50, max = 95))]
    pub duplicate_threshold: u8,
    /// How many similar items a comment shows at most.
    #[schemars(range(min = 1, max = 8))]
    pub max_candidates: u8,
    /// Items with these labels are not triaged.
    #[schemars(length(max = 200), inner(length(min = 1, max = 100)))]
    pub exclude_labels: Vec<String>,
    /// For how many hours no second comment is made on the same item.
    #[schemars(range(min = 0, max = 8760))]
    pub cooldown_hours: u32,
    /// Whether Canonry asks for a description on an issue that contains only its template, in the modes that comment.
    pub ask_for_description: bool,
    /// How the threshold follows from outcomes.
    pub learning: LearningSettings,
}

/// How the threshold follows from outcomes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct LearningSettings {
    /// How the threshold is learned.
    pub rule: ThresholdRule,
    /// The share of suggestions that should be right, for the rule `precision-target`.
    #[schemars(range(min = 0.5, max = 0.99))]
    pub target_precision: f64,
}
