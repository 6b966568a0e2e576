//! Why a row of a plan does not close its item.

use crate::text_enum;

text_enum! {
    /// Why a row of a plan does not close its item.
    pub enum SkipReason: "a reason to skip" {
        NotOpen = "not_open",
        /// Its author or its assignees are unknown, so they might be maintainers.
        UncertainMaintainerIdentity = "uncertain_maintainer_identity",
        MaintainerAuthor = "maintainer_author",
        MaintainerAssignee = "maintainer_assignee",
        /// Nothing says that it is a duplicate of the canonical itself.
        MissingAcceptedEdge = "missing_accepted_edge",
        LowConfidence = "low_confidence",
        /// Somebody works on it: a milestone, or an open pull request that fixes it.
        InProgress = "in_progress",
        Locked = "locked",
        Pinned = "pinned",
        /// It has a label whose items are never closed.
        ProtectedLabel = "protected_label",
        /// A text changed after it was judged.
        StaleEdge = "stale_edge",
        /// The canonical is not open, so nothing may be closed as its duplicate.
        UnsafeTarget = "unsafe_target",
        /// A person reopened it, or a close of it was undone or objected to.
        HumanReopened = "human_reopened",
        /// A person ruled that it is not a duplicate of another item of its cluster.
        ConflictingOverride = "conflicting_override",
        Objected = "objected",
        /// A close of it is announced, and there is time left to object.
        InGrace = "in_grace",
        /// It, or the canonical, has no text of its own, only that of a template.
        NoContent = "no_content",
        /// The judge that called it a duplicate has not proven itself in the repository.
        UnprovenJudge = "unproven_judge",
        /// As many items were closed today as may be without a person's approval.
        DailyLimit = "daily_limit",
        /// A person excluded it from a plan, and nobody has lifted that.
        Excluded = "excluded",
        /// A person ruled about its cluster after the plan was made.
        RuledSince = "ruled_since",
    }
}

impl SkipReason {
    /// The reason as people are shown it.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::NotOpen => "it is not open",
            Self::UncertainMaintainerIdentity => "its author or assignees are unknown",
            Self::MaintainerAuthor => "a maintainer wrote it",
            Self::MaintainerAssignee => "it is assigned to a maintainer",
            Self::MissingAcceptedEdge => "nothing shows that it duplicates the item that stays open",
            Self::LowConfidence => "the confidence is too low",
            Self::InProgress => "somebody is working on it",
            Self::Locked => "its conversation is locked",
            Self::Pinned => "it is pinned",
            Self::ProtectedLabel => "it has a protected label",
            Self::StaleEdge => "a text changed after it was judged",
            Self::UnsafeTarget => "the canonical is not open",
            Self::HumanReopened => "a person reopened it",
            Self::ConflictingOverride => "a person ruled that it is not a duplicate",
            Self::Objected => "somebody objected when its close was announced",
            Self::InGrace => "its close is already announced",
            Self::NoContent => "it or the canonical is an empty template",
            Self::UnprovenJudge => "its judge is not proven in this repository; run `canonry judge-audit`",
            Self::DailyLimit => "the daily limit of closes is reached",
            Self::Excluded => "a person excluded it",
            Self::RuledSince => "a person ruled about its cluster after the plan was made",
        }
    }
}
