//! What a diff says about one file.

use canonry_domain::review::{Hunk, LineMap, RepoPath};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub kind: ChangeKind,
    /// Its path now; where it is gone, the path it had.
    pub path: RepoPath,
    pub old_path: Option<RepoPath>,
    pub content: ContentKind,
    /// Git's id of its content now; `None` where it is gone.
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
    /// It was made from another one, which is still there.
    Copied,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    Text,
    /// Something without lines.
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
