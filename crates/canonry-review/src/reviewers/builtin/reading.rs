//! Prepares a changed file for the rules.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::review::{Category, LineRange, RepoPath, ReviewerName, Severity};

use super::code_lines::{CodeLine, code_lines};
use super::place::FilePlace;
use super::syntax::Language;
use crate::change::file_change::FileChange;
use crate::findings::reviewer_answer::RawFinding;

#[derive(Debug, Clone, Copy)]
pub struct FileToRead<'a> {
    pub change: &'a FileChange,
    /// The text at the head; `None` if it is not text or too large.
    pub text: Option<&'a str>,
    pub bytes: Option<u64>,
}

pub(super) struct ReadFile<'a> {
    pub(super) change: &'a FileChange,
    pub(super) place: FilePlace,
    pub(super) bytes: Option<u64>,
    pub(super) text: Option<&'a str>,
    /// All lines, from index 0; empty if the text is unknown.
    pub(super) lines: Vec<&'a str>,
    pub(super) language: Option<Language>,
    /// The same lines without strings and comments; empty if the language is unknown.
    pub(super) code: Vec<CodeLine>,
    /// The numbers of the lines that the change added.
    pub(super) added: BTreeSet<u32>,
}

impl<'a> ReadFile<'a> {
    pub(super) fn of(file: FileToRead<'a>) -> Self {
        let change = file.change;
        let language = Language::of(&change.path.extension());
        let text = file.text.filter(|_| change.is_readable());
        let code = text.zip(language).map(|(text, language)| code_lines(text, language)).unwrap_or_default();
        Self {
            change,
            place: FilePlace::of(&change.path),
            bytes: file.bytes,
            text,
            lines: text.map(|text| text.lines().collect()).unwrap_or_default(),
            language,
            code,
            added: change.added.iter().map(|(line, _)| *line).collect(),
        }
    }

    pub(super) fn path(&self) -> &'a RepoPath {
        &self.change.path
    }

    /// The lines of code that the change added, with their numbers.
    pub(super) fn added_code(&self) -> impl Iterator<Item = (u32, &CodeLine)> {
        self.added.iter().filter_map(|line| Some((*line, self.code_at(*line)?)))
    }

    pub(super) fn code_at(&self, line: u32) -> Option<&CodeLine> {
        self.code.get(usize::try_from(line).ok()?.checked_sub(1)?)
    }

    /// Whether there is a comment on the line or alone on the line above: it gives a reason.
    pub(super) fn is_explained(&self, line: u32) -> bool {
        let says = |at: u32| {
            self.code_at(at).is_some_and(|line| line.comment.chars().filter(|c| c.is_alphanumeric()).count() >= 3)
        };
        let above_alone =
            line > 1 && self.code_at(line - 1).is_some_and(|above| above.code.trim().is_empty()) && says(line - 1);
        says(line) || above_alone
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    pub(super) path: RepoPath,
    pub(super) lines: Option<LineRange>,
    pub(super) title: &'static str,
    pub(super) message: String,
    pub(super) severity: Severity,
    pub(super) category: Category,
}

impl Remark {
    pub(super) fn into_finding(self, rule: &str) -> RawFinding {
        RawFinding {
            reviewer: ReviewerName::builtin(),
            rule: Some(rule.to_owned()),
            title: self.title.to_owned(),
            message: self.message,
            path: self.path,
            lines: self.lines,
            severity: self.severity,
            category: self.category,
            partial: BTreeMap::new(),
            tags: BTreeSet::new(),
            fix: None,
            is_serious: false,
            removed_code: None,
        }
    }
}

pub(super) struct BuiltinRule {
    pub(super) id: &'static str,
    pub(super) check: fn(&[ReadFile<'_>]) -> Vec<Remark>,
}

#[cfg(test)]
pub(super) mod tests {
    use canonry_domain::review::RepoPath;

    use super::{BuiltinRule, FileToRead, ReadFile};
    use crate::change::file_change::{ChangeKind, ContentKind, FileChange};

    pub(in crate::reviewers::builtin) fn new_file(path: &str, text: &str) -> FileChange {
        FileChange {
            kind: ChangeKind::Added,
            path: RepoPath::exact(path).expect("a path"),
            old_path: None,
            content: ContentKind::Text,
            blob: None,
            hunks: Vec::new(),
            added: (1..).zip(text.lines().map(str::to_owned)).collect(),
            removed: 0,
        }
    }

    /// The first lines that a rule flags in a new file; 0 stands for the whole file.
    pub(in crate::reviewers::builtin) fn flagged(rule: &BuiltinRule, path: &str, text: &str) -> Vec<u32> {
        let change = new_file(path, text);
        let file = FileToRead { change: &change, text: Some(text), bytes: Some(text.len() as u64) };
        (rule.check)(&[ReadFile::of(file)]).iter().map(|one| one.lines.map_or(0, |lines| lines.first)).collect()
    }

    pub(in crate::reviewers::builtin) fn check_table(rule: &BuiltinRule, table: &[(&str, &str, &[u32])]) {
        for (path, text, expected) in table {
            assert_eq!(flagged(rule, path, text), *expected, "{} in {path}:\n{text}", rule.id);
        }
    }
}
