//! Who is signed in, what they did, and the lists that only pages show.

pub(crate) mod actions;
pub(crate) mod admin_tokens;
pub(crate) mod item_pages;
pub(crate) mod repo_overview;
pub(crate) mod sessions;

pub use actions::{ConsoleAction, NewConsoleAction};
pub use admin_tokens::StoredAdminToken;
pub use item_pages::{ItemLine, ItemPage, ItemPageFilter, ItemPlace};
pub use repo_overview::{RepoOverview, RepoPageFilter};
pub use sessions::{ConsoleSession, SessionOwner};
