//! The stored reason of a close that did not happen, read back.

use canonry_domain::{DriftKind, GraceEnd, RowRefusal};

/// What the outbox adds to a refusal when the comment that announced the close stands uncorrected.
const UNCORRECTED: &str = "; its comment could not be corrected";
/// Begins the reason of a close that a person or a newer plan took back.
const WITHDRAWN: &str = "withdrawn";

/// Why a close did not happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CloseRefusal {
    pub(crate) cause: RefusalCause,
    /// Whether the comment that announced the close stands uncorrected, so that somebody has to look.
    is_uncorrected: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalCause {
    Rule(RowRefusal),
    /// A person left the row out, or another plan came after it.
    Withdrawn,
    /// A gate of the judge, whose reasons are single words.
    Gate,
    /// GitHub, whose reasons are sentences.
    GitHub,
}

impl CloseRefusal {
    pub(crate) fn of(reason: &str) -> Self {
        let (why, is_uncorrected) = match reason.split_once(UNCORRECTED) {
            Some((why, _)) => (why, true),
            None => (reason, false),
        };
        let cause = match why.parse() {
            Ok(refusal) => RefusalCause::Rule(refusal),
            Err(_) if why.starts_with(WITHDRAWN) => RefusalCause::Withdrawn,
            Err(_) if why.contains(' ') => RefusalCause::GitHub,
            Err(_) => RefusalCause::Gate,
        };
        Self { cause, is_uncorrected }
    }

    /// Whether one of our own rules refused it, and nothing is left to be done.
    pub(crate) fn is_rule(self) -> bool {
        !self.is_uncorrected && matches!(self.cause, RefusalCause::Rule(_) | RefusalCause::Withdrawn)
    }

    /// What people did, where that is why.
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

/// The reason of a close that is taken back.
pub(crate) fn withdrawn(why: &str) -> String {
    format!("{WITHDRAWN}: {why}")
}
