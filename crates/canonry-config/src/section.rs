//! The sections of the settings file, each of which is validated by itself.

use canonry_domain::text_enum;

text_enum! {
    /// A top-level key of the settings file.
    pub enum SettingsSection: "a section" {
        Review = "review",
        Feedback = "feedback",
        Knowledge = "knowledge",
        Triage = "triage",
        Close = "close",
        Mentions = "mentions",
        Budget = "budget",
    }
}
