//! Parses the stored reason why a close did not happen.

use canonry_domain::{DriftKind, GraceEnd, RowRefusal};
use canonry_github::outbox::EndReason;

/// The prefix of the reason if a person or a newer plan cancelled the close.
const WITHDRAWN: &str = "withdrawn";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CloseRefusal {
    pub(crate) cause: RefusalCause,
    /// Whether the comment that announced the close stands uncorrected, so that a person has to check it.
    is_uncorrected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalCause {
    Rule(RowRefusal),
    /// A person excluded the row, or a newer plan replaced it.
    Withdrawn,
    /// A gate of the judge. Its reasons are single words.
    Gate,
    /// GitHub. Its reasons are sentences.
    GitHub,
}

impl CloseRefusal {
    pub(crate) fn of(reason: &str) -> Self {
        let EndReason { why, uncorrected } = EndReason::of_stored(reason);
        let cause = match why.parse() {
            Ok(refusal) => RefusalCause::Rule(refusal),
            Err(_) if why.starts_with(WITHDRAWN) => RefusalCause::Withdrawn,
            Err(_) if why.contains(' ') => RefusalCause::GitHub,
            Err(_) => RefusalCause::Gate,
        };
        Self { cause, is_uncorrected: uncorrected.is_some() }
    }

    /// Whether one of our own rules refused the close, and nothing is left to do.
    pub(crate) fn is_rule(self) -> bool {
        !self.is_uncorrected && matches!(self.cause, RefusalCause::Rule(_) | RefusalCause::Withdrawn)
    }

    /// The human activity that ended the close, if that is the cause.
    pub(crate) fn ended_by(self) -> Option<GraceEnd> {
        match self.cause {
            _ if self.is_uncorrected => None,
            RefusalCause::Rule(RowRefusal::Grace(end)) => Some(end),
            RefusalCause::Rule(RowRefusal::Drift(kind)) => match kind {
                DriftKind::SourceEdited => Some(GraceEnd::Edited),
                DriftKind::SourceClosed => Some(GraceEnd::Closed),
                DriftKind::SourceReopened => Some(GraceEnd::Reopened),
                DriftKind::SourceAssigned => Some(GraceEnd::Assigned),
                DriftKind::SourceLocked => Some(GraceEnd::Locked),
                DriftKind::HumanCommented => Some(GraceEnd::HumanCommented),
                DriftKind::TargetClosed | DriftKind::TargetGone => Some(GraceEnd::TargetClosed),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The stored reason of a cancelled close.
pub(crate) fn withdrawn(why: &str) -> String {
    format!("{WITHDRAWN}: {why}")
}
