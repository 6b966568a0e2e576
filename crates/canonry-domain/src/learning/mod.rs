//! Outcomes of items, the lessons about predictions that follow from them, and the learned thresholds.

pub(crate) mod beta;
pub(crate) mod beta_rules;
pub(crate) mod closing_evidence;
pub(crate) mod interval;
pub(crate) mod issue_outcome;
pub(crate) mod next_move;
pub(crate) mod precision_target;
pub(crate) mod prediction;
pub(crate) mod prediction_tally;
pub(crate) mod reliability;
pub(crate) mod share;
pub(crate) mod threshold;
pub(crate) mod threshold_reason;
pub(crate) mod threshold_rule;
pub(crate) mod threshold_state;
pub(crate) mod triage_lesson;

pub use interval::{Interval, wilson_interval};
pub use issue_outcome::{IssueOutcome, IssueResolution, OutcomeEvidence, issue_outcome};
pub use next_move::{MOST_IN_A_ROW, NextMove, next_lowering, next_raise};
pub use prediction::{CountedLessons, LearningEntry, Lesson, LessonKind, Prediction, PredictionTruth};
pub use prediction_tally::OutcomeCounts;
pub use reliability::{LessonPeriod, LevelShare, ThresholdPoint, posterior_band, reliability, threshold_curve};
pub use share::{Share, ShareInterval};
pub use threshold::{CurrentThreshold, InvalidThreshold, Threshold};
pub use threshold_reason::{LevelEvidence, MissingCondition, Obstacle, ThresholdReason};
pub use threshold_rule::{ThresholdRule, ThresholdSettings};
pub use threshold_state::{
    ThresholdAdjusted, ThresholdSource, ThresholdState, Thresholds, learn_from_counts, learn_thresholds,
    threshold_adjustments,
};
pub use triage_lesson::{
    CommentReactions, PastTriage, TriageVisibility, can_teach, counted_triage, last_triage, lesson_of, lesson_of_fix,
    reacted_triage, triage_failed,
};
