//! Reads strictly what a close depends on. Everywhere else an unexpected value counts as absent; here "nobody is
//! assigned" must not be the result of a list that could not be read.

use canonry_boxed::boxed;
use canonry_domain::{DriftKind, GithubId, ItemNumber, Login, RepoName, parse_moment};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::{ReactionSubject, RestComment, RestIssue, RestReaction, RestTimelineEvent};
use crate::http::client::GitHub;
use crate::http::error::GitHubError;

/// Why a fact is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactError {
    // Not transparent: the outbox searches for GitHub's error among the sources.
    #[error("{0}")]
    GitHub(#[from] GitHubError),
    /// The answer has an unexpected form; contains the affected fact.
    #[error("drift:{0}")]
    Unreadable(DriftKind),
}

#[boxed]
impl GitHub {
    pub async fn issue_to_close(&self, repo: &RepoName, number: ItemNumber) -> Result<RestIssue, FactError> {
        let (issue, answer) = self.issue_with_answer(repo, number).await?;
        match unreadable_in_issue(&answer) {
            Some(fact) => Err(FactError::Unreadable(fact)),
            None => Ok(issue),
        }
    }

    /// The target of a close as a duplicate. Only its text and its state matter.
    pub async fn target_of_close(&self, repo: &RepoName, number: ItemNumber) -> Result<RestIssue, FactError> {
        let (issue, answer) = self.issue_with_answer(repo, number).await?;
        match is_state(&answer) && is_text(&answer) && is_moment(answer.get("created_at")) {
            true => Ok(issue),
            false => Err(FactError::Unreadable(DriftKind::UnreadableTarget)),
        }
    }

    /// The comments since `since` on an item that is to be closed.
    pub async fn comments_before_close(
        &self,
        repo: &RepoName,
        number: ItemNumber,
        since: Timestamp,
    ) -> Result<Vec<RestComment>, FactError> {
        let answer = self.comments(repo, number, Some(since)).all_values().await;
        read_list(answer, is_comment, DriftKind::UnreadableComments)
    }

    pub async fn timeline_before_close(
        &self,
        repo: &RepoName,
        number: ItemNumber,
    ) -> Result<Vec<RestTimelineEvent>, FactError> {
        let answer = self.timeline(repo, number).all_values().await;
        read_list(answer, is_event, DriftKind::UnreadableTimeline)
    }

    /// The reactions to the comment that announced a close.
    pub async fn reactions_before_close(
        &self,
        repo: &RepoName,
        comment: GithubId,
    ) -> Result<Vec<RestReaction>, FactError> {
        let answer = self.reactions(repo, ReactionSubject::Comment(comment)).all_values().await;
        let is_reaction =
            |value: &Value| is_integer(value.get("id")) && is_word(value.get("content")) && is_user(value, "user");
        read_list(answer, is_reaction, DriftKind::UnreadableReactions)
    }
}

fn read_list<T: DeserializeOwned>(
    answer: Result<Vec<Value>, GitHubError>,
    is_readable: impl Fn(&Value) -> bool,
    fact: DriftKind,
) -> Result<Vec<T>, FactError> {
    let values = match answer {
        Err(GitHubError::BadAnswer { .. }) => return Err(FactError::Unreadable(fact)),
        answer => answer?,
    };
    let read = |value: Value| is_readable(&value).then(|| serde_json::from_value(value).ok()).flatten();
    values.into_iter().map(read).collect::<Option<Vec<T>>>().ok_or(FactError::Unreadable(fact))
}

