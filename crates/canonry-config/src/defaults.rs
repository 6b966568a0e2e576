//! Every default of the settings file, in one place.

use canonry_domain::review::{AnswerableScope, Severity};
use canonry_domain::{TargetPolicy, ThresholdRule, TriageMode};

use crate::{
    AutoSuppressThresholds, BudgetSettings, CloseSettings, LearningSettings, MentionSettings, ModelBudget,
    RefereeSettings, RetrievalSettings, ReviewSettings, ReviewTriggers, Reviewer, SeveritySettings, TriageSettings,
};

impl Default for ReviewSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            triggers: ReviewTriggers::default(),
            reviewers: vec![Reviewer::Builtin],
            scope: AnswerableScope::Changed,
            model_budget: ModelBudget::default(),
            skip_authors: Vec::new(),
            skip_paths: Vec::new(),
            path_instructions: Vec::new(),
            focus_areas: Vec::new(),
            ignored_areas: Vec::new(),
            severity: SeveritySettings::default(),
            severity_floors: Vec::new(),
            severity_ceilings: Vec::new(),
            suppressions: Vec::new(),
            min_confidence: 0,
            max_comments: 7,
            referee: RefereeSettings::default(),
            output_language: "en".to_owned(),
        }
    }
}

impl Default for ReviewTriggers {
    fn default() -> Self {
        Self { on_opened: true, on_ready_for_review: true, on_review_requested: true, on_synchronize: false }
    }
}

impl Default for ModelBudget {
    /// 130,000 tokens are some 10,000 changed lines.
    fn default() -> Self {
        Self { max_files: 1_000, max_tokens: 130_000 }
    }
}

impl Default for SeveritySettings {
    fn default() -> Self {
        Self { min_level: Severity::Minor }
    }
}

impl Default for AutoSuppressThresholds {
    fn default() -> Self {
        Self { min_thumbs_down: 3, min_distinct_reactors: 3, min_distinct_prs: 2 }
    }
}

impl Default for RetrievalSettings {
    fn default() -> Self {
        Self { enabled: true, top_k: 5, distance_threshold: None, max_context_chars: 2000 }
    }
}

impl Default for TriageSettings {
    fn default() -> Self {
        Self {
            mode: TriageMode::Shadow,
            duplicate_threshold: 85,
            max_candidates: 3,
            exclude_labels: Vec::new(),
            cooldown_hours: 24,
            ask_for_description: false,
            learning: LearningSettings::default(),
        }
    }
}

impl Default for LearningSettings {
    fn default() -> Self {
        Self { rule: ThresholdRule::PrecisionTarget, target_precision: 0.80 }
    }
}

impl Default for CloseSettings {
    fn default() -> Self {
        Self {
            min_edge: 0.85,
            min_close: 0.90,
            target_policy: TargetPolicy::CanonicalOnly,
            grace_hours: 72,
            protected_labels: vec!["security".to_owned()],
            max_per_day: 10,
            message: None,
        }
    }
}

impl Default for MentionSettings {
    fn default() -> Self {
        Self { handle: "canonry".to_owned() }
    }
}

impl Default for BudgetSettings {
    fn default() -> Self {
        Self { monthly_cost_usd: 0.0 }
    }
}
