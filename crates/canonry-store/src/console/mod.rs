//! Sessions, actions of people, and lists that only pages show.

pub(crate) mod actions;
pub(crate) mod activity_days;
pub(crate) mod admin_tokens;
pub(crate) mod attention;
pub(crate) mod item_pages;
pub(crate) mod repo_overview;
pub(crate) mod search;
pub(crate) mod sessions;

pub use actions::{ConsoleAction, NewConsoleAction};
pub use activity_days::ActivityDay;
pub use admin_tokens::StoredAdminToken;
pub use attention::{MOST_COUNTED, NextClose, RepoAttention, RepoScope};
pub use item_pages::{ItemLine, ItemPage, ItemPageFilter, ItemPlace};
pub use repo_overview::{RepoOverview, RepoPageFilter};
pub use search::{FoundFinding, MatchingItem};
pub use sessions::{ConsoleSession, SessionOwner};
