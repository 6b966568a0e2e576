//! The kinds of jobs, as they are stored.

/// What a webhook asks for.
pub(crate) const WEBHOOK: &str = "webhook";
/// Bringing a repository up to date.
pub(crate) const SYNC: &str = "sync";
/// Looking again at an item whose text changed shortly after it was triaged.
pub(crate) const TRIAGE: &str = "triage";
/// Reading the reactions to what Canonry said.
pub(crate) const REACTIONS: &str = "reactions";
/// Asking GitHub again for deliveries that failed.
pub(crate) const RECOVER: &str = "recover";
