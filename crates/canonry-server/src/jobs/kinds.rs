//! The kinds of jobs, as they are stored.

/// All of them, for whoever lists or names them.
pub const JOB_KINDS: [&str; 13] = [
    WEBHOOK,
    SYNC,
    REVIEW,
    TRIAGE,
    REACTIONS,
    RECOVER,
    GRACE,
    OBJECTIONS,
    APPLY_CLOSE,
    UNDO_CLOSE,
    PLAN,
    CANONICALIZE,
    CANCEL_GRACE,
];

pub(crate) const WEBHOOK: &str = "webhook";
/// Bringing a repository up to date.
pub(crate) const SYNC: &str = "sync";
/// Reviewing a pull request.
pub(crate) const REVIEW: &str = "review";
/// Looking again at an item whose text changed shortly after it was triaged.
pub(crate) const TRIAGE: &str = "triage";
/// Reading the reactions to what Canonry said.
pub(crate) const REACTIONS: &str = "reactions";
/// Asking GitHub again for deliveries that failed.
pub(crate) const RECOVER: &str = "recover";
/// Closing what nobody objected to.
pub(crate) const GRACE: &str = "grace";
/// Asking what people think of closes.
pub(crate) const OBJECTIONS: &str = "objections";
/// Carrying out a plan that a person has applied in the console.
pub(crate) const APPLY_CLOSE: &str = "apply_close";
/// Opening again what a plan closed.
pub(crate) const UNDO_CLOSE: &str = "undo_close";
pub(crate) const PLAN: &str = "plan";
/// Bringing clusters up to date.
pub(crate) const CANONICALIZE: &str = "canonicalize";
/// Calling an announced close off.
pub(crate) const CANCEL_GRACE: &str = "cancel_grace";
