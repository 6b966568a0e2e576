//! The changes of a pull request: files with their patches, and the lines that can be commented on.

use crate::github::repos::git_repositories::GitRepository;

/// Longer patches are left out, as those of binary files.
const LARGEST_PATCH: usize = 300 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    /// The path before a rename.
    pub previous_path: Option<String>,
    /// `added`, `modified`, `removed`, `renamed`, …
    pub status: String,
    pub sha: String,
    pub additions: usize,
    pub deletions: usize,
    /// The file's part of the diff; GitHub leaves it out for binary and very large files.
    pub patch: Option<String>,
}

impl ChangedFile {
    pub fn modified(path: &str, patch: &str) -> Self {
        Self {
            path: path.to_owned(),
            previous_path: None,
            status: String::from("modified"),
            sha: "2".repeat(40),
            additions: count(patch, '+'),
            deletions: count(patch, '-'),
            patch: Some(patch.to_owned()),
        }
    }
}

/// The side of a diff to which a comment belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

impl Side {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Left => "LEFT",
            Self::Right => "RIGHT",
        }
    }
}

pub(crate) struct ShownLine {
    /// The number of lines below the first hunk's header.
    pub(crate) position: u64,
    pub(crate) hunk: usize,
    left: Option<u64>,
    right: Option<u64>,
    pub(crate) excerpt: String,
}

/// The files that differ between two commits; `None` is the empty tree.
pub(crate) fn changed_files(git: &GitRepository, from: Option<&str>, to: &str) -> Vec<ChangedFile> {
    let output = git.diff(from, to, 3);
    let mut files = read_diff(&output);
    for file in &mut files {
        file.patch = file.patch.take().filter(|patch| patch.len() <= LARGEST_PATCH);
    }
    files
}

/// The line of a patch that shows this line of a side, if there is one.
pub(crate) fn shown_line(patch: &str, side: Side, line: u64) -> Option<ShownLine> {
    let mut hunk = 0;
    let (mut left, mut right) = (0, 0);
    let mut excerpt = Vec::new();
    for (text, position) in patch.lines().zip(0..) {
        if let Some(((old, _), (new, _))) = hunk_header(text) {
            (left, right) = (old, new);
            hunk += 1;
            excerpt.clear();
            excerpt.push(text);
            continue;
        }
        excerpt.push(text);
        let (old, new) = match text.chars().next() {
            Some('+') => (None, Some(right)),
            Some('-') => (Some(left), None),
            Some('\\') => (None, None),
            _ => (Some(left), Some(right)),
        };
        left += u64::from(old.is_some());
        right += u64::from(new.is_some());
        let shown = ShownLine { position, hunk, left: old, right: new, excerpt: String::new() };
        if shown.on(side) == Some(line) {
            return Some(ShownLine { excerpt: excerpt.join("\n"), ..shown });
        }
    }
    None
}

impl ShownLine {
    fn on(&self, side: Side) -> Option<u64> {
        match side {
            Side::Left => self.left,
            Side::Right => self.right,
        }
    }
}

/// The position of a file's line in another commit: `None` for a changed line, and for every line of a removed or
/// renamed file.
pub(crate) fn moved_line(changes: &[ChangedFile], path: &str, line: u64) -> Option<u64> {
    let named = |file: &&ChangedFile| file.path == path || file.previous_path.as_deref() == Some(path);
    let Some(file) = changes.iter().find(named) else { return Some(line) };
    if file.status != "modified" {
        return None;
    }
    let mut moved = line;
    for ((old, old_count), (_, new_count)) in file.patch.as_deref()?.lines().filter_map(hunk_header) {
        // The header of a hunk that removes nothing names the line before it.
        let first = if old_count == 0 { old + 1 } else { old };
        if line < first {
            break;
        }
        if line < first + old_count {
            return None;
        }
        moved = moved + new_count - old_count;
    }
    Some(moved)
}

/// What changed between two commits of a pull request, without context.
pub(crate) fn bare_changes(git: &GitRepository, from: &str, to: &str) -> Vec<ChangedFile> {
    read_diff(&git.diff(Some(from), to, 0))
}

