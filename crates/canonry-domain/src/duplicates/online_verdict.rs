//! Decides the verdict about a new item: duplicate, maybe, or not a duplicate.

use crate::duplicates::gates::named_candidate;
use crate::judge::structure::strict_shortfall;
use crate::{
    GateCandidate, ItemNumber, ItemState, JudgeAnswer, JudgedItem, OnlineGuardrail, OnlineReason, PairScores,
    Probability, Similarity, bug_feature_mismatch, gap_too_small, pair_relation, structural_veto, text_enum,
};

/// The minimum score of a target that may be called a duplicate, whatever the judge says.
pub const STRONG_RETRIEVAL: f64 = 0.90;

text_enum! {
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum Verdict: "a verdict" {
        Duplicate = "duplicate",
        /// Possibly a duplicate; a person should check.
        MaybeDuplicate = "maybe_duplicate",
        NotDuplicate = "not_duplicate",
    }
}

/// The thresholds for the verdicts about a new item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnlineThresholds {
    pub min_score: Similarity,
    pub maybe: Probability,
    pub duplicate: Probability,
}

impl Default for OnlineThresholds {
    /// 0.75, 0.85 and 0.92.
    fn default() -> Self {
        let probability = |value| Probability::new(value).expect("invariant: the constant is in range");
        let min_score = Similarity::new(0.75).expect("invariant: the constant is in range");
        Self { min_score, maybe: probability(0.85), duplicate: probability(0.92) }
    }
}

/// The verdict about a new item, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnlineVerdict {
    pub verdict: Verdict,
    /// The possible original; `None` if the item is not a duplicate.
    pub target: Option<ItemNumber>,
    /// The judge's confidence; `None` without a usable answer.
    pub confidence: Option<Probability>,
    pub reason: String,
}

impl OnlineVerdict {
    /// Lowers a "duplicate" of an unproven judge to "maybe": a person should check before anything is closed.
    pub fn of_unproven_judge(self) -> Self {
        self.lowered(OnlineGuardrail::UnprovenJudge)
    }

    /// Lowers a "duplicate" that a second reading did not confirm to "maybe".
    pub fn unconfirmed(self) -> Self {
        self.lowered(OnlineGuardrail::SecondReading)
    }

    /// Lowers a model's "duplicate" to "maybe" if nothing but its word shows that the two are the same.
    pub fn without_evidence(self) -> Self {
        self.lowered(OnlineGuardrail::NoSharedEvidence)
    }

    /// Discards a model's yes that does not depend on the two texts.
    pub fn failed_control(self) -> Self {
        not_duplicate(self.confidence, &OnlineReason::ControlFailed)
    }

    fn lowered(self, why: OnlineGuardrail) -> Self {
        match self.verdict {
            Verdict::Duplicate => {
                let reason = OnlineReason::Guardrail(why).to_string();
                Self { verdict: Verdict::MaybeDuplicate, reason, ..self }
            }
            Verdict::MaybeDuplicate | Verdict::NotDuplicate => self,
        }
    }
}

/// Whether a neighbour is sent to the judge: it is open, of the source's type, near enough, and has text of its own.
pub fn is_judged(source: &JudgedItem<'_>, candidate: &GateCandidate<'_>, thresholds: &OnlineThresholds) -> bool {
    candidate.item.state == ItemState::Open
        && candidate.item.item_type == source.item_type
        && candidate.item.number != source.number
        && candidate.score >= thresholds.min_score
        && candidate.item.has_content()
}

/// The verdict about a new item. Neighbours that are not judged do not matter.
///
/// `answer` is `None` if the judge failed, or was not asked because no neighbour [`is_judged`].
pub fn online_verdict(
    source: &JudgedItem<'_>,
    neighbours: &[GateCandidate<'_>],
    pairs: &PairScores,
    answer: Option<&JudgeAnswer>,
    thresholds: &OnlineThresholds,
) -> OnlineVerdict {
    if !source.has_content() {
        return not_duplicate(None, &OnlineReason::NoContent);
    }
    let candidates: Vec<GateCandidate<'_>> =
        neighbours.iter().filter(|neighbour| is_judged(source, neighbour, thresholds)).copied().collect();
    // Of equal candidates the first is chosen, which has the better rank.
    let Some(best) = candidates.iter().rev().max_by_key(|candidate| candidate.score) else {
        return not_duplicate(None, &OnlineReason::NoCandidates);
    };
    let judged = answer.map(|answer| (answer, named_candidate(source, &candidates, answer)));
    let (answer, target) = match judged {
        Some((answer, _)) if !answer.is_duplicate => {
            return not_duplicate(Some(answer.confidence), &OnlineReason::ModelNotDuplicate);
        }
        Some((answer, Ok(target))) => (answer, target),
        Some((_, Err(_))) | None => {
            let is_near = best.score.get() >= thresholds.min_score.get().max(thresholds.maybe.get());
            let reason = OnlineReason::InvalidJudgeResponse;
            return if is_near { maybe(best.item.number, None, &reason) } else { not_duplicate(None, &reason) };
        }
    };
    let (number, confidence) = (target.item.number, answer.confidence);
    let others = candidates.iter().map(|candidate| &candidate.item);
    if let Some(relation) = pair_relation(source, &target.item, others) {
        return not_duplicate(Some(confidence), &OnlineReason::Related(relation));
    }
    // Before the guardrails: they only lower a verdict that is high enough to be one.
    if confidence < thresholds.maybe {
        return not_duplicate(Some(confidence), &OnlineReason::BelowMaybeThreshold);
    }
    if let Some(which) = strict_guardrail(source, target, &candidates, pairs, answer) {
        return maybe(number, Some(confidence), &OnlineReason::Guardrail(which));
    }
    if confidence >= thresholds.duplicate {
        if target.score.get() < STRONG_RETRIEVAL {
            return maybe(number, Some(confidence), &OnlineReason::DuplicateLowRetrievalSupport);
        }
        return OnlineVerdict {
            verdict: Verdict::Duplicate,
            target: Some(number),
            confidence: Some(confidence),
            reason: OnlineReason::Duplicate.to_string(),
        };
    }
    maybe(number, Some(confidence), &OnlineReason::LowConfidenceDuplicate)
}

/// Why a new item is not called a duplicate although the judge said yes, however sure it is.
fn strict_guardrail(
    source: &JudgedItem<'_>,
    target: &GateCandidate<'_>,
    candidates: &[GateCandidate<'_>],
    pairs: &PairScores,
    answer: &JudgeAnswer,
) -> Option<OnlineGuardrail> {
    let is_too_small = || gap_too_small(target.item.number, candidates, pairs);
    structural_veto(&answer.structure)
        .map(OnlineGuardrail::Structure)
        .or_else(|| bug_feature_mismatch(source, &target.item).map(OnlineGuardrail::KindMismatch))
        .or_else(|| strict_shortfall(&answer.structure).map(OnlineGuardrail::NotAllSame))
        .or_else(|| is_too_small().then_some(OnlineGuardrail::CandidateGapTooSmall))
}

fn maybe(target: ItemNumber, confidence: Option<Probability>, reason: &OnlineReason) -> OnlineVerdict {
    OnlineVerdict { verdict: Verdict::MaybeDuplicate, target: Some(target), confidence, reason: reason.to_string() }
}

fn not_duplicate(confidence: Option<Probability>, reason: &OnlineReason) -> OnlineVerdict {
    OnlineVerdict { verdict: Verdict::NotDuplicate, target: None, confidence, reason: reason.to_string() }
}
