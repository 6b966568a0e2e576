//! Issues as on GitHub: text, labels, comments, reactions, history.

pub(crate) mod assignees;
pub(crate) mod changes;
pub(crate) mod comments;
pub(crate) mod departures;
pub(crate) mod issue;
pub(crate) mod issue_list;
pub(crate) mod labels;
pub(crate) mod milestones;
pub(crate) mod reactions;
pub(crate) mod search;
pub(crate) mod timeline;

pub use changes::{CloseReason, NewIssue};
pub use reactions::Reaction;
pub use timeline::{Event, EventKind};
