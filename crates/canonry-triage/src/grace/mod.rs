//! Announced closes, applied unless a person objects in time.

pub(crate) mod begin_grace;
pub(crate) mod cancel_grace;
pub(crate) mod close_due_grace;
pub(crate) mod grace_recheck;
pub(crate) mod judge_grace;

pub use begin_grace::{GraceError, GraceStart, begin_announced_graces, begin_grace_by_ruling};
pub use cancel_grace::{cancel_grace, is_closing, post_ended_graces};
pub use close_due_grace::{GraceOutcome, GraceParts, close_due_grace, close_due_grace_by_index};
