//! All settings of a repository, and the small sections.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CloseSettings, ReviewSettings, TriageSettings};

/// Settings of Canonry for one repository, read from `.canonry.yml` on its default branch.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RepoConfig {
    /// What is reviewed, by whom, and which findings are shown.
    pub review: ReviewSettings,
    /// What people's reactions to findings may change.
    pub feedback: FeedbackSettings,
    /// What is remembered between reviews, and with whom it is shared.
    pub knowledge: KnowledgeSettings,
    /// What happens to a new issue or pull request that looks like a duplicate.
    pub triage: TriageSettings,
    /// When a duplicate may be closed, and what always keeps it open.
    pub close: CloseSettings,
    /// How people mention Canonry in a comment.
    pub mentions: MentionSettings,
    /// What hosted models may cost.
    pub budget: BudgetSettings,
}

/// What people's reactions to findings may change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct FeedbackSettings {
    /// Hiding of findings that people keep rejecting.
    pub auto_suppress: AutoSuppress,
}

/// Hiding of findings that people keep rejecting.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AutoSuppress {
    /// Whether findings that people keep rejecting are hidden; confidence follows feedback either way.
    pub enabled: bool,
    /// How much rejection it takes; all of them must be reached.
    pub thresholds: AutoSuppressThresholds,
}

/// How much rejection hides a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AutoSuppressThresholds {
    /// The minimum number of 👎 reactions to a pattern.
    #[schemars(range(min = 1, max = 50))]
    pub min_thumbs_down: u32,
    /// The minimum number of different people who reacted with 👎.
    #[schemars(range(min = 1, max = 50))]
    pub min_distinct_reactors: u32,
    /// The minimum number of different pull requests with such a reaction.
    #[serde(rename = "minDistinctPRs")]
    #[schemars(range(min = 1, max = 50))]
    pub min_distinct_prs: u32,
}

/// What is remembered between reviews, and with whom it is shared.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct KnowledgeSettings {
    /// Whether anonymised counts of this repository's patterns join the global statistics.
    pub share_global: bool,
    /// Whether other repositories of the same owner may use what was learned here.
    pub share_within_owner: bool,
    /// What a review is told about similar findings of the past.
    pub retrieval: RetrievalSettings,
}

/// What a review is told about similar findings of the past.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetrievalSettings {
    /// Whether similar earlier findings are searched.
    pub enabled: bool,
    /// The maximum number of similar earlier findings in a prompt.
    #[schemars(range(min = 1, max = 20))]
    pub top_k: u32,
    /// The greatest distance (1 − cosine) at which a past finding still counts as similar. Null uses what was measured
    /// for the embedder: distances of different models do not compare.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub distance_threshold: Option<f64>,
    /// The maximum number of characters of earlier findings in a prompt.
    #[schemars(range(min = 0, max = 5000))]
    pub max_context_chars: u32,
}

/// How people mention Canonry in a comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MentionSettings {
    /// The name to mention, without `@`; `/name` works too and cannot ping a stranger.
    #[schemars(
        regex(pattern = r"^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$"),
        extend("patternErrorMessage" = "must be a name of at most 39 letters, digits and hyphens, without `@`")
    )]
    pub handle: String,
}

/// What hosted models may cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BudgetSettings {
    /// What hosted models may cost this repository at most in a calendar month, in US dollars. 0 sets no limit of its own: the operator's (`serve --monthly-cost`) holds alone, and where there is none either, nothing is limited.
    #[schemars(range(min = 0.0, max = 100_000.0))]
    pub monthly_cost_usd: f64,
}
