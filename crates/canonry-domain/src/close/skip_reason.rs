//! The reasons why a row of a plan does not close its item.

use crate::text_enum;

text_enum! {
    pub enum SkipReason: "a reason to skip" {
        NotOpen = "not_open",
        /// The author or the assignees are unknown, so they might be maintainers.
        UncertainMaintainerIdentity = "uncertain_maintainer_identity",
        MaintainerAuthor = "maintainer_author",
        MaintainerAssignee = "maintainer_assignee",
        /// No edge shows that the item is a duplicate of the canonical itself.
        MissingAcceptedEdge = "missing_accepted_edge",
        LowConfidence = "low_confidence",
        /// Somebody works on the item: it has a milestone, or an open pull request that fixes it.
        InProgress = "in_progress",
        Locked = "locked",
        Pinned = "pinned",
        /// The item has a label whose items are never closed.
        ProtectedLabel = "protected_label",
        /// A text changed after the pair was judged.
        StaleEdge = "stale_edge",
        /// The canonical is not open, so no item may be closed as its duplicate.
        UnsafeTarget = "unsafe_target",
        /// A person reopened the item, or a close of it was undone or objected to.
        HumanReopened = "human_reopened",
        /// A person ruled that the item is not a duplicate of another item of its cluster.
        ConflictingOverride = "conflicting_override",
        Objected = "objected",
        /// A close of the item is announced, and the time to object is not over.
        InGrace = "in_grace",
        /// The item or the canonical has no text of its own, only the text of a template.
        NoContent = "no_content",
        /// The judge that called the item a duplicate has not proven itself in the repository.
        UnprovenJudge = "unproven_judge",
        /// The daily limit of closes without a maintainer's approval is reached.
        DailyLimit = "daily_limit",
        /// A person excluded the item from a plan, and nobody has lifted that.
        Excluded = "excluded",
        /// A person ruled about the item's cluster after the plan was made.
        RuledSince = "ruled_since",
    }
}

impl SkipReason {
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
