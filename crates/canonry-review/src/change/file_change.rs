//! Describes the change of one file in a diff.

use canonry_domain::review::{Hunk, LineMap, RepoPath};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub kind: ChangeKind,
    /// The path after the change; for a deleted file, its last path.
    pub path: RepoPath,
    pub old_path: Option<RepoPath>,
    pub content: ContentKind,
    /// Git's blob id after the change; `None` for a deleted file.
    pub blob: Option<String>,
    pub hunks: Vec<Hunk>,
    pub added: Vec<(u32, String)>,
    pub removed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Deleted,
    Modified,
    Renamed,
    /// Copied from another file that still exists.
    Copied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    Text,
    Binary,
    Symlink,
    Submodule,
}

impl FileChange {
    pub fn path_before(&self) -> &RepoPath {
        self.old_path.as_ref().unwrap_or(&self.path)
    }

    pub fn line_map(&self) -> LineMap {
        LineMap::new(self.hunks.clone())
    }

    pub fn is_readable(&self) -> bool {
        self.content == ContentKind::Text && self.kind != ChangeKind::Deleted
    }
}
