//! Runs one review, from the request and its claim to the report and the record.

pub(crate) mod claim;
pub(crate) mod coverage;
pub(crate) mod reading_progress;
pub(crate) mod record;
pub(crate) mod report;
pub(crate) mod request;
pub(crate) mod review;
pub(crate) mod stored_details;

pub use claim::TimeSource;
pub use report::{Coverage, ModelUse, PatternHistory, ReportedFinding, ReviewReport, ReviewerRun, SkippedFile};
pub use request::{LintedCommit, PullDescription, ReviewRequest, ReviewerChoice, choose_reviewers};
pub use review::{ReviewError, ReviewOutcome, review};
pub use stored_details::StoredDetails;
