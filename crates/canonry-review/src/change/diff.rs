//! Parses the output of `git diff`.
//!
//! The list of files comes first and contains no quoted paths; the parts of the patch follow in the same order. So the
//! headers of the patch, in which a path can look like anything, are never parsed.

use canonry_domain::review::{Hunk, RepoPath};

use crate::change::file_change::{ChangeKind, ContentKind, FileChange};

/// A difference could not be parsed: git's output has an unexpected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("read what git says about the difference: {0}")]
pub struct UnreadableDiff(String);

/// The highest line number that is accepted, so that adding a few to a line number never overflows.
const MOST_LINES: u32 = 1 << 30;

/// Parses the output of `git diff --raw -z --abbrev=64 -p -U0 -M`.
pub fn parse_diff(answer: &[u8]) -> Result<Vec<FileChange>, UnreadableDiff> {
    let mut rest = answer;
    let mut listed = Vec::new();
    while rest.first() == Some(&b':') {
        let entry = RawEntry::read(field(&mut rest)?)?;
        let old = matches!(entry.status, b'R' | b'C').then(|| field(&mut rest)).transpose()?;
        listed.push((entry, old, field(&mut rest)?));
    }
    let mut parts = split_patch(rest.strip_prefix(b"\0").unwrap_or(rest)).into_iter();
    let mut changes = Vec::with_capacity(listed.len());
    for (entry, old, new) in listed {
        // Git shows a file that became a link, or a link that became a file, as a deletion and a new file.
        let tells = if entry.status == b'T' { 2 } else { 1 };
        let mut told = Patch::default();
        for _ in 0..tells {
            told.read(parts.next().ok_or_else(|| UnreadableDiff("the patch ends early".to_owned()))?)?;
        }
        // A name that is not a path inside the repository cannot be in the repository: git refuses to create it.
        let (Ok(new), Ok(old)) = (RepoPath::of_bytes(new), old.map(RepoPath::of_bytes).transpose()) else { continue };
        changes.push(entry.into_change(old, new, told));
    }
    if parts.next().is_some() {
        return Err(UnreadableDiff("the patch contains more files than the list of changed files".to_owned()));
    }
    Ok(changes)
}

/// Reads up to the next zero byte.
fn field<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], UnreadableDiff> {
    let end =
        rest.iter().position(|byte| *byte == 0).ok_or_else(|| UnreadableDiff("the list ends early".to_owned()))?;
    let field = &rest[..end];
    *rest = &rest[end + 1..];
    Ok(field)
}

struct RawEntry {
    status: u8,
    old_mode: u32,
    new_mode: u32,
    blob: Option<String>,
}

impl RawEntry {
    /// `:100644 100644 <id> <id> M`
    fn read(head: &[u8]) -> Result<Self, UnreadableDiff> {
        let unreadable = || UnreadableDiff(format!("{:?} is no entry of its list", String::from_utf8_lossy(head)));
        let text = std::str::from_utf8(head).ok().and_then(|text| text.strip_prefix(':')).ok_or_else(unreadable)?;
        let fields: Vec<&str> = text.split(' ').collect();
        let [old_mode, new_mode, _, blob, status] = fields[..] else { return Err(unreadable()) };
        let mode = |text: &str| u32::from_str_radix(text, 8).map_err(|_| unreadable());
        let status = *status.as_bytes().first().ok_or_else(unreadable)?;
        let blob = (!blob.bytes().all(|byte| byte == b'0')).then(|| blob.to_owned());
        Ok(Self { status, old_mode: mode(old_mode)?, new_mode: mode(new_mode)?, blob })
    }

    fn into_change(self, old_path: Option<RepoPath>, path: RepoPath, told: Patch) -> FileChange {
        let kind = match self.status {
            b'A' => ChangeKind::Added,
            b'D' => ChangeKind::Deleted,
            b'R' => ChangeKind::Renamed,
            b'C' => ChangeKind::Copied,
            _ => ChangeKind::Modified,
        };
        let mode = if kind == ChangeKind::Deleted { self.old_mode } else { self.new_mode };
        let content = match mode {
            0o160_000 => ContentKind::Submodule,
            0o120_000 => ContentKind::Symlink,
            _ if told.binary => ContentKind::Binary,
            _ => ContentKind::Text,
        };
        let Patch { hunks, added, removed, .. } = told;
        FileChange { kind, path, old_path, content, blob: self.blob, hunks, added, removed }
    }
}

