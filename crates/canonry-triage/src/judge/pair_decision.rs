//! Builds the stored form of a decision, with or without a question to a judge.

use canonry_domain::{DecisionOrigin, DecisionStatus, GateDecision, GateReason, Item, JUDGE_PROMPT_VERSION};
use canonry_store::{DecidedCandidate, NewDecision, Representation, StoredDecision};

use crate::judge::judge_case::{Judge, JudgeCase, JudgeReply};

/// The judge and the circumstances of a decision.
pub(crate) struct DecisionContext<'a> {
    pub(crate) judge: Judge<'a>,
    pub(crate) representation: Representation,
    pub(crate) origin: DecisionOrigin,
    pub(crate) config_hash: &'a str,
    pub(crate) run_id: &'a str,
}

impl DecisionContext<'_> {
    /// A decision without a question.
    pub(crate) fn ruled(&self, source: &Item, ruled: &GateDecision) -> NewDecision {
        NewDecision {
            item_type: source.item_type,
            number: source.number,
            target: ruled.target,
            representation: self.representation,
            candidate_set: None,
            origin: self.origin,
            status: ruled.status,
            replaces: false,
            model_is_duplicate: None,
            confidence: None,
            reasoning: None,
            structure: None,
            reason: ruled.stored_reason(),
            answer: None,
            provider: self.judge.provider().to_owned(),
            model: self.judge.model_id().to_owned(),
            prompt_version: JUDGE_PROMPT_VERSION,
            config_hash: self.config_hash.to_owned(),
            input_hash: String::new(),
            source_version: source.content_version,
            target_version: None,
            candidates: Vec::new(),
            run_id: self.run_id.to_owned(),
        }
    }

    /// The decision about a case. `input_hash` is empty if no question was asked.
    pub(crate) fn decision(
        &self,
        case: &JudgeCase,
        input_hash: String,
        heard: Option<&JudgeReply>,
        ruled: &GateDecision,
    ) -> NewDecision {
        let answer = heard.and_then(|heard| heard.answer.as_ref().ok());
        let candidates = case.candidates.iter().map(|one| DecidedCandidate {
            number: one.item.number,
            score: one.score,
            content_version: one.item.content_version,
        });
        NewDecision {
            model_is_duplicate: answer.map(|answer| answer.is_duplicate),
            confidence: answer.map(|answer| answer.confidence),
            reasoning: answer.map(|answer| answer.reasoning.clone()),
            structure: answer.map(|answer| answer.structure),
            answer: heard.map(|heard| heard.said.clone()),
            input_hash: heard.map(|_| input_hash).unwrap_or_default(),
            target_version: ruled.target.and_then(|target| case.version_of(target)),
            candidates: candidates.collect(),
            ..self.ruled(&case.source, ruled)
        }
    }
}

/// A yes that a second reading of the same two texts did not confirm is refused as long as the same judge gives it: one
/// reading must not make an edge of what two readings refused.
pub(crate) fn keep_refuted(
    ruled: GateDecision,
    earlier: Option<&StoredDecision>,
    judge: Judge<'_>,
    case: &JudgeCase,
) -> GateDecision {
    let Some(target) = ruled.target.filter(|_| ruled.status == DecisionStatus::Accepted) else { return ruled };
    let is_refuted = |earlier: &StoredDecision| {
        GateReason::SecondReading.is_stored_as(earlier.reason.as_deref())
            && earlier.target == Some(target)
            && (earlier.source_version, earlier.target_version)
                == (case.source.content_version, case.version_of(target))
            && (earlier.provider.as_str(), earlier.model.as_str(), earlier.prompt_version)
                == (judge.provider(), judge.model_id(), JUDGE_PROMPT_VERSION)
    };
    match earlier.is_some_and(is_refuted) {
        true => GateDecision::vetoed(target, GateReason::SecondReading),
        false => ruled,
    }
}
