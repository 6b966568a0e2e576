//! Findings of reviewers: what they are, which of them are the same, and which of them are shown.

mod category;
mod code_hash;
mod code_index;
mod commit_sha;
mod confidence;
mod dismissal;
mod dismissal_words;
mod feedback;
mod finding;
mod fingerprint;
mod grounding;
mod leaked_credential;
mod line_map;
mod posted_text;
mod repo_path;
mod review_scope;
mod severity;
mod sighting;
mod subject;
mod summary_text;
mod tracking;
mod trigger;
mod visibility;

pub use category::Category;
pub use code_hash::{CodeHash, around, flagged};
pub use code_index::CodeIndex;
pub use commit_sha::{CommitSha, InvalidSha};
pub use confidence::{Confidence, ConfidenceParts, ConfidenceSigns, confidence};
pub use dismissal::{Dismissal, DismissalKind, Dismisser};
pub use dismissal_words::says_no;
pub use feedback::{
    FeedbackRule, PatternFeedback, Vote, feedback_hides, is_protected, may_teach, pool_votes, rejected_by_people,
};
pub use finding::{Finding, LineRange, ReviewerName, Witness, merge_witnesses};
pub use fingerprint::{Fingerprint, InvalidFingerprint, PatternKey};
pub use grounding::{Grounding, MISPLACED, grounding, is_grounded};
pub use leaked_credential::LEAKED_CREDENTIAL_RULE;
pub use line_map::{Hunk, LineMap};
pub use posted_text::{
    CheckConclusion, EarlierFinding, FindingComment, ListedFinding, PostedSummary, REVIEW_BODY, check_conclusion,
    check_output, fenced, finding_comment, fixed_comment, incomplete_comment, said_anew_comment, summary_comment,
};
pub use repo_path::{InvalidPath, RepoPath};
pub use review_scope::{ReviewMode, ScopeReason};
pub use severity::Severity;
pub use sighting::{FindingStatus, Sighting, sightings};
pub use subject::{InvalidSubject, ReviewSubject};
pub use summary_text::{
    CountedFinding, ReviewCounts, ReviewGaps, coverage_in_words, gaps_in_words, hidden_in_words, history_in_words,
    review_headline, scope_in_words, suppressed_patterns_in_words, what_became_of_earlier,
};
pub use tracking::{Earlier, FileMaps, Followed, Found, Tracked, Unseen, track};
pub use trigger::{NoReview, ReviewOccasion, ReviewTrigger, TriggerFacts, TriggerRules, review_trigger};
pub use visibility::{HiddenBy, ShownAs, Visibility, arrange};
