//! The kinds of jobs.

use canonry_domain::text_enum;

text_enum! {
    pub enum JobKind: "a kind of job" {
        /// Doing what a webhook asks for.
        Webhook = "webhook",
        /// Bringing a repository up to date.
        Sync = "sync",
        /// Reviewing a pull request.
        Review = "review",
        /// Triaging an item again whose text changed shortly after it was triaged.
        Triage = "triage",
        /// Counting the reactions to Canonry's comments.
        Reactions = "reactions",
        /// Asking GitHub again for deliveries that failed.
        Recover = "recover",
        /// Closing what was announced and nobody objected to.
        Grace = "grace",
        /// Recording what people think of closes.
        Objections = "objections",
        /// Carrying out a plan that a person applied in the console.
        ApplyClose = "apply_close",
        /// Reopening what a plan closed.
        UndoClose = "undo_close",
        Plan = "plan",
        /// Recomputing clusters and their canonicals.
        Canonicalize = "canonicalize",
        /// Cancelling an announced close.
        CancelGrace = "cancel_grace",
    }
}

/// The kind of a stored job. Another version may have stored one that this one does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredJobKind {
    Known(JobKind),
    Unknown(String),
}

impl StoredJobKind {
    pub fn known(&self) -> Option<JobKind> {
        match self {
            Self::Known(kind) => Some(*kind),
            Self::Unknown(_) => None,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(kind) => kind.as_str(),
            Self::Unknown(kind) => kind,
        }
    }
}

impl From<String> for StoredJobKind {
    fn from(kind: String) -> Self {
        kind.parse().map_or(Self::Unknown(kind), Self::Known)
    }
}

impl PartialEq<JobKind> for StoredJobKind {
    fn eq(&self, other: &JobKind) -> bool {
        self.known() == Some(*other)
    }
}

impl std::fmt::Display for StoredJobKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}
