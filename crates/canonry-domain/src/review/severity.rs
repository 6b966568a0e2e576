//! The severities of findings.

use crate::text_enum;

text_enum! {
    /// How much a finding matters, least first.
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum Severity: "a severity" {
        /// Nice to have.
        Minor = "minor",
        /// Should be looked at.
        Medium = "medium",
        /// Should be fixed before merging.
        Major = "major",
        /// Must be fixed; never filtered, suppressed or capped.
        Critical = "critical",
    }
}
