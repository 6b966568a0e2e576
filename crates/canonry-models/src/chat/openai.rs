//! OpenAI's chat completions API, which many other servers also offer.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::chat_model::ChatRequest;
use crate::chat::command::with_schema;
use crate::chat::event_stream::{push_text, without_end};
use crate::chat::remote_chat::{ProviderReply, sent_limit};
use crate::chat::request_form::{RequestForm, SchemaForm};
use crate::chat::thinking::Thinking;
use crate::remote_failure::RemoteFailure;

pub(super) fn body(model: &str, request: &ChatRequest, thinking: Option<Thinking>, form: &RequestForm) -> Value {
    let system = if form.schema == SchemaForm::Enforced { request.system.clone() } else { with_schema(request) };
    let mut body = json!({
        "model": model,
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": request.question()},
        ],
    });
    match form.schema {
        SchemaForm::Enforced => {
            let schema = json!({"name": request.schema_name, "strict": true, "schema": request.json_schema});
            body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
        }
        SchemaForm::AnyJson => body["response_format"] = json!({"type": "json_object"}),
        SchemaForm::Described => {}
    }
    body[form.limit_name.as_str()] = json!(sent_limit(request, thinking, form));
    match thinking.filter(|_| form.is_thinking_set) {
        // Models that think accept no temperature.
        Some(thinking) => body["reasoning_effort"] = json!(thinking.as_str()),
        None if form.has_temperature => body["temperature"] = json!(0),
        None => {}
    }
    if form.is_streamed {
        body["stream"] = json!(true);
        if form.has_stream_usage {
            body["stream_options"] = json!({"include_usage": true});
        }
    }
    body
}

/// The answer of a stream in the form of an answer in one piece.
pub(super) fn joined(events: &[Value]) -> Result<Value, RemoteFailure> {
    let (mut content, mut refusal) = (String::new(), String::new());
    let (mut finish, mut usage) = (Value::Null, Value::Null);
    for event in events {
        push_text(&mut content, event, "/choices/0/delta/content");
        push_text(&mut refusal, event, "/choices/0/delta/refusal");
        if let Some(reason) = event.pointer("/choices/0/finish_reason").filter(|reason| reason.is_string()) {
            finish = reason.clone();
        }
        if let Some(told) = event.get("usage").filter(|usage| usage.is_object()) {
            usage = told.clone();
        }
    }
    if finish.is_null() {
        return Err(without_end());
    }
    let refusal = if refusal.is_empty() { Value::Null } else { json!(refusal) };
    let message = json!({"content": content, "refusal": refusal});
    Ok(json!({"choices": [{"message": message, "finish_reason": finish}], "usage": usage}))
}

pub(super) fn read(body: Value) -> Result<ProviderReply, serde_json::Error> {
    let answer: Answer = serde_json::from_value(body)?;
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
