//! How far Canonry goes with a new item that looks like a duplicate.

use crate::text_enum;

text_enum! {
    /// How far Canonry goes with a new item that looks like a duplicate.
    pub enum TriageMode: "a triage mode" {
        Off = "off",
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
