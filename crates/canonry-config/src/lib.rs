#![doc = include_str!("../README.md")]

mod check;
mod close;
mod config_hash;
mod defaults;
mod document;
mod nearest;
mod parse;
mod pattern;
mod preset;
mod problem;
mod quoting;
mod reference;
mod repo_config;
mod review;
mod schema;
mod section;
mod to_yaml;
mod triage;

pub use close::CloseSettings;
pub use config_hash::{ConfigHash, config_hash};
pub use parse::{MAX_FILE_BYTES, ParsedSettings, SETTINGS_FILE, parse, parse_bytes};
pub use pattern::{PathGlob, Pattern, PatternError};
pub use preset::Preset;
pub use problem::{ProblemEffect, SettingsProblem};
pub use reference::{KeyReference, SectionReference, reference_markdown, settings_reference};
pub use repo_config::{
    AutoSuppress, AutoSuppressThresholds, BudgetSettings, FeedbackSettings, KnowledgeSettings, MentionSettings,
    RepoConfig, RetrievalSettings,
};
pub use review::{
    ModelBudget, PathInstruction, RefereeSettings, ReviewSettings, ReviewTriggers, Reviewer, SeverityCeiling,
    SeverityFloor, SeveritySettings, SuppressionRule,
};
pub use schema::json_schema;
pub use section::SettingsSection;
pub use to_yaml::to_yaml;
pub use triage::{LearningSettings, TriageSettings};
