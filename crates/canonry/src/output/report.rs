//! The result of a command: text for a person, one document for a program.

use canonry_domain::RepoName;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::output::exit::Exit;
use crate::session::context::Context;

/// The version of the documents' format; it increases when a key changes its meaning or is removed.
pub(crate) const SCHEMA_VERSION: u32 = 1;

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) exit: Exit,
    /// The output for stdout; `None` if the command wrote its result there itself.
    pub(crate) document: Option<Document>,
}

/// A result in both forms.
#[derive(Debug)]
pub(crate) struct Document {
    repo: Option<RepoName>,
    stats: Value,
    more: Map<String, Value>,
    text: String,
}

impl Report {
    /// A result with its counters and the same as text for a person.
    pub(crate) fn new(stats: impl Serialize, text: impl Into<String>) -> Self {
        let document = Document { repo: None, stats: value(&stats), more: Map::new(), text: text.into() };
        Self { exit: Exit::Done, document: Some(document) }
    }

    /// The end of a command that wrote its result itself.
    pub(crate) fn written(exit: Exit) -> Self {
        Self { exit, document: None }
    }

    pub(crate) fn with(mut self, key: &str, content: impl Serialize) -> Self {
        if let Some(document) = &mut self.document {
            document.more.insert(key.to_owned(), value(&content));
        }
        self
    }

    /// Sets the repository, spelled as in the store, or the one that was found if none was named.
    pub(crate) fn of(mut self, repo: &RepoName) -> Self {
        if let Some(document) = &mut self.document {
            document.repo = Some(repo.clone());
        }
        self
    }

    /// Puts a text for a person in front.
    pub(crate) fn preceded_by(mut self, text: &str) -> Self {
        if let Some(document) = &mut self.document {
            document.text.insert_str(0, text);
        }
        self
    }

    /// The document for a program, for a command that writes it elsewhere than to stdout.
    pub(crate) fn envelope(&self, context: &Context) -> Value {
        self.document.as_ref().map_or(Value::Null, |document| document.envelope(context, None))
    }

    /// The text for a person, for a command that prints it before its end.
    pub(crate) fn text(&self) -> &str {
        self.document.as_ref().map_or("", Document::text)
    }

    pub(crate) fn ending(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

impl Document {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn envelope(&self, context: &Context, asked_repo: Option<&RepoName>) -> Value {
        let mut envelope = envelope(&context.command, &context.run_id.to_string(), self.repo.as_ref().or(asked_repo));
        envelope.insert("stats".to_owned(), self.stats.clone());
        envelope.extend(self.more.clone());
        Value::Object(envelope)
    }
}

/// The first keys of every document.
pub(crate) fn envelope(command: &str, run_id: &str, repo: Option<&RepoName>) -> Map<String, Value> {
    let mut envelope = Map::new();
    envelope.insert("schema_version".to_owned(), json!(SCHEMA_VERSION));
    envelope.insert("command".to_owned(), if command.is_empty() { Value::Null } else { json!(command) });
    envelope.insert("run_id".to_owned(), json!(run_id));
    envelope.insert("repo".to_owned(), json!(repo));
    envelope
}

fn value(content: &impl Serialize) -> Value {
    serde_json::to_value(content).expect("invariant: reports are plain data")
}
