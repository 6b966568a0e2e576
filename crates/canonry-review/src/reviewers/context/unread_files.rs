//! Decides which changed files a model is not shown because programs write them.

use std::collections::BTreeSet;

use canonry_domain::review::RepoPath;

use crate::change::file_change::{ChangeKind, FileChange};
use crate::reviewers::llm::{WrittenBy, written_by};

/// The folders whose existence at the base decides about a change: a folder that the change itself brings is read,
/// whatever its name says.
pub(super) fn folders_to_know<'a>(changes: impl IntoIterator<Item = &'a FileChange>) -> BTreeSet<RepoPath> {
    changes.into_iter().filter_map(|change| folder_of(&change.path)).collect()
}

/// Why a file is not shown; `None` if it is.
pub(super) fn why_not_shown(change: &FileChange, known: &BTreeSet<RepoPath>) -> Option<&'static str> {
    match written_by(&change.path)? {
        WrittenBy::PackageManager => Some("a lock file"),
        WrittenBy::Folder(_) => {
            folder_of(&change.path).is_some_and(|folder| known.contains(&folder)).then_some("generated or vendored")
        }
        // By its name alone; a new file with such a name may be anything.
        WrittenBy::Generator => (change.kind != ChangeKind::Added).then_some("generated"),
    }
}

fn folder_of(path: &RepoPath) -> Option<RepoPath> {
    let Some(WrittenBy::Folder(length)) = written_by(path) else { return None };
    RepoPath::exact(&path.as_str()[..length]).ok()
}
