//! Recorded requests, for the assertions of tests.

use serde_json::Value;

use crate::github::serve::routes::routes;

#[derive(Debug, Clone)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    /// The path with `/repositories/{id}` replaced by `/repos/{owner}/{repo}`.
    pub named_path: String,
    pub query: Vec<(String, String)>,
    pub body: Option<Value>,
    /// Login of the caller; `None` for anonymous callers and for the App itself.
    pub user: Option<String>,
    pub route: Option<&'static str>,
    /// The status of the answer; `None` while it is pending or if the connection was cut.
    pub status: Option<u16>,
    /// The JSON answer, if [`Emulator::keep_answers`](super::Emulator::keep_answers) was called.
    pub answer: Option<Value>,
}

impl Recorded {
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }

    /// Whether it may change something. Git fetches and GraphQL queries are POST requests that change nothing.
    pub fn is_write(&self) -> bool {
        let route = routes().iter().find(|route| route.method == self.method && Some(route.template) == self.route);
        route.map_or(self.method != "GET", |route| route.writes(self.body.as_ref()))
    }

    /// A field of the JSON body, for predicates and assertions.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.body.as_ref().and_then(|body| body.get(name))
    }
}

/// The texts that people would read, anywhere in a request.
pub(crate) fn texts_of(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let readable = |name: &str| matches!(name, "body" | "message" | "summary" | "text" | "title");
            let mut texts = Vec::new();
            for (name, value) in fields {
                match value {
                    Value::String(text) if readable(name) => texts.push(text.clone()),
                    _ => texts.extend(texts_of(value)),
                }
            }
            texts
        }
        Value::Array(entries) => entries.iter().flat_map(texts_of).collect(),
        _ => Vec::new(),
    }
}
