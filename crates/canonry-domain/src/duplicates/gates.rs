//! The gates between a judge's answer and an edge. The first gate that applies decides.

use crate::{
    GateCandidate, GateDecision, GateReason, InvalidAnswer, ItemState, JudgeAnswer, JudgedItem, PairScores,
    Probability, bug_feature_mismatch, gap_too_small, is_too_vague, pair_relation, structural_veto,
};

/// The parameters of the gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateRules {
    /// The minimum confidence of an edge (gate 9).
    pub min_edge: Probability,
    /// Whether the target must be open (gate 7). An audit only compares judges and does not check this.
    pub check_target_state: bool,
}

impl Default for GateRules {
    /// An edge needs 0.85 and an open target.
    fn default() -> Self {
        let min_edge = Probability::new(0.85).expect("invariant: the constant is in range");
        Self { min_edge, check_target_state: true }
    }
}

/// Gates 1 and 2, which save a call to the judge: there are no candidates, or the source says too little. Before both:
/// the source has no text of its own, whatever it was compared with.
///
/// All texts here are an item's own ([`crate::Boilerplate::own`]).
///
/// Gates 0 and 3, a person's override and an existing edge, are checked by the caller, who has the store.
pub fn gate_before_judge(source: &JudgedItem<'_>, candidates: &[GateCandidate<'_>]) -> Option<GateDecision> {
    if !source.has_content() {
        return Some(GateDecision::skipped(GateReason::NoContent));
    }
    if candidates.is_empty() {
        return Some(GateDecision::skipped(GateReason::NoCandidates));
    }
    is_too_vague(source.title, source.body).then(|| GateDecision::skipped(GateReason::SourceTooVague))
}

/// Gates 4 to 11: the decision about a judge's answer.
///
/// This function also checks that the named item is a candidate: an answer of a local judge was never parsed.
pub fn gate_answer(
    source: &JudgedItem<'_>,
    candidates: &[GateCandidate<'_>],
    pairs: &PairScores,
    answer: &Result<JudgeAnswer, InvalidAnswer>,
    rules: &GateRules,
) -> GateDecision {
    let answer = match answer {
        Ok(answer) => answer,
        Err(kind) => return invalid(*kind),
    };
    if !answer.is_duplicate {
        return GateDecision::rejected_by_judge();
    }
    let target = match named_candidate(source, candidates, answer) {
        Ok(target) => target,
        Err(kind) => return invalid(kind),
    };
    let number = target.item.number;
    let others = candidates.iter().map(|candidate| &candidate.item);
    if let Some(relation) = pair_relation(source, &target.item, others) {
        return GateDecision::vetoed(number, GateReason::Related(relation));
    }
    if let Some(veto) = structural_veto(&answer.structure) {
        return GateDecision::vetoed(number, GateReason::Structure(veto));
    }
    if !target.item.has_content() {
        return GateDecision::vetoed(number, GateReason::NoContent);
    }
    if rules.check_target_state && target.item.state != ItemState::Open {
        return GateDecision::vetoed(number, GateReason::TargetNotOpen);
    }
    if let Some(mismatch) = bug_feature_mismatch(source, &target.item) {
        return GateDecision::vetoed(number, GateReason::KindMismatch(mismatch));
    }
    if answer.confidence < rules.min_edge {
        return GateDecision::vetoed(number, GateReason::BelowMinEdge);
    }
    if gap_too_small(number, candidates, pairs) {
        return GateDecision::vetoed(number, GateReason::CandidateGapTooSmall);
    }
    GateDecision::accepted(number)
}

/// The candidate that a yes names. It must have the source's type and must not be the source itself.
pub(crate) fn named_candidate<'a, 'b>(
    source: &JudgedItem<'_>,
    candidates: &'a [GateCandidate<'b>],
    answer: &JudgeAnswer,
) -> Result<&'a GateCandidate<'b>, InvalidAnswer> {
    let target = answer.duplicate_of.ok_or(InvalidAnswer::NoTarget)?;
    candidates
        .iter()
        .filter(|candidate| candidate.item.item_type == source.item_type && candidate.item.number != source.number)
        .find(|candidate| candidate.item.number == target)
        .ok_or(InvalidAnswer::TargetNotInSet)
}

const fn invalid(kind: InvalidAnswer) -> GateDecision {
    GateDecision::skipped(GateReason::InvalidResponse(kind))
}
