//! The calls, one file per resource. Answers are read leniently: only what a row cannot do without
//! is required.

mod check_runs;
mod collaborators;
mod comments;
mod contents;
mod deliveries;
mod identity;
mod issues;
mod labels;
mod pulls;
mod reactions;
mod repos;
mod reviews;
mod threads;
mod timeline;
mod users;

pub use check_runs::{CHECK_NAME, CheckRunWrite, CheckState, RestCheckOutput, RestCheckRun};
pub use collaborators::Permission;
pub use comments::RestComment;
pub use contents::{FolderEntry, RepoFile};
pub use deliveries::RestDelivery;
pub use issues::{IssuePatch, IssueQuery, ListState, RestIssue, RestMilestone, RestPullLink};
pub use labels::{NewLabel, RestLabel};
pub use pulls::{RestBranch, RestPull, RestPullFile};
pub use reactions::{ReactionContent, ReactionSubject, RestReaction};
pub use repos::RestRepo;
pub use reviews::{NewReviewComment, RestReview, RestReviewComment};
pub use threads::{RestReviewThread, ThreadComment};
pub use timeline::RestTimelineEvent;
pub use users::{AppSlug, RestUser};
