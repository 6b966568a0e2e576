//! Reconstructs which gates a stored decision or verdict passed, and which gate decided it.

use crate::{DecisionOrigin, DecisionStatus, GateReason, OnlineReason};

/// The gates between a candidate set and an edge, in the order in which they are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecisionGate {
    Ruling,
    Candidates,
    EnoughText,
    NoEdgeYet,
    UsableAnswer,
    SaidYes,
    /// The two are not related in another way, as parts of a series or as a change and its revert.
    Unrelated,
    /// The structural keys of the answer do not contradict its yes.
    Structure,
    TargetOpen,
    /// Not a bug report on one side and a feature request on the other.
    SameKind,
    Confidence,
    Gap,
    Accept,
}

/// The gates between a new item and its verdict, in the order in which they are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OnlineGate {
    Ruling,
    EnoughText,
    /// An open neighbour is near enough to be judged.
    Neighbours,
    UsableAnswer,
    SaidYes,
    /// The two are not related in another way, as parts of a series or as a change and its revert.
    Unrelated,
    MaybeConfidence,
    /// The structural keys of the answer do not contradict its yes.
    Structure,
    /// Not a bug report on one side and a feature request on the other.
    SameKind,
    /// The answer says same instance, same cause, same scope and sure.
    AllSame,
    Gap,
    DuplicateConfidence,
    /// The target is similar enough, whatever the judge says.
    Alike,
    ProvenJudge,
    Duplicate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateMark {
    Passed,
    Decided,
    /// The gate was not checked, because another gate had decided.
    NotAsked,
}

impl DecisionGate {
    pub const ALL: [Self; 13] = [
        Self::Ruling,
        Self::Candidates,
        Self::EnoughText,
        Self::NoEdgeYet,
        Self::UsableAnswer,
        Self::SaidYes,
        Self::Unrelated,
        Self::Structure,
        Self::TargetOpen,
        Self::SameKind,
        Self::Confidence,
        Self::Gap,
        Self::Accept,
    ];

    /// The gate that decided, according to the stored data; `None` for an unknown reason.
    pub fn that_decided(origin: DecisionOrigin, status: DecisionStatus, reason: Option<&str>) -> Option<Self> {
        match (status, reason) {
            (DecisionStatus::Accepted, _) if origin == DecisionOrigin::Override => Some(Self::Ruling),
            (DecisionStatus::Accepted, _) => Some(Self::Accept),
            (DecisionStatus::Rejected, None) => Some(Self::SaidYes),
            (DecisionStatus::Skipped, None) => None,
            (_, Some(reason)) => Some(reason.parse::<GateReason>().ok()?.gate()),
        }
    }
}

impl OnlineGate {
    pub const ALL: [Self; 15] = [
        Self::Ruling,
        Self::EnoughText,
        Self::Neighbours,
        Self::UsableAnswer,
        Self::SaidYes,
        Self::Unrelated,
        Self::MaybeConfidence,
        Self::Structure,
        Self::SameKind,
        Self::AllSame,
        Self::Gap,
        Self::DuplicateConfidence,
        Self::Alike,
        Self::ProvenJudge,
        Self::Duplicate,
    ];

    /// The gate that decided, according to the stored reason; `None` for an unknown reason.
    pub fn that_decided(reason: &str) -> Option<Self> {
        Some(reason.parse::<OnlineReason>().ok()?.gate())
    }
}

/// Every gate of a stored decision with its result. For an unknown reason every gate counts as not checked.
pub fn gate_trail(
    origin: DecisionOrigin,
    status: DecisionStatus,
    reason: Option<&str>,
) -> Vec<(DecisionGate, GateMark)> {
    let decided = DecisionGate::that_decided(origin, status, reason);
    let trail = marked(&DecisionGate::ALL, decided);
    // If an edge exists already, a person's ruling skips the gates that only save a call to the judge.
    let is_ruled = origin == DecisionOrigin::Override && decided == Some(DecisionGate::NoEdgeYet);
    // An item without text of its own is not compared with anything.
    let is_empty = GateReason::NoContent.is_stored_as(reason);
    let skipped = |gate| match gate {
        DecisionGate::Candidates => is_ruled || is_empty,
        DecisionGate::EnoughText => is_ruled,
        _ => false,
    };
    trail.into_iter().map(|(gate, mark)| (gate, if skipped(gate) { GateMark::NotAsked } else { mark })).collect()
}

/// Every gate of a stored verdict about a new item with its result. For an unknown reason every gate counts as not
/// checked.
pub fn online_trail(reason: &str) -> Vec<(OnlineGate, GateMark)> {
    marked(&OnlineGate::ALL, OnlineGate::that_decided(reason))
}

fn marked<G: Copy + PartialEq>(gates: &[G], decided: Option<G>) -> Vec<(G, GateMark)> {
    let at = decided.and_then(|decided| gates.iter().position(|gate| *gate == decided));
    let mark = |place: usize| match at {
        Some(at) if place < at => GateMark::Passed,
        Some(at) if place == at => GateMark::Decided,
        _ => GateMark::NotAsked,
    };
    gates.iter().enumerate().map(|(place, gate)| (*gate, mark(place))).collect()
}
