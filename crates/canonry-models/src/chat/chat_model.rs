//! The request to a chat model, and its answer.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::chat::chat_error::ChatError;

/// One question. It is asked at temperature 0 where the model accepts that, so that asking again gives the same answer
/// as the stored one.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// The role and the instructions of the model. They never contain text from strangers.
    pub system: String,
    /// The beginning of the question, if other questions begin the same: it is sent before `user`, so that a provider can
    /// cache it together with the instructions.
    pub preamble: String,
    pub user: String,
    /// The name of the answer's schema, in letters and underscores.
    pub schema_name: &'static str,
    /// The JSON schema of the answer: an object whose keys are all required, without additional keys.
    pub json_schema: Value,
    pub max_tokens: u32,
}

impl ChatRequest {
    /// The whole question, beside the instructions.
    pub fn question(&self) -> String {
        format!("{}{}", self.preamble, self.user)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatAnswer {
    /// The answer of the model. It is as untrusted as the text that the model read.
    pub text: String,
    /// The tokens that it read, those from a cache included.
    pub input_tokens: Option<u64>,
    /// The tokens that it wrote, thoughts included, if the provider reports them.
    pub output_tokens: Option<u64>,
    /// The time from the first attempt to the answer, waiting included.
    pub latency: Duration,
}

pub trait ChatModel: Send + Sync {
    /// The model's name, as stored with its answers.
    fn model_id(&self) -> &str;

    /// Asks one question; temporary failures are retried.
    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>>;
}
