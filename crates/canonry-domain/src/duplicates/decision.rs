//! What the gates made of one candidate set.

use crate::items::item::ItemNumber;
use crate::text_enum;

text_enum! {
    /// What became of an evaluated candidate set.
    pub enum DecisionStatus: "a decision's status" {
        /// An edge: the source is a duplicate of its target.
        Accepted = "accepted",
        /// The judge said no, or a gate vetoed its yes.
        Rejected = "rejected",
        Skipped = "skipped",
    }
}

text_enum! {
    pub enum DecisionOrigin: "a decision's origin" {
        /// `judge`, over stored candidate sets.
        Batch = "batch",
        Online = "online",
        Override = "override",
    }
}

/// The gates' ruling: what becomes of a candidate set, and the gate that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateDecision {
    pub status: DecisionStatus,
    /// The candidate that the judge named, vetoed or not.
    pub target: Option<ItemNumber>,
    /// The veto or the reason for the skip; `None` for an accepted edge and for a judge's own no.
    pub reason: Option<String>,
}

impl GateDecision {
    /// Source or target has no text of its own, only that of a template.
    pub const NO_CONTENT: &'static str = "no_content";
    /// Gate 1: there is nothing to compare with.
    pub const NO_CANDIDATES: &'static str = "no_candidates";
    /// Gate 2: the source says too little to be compared.
    pub const SOURCE_TOO_VAGUE: &'static str = "source_too_vague";
    /// Gate 3: the source has an accepted edge already.
    pub const EXISTING_EDGE: &'static str = "existing_edge";
    /// Gate 4: what stands before the kind of a malformed answer.
    pub const INVALID_RESPONSE: &'static str = "invalid_response:";
    /// Gate 7: the target is closed.
    pub const TARGET_NOT_OPEN: &'static str = "target_not_open";
    /// Gate 9: the judge's confidence is too low.
    pub const BELOW_MIN_EDGE: &'static str = "below_min_edge";
    /// Gate 10: another candidate is as near.
    pub const CANDIDATE_GAP_TOO_SMALL: &'static str = "candidate_gap_too_small";

    pub const fn accepted(target: ItemNumber) -> Self {
        Self { status: DecisionStatus::Accepted, target: Some(target), reason: None }
    }

    pub const fn said_no() -> Self {
        Self { status: DecisionStatus::Rejected, target: None, reason: None }
    }

    /// A yes that a gate turned down.
    pub fn vetoed(target: ItemNumber, reason: impl Into<String>) -> Self {
        Self { status: DecisionStatus::Rejected, target: Some(target), reason: Some(reason.into()) }
    }

    pub fn skipped(reason: impl Into<String>) -> Self {
        Self { status: DecisionStatus::Skipped, target: None, reason: Some(reason.into()) }
    }

    /// Whether the judge's answer was malformed or named something that is no candidate.
    pub fn is_invalid_response(&self) -> bool {
        self.reason.as_deref().is_some_and(|reason| reason.starts_with(Self::INVALID_RESPONSE))
    }
}

#[cfg(test)]
mod tests {
    use super::GateDecision;

    #[test]
    fn an_invalid_response_is_told_by_its_reason() {
        assert!(GateDecision::skipped("invalid_response:empty").is_invalid_response());
        assert!(!GateDecision::skipped(GateDecision::NO_CANDIDATES).is_invalid_response());
        assert!(!GateDecision::said_no().is_invalid_response());
    }
}
