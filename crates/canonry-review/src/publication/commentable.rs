//! Finds the lines of a pull request on which GitHub accepts comments.

use std::collections::BTreeMap;

use canonry_domain::review::{LineRange, RepoPath};
use canonry_github::api::RestPullFile;

/// The most lines that one comment spans: more would push the code off the page.
const MOST_SPANNED: u32 = 25;

/// The lines on the new side that the diff of each changed file shows; `None` if GitHub does not show the diff.
#[derive(Debug, Default)]
pub(super) struct CommentableLines(BTreeMap<String, Option<Vec<LineRange>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommentPlace {
    pub(super) line: u32,
    pub(super) start_line: Option<u32>,
}

impl CommentableLines {
    pub(super) fn new(files: &[RestPullFile]) -> Self {
        Self(files.iter().map(|file| (file.filename.clone(), file.patch.as_deref().map(shown_lines))).collect())
    }

    /// The place of a comment about these lines: the part of them that one hunk shows. If GitHub does not report what
    /// it shows, such as for a very large diff, the lines are passed on and GitHub decides.
    pub(super) fn place(&self, path: &RepoPath, lines: LineRange) -> Option<CommentPlace> {
        let shown = match self.0.get(path.as_str()) {
            Some(Some(hunks)) => {
                let hunk = hunks.iter().find(|hunk| hunk.overlaps(lines))?;
                LineRange { first: lines.first.max(hunk.first), last: lines.last.min(hunk.last) }
            }
            Some(None) | None => lines,
        };
        let spans = shown.last - shown.first;
        Some(match spans {
            1..MOST_SPANNED => CommentPlace { line: shown.last, start_line: Some(shown.first) },
            _ => CommentPlace { line: shown.first, start_line: None },
        })
    }
}

/// The lines on the new side that the hunks of a patch show.
fn shown_lines(patch: &str) -> Vec<LineRange> {
    patch.lines().filter_map(|line| hunk_of(line.strip_prefix("@@ ")?)).collect()
}

/// `-1,3 +4,5 @@ …` shows lines 4 to 8.
fn hunk_of(header: &str) -> Option<LineRange> {
    let new = header.split(' ').find_map(|part| part.strip_prefix('+'))?;
    let (first, count) = new.split_once(',').unwrap_or((new, "1"));
    let (first, count): (u32, u32) = (first.parse().ok()?, count.parse().ok()?);
    LineRange::new(first, first.checked_add(count)?.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::{LineRange, RepoPath};
    use canonry_github::api::RestPullFile;

    use super::{CommentPlace, CommentableLines};

    fn file(name: &str, patch: Option<&str>) -> RestPullFile {
        RestPullFile {
            filename: name.to_owned(),
            status: "modified".to_owned(),
            previous_filename: None,
            additions: 1,
            deletions: 0,
            patch: patch.map(str::to_owned),
        }
    }

    #[test]
    fn a_comment_goes_where_the_diff_shows_its_lines() {
        let patch =
            "@@ -1,3 +1,4 @@ fn a\n x\n+@@ -9 +9 @@\n y\n z\n@@ -20,0 +22,2 @@\n+a\n+b\n@@ -40,2 +43,0 @@\n-c\n-d";
        let files = [file("a.rs", Some(patch)), file("large.rs", None)];
        let commentable = CommentableLines::new(&files);
        let place = |path: &str, first, last| {
            let path = RepoPath::new(path).expect("a path");
            commentable.place(&path, LineRange::new(first, last).expect("lines"))
        };
        let at = |line, start_line| Some(CommentPlace { line, start_line });
        assert_eq!(place("a.rs", 2, 2), at(2, None));
        assert_eq!(place("a.rs", 3, 9), at(4, Some(3)));
        assert_eq!(place("a.rs", 10, 23), at(23, Some(22)));
        assert_eq!(place("a.rs", 10, 20), None);
        assert_eq!(place("a.rs", 43, 43), None);
        // Code that looks like a hunk header is code.
        assert_eq!(place("a.rs", 9, 9), None);
        assert_eq!(place("large.rs", 7, 8), at(8, Some(7)));
        assert_eq!(place("unlisted.rs", 7, 99), at(7, None));
    }
}