fn read_diff(output: &[u8]) -> Vec<ChangedFile> {
    let mut files = Vec::new();
    let mut rest = output;
    while rest.first() == Some(&b':') {
        let head = take_field(&mut rest);
        let mut words = head.rsplit(' ');
        let (letter, sha) = (words.next().unwrap_or_default().to_owned(), words.next().unwrap_or_default().to_owned());
        let first = take_field(&mut rest);
        let (status, path, previous_path) = match letter.chars().next() {
            Some('A') => ("added", first, None),
            Some('D') => ("removed", first, None),
            Some('R') => ("renamed", take_field(&mut rest), Some(first)),
            _ => ("modified", first, None),
        };
        let status = status.to_owned();
        files.push(ChangedFile { path, previous_path, status, sha, additions: 0, deletions: 0, patch: None });
    }
    let patches = String::from_utf8_lossy(rest.strip_prefix(b"\0").unwrap_or(rest)).into_owned();
    // Every line of a file's text has a sign before it, so this string occurs only at the beginning of a patch.
    let sections = format!("\n{patches}");
    for (file, section) in files.iter_mut().zip(sections.split("\ndiff --git ").skip(1)) {
        let Some((_, hunks)) = section.split_once("\n@@ ") else { continue };
        let patch = format!("@@ {}", hunks.trim_end_matches('\n'));
        (file.additions, file.deletions) = (count(&patch, '+'), count(&patch, '-'));
        file.patch = Some(patch);
    }
    files
}

fn take_field(rest: &mut &[u8]) -> String {
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (field, tail) = rest.split_at(end);
    *rest = tail.get(1..).unwrap_or_default();
    String::from_utf8_lossy(field).into_owned()
}

/// The first line and the count of both sides, from `@@ -1,3 +1,4 @@`.
fn hunk_header(line: &str) -> Option<((u64, u64), (u64, u64))> {
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some((range(old)?, range(new)?))
}

fn count(patch: &str, sign: char) -> usize {
    patch.lines().filter(|line| line.starts_with(sign)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str =
        "@@ -1,3 +1,4 @@ fn main\n a\n-b\n+B\n+C\n c\n@@ -9 +10 @@\n-x\n+y\n\\ No newline at end of file";

    #[test]
    fn lines_are_found_on_their_side_with_their_position() {
        let place = |side, line| shown_line(PATCH, side, line).map(|shown| (shown.position, shown.hunk));
        assert_eq!(place(Side::Right, 1), Some((1, 1)));
        assert_eq!(place(Side::Right, 2), Some((3, 1)));
        assert_eq!(place(Side::Left, 2), Some((2, 1)));
        assert_eq!(place(Side::Right, 4), Some((5, 1)));
        assert_eq!(place(Side::Right, 5), None);
        assert_eq!(place(Side::Right, 10), Some((8, 2)));
        assert_eq!(place(Side::Left, 9), Some((7, 2)));
        let shown = shown_line(PATCH, Side::Right, 2).expect("shown");
        assert_eq!(shown.excerpt, "@@ -1,3 +1,4 @@ fn main\n a\n-b\n+B");
    }

    #[test]
    fn lines_move_with_what_changes_above_them_and_end_where_they_change() {
        let changes = [ChangedFile::modified(
            "a",
            "@@ -2 +2,3 @@\n-b\n+B\n+C\n+D\n@@ -5,0 +8,1 @@\n+new\n@@ -8,2 +10,0 @@\n-x\n-y",
        )];
        let moved: Vec<Option<u64>> = (1..=10).map(|line| moved_line(&changes, "a", line)).collect();
        let expected = [Some(1), None, Some(5), Some(6), Some(7), Some(9), Some(10), None, None, Some(11)];
        assert_eq!(moved, expected);
        assert_eq!(moved_line(&changes, "other", 7), Some(7));
    }

    #[test]
    fn a_diff_lists_names_as_they_are_and_no_patch_where_there_is_none() {
        let sha = "a".repeat(40);
        let raw = format!(
            ":100644 100644 {sha} {sha} M\0a b.txt\0:100644 100644 {sha} {sha} R100\0old\0n\u{e4}w\0\0\
             diff --git a/a b.txt b/a b.txt\nindex 1..2 100644\n--- a/a b.txt\n+++ b/a b.txt\n@@ -1 +1 @@\n-a\n+diff --git \n\
             diff --git a/old b/new\nsimilarity index 100%\n"
        );
        let files = read_diff(raw.as_bytes());
        let summary: Vec<(&str, &str, Option<&str>, usize)> = files
            .iter()
            .map(|file| (file.path.as_str(), file.status.as_str(), file.patch.as_deref(), file.additions))
            .collect();
        let patch = "@@ -1 +1 @@\n-a\n+diff --git ";
        assert_eq!(summary, [("a b.txt", "modified", Some(patch), 1), ("n\u{e4}w", "renamed", None, 0)]);
        assert_eq!(files[1].previous_path.as_deref(), Some("old"));
    }
}
