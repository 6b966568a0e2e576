//! What a finding is about.

use crate::text_enum;

text_enum! {
    /// What a finding is about.
    pub enum Category: "a category" {
        Security = "security",
        Correctness = "correctness",
        /// The program is slower or larger than it should be.
        Performance = "performance",
        /// The code is harder to read than it should be.
        Style = "style",
        Documentation = "documentation",
    }
}
