//! Findings of reviewers: what they are, which of them are the same, and which of them are shown.

mod code;
mod posted;
mod referee;
mod response;

pub use code::*;
pub use posted::*;
pub use referee::*;
pub use response::*;

mod category;
mod confidence;
mod finding;
mod fingerprint;
mod grounding;
mod leaked_credential;
mod replacement;
mod review_scope;
mod rule_severity;
mod severity;
mod sighting;
mod subject;
mod tracking;
mod trigger;
mod visibility;

pub use category::Category;
pub use confidence::{Confidence, ConfidenceParts, ConfidenceSigns, confidence};
pub use finding::{Finding, LineRange, ReviewerName, Witness, merge_witnesses};
pub use fingerprint::{Fingerprint, InvalidFingerprint, PatternKey};
pub use grounding::{Grounding, MISPLACED, grounding, is_grounded};
pub use leaked_credential::LEAKED_CREDENTIAL_RULE;
pub use replacement::{MOST_REPLACED_LINES, checked_replacement};
pub use review_scope::{AnswerableScope, ReviewMode, ScopeReason};
pub use rule_severity::{RuleMeaning, rule_meaning};
pub use severity::Severity;
pub use sighting::{FindingStatus, Sighting, sightings};
pub use subject::{InvalidSubject, ReviewSubject};
pub use tracking::{FileMaps, FindingMatch, FollowedFinding, TrackedFinding, TrackedFindings, UnseenFinding, track};
pub use trigger::{NoReview, ReviewOccasion, ReviewTrigger, TriggerFacts, TriggerRules, review_trigger};
pub use visibility::{HiddenBy, ShownAs, Visibility, arrange};
