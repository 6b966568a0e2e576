//! Outcomes of issues, their lessons, and the thresholds that they move.

pub(crate) mod comment_reactions;
pub(crate) mod issue_outcomes;
pub(crate) mod lesson_log;
pub(crate) mod outcome_events;
pub(crate) mod own_closes;
pub(crate) mod past_triage;
pub(crate) mod predicted_cluster;
pub(crate) mod rule_changes;
pub(crate) mod thresholds;
pub(crate) mod unknown_actors;

pub use comment_reactions::TriageComment;
pub use issue_outcomes::StoredOutcome;
pub use lesson_log::{LearnedOutcome, LessonFilter, LessonLog, LogStep};
pub use thresholds::{CheckedThresholds, LearningUpdate, StoredAdjustment};
