//! Records what of a change was read, and what was not read and why.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{RepoPath, ScopeReason};

use crate::change::file_change::{ChangeKind, ContentKind};
use crate::change::head_texts::HeadTexts;
use crate::change::scope::ReviewScope;
use crate::findings::configured_filters::ConfiguredFilters;
use crate::reviewers::FileToRead;
use crate::reviewers::collect::CollectedAnswers;
use crate::run::report::{Coverage, SkippedFile};

/// Removes the skipped paths from what is read, and returns them.
pub(crate) fn leave_out_skipped(scope: &mut ReviewScope, filters: &ConfiguredFilters) -> Vec<SkippedFile> {
    let (skipped, read): (BTreeSet<RepoPath>, BTreeSet<RepoPath>) =
        std::mem::take(&mut scope.read).into_iter().partition(|path| filters.skips(path));
    scope.read = read;
    skipped.into_iter().map(|path| SkippedFile::new(path, "skipped by review.skipPaths", false)).collect()
}

/// How much of a change was read. `files` had to be read; `skipped` were left out before. What nobody read is a gap,
/// unless a report covers it that does not list its files, or a model leaves it out by rule. `was_read` is true for what
/// a reviewer read in an earlier review.
pub(crate) fn coverage(
    files_changed: usize,
    files: &[FileToRead<'_>],
    texts: &HeadTexts,
    collected: &mut CollectedAnswers,
    skipped: Vec<SkippedFile>,
    was_read: impl Fn(&RepoPath) -> bool,
) -> Coverage {
    let by_model = std::mem::take(&mut collected.skipped);
    let left_out: BTreeSet<&RepoPath> = by_model.iter().map(|one| &one.path).collect();
    let (read, unlisted) = (&collected.read, &collected.unlisted);
    let mut coverage = Coverage { files_changed, skipped, ..Coverage::default() };
    let (mut by_nobody, mut may_be_read) = (Vec::new(), BTreeSet::<RepoPath>::new());
    for file in files {
        let path = &file.change.path;
        match unreadable(file, texts) {
            Some((why, gap)) => coverage.skipped.push(SkippedFile::new(path.clone(), why, gap)),
            None if read.contains(path) => {
                coverage.files_read += 1;
                coverage.lines_read += file.change.added.len() as u64 + u64::from(file.change.removed);
            }
            None if unlisted.contains(path) && !left_out.contains(path) => {
                coverage.files_unlisted += 1;
                may_be_read.insert(path.clone());
            }
            // Of a deleted file, or one with another name only, there are no lines to read.
            None if file.change.kind == ChangeKind::Deleted || file.change.hunks.is_empty() => {}
            None => by_nobody.push(SkippedFile::new(path.clone(), "no reviewer read it", true)),
        }
    }
    let mut places: BTreeMap<RepoPath, usize> =
        coverage.skipped.iter().enumerate().map(|(at, one)| (one.path.clone(), at)).collect();
    for one in by_model {
        match places.get(&one.path) {
            Some(at) => coverage.skipped[*at].gap |= one.gap,
            None => {
                let by_nobody = !one.gap && !read.contains(&one.path) && !unlisted.contains(&one.path);
                let why = if by_nobody { format!("{}, and no other reviewer read it", one.why) } else { one.why };
                places.insert(one.path.clone(), coverage.skipped.len());
                coverage.skipped.push(SkippedFile { why, ..one });
            }
        }
    }
    coverage.skipped.extend(by_nobody.into_iter().filter(|one| !places.contains_key(&one.path)));
    coverage.none_listed = coverage.files_read == 0 && !may_be_read.is_empty() && !may_be_read.iter().any(was_read);
    if coverage.none_listed {
        // Otherwise the same report, asked again about the same head, would have read them.
        collected.has_read.iter_mut().for_each(|(_, progress)| progress.leave_out(&may_be_read));
    }
    coverage
}

/// Files that nobody read in the last review and nobody has to read now, such as a file that is too large: they are
/// still unread, and a push of something else must not make the review look complete.
pub(crate) fn still_unread(
    before: Vec<SkippedFile>,
    scope: &ReviewScope,
    files: &[FileToRead<'_>],
    filters: &ConfiguredFilters,
) -> impl Iterator<Item = SkippedFile> {
    let is_there = |path: &RepoPath| scope.changes.iter().any(|change| change.path == *path);
    let is_looked_at = |path: &RepoPath| files.iter().any(|file| file.change.path == *path);
    before.into_iter().filter(move |one| is_there(&one.path) && !is_looked_at(&one.path) && !filters.skips(&one.path))
}

pub(crate) fn is_idle(reason: &ScopeReason) -> bool {
    matches!(reason, ScopeReason::NoChangesSince(_))
}

/// Why a file cannot be read line by line, and whether that leaves a gap.
fn unreadable(file: &FileToRead<'_>, texts: &HeadTexts) -> Option<(String, bool)> {
    // A deleted file needs no text: all its lines are gone.
    if file.change.kind == ChangeKind::Deleted {
        return None;
    }
    let unread = || texts.unread(&file.change.path).cloned();
    match file.change.content {
        // Code of another repository came with it, and nobody here can read that.
        ContentKind::Submodule => Some(("it is a submodule: the code of its new commit is not read".to_owned(), true)),
        ContentKind::Symlink => Some(("it is a symbolic link".to_owned(), false)),
        ContentKind::Text if file.text.is_some() => None,
        ContentKind::Text => unread().or_else(|| Some(("its content could not be read".to_owned(), true))),
        ContentKind::Binary => unread().or_else(|| Some(("it is binary".to_owned(), true))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use canonry_domain::review::{Hunk, RepoPath};

    use super::coverage;
    use crate::change::file_change::{ChangeKind, ContentKind, FileChange};
    use crate::change::head_texts::HeadTexts;
    use crate::reviewers::FileToRead;
    use crate::reviewers::collect::CollectedAnswers;
    use crate::run::report::{Coverage, SkippedFile};

    fn path(text: &str) -> RepoPath {
        RepoPath::exact(text).expect("a path")
    }

    fn change(name: &str, kind: ChangeKind) -> FileChange {
        FileChange {
            kind,
            path: path(name),
            old_path: None,
            content: ContentKind::Text,
            blob: None,
            hunks: vec![Hunk { old_start: 1, old: 1, new_start: 1, new: 1 }],
            added: Vec::new(),
            removed: 1,
        }
    }

    /// The coverage of two changed files by a report that lists no files; some of them are read by another reviewer.
    fn covered(read: &[&str], by_model: Vec<SkippedFile>, was_read: bool) -> Coverage {
        let changes = [change("a.py", ChangeKind::Modified), change("b.js", ChangeKind::Modified)];
        let files: Vec<FileToRead<'_>> =
            changes.iter().map(|change| FileToRead { change, text: Some("x\n"), bytes: None }).collect();
        let read: BTreeSet<RepoPath> = read.iter().map(|name| path(name)).collect();
        let all = changes.iter().map(|change| change.path.clone());
        let mut collected = CollectedAnswers {
            unlisted: all.filter(|path| !read.contains(path)).collect(),
            read,
            skipped: by_model,
            ..CollectedAnswers::default()
        };
        coverage(2, &files, &HeadTexts::default(), &mut collected, Vec::new(), |_| was_read)
    }

    #[test]
    fn a_file_that_the_model_left_out_is_counted_once() {
        let by_model = vec![SkippedFile::new(path("b.js"), "generated", false)];
        let told = covered(&["a.py"], by_model, false);
        assert_eq!((told.files_read, told.files_unlisted, told.skipped.len()), (1, 0, 1));
    }

    #[test]
    fn a_report_alone_has_to_list_its_files() {
        for (read, was_read, none_listed) in [(&[][..], false, true), (&["a.py"], false, false), (&[], true, false)] {
            assert_eq!(covered(read, Vec::new(), was_read).none_listed, none_listed, "{read:?} {was_read}");
        }
    }
}
