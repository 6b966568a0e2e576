//! A mistake in the settings file, and what it costs.

use std::fmt;

use serde::Serialize;

use crate::SettingsSection;

/// A mistake in the settings file: where it is, what is wrong, and what is done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingsProblem {
    /// The section it is in; none for the file as a whole and for keys that are no section.
    pub section: Option<SettingsSection>,
    /// The key, such as `review.suppressions[2].pattern`; empty for the file as a whole.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong, naming the key.
    pub message: String,
    /// The key or value that was probably meant.
    pub suggestion: Option<String>,
    /// What is done about it.
    pub effect: ProblemEffect,
}

/// What a mistake costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemEffect {
    /// The whole file is as if it were empty.
    FileDefaults,
    /// The section is as if it were not written.
    SectionDefaults,
    /// One entry of a list is as if it were not written.
    EntryDropped,
    /// A top-level key that means nothing is passed over.
    KeyIgnored,
}

impl fmt::Display for SettingsProblem {
    /// One sentence: `line 3, column 16: … (did you mean …?); the section … uses its defaults`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, " (did you mean `{suggestion}`?)")?;
        }
        match (self.effect, self.section) {
            (ProblemEffect::SectionDefaults, Some(section)) => {
                write!(f, "; the section `{section}` uses its defaults")
            }
            (ProblemEffect::SectionDefaults, None) | (ProblemEffect::FileDefaults, _) => {
                f.write_str("; the whole file is ignored and every setting has its default")
            }
            (ProblemEffect::EntryDropped, _) => f.write_str("; this entry is dropped, the rest of the list stands"),
            (ProblemEffect::KeyIgnored, _) => f.write_str("; the key is ignored"),
        }
    }
}
