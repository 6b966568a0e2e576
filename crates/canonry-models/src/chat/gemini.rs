//! Gemini's `generateContent`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::chat_model::ChatRequest;
use crate::chat::remote_chat::ProviderReply;
use crate::chat::thinking::Thinking;

pub(super) fn body(request: &ChatRequest, thinking: Option<Thinking>) -> Value {
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": request.system}]},
        "contents": [{"role": "user", "parts": [{"text": request.user}]}],
        "generationConfig": {
            "temperature": 0,
            "maxOutputTokens": request.max_tokens,
            "responseMimeType": "application/json",
            "responseJsonSchema": request.json_schema,
        },
    });
    if let Some(thinking) = thinking {
        let settings = &mut body["generationConfig"];
        settings["maxOutputTokens"] = json!(request.max_tokens + thinking.tokens());
        settings["thinkingConfig"] = json!({"thinkingBudget": thinking.tokens()});
    }
    body
}

pub(super) fn read(body: &[u8]) -> Result<ProviderReply, serde_json::Error> {
    let answer: Answer = serde_json::from_slice(body)?;
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
