//! Gemini's `generateContent`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::chat_model::ChatRequest;
use crate::chat::command::with_schema;
use crate::chat::event_stream::without_end;
use crate::chat::remote_chat::{ProviderReply, sent_limit};
use crate::chat::request_form::{RequestForm, SchemaForm};
use crate::chat::thinking::Thinking;
use crate::remote_failure::RemoteFailure;

pub(super) fn body(request: &ChatRequest, thinking: Option<Thinking>, form: &RequestForm) -> Value {
    let system = if form.schema == SchemaForm::Enforced { request.system.clone() } else { with_schema(request) };
    let mut settings = json!({"maxOutputTokens": sent_limit(request, thinking, form)});
    if form.has_temperature {
        settings["temperature"] = json!(0);
    }
    if form.schema != SchemaForm::Described {
        settings["responseMimeType"] = json!("application/json");
    }
    if form.schema == SchemaForm::Enforced {
        settings["responseJsonSchema"] = request.json_schema.clone();
    }
    if let Some(thinking) = thinking.filter(|_| form.is_thinking_set) {
        settings["thinkingConfig"] = json!({"thinkingBudget": thinking.tokens()});
    }
    json!({
        "systemInstruction": {"parts": [{"text": system}]},
        "contents": [{"role": "user", "parts": [{"text": request.question()}]}],
        "generationConfig": settings,
    })
}

/// The answer of a stream in the form of an answer in one piece.
pub(super) fn joined(events: &[Value]) -> Result<Value, RemoteFailure> {
    let (mut parts, mut finish) = (Vec::new(), Value::Null);
    let mut answer = json!({});
    for event in events {
        parts.extend(
            event.pointer("/candidates/0/content/parts").and_then(Value::as_array).into_iter().flatten().cloned(),
        );
        if let Some(reason) = event.pointer("/candidates/0/finishReason") {
            finish = reason.clone();
        }
        for name in ["promptFeedback", "usageMetadata"] {
            if let Some(told) = event.get(name) {
                answer[name] = told.clone();
            }
        }
    }
    if finish.is_null() && answer.pointer("/promptFeedback/blockReason").is_none() {
        return Err(without_end());
    }
    answer["candidates"] = json!([{"content": {"parts": parts}, "finishReason": finish}]);
    Ok(answer)
}

pub(super) fn read(body: Value) -> Result<ProviderReply, serde_json::Error> {
    let answer: Answer = serde_json::from_value(body)?;
    let usage = answer.usage_metadata.unwrap_or_default();
    let blocked = answer.prompt_feedback.and_then(|feedback| feedback.block_reason);
    let candidate = answer.candidates.into_iter().next().unwrap_or_default();
    let finish = candidate.finish_reason.unwrap_or_default();
    let stopped = !matches!(finish.as_str(), "" | "STOP" | "MAX_TOKENS");
    let parts = candidate.content.unwrap_or_default().parts;
    let output = [usage.candidates_token_count, usage.thoughts_token_count];
    Ok(ProviderReply {
        refusal: blocked.or_else(|| stopped.then_some(finish.clone())),
        is_cut_off: finish == "MAX_TOKENS",
        text: parts.into_iter().filter(|part| !part.thought).filter_map(|part| part.text).collect(),
        input_tokens: usage.prompt_token_count,
        output_tokens: output.iter().any(Option::is_some).then(|| output.iter().flatten().sum()),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    candidates: Vec<Candidate>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Part>,
}

#[derive(Deserialize)]
struct Part {
    text: Option<String>,
    #[serde(default)]
    thought: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    prompt_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}
