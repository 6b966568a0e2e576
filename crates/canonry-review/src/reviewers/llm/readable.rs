//! Decides what of a changed file can be shown, and describes its change.

use canonry_domain::{counted, redact, visible};

use crate::change::file_change::{ChangeKind, ContentKind, FileChange};
use crate::reviewers::FileToRead;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readable<'a> {
    /// The text; empty for a deleted file.
    Text(&'a str),
    /// Only the name or the mode changed, not the text.
    Name,
    Not(&'static str),
}

impl<'a> Readable<'a> {
    pub(super) fn of(file: &FileToRead<'a>) -> Self {
        match file.change.content {
            ContentKind::Text if file.change.kind == ChangeKind::Deleted => Self::Text(""),
            _ if file.change.kind == ChangeKind::Deleted => Self::Name,
            ContentKind::Binary => Self::Not("it is not text"),
            ContentKind::Symlink => Self::Not("it is a link"),
            ContentKind::Submodule => Self::Not("it is another repository"),
            ContentKind::Text if file.change.hunks.is_empty() => Self::Name,
            ContentKind::Text => file.text.map_or(Self::Not("its text is too large or could not be read"), Self::Text),
        }
    }
}

/// Describes what happened to a file that has `lines` lines now, to be read after "this file".
pub(super) fn happened(change: &FileChange, lines: usize) -> String {
    let from = || visible(&redact(change.path_before().as_str()));
    let now = counted(lines as u64, "line");
    if change.hunks.is_empty() {
        return match change.kind {
            ChangeKind::Added => "is new and empty".to_owned(),
            ChangeKind::Deleted => "is deleted".to_owned(),
            ChangeKind::Modified => "has another mode, and its text is as it was".to_owned(),
            ChangeKind::Renamed => format!("was named {}, and its text is as it was", from()),
            ChangeKind::Copied => format!("is a copy of {}", from()),
        };
    }
    match change.kind {
        ChangeKind::Added => format!("is new and has {now} now"),
        ChangeKind::Deleted => format!("is deleted and had {}", counted(u64::from(change.removed), "line")),
        ChangeKind::Modified => format!("is changed and has {now} now"),
        ChangeKind::Renamed => format!("is renamed and changed and has {now} now; it was named {}", from()),
        ChangeKind::Copied => format!("is a changed copy of {} and has {now} now", from()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::shown_file::tests::change;
    use super::Readable;
    use crate::change::file_change::{ChangeKind, ContentKind, FileChange};
    use crate::reviewers::FileToRead;

    #[test]
    fn what_cannot_be_read_is_told() {
        let plain = change("a.png", &[(1, 1, 1, 1)]);
        for (change, text, expected) in [
            (FileChange { content: ContentKind::Binary, ..plain.clone() }, None, Readable::Not("it is not text")),
            (FileChange { kind: ChangeKind::Deleted, ..plain.clone() }, None, Readable::Text("")),
            (
                FileChange { kind: ChangeKind::Deleted, content: ContentKind::Binary, ..plain.clone() },
                None,
                Readable::Name,
            ),
            (FileChange { hunks: Vec::new(), ..plain.clone() }, Some("x"), Readable::Name),
            (plain.clone(), None, Readable::Not("its text is too large or could not be read")),
            (plain, Some("x"), Readable::Text("x")),
        ] {
            assert_eq!(Readable::of(&FileToRead { change: &change, text, bytes: None }), expected);
        }
    }
}
