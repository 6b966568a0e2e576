//! The categories of findings.

use crate::text_enum;

text_enum! {
    /// What a finding is about.
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum Category: "a category" {
        /// Somebody could do harm.
        Security = "security",
        /// The program does the wrong thing.
        Correctness = "correctness",
        /// The program is slower or larger than it should be.
        Performance = "performance",
        /// The code is harder to read than it should be.
        Style = "style",
        /// Text for people is missing or wrong.
        Documentation = "documentation",
    }
}
