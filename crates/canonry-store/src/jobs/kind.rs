//! The kinds of jobs.

use canonry_domain::text_enum;

text_enum! {
    pub enum JobKind: "a kind of job" {
        /// Handling a webhook.
        Webhook = "webhook",
        /// Syncing a repository.
        Sync = "sync",
        /// Reviewing a pull request.
        Review = "review",
        /// Triaging an item again because its text changed shortly after its triage.
        Triage = "triage",
        /// Counting the reactions to Canonry's comments.
        Reactions = "reactions",
        /// Asking GitHub to redeliver failed deliveries.
        Recover = "recover",
        /// Closing items whose announced grace ended without an objection.
        Grace = "grace",
        /// Recording reactions of people to closes.
        Objections = "objections",
        /// Applying a plan that a person approved in the console.
        ApplyClose = "apply_close",
        /// Reopening the items that a plan closed.
        UndoClose = "undo_close",
        Plan = "plan",
        /// Recomputing clusters and their canonicals.
        Canonicalize = "canonicalize",
        /// Cancelling an announced close.
        CancelGrace = "cancel_grace",
    }
}

/// The kind of a stored job. Another version of Canonry may have stored a kind that this one does not know.
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
