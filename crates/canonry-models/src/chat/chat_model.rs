//! What a chat model is asked, and what it gives.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::chat::chat_error::ChatError;

/// One question. It is asked at temperature 0: an answer that is stored should come out the same again.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatRequest {
    /// Who the model is and what it does; never holds text from strangers.
    pub system: String,
    pub user: String,
    /// The name of the answer's schema, in letters and underscores.
    pub schema_name: &'static str,
    /// The JSON schema of the answer: an object, all keys required, none beyond them.
    pub json_schema: Value,
    pub max_tokens: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatAnswer {
    /// What the model wrote. It is as untrusted as what it read.
    pub text: String,
    pub input_tokens: Option<u64>,
    /// The tokens it wrote, thoughts included, where the provider tells.
    pub output_tokens: Option<u64>,
    /// From the first attempt to the answer, waiting included.
    pub latency: Duration,
}

pub trait ChatModel: Send + Sync {
    /// The model's name, as it is stored beside what it said.
    fn model_id(&self) -> &str;

    /// Asks once; what can be asked again is asked again.
    fn complete<'a>(&'a self, request: &'a ChatRequest) -> BoxFuture<'a, Result<ChatAnswer, ChatError>>;
}
