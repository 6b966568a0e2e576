//! What a diff says about one file.

use canonry_domain::review::{Hunk, LineMap, RepoPath};

/// A file that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// What happened to it.
    pub kind: ChangeKind,
    /// Its path now; where it is gone, the path it had.
    pub path: RepoPath,
    /// The path it had, where that was another.
    pub old_path: Option<RepoPath>,
    /// What it is.
    pub content: ContentKind,
    /// Git's id of its content now; `None` where it is gone.
    pub blob: Option<String>,
    /// Where it differs.
    pub hunks: Vec<Hunk>,
    /// The lines that came, with their numbers.
    pub added: Vec<(u32, String)>,
    /// How many lines went.
    pub removed: u32,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It is there and was.
    Modified,
    /// It has another path.
    Renamed,
    /// It was made from another one, which is still there.
    Copied,
}

/// What a changed file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    /// Text, line by line.
    Text,
    /// Something without lines.
    Binary,
    /// A link to another path.
    Symlink,
    /// A commit of another repository.
    Submodule,
}

impl FileChange {
    /// The path it had before.
    pub fn path_before(&self) -> &RepoPath {
        self.old_path.as_ref().unwrap_or(&self.path)
    }

    /// Where its lines went.
    pub fn line_map(&self) -> LineMap {
        LineMap::new(self.hunks.clone())
    }

    /// Whether a reviewer can read it line by line.
    pub fn is_readable(&self) -> bool {
        self.content == ContentKind::Text && self.kind != ChangeKind::Deleted
    }
}
