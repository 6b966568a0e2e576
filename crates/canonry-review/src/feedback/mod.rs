//! Processes people's answers to findings: reactions, dismissals, and what they hide later.

pub(crate) mod feedback_report;
pub(crate) mod finding_reactions;
pub(crate) mod maintainership;
pub(crate) mod thread_dismissals;

pub use feedback_report::{FeedbackReport, RatedPattern, cleared_markdown, feedback_report, restored_markdown};
pub use finding_reactions::{FindingReactionsReport, poll_finding_reactions, poll_reactions_of_pull};
pub use maintainership::{MaintainershipError, is_maintainer};
pub use thread_dismissals::{
    FindingDismissal, FindingThread, dismiss_by_mention, dismiss_in_thread, dismisser, reopen_thread, withdraw_wont_fix,
};
