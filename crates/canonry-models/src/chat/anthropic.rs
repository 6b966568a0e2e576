//! Anthropic's messages API. The answer is requested as the input of a tool: this is how a schema reaches all its
//! models.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::chat_model::ChatRequest;
use crate::chat::remote_chat::ProviderReply;
use crate::chat::thinking::Thinking;

/// The version of the API that this file uses.
pub(super) const VERSION: &str = "2023-06-01";

pub(super) fn body(model: &str, request: &ChatRequest, thinking: Option<Thinking>) -> Value {
    let mut body = json!({
        "model": model,
        "max_tokens": request.max_tokens,
        "temperature": 0,
        "system": request.system,
        "messages": [{"role": "user", "content": request.user}],
        "tools": [{
            "name": request.schema_name,
            "description": "Takes the answer.",
            "input_schema": request.json_schema,
        }],
        "tool_choice": {"type": "tool", "name": request.schema_name},
    });
    if let Some(thinking) = thinking {
        // While it thinks, a model can be neither forced to use a tool nor given a temperature; the prompt tells it
        // to use the tool.
        body["max_tokens"] = json!(request.max_tokens + thinking.tokens());
        body["thinking"] = json!({"type": "enabled", "budget_tokens": thinking.tokens()});
        body["temperature"] = json!(1);
        body["tool_choice"] = json!({"type": "auto"});
    }
    body
}

pub(super) fn read(body: &[u8]) -> Result<ProviderReply, serde_json::Error> {
    let answer: Answer = serde_json::from_slice(body)?;
    let usage = answer.usage.unwrap_or_default();
    let finish = answer.stop_reason.unwrap_or_default();
    let tool_input = answer.content.iter().find_map(|block| block.input.as_ref().map(Value::to_string));
    let words = answer.content.iter().filter_map(|block| block.text.as_deref()).collect::<String>();
    Ok(ProviderReply {
        refusal: (finish == "refusal").then(|| if words.is_empty() { finish.clone() } else { words.clone() }),
        is_cut_off: finish == "max_tokens",
        text: tool_input.unwrap_or(words),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    })
}

#[derive(Deserialize)]
struct Answer {
    content: Vec<Block>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Block {
    text: Option<String>,
    input: Option<Value>,
}

#[derive(Default, Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}
