//! Review runs, their findings, and the feedback of people on them.

pub(crate) mod completed_reviews;
pub(crate) mod ended_runs;
pub(crate) mod finding_dismissals;
pub(crate) mod finding_feedback;
pub(crate) mod finding_memories;
pub(crate) mod finding_pages;
pub(crate) mod global_patterns;
pub(crate) mod history;
pub(crate) mod ledger;
pub(crate) mod pattern_pages;
pub(crate) mod posted_findings;
pub(crate) mod remarks;
pub(crate) mod runs;
pub(crate) mod statistics;

pub use completed_reviews::{FindingRecord, ReviewRecord};
pub use ended_runs::{EndedRun, EndedRunFilter, RunEnd};
pub use finding_dismissals::StoredDismissal;
pub use finding_feedback::{FindingAwaitingReactions, NewReaction, StoredPattern, UndoneClear};
pub use finding_memories::{MemoryOutcome, NewMemory, PatternHistory, StoredMemory};
pub use finding_pages::{FindingEntry, FindingFilter, StoredReaction};
pub use global_patterns::GlobalPattern;
pub use history::{SightingCount, StoredFinding, StoredReview, StoredSighting};
pub use ledger::LedgerFinding;
pub use pattern_pages::{FeedbackClear, PatternEntry, SuppressedFinding};
pub use posted_findings::{PostedFinding, PostedThreadState};
pub use remarks::{StoredRemark, WitnessedRemark};
pub use runs::{ClaimOutcome, CompletedRun, FindingId, ReviewClaim, ReviewId, ReviewRun, ReviewState, StoredRun};
pub use statistics::{FileCount, ReviewDay, ReviewStatistics, SeverityCounts};
