//! Reads the change under review (commits, diffs and texts) through git, without a checkout.

pub(crate) mod base_settings;
pub(crate) mod blobs;
pub(crate) mod commits;
pub(crate) mod diff;
pub(crate) mod fetch;
pub(crate) mod file_change;
pub(crate) mod git;
pub(crate) mod head_texts;
pub(crate) mod local_change;
pub(crate) mod releases;
pub(crate) mod remote;
pub(crate) mod scope;

pub use base_settings::{ReadSettings, read_settings};
pub use blobs::{Blob, BlobContent};
pub use commits::CommitsError;
pub use diff::{UnreadableDiff, parse_diff};
pub use fetch::FetchedRepository;
pub use file_change::{ChangeKind, ContentKind, FileChange};
pub use git::{Git, GitError};
pub use head_texts::HeadTexts;
pub use local_change::{LocalChange, changed_files};
pub use releases::CommitMessage;
pub use remote::{InvalidRemote, Remote};
pub use scope::{Repository, ReviewScope, ScopeRequest, find_scope};
