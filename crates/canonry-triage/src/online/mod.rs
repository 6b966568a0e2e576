//! Triage of single items for the service: detect, decide, comment, learn.

pub(crate) mod check_draft;
pub(crate) mod compare_item;
pub(crate) mod detect_new;
pub(crate) mod detector_source;
pub(crate) mod draft_report;
pub(crate) mod fix_search;
pub(crate) mod known_fixes;
pub(crate) mod likely_fixes;
pub(crate) mod listening_service;
pub(crate) mod live_settings;
pub(crate) mod lookup;
pub(crate) mod posted_triage;
pub(crate) mod reactions;
pub(crate) mod suggestion_comment;
pub(crate) mod suggestion_preview;
pub(crate) mod triage_decision;
pub(crate) mod triage_item;
pub(crate) mod triage_recheck;
pub(crate) mod why_item;
pub(crate) mod withdraw_suggestion;

pub use check_draft::{CheckError, CheckOptions, Draft, DraftCheck, DraftRequest, check_draft};
pub use detect_new::{
    AnswerUse, AsOf, DetectError, DetectOptions, DetectReport, Detectors, ItemQuery, TopMatch, detect_new,
};
pub use detector_source::DetectorSource;
pub use draft_report::{DraftReport, DraftStats, FixCommit, FixSummary, LikelyFix, SimilarItem};
pub use likely_fixes::FixIndexes;
pub use listening_service::is_service_listening;
pub use live_settings::{SettingsError, live_settings, triage_mode};
pub use lookup::{KnownFixes, KnownItem, LOOKUPS_AT_ONCE, Lookup, LookupError, check_thresholds};
pub use reactions::{ReactionsReport, poll_reactions};
pub use suggestion_preview::suggestion_preview;
pub use triage_item::{GraceRules, TriageError, TriageOutcome, TriageRules, triage_item};
pub use triage_recheck::TriageRecheck;
pub use why_item::why_item;
pub use withdraw_suggestion::withdraw_suggestion;
