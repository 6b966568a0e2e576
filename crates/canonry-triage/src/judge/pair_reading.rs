//! What a judge says about two texts alone, to measure a judge on pairs whose truth is known.

use canonry_boxed::boxed;
use std::time::Duration;

use canonry_domain::{Boilerplate, InvalidAnswer, Item, JudgeAnswer, PairScores, Similarity};
use canonry_models::chat::{ChatError, TokenBudget};

use crate::judge::judge_case::{CaseCandidate, Judge, JudgeCase, JudgeFailure};

#[derive(Debug, Clone, PartialEq)]
pub struct PairReading {
    pub answer: Result<JudgeAnswer, InvalidAnswer>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub latency: Duration,
}

/// Why a judge did not answer.
#[derive(Debug, thiserror::Error)]
pub enum PairReadingError {
    #[error("the budget is used up: {0}")]
    OverBudget(String),
    #[error("failed to {0}")]
    NoAnswer(ChatError),
}

/// Asks a judge whether `source` is a duplicate of `target`, with the product's prompt and no other candidate.
#[boxed]
pub async fn read_pair(
    judge: Judge<'_>,
    source: &Item,
    target: &Item,
    budget: &TokenBudget,
) -> Result<PairReading, PairReadingError> {
    let candidate = CaseCandidate { item: target.clone(), score: Similarity::ZERO, parts: Default::default() };
    let case = JudgeCase::new(source, vec![candidate], PairScores::default(), &Boilerplate::default());
    let began = std::time::Instant::now();
    match judge.ask(&judge.question(&case), &case, "bench", budget).await {
        Ok(reply) => Ok(PairReading {
            answer: reply.answer,
            input_tokens: reply.call.as_ref().and_then(|call| call.input_tokens),
            output_tokens: reply.call.as_ref().and_then(|call| call.output_tokens),
            latency: began.elapsed(),
        }),
        Err(JudgeFailure::OverBudget(why)) => Err(PairReadingError::OverBudget(why)),
        Err(JudgeFailure::NoAnswer { error, .. }) => Err(PairReadingError::NoAnswer(error)),
    }
}
