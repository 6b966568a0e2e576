//! The scripted answers, and the received requests.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::fault::Fault;
use super::vectors::{DIMENSION, padded, vector_of_text};

#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    pub path: String,
    /// The `authorization` header.
    pub authorization: Option<String>,
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

    /// The contents of all messages of a chat, one after the other.
    pub fn prompt(&self) -> String {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        messages.filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
    }

    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    fn holds(&self, text: &str) -> bool {
        self.prompt().contains(text) || self.texts().iter().any(|sent| sent.contains(text))
    }
}

/// Answers a chat request; `None` if the rule does not match.
type Rule = Box<dyn Fn(&ModelRequest) -> Option<String> + Send>;

/// Everything that a test scripted, and every request.
#[derive(Default)]
pub(super) struct Script {
    vectors: Vec<(String, Vec<f32>)>,
    answers: VecDeque<String>,
    rules: Vec<Rule>,
    refusals: Vec<(String, String)>,
    faults_once: VecDeque<Fault>,
    faults_when: Vec<(String, Fault)>,
    pub(super) requests: Vec<ModelRequest>,
    pub(super) unanswered: Vec<String>,
}

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

    pub(super) fn answer_by(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    pub(super) fn refuse(&mut self, field: &str, said: &str) {
        self.refusals.push((field.to_owned(), said.to_owned()));
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
    pub(super) fn reply(&mut self, request: &ModelRequest) -> Reply {
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
        let refusal = self.refusals.iter().find(|(field, _)| request.body.get(field).is_some());
        if let Some((_, said)) = refusal {
            let body = json!({"error": {"message": said}}).to_string();
            return Reply::Answer { status: 400, retry_after: None, body };
        }
        let body = match request.path.as_str() {
            "/embeddings" => Some(self.embeddings(request, fault.as_ref())),
            "/chat/completions" => self.completion(request, fault.as_ref()),
            _ => None,
        };
        let Some(mut body) = body else {
            self.unanswered.push(format!("{} {}", request.path, request.prompt()));
            // A status that no client retries.
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
        // JSON has no NaN; servers that send it write it without quotes.
        answer.to_string().replace("\"NaN\"", "NaN")
    }

    /// The newest matching rule wins, so that a test can override earlier ones.
    fn vector(&self, text: &str, fault: Option<&Fault>) -> Vec<f32> {
        let scripted = self.vectors.iter().rev().find(|(contains, _)| text.contains(contains.as_str()));
        let mut vector = scripted.map_or_else(|| vector_of_text(text), |(_, vector)| vector.clone());
        let length = if let Some(Fault::Dimension(length)) = fault { *length } else { DIMENSION };
        vector.resize(length, 0.5);
        vector
    }

    fn completion(&mut self, request: &ModelRequest, fault: Option<&Fault>) -> Option<String> {
        let message = if fault == Some(&Fault::Refusal) {
            json!({"role": "assistant", "content": null, "refusal": "I cannot help with that."})
        } else {
            let next = self.answers.pop_front();
            let text = next.or_else(|| self.rules.iter().rev().find_map(|rule| rule(request)))?;
            json!({"role": "assistant", "content": text})
        };
        let length = |text: &str| text.len() / 4;
        let said = message["content"].as_str().map_or(0, length);
        let usage = json!({"prompt_tokens": length(&request.prompt()), "completion_tokens": said});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let model = &request.body["model"];
        Some(json!({"object": "chat.completion", "model": model, "choices": [choice], "usage": usage}).to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Fault, ModelRequest, Reply, Script};

    fn asked(script: &mut Script, path: &str, body: Value) -> (u16, Option<u32>, String) {
        let request = ModelRequest { path: path.to_owned(), authorization: Some("Bearer k".to_owned()), body };
        match script.reply(&request) {
            Reply::Answer { status, retry_after, body } => (status, retry_after, body),
            Reply::Hang | Reply::Drop => panic!("no answer"),
        }
    }

    fn chat(script: &mut Script, prompt: &str) -> Value {
        let messages = json!([{"role": "system", "content": "judge"}, {"role": "user", "content": prompt}]);
        let (status, _, body) = asked(script, "/chat/completions", json!({"model": "m", "messages": messages}));
        if status == 200 { serde_json::from_str(&body).expect("JSON") } else { Value::Null }
    }

    #[test]
    fn chat_answers_come_in_order_and_then_by_rule() {
        let mut script = Script::default();
        script.answer_next("one".to_owned());
        let when = |word: &'static str, text: &'static str| -> super::Rule {
            Box::new(move |request| request.prompt().contains(word).then(|| format!("{text} by {}", request.model())))
        };
        script.answer_by(when("kelp", "two"));
        script.answer_by(when("crab", "three"));
        let said = |answer: &Value| answer["choices"][0]["message"]["content"].clone();
        assert_eq!(said(&chat(&mut script, "kelp")), "one");
        assert_eq!(said(&chat(&mut script, "kelp")), "two by m");
        assert_eq!(said(&chat(&mut script, "crab and kelp")), "three by m");
        assert!(script.unanswered.is_empty());
        assert_eq!(chat(&mut script, "squid"), Value::Null);
        assert_eq!(script.unanswered, ["/chat/completions judge\nsquid"]);
    }

    #[test]
    fn a_refusal_comes_instead_of_an_answer() {
        let mut script = Script::default();
        script.answer_next("one".to_owned());
        script.fault_once(Fault::Refusal);
        let message = |answer: &Value| answer["choices"][0]["message"].clone();
        let refused = message(&chat(&mut script, "kelp"));
        assert_eq!((&refused["content"], refused["refusal"].is_string()), (&Value::Null, true));
        assert_eq!(message(&chat(&mut script, "kelp"))["content"], "one");
    }

    #[test]
    fn faults_strike_once_or_where_a_text_is_sent() {
        let mut script = Script::default();
        script.fault_once(Fault::status(429).retry_after(7));
        script.fault_when("crab", Fault::FewerVectors);
        let embed = |script: &mut Script, texts: &[&str]| {
            let (status, retry_after, body) = asked(script, "/embeddings", json!({"model": "m", "input": texts}));
            let vectors =
                serde_json::from_str::<Value>(&body).ok().and_then(|body| Some(body["data"].as_array()?.len()));
            (status, retry_after, vectors)
        };
        assert_eq!(embed(&mut script, &["kelp"]), (429, Some(7), None));
        assert_eq!(embed(&mut script, &["kelp", "squid"]), (200, None, Some(2)));
        assert_eq!(embed(&mut script, &["kelp", "crab"]), (200, None, Some(1)));
        script.clear_faults();
        assert_eq!(embed(&mut script, &["kelp", "crab"]), (200, None, Some(2)));
        script.fault_once(Fault::TruncatedJson);
        assert_eq!(embed(&mut script, &["kelp"]), (200, None, None));
    }
}
