//! Files, commits and lines: where flagged code is, and whether it is still the same code.

pub(crate) mod code_excerpt;
pub(crate) mod code_hash;
pub(crate) mod code_index;
pub(crate) mod commit_sha;
pub(crate) mod line_map;
pub(crate) mod repo_path;

pub use code_excerpt::{CodeExcerpt, without_secrets};
pub use code_hash::{CodeHash, around, flagged};
pub use code_index::CodeIndex;
pub use commit_sha::{CommitSha, InvalidSha};
pub use line_map::{Hunk, LineMap};
pub use repo_path::{InvalidPath, RepoPath};
