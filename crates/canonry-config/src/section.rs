//! The sections of the settings file, each validated independently.

use canonry_domain::text_enum;

text_enum! {
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
