//! Anthropic's messages API. The answer is requested as the input of a tool: this is how a schema reaches all its
//! models.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::chat_model::ChatRequest;
use crate::chat::event_stream::{push_text, without_end};
use crate::chat::remote_chat::{ProviderReply, sent_limit};
use crate::chat::request_form::RequestForm;
use crate::chat::thinking::Thinking;
use crate::remote_failure::RemoteFailure;

/// The version of the API that this file uses.
pub(super) const VERSION: &str = "2023-06-01";

pub(super) fn body(model: &str, request: &ChatRequest, thinking: Option<Thinking>, form: &RequestForm) -> Value {
    // What comes before the mark is cached: the tool, the instructions, and the beginning of the question.
    let marked = |text: &str, is_marked: bool| match is_marked && form.is_cached {
        true => json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}),
        false => json!({"type": "text", "text": text}),
    };
    let has_preamble = !request.preamble.is_empty();
    let preamble = has_preamble.then(|| marked(&request.preamble, true));
    let content: Vec<Value> = preamble.into_iter().chain([marked(&request.user, false)]).collect();
    let mut body = json!({
        "model": model,
        "max_tokens": sent_limit(request, thinking, form),
        "system": [marked(&request.system, !has_preamble)],
        "messages": [{"role": "user", "content": content}],
        "tools": [{
            "name": request.schema_name,
            "description": "Takes the answer.",
            "input_schema": request.json_schema,
        }],
    });
    let thinking = thinking.filter(|_| form.is_thinking_set);
    // While it thinks, a model can be neither forced to use a tool nor given a temperature; the prompt tells it to use
    // the tool.
    body["tool_choice"] = match thinking.is_none() && form.is_tool_forced {
        true => json!({"type": "tool", "name": request.schema_name}),
        false => json!({"type": "auto"}),
    };
    if let Some(thinking) = thinking {
        body["thinking"] = json!({"type": "enabled", "budget_tokens": thinking.tokens()});
    }
    if form.has_temperature {
        body["temperature"] = json!(u8::from(thinking.is_some()));
    }
    if form.is_streamed {
        body["stream"] = json!(true);
    }
    body
}

/// The answer of a stream in the form of an answer in one piece.
pub(super) fn joined(events: &[Value]) -> Result<Value, RemoteFailure> {
    let (mut words, mut input) = (String::new(), String::new());
    let (mut usage, mut finish, mut has_end) = (json!({}), Value::Null, false);
    for event in events {
        push_text(&mut words, event, "/delta/text");
        push_text(&mut input, event, "/delta/partial_json");
        for told in [event.pointer("/message/usage"), event.get("usage")].into_iter().flatten() {
            for (name, count) in told.as_object().into_iter().flatten() {
                usage[name] = count.clone();
            }
        }
        if let Some(reason) = event.pointer("/delta/stop_reason").filter(|reason| reason.is_string()) {
            finish = reason.clone();
        }
        has_end |= event["type"] == "message_stop";
    }
    if !has_end {
        return Err(without_end());
    }
    let mut content = vec![json!({"text": words})];
    // A cut input is no JSON; the reason to stop says so, and nobody reads it.
    content.extend(serde_json::from_str::<Value>(&input).ok().map(|input| json!({"input": input})));
    Ok(json!({"content": content, "stop_reason": finish, "usage": usage}))
}

pub(super) fn read(body: Value) -> Result<ProviderReply, serde_json::Error> {
    let answer: Answer = serde_json::from_value(body)?;
    let usage = answer.usage.unwrap_or_default();
    let finish = answer.stop_reason.unwrap_or_default();
    let tool_input = answer.content.iter().find_map(|block| block.input.as_ref().map(Value::to_string));
    let words = answer.content.iter().filter_map(|block| block.text.as_deref()).collect::<String>();
    Ok(ProviderReply {
        refusal: (finish == "refusal").then(|| if words.is_empty() { finish.clone() } else { words.clone() }),
        is_cut_off: finish == "max_tokens",
        text: tool_input.unwrap_or(words),
        // Anthropic counts what it wrote to its cache and read from it apart.
        input_tokens: usage.input_tokens.map(|tokens| {
            tokens + usage.cache_creation_input_tokens.unwrap_or(0) + usage.cache_read_input_tokens.unwrap_or(0)
        }),
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
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
}
