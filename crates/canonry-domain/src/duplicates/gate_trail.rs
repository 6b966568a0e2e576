//! Which gates a stored decision or verdict went through, and which of them decided it.

use crate::duplicates::decision::{DecisionOrigin, DecisionStatus, GateDecision};
use crate::duplicates::online_verdict::{NO_USABLE_ANSWER, UNPROVEN_JUDGE};

/// The gates between a candidate set and an edge, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DecisionGate {
    Ruling,
    Candidates,
    EnoughText,
    NoEdgeYet,
    UsableAnswer,
    SaidYes,
    /// The parts of the answer do not contradict its yes.
    Structure,
    TargetOpen,
    /// Not a bug on one side and a wish on the other.
    SameKind,
    Confidence,
    Gap,
    Accept,
}

/// The gates between a new item and what is said about it, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OnlineGate {
    Ruling,
    EnoughText,
    /// An open neighbour is near enough to be judged.
    Neighbours,
    UsableAnswer,
    SaidYes,
    /// The parts of the answer do not contradict its yes.
    Structure,
    /// Not a bug on one side and a wish on the other.
    SameKind,
    /// The answer says same instance, same cause, same scope and sure.
    AllSame,
    Gap,
    MaybeConfidence,
    DuplicateConfidence,
    /// The target is alike enough, whatever the judge says.
    Alike,
    ProvenJudge,
    Duplicate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GateMark {
    Passed,
    Decided,
    /// It was never asked, as another one had decided.
    NotAsked,
}

impl DecisionGate {
    /// Every gate, in order.
    pub const ALL: [Self; 12] = [
        Self::Ruling,
        Self::Candidates,
        Self::EnoughText,
        Self::NoEdgeYet,
        Self::UsableAnswer,
        Self::SaidYes,
        Self::Structure,
        Self::TargetOpen,
        Self::SameKind,
        Self::Confidence,
        Self::Gap,
        Self::Accept,
    ];

    /// The gate that decided, by what is stored; `None` for a reason that no gate gives.
    pub fn that_decided(origin: DecisionOrigin, status: DecisionStatus, reason: Option<&str>) -> Option<Self> {
        match (status, reason) {
            (DecisionStatus::Accepted, _) if origin == DecisionOrigin::Override => Some(Self::Ruling),
            (DecisionStatus::Accepted, _) => Some(Self::Accept),
            (DecisionStatus::Rejected, None) => Some(Self::SaidYes),
            (DecisionStatus::Skipped, None) => None,
            (_, Some(reason)) if reason.starts_with(RULED_OUT) => Some(Self::Ruling),
            (_, Some(GateDecision::NO_CANDIDATES)) => Some(Self::Candidates),
            (_, Some(GateDecision::SOURCE_TOO_VAGUE | GateDecision::NO_CONTENT)) => Some(Self::EnoughText),
            (_, Some(GateDecision::EXISTING_EDGE)) => Some(Self::NoEdgeYet),
            (_, Some(GateDecision::TARGET_NOT_OPEN)) => Some(Self::TargetOpen),
            (_, Some(GateDecision::BELOW_MIN_EDGE)) => Some(Self::Confidence),
            (_, Some(GateDecision::CANDIDATE_GAP_TOO_SMALL)) => Some(Self::Gap),
            (_, Some(reason)) if reason.starts_with(GateDecision::INVALID_RESPONSE) => Some(Self::UsableAnswer),
            (_, Some(reason)) if reason.starts_with(MISMATCH) => Some(Self::SameKind),
            (_, Some(reason)) => is_structural(reason).then_some(Self::Structure),
        }
    }
}

impl OnlineGate {
    /// Every gate, in order.
    pub const ALL: [Self; 14] = [
        Self::Ruling,
        Self::EnoughText,
        Self::Neighbours,
        Self::UsableAnswer,
        Self::SaidYes,
        Self::Structure,
        Self::SameKind,
        Self::AllSame,
        Self::Gap,
        Self::MaybeConfidence,
        Self::DuplicateConfidence,
        Self::Alike,
        Self::ProvenJudge,
        Self::Duplicate,
    ];

