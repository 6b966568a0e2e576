//! What the server was told to answer, and what it was asked.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::fault::Fault;
use super::vectors::{DIMENSION, padded, vector_of_text};

/// One request as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The path behind the base.
    pub path: String,
    /// The `authorization` header.
    pub authorization: Option<String>,
    /// The JSON body.
    pub body: Value,
}

impl ModelRequest {
    /// The texts that were to be embedded.
    pub fn texts(&self) -> Vec<String> {
        match &self.body["input"] {
            Value::String(text) => vec![text.clone()],
            Value::Array(texts) => texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// What all messages of a chat said, one after the other.
    pub fn prompt(&self) -> String {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        messages.filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
    }

    fn holds(&self, text: &str) -> bool {
        self.prompt().contains(text) || self.texts().iter().any(|sent| sent.contains(text))
    }
}

type Predicate = Box<dyn Fn(&str) -> bool + Send>;

/// Everything that a test said beforehand, and everything that came.
#[derive(Default)]
pub(super) struct Script {
    vectors: Vec<(String, Vec<f32>)>,
    answers: VecDeque<String>,
    answers_when: Vec<(Predicate, String)>,
    faults_once: VecDeque<Fault>,
    faults_when: Vec<(String, Fault)>,
    pub(super) requests: Vec<ModelRequest>,
    pub(super) unanswered: Vec<String>,
}

/// What to do with a request.
pub(super) enum Reply {
    Answer { status: u16, retry_after: Option<u32>, body: String },
    Hang,
    Drop,
}

impl Script {
    pub(super) fn vector_for(&mut self, contains: &str, vector: Vec<f32>) {
        self.vectors.push((contains.to_owned(), padded(vector)));
    }

    pub(super) fn answer_next(&mut self, text: String) {
        self.answers.push_back(text);
    }

    pub(super) fn answer_when(&mut self, predicate: Predicate, text: String) {
        self.answers_when.push((predicate, text));
    }

    pub(super) fn fault_once(&mut self, fault: Fault) {
        self.faults_once.push_back(fault);
    }

    pub(super) fn fault_when(&mut self, contains: &str, fault: Fault) {
        self.faults_when.push((contains.to_owned(), fault));
    }

    pub(super) fn clear_faults(&mut self) {
        self.faults_once.clear();
        self.faults_when.clear();
    }

    /// Records a request and finds its answer.
    pub(super) fn reply(&mut self, request: ModelRequest) -> Reply {
        let fault = self.faults_once.pop_front().or_else(|| {
            let strikes = self.faults_when.iter().find(|(text, _)| request.holds(text));
            strikes.map(|(_, fault)| fault.clone())
        });
        let key = request.authorization.clone().unwrap_or_default();
        self.requests.push(request.clone());
        match &fault {
            Some(Fault::Hang) => return Reply::Hang,
            Some(Fault::Drop) => return Reply::Drop,
            Some(Fault::Status { status, retry_after }) => {
                let body = json!({"error": {"message": format!("no vectors today for {key}")}}).to_string();
                return Reply::Answer { status: *status, retry_after: *retry_after, body };
            }
            _ => {}
        }
        let body = match request.path.as_str() {
            "/embeddings" => Some(self.embeddings(&request, fault.as_ref())),
            "/chat/completions" => self.completion(&request),
            _ => None,
        };
        let Some(mut body) = body else {
            self.unanswered.push(format!("{} {}", request.path, request.prompt()));
            // A status that nobody retries.
            let body = json!({"error": {"message": "the script has no answer"}}).to_string();
            return Reply::Answer { status: 400, retry_after: None, body };
        };
        if fault == Some(Fault::TruncatedJson) {
            body = body.chars().take(body.chars().count() / 2).collect();
        }
        Reply::Answer { status: 200, retry_after: None, body }
    }

    fn embeddings(&self, request: &ModelRequest, fault: Option<&Fault>) -> String {
        let texts = request.texts();
        let mut vectors: Vec<Value> = texts.iter().map(|text| json!(self.vector(text, fault))).collect();
        let last = vectors.last_mut().and_then(Value::as_array_mut);
        match (fault, last) {
            (Some(Fault::UnevenDimension), Some(last)) => drop(last.pop()),
            (Some(Fault::NullComponent), Some(last)) => last[0] = Value::Null,
            (Some(Fault::NanComponent), Some(last)) => last[0] = json!("NaN"),
            (Some(Fault::FewerVectors), _) => drop(vectors.pop()),
            _ => {}
        }
        let data = vectors.into_iter().enumerate();
        let data: Vec<Value> =
            data.map(|(index, vector)| json!({"object": "embedding", "index": index, "embedding": vector})).collect();
        let tokens: usize = texts.iter().map(|text| text.len() / 4).sum();
        let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
        let answer = json!({"object": "list", "data": data, "model": request.body["model"], "usage": usage});
        // JSON has no such number; the servers that write it do so without quotes.
        answer.to_string().replace("\"NaN\"", "NaN")
    }

    /// The newest rule that fits decides, so that a test can change its mind.
    fn vector(&self, text: &str, fault: Option<&Fault>) -> Vec<f32> {
        let scripted = self.vectors.iter().rev().find(|(contains, _)| text.contains(contains.as_str()));
        let mut vector = scripted.map_or_else(|| vector_of_text(text), |(_, vector)| vector.clone());
        let length = if let Some(Fault::Dimension(length)) = fault { *length } else { DIMENSION };
        vector.resize(length, 0.5);
        vector
    }

    fn completion(&mut self, request: &ModelRequest) -> Option<String> {
        let prompt = request.prompt();
        let next = self.answers.pop_front();
        let text = next.or_else(|| {
            let fits = self.answers_when.iter().rev().find(|(predicate, _)| predicate(&prompt));
            fits.map(|(_, text)| text.clone())
        })?;
        let usage = json!({"prompt_tokens": prompt.len() / 4, "completion_tokens": text.len() / 4});
        let message = json!({"role": "assistant", "content": text});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let model = &request.body["model"];
        Some(json!({"object": "chat.completion", "model": model, "choices": [choice], "usage": usage}).to_string())
    }
}
