//! People's answers to findings: dismissals, reactions, refusals in threads.

pub(crate) mod dismissal;
pub(crate) mod dismissal_text;
pub(crate) mod feedback;

pub use dismissal::{Dismissal, DismissalKind, Dismisser};
pub use dismissal_text::is_refusal;
pub use feedback::{
    FeedbackRule, PatternFeedback, Vote, feedback_hides, is_protected, may_teach, pool_votes, rejected_by_people,
};