/// The first fact of an item that cannot be read from GitHub's answer.
fn unreadable_in_issue(issue: &Value) -> Option<DriftKind> {
    let field = |name: &str| issue.get(name);
    let all = |name: &str, fits: fn(&Value) -> bool| {
        field(name).and_then(Value::as_array).is_some_and(|list| list.iter().all(fits))
    };
    let is_label = |label: &Value| label.is_string() || is_word(label.get("name"));
    let is_milestone = |milestone: &Value| milestone.is_null() || is_integer(milestone.get("number"));
    let pull = field("pull_request");
    let is_draft = match pull {
        Some(pull) => pull.is_object() && field("draft").is_some_and(Value::is_boolean),
        None => field("draft").is_none_or(|draft| draft.is_boolean() || draft.is_null()),
    };
    let facts = [
        (is_state(issue), DriftKind::UnreadableState),
        (is_text(issue), DriftKind::UnreadableText),
        (field("locked").is_some_and(Value::is_boolean), DriftKind::UnreadableLocked),
        (all("assignees", is_account), DriftKind::UnreadableAssignees),
        (all("labels", is_label), DriftKind::UnreadableLabels),
        (field("milestone").is_some_and(is_milestone), DriftKind::UnreadableMilestone),
        (is_user(issue, "user"), DriftKind::UnreadableAuthor),
        (is_draft, DriftKind::UnreadableDraft),
        (field("comments").and_then(Value::as_u64).is_some(), DriftKind::UnreadableComments),
        (is_moment(field("created_at")) && is_moment(field("updated_at")), DriftKind::UnreadableTimes),
    ];
    facts.into_iter().find_map(|(is_readable, fact)| (!is_readable).then_some(fact))
}

fn is_comment(comment: &Value) -> bool {
    is_integer(comment.get("id"))
        && is_word(comment.get("body"))
        && is_user(comment, "user")
        && is_moment(comment.get("created_at"))
        && is_moment(comment.get("updated_at"))
}

/// Whether an event has the fields that are read for its kind; for most kinds nothing is read.
fn is_event(event: &Value) -> bool {
    let Some(kind) = event.get("event").and_then(Value::as_str) else { return false };
    match kind {
        "reopened" => is_moment(event.get("created_at")) && is_user(event, "actor"),
        "labeled" | "unlabeled" => {
            is_moment(event.get("created_at")) && event.get("label").is_some_and(|label| is_word(label.get("name")))
        }
        "reviewed" => is_moment(event.get("submitted_at")) && is_user(event, "user"),
        "cross-referenced" => event.pointer("/source/issue").is_some_and(|issue| {
            is_state(issue) && is_text(issue) && issue.get("pull_request").is_none_or(Value::is_object)
        }),
        _ => true,
    }
}

fn is_state(issue: &Value) -> bool {
    matches!(issue.get("state").and_then(Value::as_str), Some("open" | "closed"))
}

fn is_text(issue: &Value) -> bool {
    is_word(issue.get("title")) && issue.get("body").is_some_and(|body| body.is_string() || body.is_null())
}

/// GitHub returns null for a deleted account.
fn is_user(value: &Value, name: &str) -> bool {
    value.get(name).is_some_and(|user| user.is_null() || is_account(user))
}

fn is_account(user: &Value) -> bool {
    user.get("login").and_then(Value::as_str).is_some_and(|login| login.parse::<Login>().is_ok())
}

fn is_word(value: Option<&Value>) -> bool {
    value.is_some_and(Value::is_string)
}

fn is_integer(value: Option<&Value>) -> bool {
    value.and_then(Value::as_i64).is_some()
}

fn is_moment(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str).is_some_and(|text| parse_moment(text).is_ok())
}

#[cfg(test)]
mod tests {
    use canonry_domain::DriftKind;
    use serde_json::{Value, json};

    use super::{is_comment, is_event, unreadable_in_issue};

    fn issue() -> Value {
        json!({
            "id": 1, "number": 2, "title": "T", "body": null, "state": "open", "locked": false, "milestone": null,
            "user": {"login": "ann"}, "assignees": [{"login": "ben"}], "labels": [{"name": "bug"}, "old"], "comments": 0,
            "created_at": "2026-02-01T00:00:00Z", "updated_at": "2026-02-01T00:00:00Z",
        })
    }

