//! The gates between a judge's answer and an edge: first match decides.

use crate::duplicates::bug_feature::bug_feature_mismatch;
use crate::duplicates::decision::Ruled;
use crate::duplicates::judged_item::{GateCandidate, JudgedItem, PairScores};
use crate::duplicates::score::Probability;
use crate::duplicates::score_gap::gap_too_small;
use crate::duplicates::vague::is_too_vague;
use crate::items::item::ItemState;
use crate::judge::answer::{InvalidAnswer, JudgeAnswer};
use crate::judge::structure::structural_veto;

/// What the gates can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateRules {
    /// The least confidence of an edge (gate 9).
    pub min_edge: Probability,
    /// Whether the target must be open (gate 7); an audit compares judges and does not ask.
    pub check_target_state: bool,
}

impl Default for GateRules {
    /// An edge needs 0.85 and an open target.
    fn default() -> Self {
        let min_edge = Probability::new(0.85).expect("invariant: the constant is in range");
        Self { min_edge, check_target_state: true }
    }
}

/// Gates 1 and 2, which spare the judge a call: there are no candidates, or the source says too little. Before both: the
/// source has no text of its own, whatever it was compared with.
///
/// All texts here are an item's own ([`crate::Boilerplate::own`]).
///
/// Gates 0 and 3, a person's override and an edge that exists, belong to who knows the store.
pub fn gate_before_judge(source: &JudgedItem<'_>, candidates: &[GateCandidate<'_>]) -> Option<Ruled> {
    if !source.has_content() {
        return Some(Ruled::skipped(Ruled::NO_CONTENT));
    }
    if candidates.is_empty() {
        return Some(Ruled::skipped(Ruled::NO_CANDIDATES));
    }
    is_too_vague(source.title, source.body).then(|| Ruled::skipped(Ruled::SOURCE_TOO_VAGUE))
}

/// Gates 4 to 11: what becomes of an answer about these candidates.
///
/// Membership is checked here too: an answer of a local judge was never parsed.
pub fn gate_answer(
    source: &JudgedItem<'_>,
    candidates: &[GateCandidate<'_>],
    pairs: &PairScores,
    answer: &Result<JudgeAnswer, InvalidAnswer>,
    rules: &GateRules,
) -> Ruled {
    let answer = match answer {
        Ok(answer) => answer,
        Err(kind) => return invalid(*kind),
    };
    if !answer.is_duplicate {
        return Ruled::said_no();
    }
    let target = match named_candidate(source, candidates, answer) {
        Ok(target) => target,
        Err(kind) => return invalid(kind),
    };
    let number = target.item.number;
    if let Some(veto) = structural_veto(&answer.structure) {
        return Ruled::vetoed(number, veto);
    }
    if !target.item.has_content() {
        return Ruled::vetoed(number, Ruled::NO_CONTENT);
    }
    if rules.check_target_state && target.item.state != ItemState::Open {
        return Ruled::vetoed(number, Ruled::TARGET_NOT_OPEN);
    }
    if let Some(mismatch) = bug_feature_mismatch(source, &target.item) {
        return Ruled::vetoed(number, mismatch);
    }
    if answer.confidence < rules.min_edge {
        return Ruled::vetoed(number, Ruled::BELOW_MIN_EDGE);
    }
    if gap_too_small(number, candidates, pairs) {
        return Ruled::vetoed(number, Ruled::CANDIDATE_GAP_TOO_SMALL);
    }
    Ruled::accepted(number)
}

/// The candidate that a yes names: of the source's type, and not the source itself.
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

fn invalid(kind: InvalidAnswer) -> Ruled {
    Ruled::skipped(format!("{}{kind}", Ruled::INVALID_RESPONSE))
}
