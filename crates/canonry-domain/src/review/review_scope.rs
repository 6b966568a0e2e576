//! Which part of a change a review reads, and why; and which findings the change is answerable for.

use std::fmt;

use crate::review::CommitSha;
use crate::text_enum;

text_enum! {
    /// Whether a review reads everything or only the changes since the last review.
    pub enum ReviewMode: "a mode of a review" {
        Full = "full",
        /// Only the changes since the last completed review.
        Incremental = "incremental",
    }
}

text_enum! {
    /// The findings that a change is answerable for.
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum AnswerableScope: "a scope of a review" {
        /// Findings on lines that the change adds or changes; others are only counted.
        Changed = "changed",
        /// All findings that reviewers report, wherever they are.
        All = "all",
    }
}

/// Why a review is full or incremental.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScopeReason {
    /// No review of this pull request was ever completed.
    NoPriorReview,
    /// The head of the last completed review does not exist any more.
    PriorShaUnreachable,
    /// Git could not compute the changes since the last completed review.
    DiffComputationFailed,
    FullRequested,
    IncrementalFrom(CommitSha),
    NoChangesSince(CommitSha),
}

impl ScopeReason {
    pub fn mode(&self) -> ReviewMode {
        match self {
            Self::IncrementalFrom(_) | Self::NoChangesSince(_) => ReviewMode::Incremental,
            Self::NoPriorReview | Self::PriorShaUnreachable | Self::DiffComputationFailed | Self::FullRequested => {
                ReviewMode::Full
            }
        }
    }
}

/// The text that scripts read.
impl fmt::Display for ScopeReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPriorReview => formatter.write_str("no-prior-review"),
            Self::PriorShaUnreachable => formatter.write_str("prior-sha-unreachable"),
            Self::DiffComputationFailed => formatter.write_str("diff-computation-failed"),
            Self::FullRequested => formatter.write_str("full-requested"),
            Self::IncrementalFrom(sha) => write!(formatter, "incremental-from-{}", sha.short()),
            Self::NoChangesSince(sha) => write!(formatter, "no-changes-since-{}", sha.short()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReviewMode, ScopeReason};

    #[test]
    fn the_words_of_each_reason() {
        let sha = "abc1234".repeat(6)[..40].parse().expect("an id");
        let since = ScopeReason::IncrementalFrom;
        for (reason, words, mode) in [
            (ScopeReason::NoPriorReview, "no-prior-review", ReviewMode::Full),
            (ScopeReason::PriorShaUnreachable, "prior-sha-unreachable", ReviewMode::Full),
            (ScopeReason::DiffComputationFailed, "diff-computation-failed", ReviewMode::Full),
            (ScopeReason::FullRequested, "full-requested", ReviewMode::Full),
            (since(Clone::clone(&sha)), "incremental-from-abc1234", ReviewMode::Incremental),
            (ScopeReason::NoChangesSince(sha), "no-changes-since-abc1234", ReviewMode::Incremental),
        ] {
            assert_eq!((reason.to_string().as_str(), reason.mode()), (words, mode));
        }
        assert_eq!(ReviewMode::Incremental.to_string(), "incremental");
    }
}
