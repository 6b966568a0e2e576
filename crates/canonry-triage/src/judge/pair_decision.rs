//! Builds the stored form of a decision, with or without a question to a judge.

use canonry_domain::{DecisionOrigin, GateDecision, Item, ItemNumber, JUDGE_PROMPT_VERSION};
use canonry_store::{DecidedCandidate, NewDecision, Representation};

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
        let version = |number: ItemNumber| {
            case.candidates.iter().find(|one| one.item.number == number).map(|one| one.item.content_version)
        };
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
            target_version: ruled.target.and_then(version),
            candidates: candidates.collect(),
            ..self.ruled(&case.source, ruled)
        }
    }
}
