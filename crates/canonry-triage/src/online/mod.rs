//! Triage of single items for the service: detect, decide, comment, learn.

pub(crate) mod check_draft;
pub(crate) mod detect_new;
pub(crate) mod live_settings;
pub(crate) mod posted_triage;
pub(crate) mod reactions;
pub(crate) mod suggestion_comment;
pub(crate) mod triage_decision;
pub(crate) mod triage_item;
pub(crate) mod triage_recheck;
pub(crate) mod why_item;
pub(crate) mod withdraw_suggestion;

pub use check_draft::{CheckError, CheckOptions, Draft, DraftCheck, check_draft};
pub use detect_new::{DetectError, DetectOptions, DetectReport, Detectors, ItemQuery, TopMatch, detect_new};
pub use live_settings::{SettingsError, live_settings, triage_mode};
pub use reactions::{ReactionsReport, poll_reactions};
pub use triage_item::{GraceRules, TriageError, TriageOutcome, TriageRules, triage_item};
pub use triage_recheck::TriageRecheck;
pub use why_item::why_item;
pub use withdraw_suggestion::withdraw_suggestion;
