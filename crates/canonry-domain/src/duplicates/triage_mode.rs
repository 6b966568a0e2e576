//! The triage mode: what Canonry may do with a new item that looks like a duplicate.

use crate::text_enum;

text_enum! {
    /// How far Canonry goes with a new item that looks like a duplicate.
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum TriageMode: "a triage mode" {
        /// Nothing is looked at.
        Off = "off",
        /// Everything is recorded and nothing is written.
        Shadow = "shadow",
        /// A comment and the label `possible-duplicate`.
        Suggest = "suggest",
        /// As `suggest`, and the item is closed after the hours of grace unless anyone objects.
        Grace = "grace",
    }
}

impl TriageMode {
    pub const fn speaks(self) -> bool {
        matches!(self, Self::Suggest | Self::Grace)
    }
}
