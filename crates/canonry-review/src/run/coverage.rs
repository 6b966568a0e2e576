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
    let why = || "skipped by review.skipPaths".to_owned();
    skipped.into_iter().map(|path| SkippedFile { path, why: why(), gap: false }).collect()
}

/// How much of a change was read. `files` had to be read; `skipped` were left out before. What nobody read is a gap,
/// unless a report covers it that does not list its files, or a model leaves it out by rule.
pub(crate) fn coverage(
    files_changed: usize,
    files: &[FileToRead<'_>],
    texts: &HeadTexts,
    collected: &mut CollectedAnswers,
    skipped: Vec<SkippedFile>,
) -> Coverage {
    let by_model = std::mem::take(&mut collected.skipped);
    let (read, unlisted) = (&collected.read, &collected.unlisted);
    let mut coverage = Coverage { files_changed, skipped, ..Coverage::default() };
    let mut by_nobody = Vec::new();
    for file in files {
        let path = &file.change.path;
        match unreadable(file, texts) {
            Some((why, gap)) => coverage.skipped.push(SkippedFile { path: path.clone(), why, gap }),
            None if read.contains(path) => {
                coverage.files_read += 1;
                coverage.lines_read += file.change.added.len() as u64 + u64::from(file.change.removed);
            }
            None if unlisted.contains(path) => coverage.files_unlisted += 1,
            // Of a deleted file, or one with another name only, there are no lines to read.
            None if file.change.kind == ChangeKind::Deleted || file.change.hunks.is_empty() => {}
            None => {
                by_nobody.push(SkippedFile { path: path.clone(), why: "no reviewer read it".to_owned(), gap: true });
            }
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
