//! One request as a handler sees it, and its answer.

use serde_json::{Value, json};

use crate::github::people::accounts::Actor;
use crate::github::repos::repositories::Repo;
use crate::github::repos::smart_http::GitRequest;
use crate::github::world::World;

/// An answer before rate-limit headers are added.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Option<Value>,
    /// A body that is not JSON (raw file contents); it replaces `body`.
    pub raw: Option<Box<[u8]>>,
}

/// A handler's answer; a refusal is also an answer and returns early through `?`.
pub(crate) type Reply = Result<Answer, Answer>;

impl Answer {
    /// 200 with a body.
    pub fn ok(body: Value) -> Self {
        Self::json(200, body)
    }

    pub fn json(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body: Some(body), raw: None }
    }

    /// A status without a body.
    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: None, raw: None }
    }

    /// A status with GitHub's usual error body.
    pub fn message(status: u16, message: &str) -> Self {
        Self::json(
            status,
            json!({
                "message": message,
                "documentation_url": "https://docs.github.com/rest",
                "status": status.to_string(),
            }),
        )
    }

    /// 404 with GitHub's text.
    pub fn not_found() -> Self {
        Self::message(404, "Not Found")
    }

    /// 422 that names one field.
    pub fn invalid(resource: &str, field: &str, code: &str) -> Self {
        let mut answer = Self::message(422, "Validation Failed");
        if let Some(body) = &mut answer.body {
            body["errors"] = json!([{ "resource": resource, "field": field, "code": code }]);
        }
        answer
    }

    /// 422 that explains one field in a sentence.
    pub fn invalid_because(resource: &str, field: &str, message: &str) -> Self {
        let mut answer = Self::message(422, "Validation Failed");
        if let Some(body) = &mut answer.body {
            body["errors"] =
                json!([{ "resource": resource, "field": field, "code": "unprocessable", "message": message }]);
        }
        answer
    }

    /// A redirect to another URL of the API.
    pub fn moved(status: u16, location: &str) -> Self {
        let word = if status == 301 { "Moved Permanently" } else { "Temporary Redirect" };
        let mut answer = Self::message(status, word).header("location", location);
        if let Some(body) = &mut answer.body {
            body["url"] = json!(location);
        }
        answer
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A request whose route and caller are known.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// The path with `/repositories/{id}` replaced by `/repos/{owner}/{repo}`.
    pub(crate) named_path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) params: Vec<(&'static str, String)>,
    pub(crate) actor: Actor,
    pub(crate) accept: String,
    /// The decompressed input from git, and the protocol version that it requests.
    pub(crate) git: GitRequest,
    pub(crate) repo: Option<usize>,
}

impl Call {
    pub(crate) fn param(&self, name: &str) -> &str {
        let found = self.params.iter().find(|(candidate, _)| *candidate == name);
        found.map(|(_, value)| value.as_str()).expect("invariant: the route's template names it")
    }

    /// A number in the path; anything else is a 404.
    pub(crate) fn number(&self, name: &str) -> Result<u64, Answer> {
        self.param(name).parse().map_err(|_| Answer::not_found())
    }

    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().rev().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        self.body.as_ref().and_then(|body| body.get(name))
    }

    pub(crate) fn repo_position(&self) -> usize {
        self.repo.expect("invariant: only routes under a repository ask")
    }

    pub(crate) fn repo<'world>(&self, world: &'world World) -> &'world Repo {
        &world.repos[self.repo_position()]
    }

    pub(crate) fn repo_mut<'world>(&self, world: &'world mut World) -> &'world mut Repo {
        &mut world.repos[self.repo_position()]
    }

    pub(crate) fn login(&self) -> String {
        self.actor.login().map(str::to_owned).expect("invariant: writing was allowed, so somebody is signed in")
    }
}

/// A text that must exist and must not be blank.
pub(crate) fn required_text(call: &Call, resource: &str, field: &str) -> Result<String, Answer> {
    match call.field(field) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        Some(Value::String(_)) => Err(Answer::invalid_because(resource, field, &format!("{field} cannot be blank"))),
        _ => Err(Answer::invalid(resource, field, "missing_field")),
    }
}

/// The maximum length of a body on GitHub, in characters.
const LONGEST_BODY: usize = 65_536;

/// Refuses a body that is too long.
pub(crate) fn check_length(resource: &str, field: &str, text: &str) -> Result<(), Answer> {
    if text.chars().count() > LONGEST_BODY {
        let message = format!("{field} is too long (maximum is {LONGEST_BODY} characters)");
        return Err(Answer::invalid_because(resource, field, &message));
    }
    Ok(())
}

/// An object extended by the fields of another.
pub(crate) fn extended(mut value: Value, more: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (value.as_object_mut(), more) {
        fields.extend(more);
    }
    value
}