    /// The gate that decided, by the stored reason; `None` for a reason that no gate gives.
    pub fn that_decided(reason: &str) -> Option<Self> {
        if let Some(which) = reason.strip_prefix("online_strict_guardrail:") {
            return match which {
                GateDecision::CANDIDATE_GAP_TOO_SMALL => Some(Self::Gap),
                UNPROVEN_JUDGE => Some(Self::ProvenJudge),
                _ if which.starts_with(MISMATCH) => Some(Self::SameKind),
                _ if is_shortfall(which) => Some(Self::AllSame),
                _ => is_structural(which).then_some(Self::Structure),
            };
        }
        Some(match reason {
            "override" => Self::Ruling,
            GateDecision::NO_CONTENT => Self::EnoughText,
            "no_candidates" => Self::Neighbours,
            NO_USABLE_ANSWER => Self::UsableAnswer,
            "model_not_duplicate" => Self::SaidYes,
            "below_maybe_threshold" => Self::MaybeConfidence,
            "low_confidence_duplicate" => Self::DuplicateConfidence,
            "duplicate_low_retrieval_support" => Self::Alike,
            "duplicate" => Self::Duplicate,
            _ => return None,
        })
    }
}

/// Every gate of a stored decision with what it did. Where the reason is none of ours, no gate was asked as far as
/// anybody can tell.
pub fn gate_trail(
    origin: DecisionOrigin,
    status: DecisionStatus,
    reason: Option<&str>,
) -> Vec<(DecisionGate, GateMark)> {
    let decided = DecisionGate::that_decided(origin, status, reason);
    let trail = marked(&DecisionGate::ALL, decided);
    // A person's ruling beside an edge of before skips what would spare the judge a call.
    let is_ruled = origin == DecisionOrigin::Override && decided == Some(DecisionGate::NoEdgeYet);
    // An item without text of its own is compared with nothing.
    let is_empty = reason == Some(GateDecision::NO_CONTENT);
    let skipped = |gate| match gate {
        DecisionGate::Candidates => is_ruled || is_empty,
        DecisionGate::EnoughText => is_ruled,
        _ => false,
    };
    trail.into_iter().map(|(gate, mark)| (gate, if skipped(gate) { GateMark::NotAsked } else { mark })).collect()
}

/// Every gate of a stored verdict about a new item with what it did; the same for a reason that is none of ours.
pub fn online_trail(reason: &str) -> Vec<(OnlineGate, GateMark)> {
    marked(&OnlineGate::ALL, OnlineGate::that_decided(reason))
}

/// What stands before a mismatch of bug and feature.
const MISMATCH: &str = "bug_feature_mismatch:";
/// What stands before a ruling that left no candidate.
const RULED_OUT: &str = "override:";

fn marked<G: Copy + PartialEq>(gates: &[G], decided: Option<G>) -> Vec<(G, GateMark)> {
    let at = decided.and_then(|decided| gates.iter().position(|gate| *gate == decided));
    let mark = |place: usize| match at {
        Some(at) if place < at => GateMark::Passed,
        Some(at) if place == at => GateMark::Decided,
        _ => GateMark::NotAsked,
    };
    gates.iter().enumerate().map(|(place, gate)| (*gate, mark(place))).collect()
}

/// Whether a reason names one of the five structural keys.
fn is_structural(reason: &str) -> bool {
    const KEYS: [&str; 5] = ["certainty=", "relation=", "root_cause_match=", "scope_relation=", "path_match="];
    KEYS.iter().any(|key| reason.starts_with(key))
}

/// Whether a structural reason is one of those that only a new item's stricter gate gives: a veto for an absent key, or
/// for the scope, always names a second key as well.
fn is_shortfall(reason: &str) -> bool {
    let alone = is_structural(reason) && !reason.contains(',');
    alone && (reason.ends_with("=absent") || reason.starts_with("scope_relation="))
}
