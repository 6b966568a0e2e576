//! How far Canonry goes with a new item that looks like a duplicate.

use serde::{Deserialize, Serialize};

use crate::text::text_enum::words;

/// How far Canonry goes with a new item that looks like a duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriageMode {
    Off,
    Shadow,
    /// A comment and the label `possible-duplicate`.
    Suggest,
    /// As `suggest`, and the item is closed after the hours of grace unless anyone objects.
    Grace,
}

words!(TriageMode, "a triage mode", Off = "off", Shadow = "shadow", Suggest = "suggest", Grace = "grace");

impl TriageMode {
    pub const fn speaks(self) -> bool {
        matches!(self, Self::Suggest | Self::Grace)
    }
}