    /// Every fact of an item, with invalid values for it. `None` leaves the field out.
    const SHAPES: [(&str, DriftKind, &[Option<&str>]); 12] = [
        ("state", DriftKind::UnreadableState, &[None, Some("null"), Some("1"), Some(r#""ajar""#)]),
        ("title", DriftKind::UnreadableText, &[None, Some("null"), Some("{}")]),
        ("body", DriftKind::UnreadableText, &[None, Some("[]"), Some("7")]),
        ("locked", DriftKind::UnreadableLocked, &[None, Some("null"), Some(r#""false""#), Some("0")]),
        (
            "assignees",
            DriftKind::UnreadableAssignees,
            &[
                None,
                Some("null"),
                Some("{}"),
                Some(r#""boss""#),
                Some(r#"["boss"]"#),
                Some(r#"[{"login":null}]"#),
                Some(r#"[{"login":"ann"},{"id":1}]"#),
                Some("[[]]"),
            ],
        ),
        (
            "labels",
            DriftKind::UnreadableLabels,
            &[None, Some("null"), Some("{}"), Some(r#"[{"name":null}]"#), Some("[7]"), Some(r#"["bug",{}]"#)],
        ),
        (
            "milestone",
            DriftKind::UnreadableMilestone,
            &[None, Some(r#""1.0""#), Some("1"), Some("[]"), Some("{}"), Some(r#"{"number":"1"}"#)],
        ),
        (
            "user",
            DriftKind::UnreadableAuthor,
            &[None, Some("{}"), Some(r#""ann""#), Some(r#"{"login":7}"#), Some(r#"{"login":"not a login"}"#)],
        ),
        ("draft", DriftKind::UnreadableDraft, &[Some(r#""no""#), Some("{}")]),
        ("comments", DriftKind::UnreadableComments, &[None, Some("null"), Some(r#""2""#), Some("-1")]),
        ("created_at", DriftKind::UnreadableTimes, &[None, Some("null"), Some(r#""soon""#), Some("{}")]),
        ("updated_at", DriftKind::UnreadableTimes, &[None, Some("null"), Some(r#""soon""#), Some("[]")]),
    ];

    #[test]
    fn what_cannot_be_read_is_told_and_never_none() {
        assert_eq!(unreadable_in_issue(&issue()), None);
        for (name, fact, shapes) in SHAPES {
            for shape in shapes {
                let mut issue = issue();
                match shape {
                    None => drop(issue.as_object_mut().expect("an object").remove(name)),
                    Some(shape) => issue[name] = serde_json::from_str(shape).expect("JSON"),
                }
                assert_eq!(unreadable_in_issue(&issue), Some(fact), "{name}: {shape:?}");
            }
        }
        let mut pull = issue();
        pull["pull_request"] = json!({});
        assert_eq!(unreadable_in_issue(&pull), Some(DriftKind::UnreadableDraft), "of a pull request it must be told");
        pull["draft"] = json!(true);
        assert_eq!(unreadable_in_issue(&pull), None);
    }

    #[test]
    fn comments_and_events_are_read_whole() {
        let at = "2026-02-01T00:00:00Z";
        let comment = json!({"id": 1, "body": "b", "user": null, "created_at": at, "updated_at": at});
        assert!(is_comment(&comment));
        for field in ["id", "body", "user", "created_at", "updated_at"] {
            for shape in [json!({}), json!([])] {
                let mut comment = comment.clone();
                comment[field] = shape;
                assert!(!is_comment(&comment), "{field}");
                comment.as_object_mut().expect("an object").remove(field);
                assert!(!is_comment(&comment), "{field}");
            }
        }
        let actor = json!({"login": "ann"});
        let source = json!({"issue": {"state": "open", "title": "t", "body": null, "pull_request": {}}});
        let events = [
            json!({"event": "reopened", "created_at": at, "actor": actor}),
            json!({"event": "unlabeled", "created_at": at, "label": {"name": "l"}}),
            json!({"event": "reviewed", "submitted_at": at, "user": actor}),
            json!({"event": "cross-referenced", "source": source}),
        ];
        for event in events {
            assert!(is_event(&event), "{event}");
            let fields: Vec<String> = event.as_object().expect("an object").keys().cloned().collect();
            for field in fields {
                let mut event = event.clone();
                event[&field] = json!([7]);
                assert!(!is_event(&event), "{field} of {event}");
            }
        }
        assert!(is_event(&json!({"event": "subscribed"})));
        assert!(!is_event(&json!("reopened")));
    }
}
