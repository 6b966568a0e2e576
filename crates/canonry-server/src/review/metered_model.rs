//! A model that records the cost of every answer, whatever happens to the review that asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use canonry_domain::Extractor;
use canonry_github::Clock;
use canonry_models::chat::TokenPrices;
use canonry_models::chat::{ChatAnswer, ChatError, ChatModel, ChatRequest};
use canonry_store::{NewLlmCall, RepoId, Store};
use futures_util::future::BoxFuture;

use crate::jobs::job_errors::in_words;

/// A model that reads changes, as the operator configured it.
#[derive(Clone)]
pub struct ReviewModel {
    pub provider: Extractor,
    pub chat: Arc<dyn ChatModel>,
    /// The price of its tokens; without it the cost is unknown.
    pub prices: Option<TokenPrices>,
}

pub(crate) struct MeteredModel {
    pub(crate) model: ReviewModel,
    pub(crate) store: Store,
    pub(crate) repo: RepoId,
    pub(crate) run_id: String,
    pub(crate) clock: Arc<dyn Clock>,
}

impl MeteredModel {
    async fn note(&self, answer: &Result<ChatAnswer, ChatError>, latency: Duration) {
        let (input_tokens, output_tokens) = match answer {
            Ok(answer) => (answer.input_tokens, answer.output_tokens),
            Err(error) => error.paid_tokens().unwrap_or_default(),
        };
        let call = NewLlmCall {
            purpose: "review",
            provider: self.model.provider.as_str(),
            model: self.model.chat.model_id().to_owned(),
            input_tokens,
            output_tokens,
            cost_usd: self.model.prices.and_then(|prices| prices.cost(input_tokens, output_tokens)),
            latency,
            error: answer.as_ref().err().map(|error| in_words(error)),
        };
        let noted = self.store.models().record_calls(Some(self.repo), &self.run_id, &[call], self.clock.now()).await;
        if let Err(error) = noted {
            tracing::warn!(%error, "what a question to a model cost could not be stored");
        }
    }
}

impl ChatModel for MeteredModel {
    fn model_id(&self) -> &str {
        self.model.chat.model_id()
    }

    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>> {
        Box::pin(async move {
            let began = Instant::now();
            let answer = self.model.chat.complete(request).await;
            self.note(&answer, began.elapsed()).await;
            answer
        })
    }
}