/// Splits a patch into one part for each file. Only a header line begins with `diff --git `: lines of content begin
/// with `+`, `-` or a backslash, and there is no context.
fn split_patch(patch: &[u8]) -> Vec<&[u8]> {
    let mut starts = Vec::new();
    let mut at = 0;
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().copied().skip(1).chain([patch.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| &patch[start..end]).collect()
}

#[derive(Default)]
struct Patch {
    binary: bool,
    hunks: Vec<Hunk>,
    added: Vec<(u32, String)>,
    removed: u32,
}

impl Patch {
    fn read(&mut self, part: &[u8]) -> Result<(), UnreadableDiff> {
        let read = self;
        // The header lines `---` and `+++` come only before the first hunk; within a hunk such lines are content.
        let mut left = (0_u32, 0_u32);
        let mut line_number = 0;
        for line in part.split(|byte| *byte == b'\n') {
            match line.first() {
                Some(b'-') if left.0 > 0 => {
                    left.0 -= 1;
                    read.removed += 1;
                }
                Some(b'+') if left.1 > 0 => {
                    left.1 -= 1;
                    read.added.push((line_number, text_of(&line[1..])));
                    line_number += 1;
                }
                Some(b'@') => {
                    let hunk = hunk_of(line)?;
                    left = (hunk.old, hunk.new);
                    line_number = hunk.new_start;
                    read.hunks.push(hunk);
                }
                Some(b'B') if line.starts_with(b"Binary files ") => read.binary = true,
                _ => {}
            }
        }
        if left != (0, 0) {
            return Err(UnreadableDiff("a hunk ends early".to_owned()));
        }
        Ok(())
    }
}

/// `@@ -12,3 +14 @@ the function around it`
fn hunk_of(line: &[u8]) -> Result<Hunk, UnreadableDiff> {
    let text = String::from_utf8_lossy(line);
    let unreadable = || UnreadableDiff("a hunk has no line numbers".to_owned());
    let mut words = text.split(' ').skip(1);
    let mut side = |sign: char| -> Result<(u32, u32), UnreadableDiff> {
        let word = words.next().and_then(|word| word.strip_prefix(sign)).ok_or_else(unreadable)?;
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Ok((start.parse().map_err(|_| unreadable())?, count.parse().map_err(|_| unreadable())?))
    };
    let ((old_start, old), (new_start, new)) = (side('-')?, side('+')?);
    if [old_start, old, new_start, new].into_iter().any(|number| number > MOST_LINES) {
        return Err(UnreadableDiff("a hunk has line numbers that no file has".to_owned()));
    }
    Ok(Hunk { old_start, old, new_start, new })
}

/// A line is never cut: a minified file can have one line of megabytes, with a credential at its end.
fn text_of(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use canonry_domain::review::Hunk;

    use super::parse_diff;
    use crate::change::file_change::{ChangeKind, ContentKind};

    const OID: &str = "1111111111111111111111111111111111111111";
    const NIL: &str = "0000000000000000000000000000000000000000";

    fn raw(entries: &[(&str, &str, &str, &[&str])]) -> Vec<u8> {
        let mut raw = Vec::new();
        for (old, new, status, paths) in entries {
            let (before, after) = (if *old == "000000" { NIL } else { OID }, if *new == "000000" { NIL } else { OID });
            raw.extend(format!(":{old} {new} {before} {after} {status}\0").bytes());
            for path in *paths {
                raw.extend(path.bytes().chain([0]));
            }
        }
        raw
    }

    fn both(raw: &[u8], patch: &str) -> Vec<u8> {
        raw.iter().copied().chain([0]).chain(patch.bytes()).collect()
    }

    #[test]
    fn content_that_looks_like_a_header_is_content() {
        let raw = raw(&[("100644", "100644", "M", &["a b\".txt"]), ("000000", "100644", "A", &["new"])]);
        let patch = "diff --git \"a/a b\\\".txt\" \"b/a b\\\".txt\"\nindex 1..2 100644\n--- x\n+++ y\n\
            @@ -3,1 +3,3 @@ fn f()\n--- removed, not a header\n+++ added, not a header\n+diff --git a/x b/x\n+@@ -1 +1 @@\n\
            @@ -9,0 +12 @@\n+last\n\\ No newline at end of file\n\
            diff --git a/new b/new\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+one\r\n";
        let changes = parse_diff(&both(&raw, patch)).expect("readable");
        assert_eq!(changes.len(), 2);
        let first = &changes[0];
        assert_eq!((first.path.as_str(), first.kind, first.removed), ("a b\".txt", ChangeKind::Modified, 1));
        let added: Vec<_> = first.added.iter().map(|(line, text)| (*line, text.as_str())).collect();
        assert_eq!(added, [(3, "++ added, not a header"), (4, "diff --git a/x b/x"), (5, "@@ -1 +1 @@"), (12, "last")]);
        assert_eq!(first.hunks[1], Hunk { old_start: 9, old: 0, new_start: 12, new: 1 });
        assert_eq!(changes[1].added, [(1, "one".to_owned())]);
    }

    #[test]
    fn a_line_is_whole_however_long_it_is() {
        let (list, line) = (raw(&[("000000", "100644", "A", &["a.json"])]), "ä".repeat(100_000));
        let patch = format!("diff --git a/a.json b/a.json\nnew file mode 100644\n@@ -0,0 +1 @@\n+{line}\n");
        assert_eq!(parse_diff(&both(&list, &patch)).expect("readable")[0].added, [(1, line)]);
    }

    #[test]
    fn renames_binaries_links_and_submodules() {
        let raw = raw(&[
            ("100644", "100644", "R087", &["old.rs", "new.rs"]),
            ("100644", "100644", "M", &["logo.png"]),
            ("100644", "120000", "T", &["link"]),
            ("160000", "160000", "M", &["vendor/lib"]),
            ("100644", "000000", "D", &["gone.rs"]),
        ]);
        let patch = "diff --git a/old.rs b/new.rs\nsimilarity index 87%\nrename from old.rs\nrename to new.rs\n\
            diff --git a/logo.png b/logo.png\nindex 1..2\nBinary files a/logo.png and b/logo.png differ\n\
            diff --git a/link b/link\ndeleted file mode 100644\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n\
            diff --git a/link b/link\nnew file mode 120000\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+target\n\
            diff --git a/vendor/lib b/vendor/lib\nindex 1..2 160000\n--- a\n+++ b\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n\
            diff --git a/gone.rs b/gone.rs\ndeleted file mode 100644\n--- a/gone.rs\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n";
        let changes = parse_diff(&both(&raw, patch)).expect("readable");
        let seen: Vec<_> =
            changes.iter().map(|one| (one.path.as_str(), one.kind, one.content, one.is_readable())).collect();
        assert_eq!(
            seen,
            [
                ("new.rs", ChangeKind::Renamed, ContentKind::Text, true),
                ("logo.png", ChangeKind::Modified, ContentKind::Binary, false),
                ("link", ChangeKind::Modified, ContentKind::Symlink, false),
                ("vendor/lib", ChangeKind::Modified, ContentKind::Submodule, false),
                ("gone.rs", ChangeKind::Deleted, ContentKind::Text, false),
            ]
        );
        assert_eq!(changes[0].path_before().as_str(), "old.rs");
        assert_eq!((changes[2].hunks.len(), changes[2].removed), (2, 1));
        assert_eq!(changes[2].line_map().line(1), None);
    }

    #[test]
    fn a_path_that_is_not_utf8_stays_itself() {
        let mut list = format!(":000000 100644 {NIL} {OID} A\0").into_bytes();
        list.extend(b"caf\xe9.txt\0");
        let changes = parse_diff(&both(&list, "diff --git a/x b/x\nnew file mode 100644\n")).expect("readable");
        assert_eq!(changes[0].path.as_str(), "caf%E9.txt");
    }

    #[test]
    fn what_git_does_not_say_is_an_error() {
        let list = raw(&[("100644", "100644", "M", &["a"])]);
        for (list, patch, expected) in [
            (&list[..], "", "the patch ends early"),
            (b":nonsense\0a\0", "", "\":nonsense\" is no entry of its list"),
            (&list, "diff --git a/a b/a\n@@ what @@\n", "a hunk has no line numbers"),
            (&list, "diff --git a/a b/a\n@@ -1 +1,2 @@\n-x\n+y\n", "a hunk ends early"),
            (&list, "diff --git a/a b/a\n@@ -1 +4294967295 @@\n-x\n+y\n", "a hunk has line numbers that no file has"),
            (b"", "diff --git a/a b/a\n", "the patch contains more files than the list of changed files"),
        ] {
            let error = parse_diff(&both(list, patch)).expect_err(expected);
            assert_eq!(error.0, expected);
        }
        assert_eq!(parse_diff(b"").expect("nothing differs"), []);
    }
}
