//! The result of the gates for one candidate set.

use crate::{GateReason, ItemNumber, text_enum};

text_enum! {
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

/// The decision of the gates about a candidate set, and the gate that decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateDecision {
    pub status: DecisionStatus,
    /// The candidate that the judge named, vetoed or not.
    pub target: Option<ItemNumber>,
    /// The veto or the reason for the skip; `None` for an accepted edge and for a judge's own no.
    pub reason: Option<GateReason>,
}

impl GateDecision {
    pub const fn accepted(target: ItemNumber) -> Self {
        Self { status: DecisionStatus::Accepted, target: Some(target), reason: None }
    }

    pub const fn rejected_by_judge() -> Self {
        Self { status: DecisionStatus::Rejected, target: None, reason: None }
    }

    /// A yes of the judge that a gate vetoed.
    pub const fn vetoed(target: ItemNumber, reason: GateReason) -> Self {
        Self { status: DecisionStatus::Rejected, target: Some(target), reason: Some(reason) }
    }

    pub const fn skipped(reason: GateReason) -> Self {
        Self { status: DecisionStatus::Skipped, target: None, reason: Some(reason) }
    }

    /// Whether the judge's answer was malformed or named an item that is not a candidate.
    pub const fn is_invalid_response(&self) -> bool {
        matches!(self.reason, Some(GateReason::InvalidResponse(_)))
    }

    pub fn stored_reason(&self) -> Option<String> {
        self.reason.as_ref().map(ToString::to_string)
    }
}
