//! OpenAI's chat completions API, which many other servers also offer.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::chat_model::ChatRequest;
use crate::chat::remote_chat::ProviderReply;
use crate::chat::thinking::Thinking;

/// OpenAI's newer models reject `max_tokens`; other servers know only that name.
pub(super) fn body(model: &str, request: &ChatRequest, thinking: Option<Thinking>, is_own_service: bool) -> Value {
    let limit = if is_own_service { "max_completion_tokens" } else { "max_tokens" };
    let mut body = json!({
        "model": model,
        "messages": [
            {"role": "system", "content": request.system},
            {"role": "user", "content": request.user},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": request.schema_name, "strict": true, "schema": request.json_schema},
        },
    });
    match thinking {
        // Models that think accept no temperature.
        Some(thinking) => {
            body["reasoning_effort"] = json!(thinking.as_str());
            body[limit] = json!(request.max_tokens + thinking.tokens());
        }
        None => {
            body["temperature"] = json!(0);
            body[limit] = json!(request.max_tokens);
        }
    }
    body
}

pub(super) fn read(body: &[u8]) -> Result<ProviderReply, serde_json::Error> {
    let answer: Answer = serde_json::from_slice(body)?;
    let usage = answer.usage.unwrap_or_default();
    let choice = answer.choices.into_iter().next();
    let finish = choice.as_ref().and_then(|choice| choice.finish_reason.clone()).unwrap_or_default();
    let message = choice.map(|choice| choice.message).unwrap_or_default();
    Ok(ProviderReply {
        refusal: message.refusal.or_else(|| (finish == "content_filter").then_some(finish.clone())),
        is_cut_off: finish == "length",
        text: message.content.unwrap_or_default(),
        input_tokens: usage.prompt_tokens,
        output_tokens: usage.completion_tokens,
    })
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
}

#[derive(Default, Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
}
