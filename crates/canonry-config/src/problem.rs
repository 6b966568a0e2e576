//! A mistake in the settings file, and its effect.

use std::fmt;

use serde::Serialize;

use crate::SettingsSection;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingsProblem {
    /// `None` for the whole file and for keys that are not a section.
    pub section: Option<SettingsSection>,
    /// The key, such as `review.suppressions[2].pattern`; empty for the whole file.
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// What is wrong; contains the key.
    pub message: String,
    /// The key or value that was probably meant.
    pub suggestion: Option<String>,
    pub effect: ProblemEffect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemEffect {
    /// The whole file is ignored.
    FileDefaults,
    /// The section is ignored and gets its defaults.
    SectionDefaults,
    /// One list entry is ignored.
    EntryDropped,
    /// An unknown top-level key is ignored.
    KeyIgnored,
    /// The text is used, with a word in place of the placeholder.
    PlaceholderOutdated,
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
            (ProblemEffect::EntryDropped, _) => f.write_str("; this entry is ignored, the rest of the list counts"),
            (ProblemEffect::KeyIgnored, _) => f.write_str("; the key is ignored"),
            (ProblemEffect::PlaceholderOutdated, _) => f.write_str("; the placeholder becomes \"high\""),
        }
    }
}
