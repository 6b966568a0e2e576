//! What is stored of a judge's answer about one pair, whoever asked.

use canonry_domain::{DecisionOrigin, GateDecision, JUDGE_PROMPT_VERSION};
use canonry_store::{DecidedCandidate, NewDecision, Representation};

use crate::judge::judge_case::{Judge, JudgeCase, JudgeReply};

/// Who was asked about a pair, and on what occasion.
pub(crate) struct PairQuestion<'a> {
    pub(crate) judge: Judge<'a>,
    pub(crate) representation: Representation,
    pub(crate) origin: DecisionOrigin,
    pub(crate) config_hash: &'a str,
    pub(crate) run_id: &'a str,
}

impl PairQuestion<'_> {
    /// The decision. What was decided without a question has no question's hash.
    pub(crate) fn decision(
        &self,
        case: &JudgeCase,
        input_hash: String,
        heard: Option<&JudgeReply>,
        ruled: &GateDecision,
    ) -> NewDecision {
        let answer = heard.and_then(|heard| heard.answer.as_ref().ok());
        let judged = case.candidates.iter().map(|one| DecidedCandidate {
            number: one.item.number,
            score: one.score,
            content_version: one.item.content_version,
        });
        let judged: Vec<DecidedCandidate> = judged.collect();
        NewDecision {
            item_type: case.source.item_type,
            number: case.source.number,
            target: ruled.target,
            representation: self.representation,
            candidate_set: None,
            origin: self.origin,
            status: ruled.status,
            replaces: false,
            model_is_duplicate: answer.map(|answer| answer.is_duplicate),
            confidence: answer.map(|answer| answer.confidence),
            reasoning: answer.map(|answer| answer.reasoning.clone()),
            structure: answer.map(|answer| answer.structure),
            reason: ruled.reason.clone(),
            answer: heard.map(|heard| heard.said.clone()),
            provider: self.judge.provider().to_owned(),
            model: self.judge.model_id().to_owned(),
            prompt_version: JUDGE_PROMPT_VERSION,
            config_hash: self.config_hash.to_owned(),
            input_hash: if heard.is_some() { input_hash } else { String::new() },
            source_version: case.source.content_version,
            target_version: ruled.target.and_then(|_| judged.first()).map(|one| one.content_version),
            candidates: judged,
            run_id: self.run_id.to_owned(),
        }
    }
}
