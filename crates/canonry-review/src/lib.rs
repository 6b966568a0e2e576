#![doc = include_str!("../README.md")]

mod blobs;
mod change;
mod claim;
mod collect;
mod commits;
mod configured_filters;
mod coverage;
mod diff;
mod earlier_outcomes;
mod explain_finding;
mod feedback_report;
mod fetch;
mod finding_reactions;
mod git;
mod judge_findings;
mod maintainership;
mod memory;
pub mod output;
mod program;
mod publication;
mod read_so_far;
mod record;
mod remote;
mod report;
mod report_reads;
mod reported;
mod request;
mod review;
pub mod reviewers;
mod scope;
mod settings;
mod severity_floors;
mod stored_details;
mod texts_now;
mod thread_dismissals;

pub use blobs::Blob;
pub use change::{ChangeKind, ContentKind, FileChange};
pub use claim::Clock;
pub use commits::CommitsError;
pub use configured_filters::ConfiguredFilters;
pub use diff::{UnreadableDiff, parse_diff};
pub use explain_finding::{FindingLife, explain_finding};
pub use feedback_report::{FeedbackReport, RatedPattern, cleared_markdown, feedback_report, restored_markdown};
pub use fetch::Fetched;
pub use finding_reactions::{FindingReactionsReport, poll_finding_reactions, poll_reactions_of_pull};
pub use git::{Git, GitError};
pub use maintainership::{MaintainershipError, is_maintainer};
pub use publication::{
    CLOSED, Publication, PublicationError, PublicationRecheck, Published, SUPERSEDED, WrittenCheck, written_check,
};
pub use remote::{InvalidRemote, Remote};
pub use report::{Coverage, ModelUse, PatternHistory, ReportedFinding, ReviewReport, ReviewerRun, SkippedFile};
pub use reported::{Heard, Reported, findings_of, who_read};
pub use request::{ReviewRequest, ReviewerChoice, choose_reviewers};
pub use review::{Outcome, ReviewError, review};
pub use scope::{Repository, Scope, ScopeRequest, find_scope};
pub use settings::{ReadSettings, read_settings};
pub use severity_floors::SeverityFloors;
pub use stored_details::StoredDetails;
pub use texts_now::TextsNow;
pub use thread_dismissals::{
    Dismissed, InThread, dismiss_by_mention, dismiss_in_thread, dismisser, reopen_thread, take_back_wont_fix,
};
