//! What is already known about a draft or a new report: reported, in progress, fixed, or fixed and back again.

pub(crate) mod change_match;
pub(crate) mod change_text;
pub(crate) mod draft_answer;
pub(crate) mod fix_match;
pub(crate) mod fix_text;

pub use change_match::ChangeOverlap;
pub use change_text::{ChangeText, changes_in_place};
pub use draft_answer::{DraftAnswer, FixBase, FixingPull, answer_by_commit, draft_answer};
pub use fix_match::{FixKind, FixMatch, FixRelease, fix_of_report, is_proven_fix};
pub use fix_text::{FixSuggestion, fix_suggestion_text};
