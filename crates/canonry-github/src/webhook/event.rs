//! Parses a webhook: typed if Canonry acts on it, otherwise kept as ignored.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::payloads::{
    CheckEvent, InstallationEvent, InstallationRepositoriesEvent, IssueCommentEvent, IssuesEvent, LabelEvent,
    PingEvent, PullRequestEvent, PullRequestReviewCommentEvent, PullRequestReviewEvent, PullRequestReviewThreadEvent,
    PushEvent, RepositoryEvent,
};
use crate::api::lenient;
use crate::api::{RestRepo, RestUser};

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The name from `X-GitHub-Event`.
    pub name: String,
    /// What happened, for events that have several actions.
    pub action: Option<String>,
    pub repository: Option<RestRepo>,
    pub sender: Option<RestUser>,
    pub installation_id: Option<i64>,
    pub body: EventBody,
    pub raw: Value,
}

/// The content of the events that Canonry acts on.
#[derive(Debug, Clone, PartialEq)]
pub enum EventBody {
    Issues(IssuesEvent),
    IssueComment(IssueCommentEvent),
    PullRequest(PullRequestEvent),
    PullRequestReview(PullRequestReviewEvent),
    PullRequestReviewComment(PullRequestReviewCommentEvent),
    PullRequestReviewThread(PullRequestReviewThreadEvent),
    Push(PushEvent),
    Installation(InstallationEvent),
    InstallationRepositories(InstallationRepositoriesEvent),
    Repository(RepositoryEvent),
    Label(LabelEvent),
    /// `check_run` and `check_suite`.
    Check(CheckEvent),
    Ping(PingEvent),
    /// An event that Canonry does not act on, or that has an unexpected form.
    Ignored,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the webhook's body is not JSON ({0})")]
pub struct NotJson(String);

/// The fields that all events may have.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Envelope {
    #[serde(deserialize_with = "lenient::or_default")]
    action: Option<String>,
    #[serde(deserialize_with = "lenient::or_default")]
    repository: Option<RestRepo>,
    #[serde(deserialize_with = "lenient::or_default")]
    sender: Option<RestUser>,
    #[serde(deserialize_with = "lenient::or_default")]
    installation: Option<InstallationId>,
}

#[derive(Debug, Deserialize)]
struct InstallationId {
    id: i64,
}

/// Parses a webhook. Only a body that is not JSON is an error: unknown names, actions and forms become
/// [`EventBody::Ignored`], with the whole body in [`Event::raw`].
pub fn parse_event(name: &str, body: &[u8]) -> Result<Event, NotJson> {
    let raw: Value = serde_json::from_slice(body).map_err(|error| NotJson(error.to_string()))?;
    let envelope = Envelope::deserialize(&raw).unwrap_or_default();
    Ok(Event {
        name: name.to_owned(),
        action: envelope.action,
        repository: envelope.repository,
        sender: envelope.sender,
        installation_id: envelope.installation.map(|installation| installation.id),
        body: read_body(name, &raw),
        raw,
    })
}

/// The events that [`parse_event`] reads, by their names in `X-GitHub-Event`.
#[cfg(test)]
pub(crate) fn known_events() -> impl Iterator<Item = &'static str> {
    READERS.iter().map(|(name, _)| *name)
}

type Reader = fn(&Value) -> EventBody;

const READERS: [(&str, Reader); 14] = [
    ("issues", |raw| typed(raw, EventBody::Issues)),
    ("issue_comment", |raw| typed(raw, EventBody::IssueComment)),
    ("pull_request", |raw| typed(raw, EventBody::PullRequest)),
    ("pull_request_review", |raw| typed(raw, EventBody::PullRequestReview)),
    ("pull_request_review_comment", |raw| typed(raw, EventBody::PullRequestReviewComment)),
    ("pull_request_review_thread", |raw| typed(raw, EventBody::PullRequestReviewThread)),
    ("push", |raw| typed(raw, EventBody::Push)),
    ("installation", |raw| typed(raw, EventBody::Installation)),
    ("installation_repositories", |raw| typed(raw, EventBody::InstallationRepositories)),
    ("repository", |raw| typed(raw, EventBody::Repository)),
    ("label", |raw| typed(raw, EventBody::Label)),
    ("check_run", |raw| typed(raw, EventBody::Check)),
    ("check_suite", |raw| typed(raw, EventBody::Check)),
    ("ping", |raw| typed(raw, EventBody::Ping)),
];

fn read_body(name: &str, raw: &Value) -> EventBody {
    READERS.iter().find(|(known, _)| *known == name).map_or(EventBody::Ignored, |(_, read)| read(raw))
}

fn typed<T: DeserializeOwned>(raw: &Value, wrap: fn(T) -> EventBody) -> EventBody {
    // Serde would read an array as a payload by position.
    if !raw.is_object() {
        return EventBody::Ignored;
    }
    T::deserialize(raw).map_or(EventBody::Ignored, wrap)
}

#[cfg(test)]
mod tests {
    use super::{EventBody, parse_event};
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn unknown_values_and_missing_fields_are_no_error() {
        let event = parse_event(
            "issues",
            br#"{"action":"teleported","issue":{"id":9007199254740993,"number":1,"state":"ajar","state_reason":"boredom"},"sender":null}"#,
        )
        .expect("JSON");
        assert_eq!(event.action.as_deref(), Some("teleported"));
        let EventBody::Issues(issues) = &event.body else { panic!("{event:?}") };
        assert_eq!((issues.issue.id, issues.issue.state.as_str()), (9_007_199_254_740_993, "ajar"));
    }

    #[test]
    fn other_shapes_are_kept_as_ignored() {
        for body in ["{}", "[]", "null", "3", r#"{"issue":{"id":"x"}}"#, r#"[{"id":1,"number":1}]"#] {
            let event = parse_event("issues", body.as_bytes()).expect("JSON");
            assert_eq!((event.body, event.raw.to_string()), (EventBody::Ignored, body.to_owned()));
        }
        let event = parse_event("brand_new", br#"{"action":"done","installation":{"id":5}}"#).expect("JSON");
        assert_eq!((event.action.as_deref(), event.installation_id), (Some("done"), Some(5)));
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for body in [&b""[..], b"{", b"payload=%7B%7D", b"{} x", b"\xff"] {
            assert!(parse_event("issues", body).is_err(), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn any_object_is_an_event(keys in proptest::collection::btree_map("(action|issue|comment|repository|sender|pull_request|installation)", any::<Option<i64>>(), 0..6), name in "(issues|push|ping|installation|pull_request|x)") {
            let body = serde_json::to_vec(&keys).expect("plain data");
            prop_assert_eq!(parse_event(&name, &body).expect("JSON").name, name);
        }
    }
}
