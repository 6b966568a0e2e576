//! Contains the calls, one file per resource. Answers are read leniently: only essential fields are required.

mod check_runs;
pub(crate) mod clone_url;
pub(crate) mod close_facts;
mod collaborators;
mod comments;
mod contents;
mod deliveries;
mod identity;
mod issues;
pub(crate) mod item_from_rest;
mod labels;
pub(crate) mod lenient;
mod pulls;
mod reactions;
mod repos;
mod reviews;
mod threads;
mod timeline;
mod users;

pub use check_runs::{CHECK_NAME, CheckRunWrite, CheckState, RestCheckOutput, RestCheckRun};
pub use clone_url::web_address;
pub use close_facts::FactError;
pub use collaborators::Permission;
pub use comments::RestComment;
pub use contents::{FolderEntry, RepoFile};
pub use deliveries::RestDelivery;
pub use issues::{IssuePatch, IssueQuery, ListState, RestIssue, RestMilestone, RestPullLink};
pub use item_from_rest::{item_from_issue, item_from_pull};
pub use labels::{NewLabel, RestLabel};
pub use pulls::{RestBranch, RestPull, RestPullFile};
pub use reactions::{ReactionContent, ReactionSubject, RestReaction};
pub use repos::RestRepo;
pub use reviews::{NewReviewComment, RestReview, RestReviewComment};
pub use threads::{RestReviewThread, ThreadComment};
pub use timeline::RestTimelineEvent;
pub use users::{AppSlug, RestUser};
