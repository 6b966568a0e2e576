//! The calls, one file per resource. Answers are read leniently: only what a row cannot do without
//! is required.

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
mod timeline;
mod users;

pub use collaborators::Permission;
pub use comments::RestComment;
pub use contents::RepoFile;
pub use deliveries::RestDelivery;
pub use issues::{IssuePatch, IssueQuery, ListState, RestIssue, RestMilestone, RestPullLink};
pub use labels::{NewLabel, RestLabel};
pub use pulls::{RestBranch, RestPull, RestPullFile};
pub use reactions::{ReactionSubject, RestReaction};
pub use repos::RestRepo;
pub use timeline::RestTimelineEvent;
pub use users::{AppSlug, RestUser};
