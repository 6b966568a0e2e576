//! How much a finding matters.

use crate::text_enum;

text_enum! {
    /// How much a finding matters, least first.
    pub enum Severity: "a severity" {
        Minor = "minor",
        Medium = "medium",
        /// Should be fixed before merging.
        Major = "major",
        /// Must be fixed; never filtered, suppressed or capped.
        Critical = "critical",
    }
}
