//! Extracts the outcome of an issue from a webhook. Pure: the payload in, events out.

use canonry_domain::{
    EventBy, GithubId, HUMAN_LABEL, ItemNumber, Login, Maintainers, OutcomeEvent, OutcomeKind, RepoName,
    named_duplicate, reason_given_at,
};
use canonry_github::api::{RestIssue, RestUser};
use canonry_github::webhook::{Event, IssueCommentEvent, IssuesEvent};
use jiff::Timestamp;

/// What is known about accounts, to say who did something.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownPeople<'a> {
    pub(crate) own: Option<&'a Login>,
    /// The repository's maintainers, as far as they are known.
    pub(crate) maintainers: &'a Maintainers,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct OutcomeSource<'a> {
    pub(crate) delivery_id: &'a str,
    pub(crate) received_at: Timestamp,
    /// The repository's name, which texts may spell out.
    pub(crate) repo: &'a RepoName,
    pub(crate) event: &'a Event,
    pub(crate) people: KnownPeople<'a>,
}

impl KnownPeople<'_> {
    pub(crate) fn is_own(&self, user: &RestUser) -> bool {
        user.to_login().is_some_and(|login| self.own == Some(&login))
    }
}

impl OutcomeSource<'_> {
    /// The event of an issue's own webhook; most contain no outcome.
    pub(crate) fn of_issue(&self, issues: &IssuesEvent) -> Option<OutcomeEvent> {
        let issue = &issues.issue;
        let changed_at = issue.updated_at.unwrap_or(self.received_at);
        let (kind, occurred_at) = match self.event.action.as_deref()? {
            // GitHub reports a corrected reason as another close, with the time of the first.
            "closed" => (OutcomeKind::Closed, reason_given_at(issue.closed_at, issue.updated_at).unwrap_or(changed_at)),
            "reopened" => (OutcomeKind::Reopened, changed_at),
            "labeled" if is_human_label(issues) => (OutcomeKind::Labeled, changed_at),
            "unlabeled" if is_human_label(issues) => (OutcomeKind::Unlabeled, changed_at),
            _ => return None,
        };
        let sender = self.event.sender.as_ref();
        // GitHub reports only the role of the issue's author.
        let is_author = sender.is_some_and(|sender| issue.user.as_ref().is_some_and(|author| same(author, sender)));
        let role = is_author.then(|| self.event.raw["issue"]["author_association"].as_str()).flatten();
        let event = self.event(issue, kind, sender, role, occurred_at)?;
        let closed = kind == OutcomeKind::Closed;
        Some(OutcomeEvent {
            state_reason: issue.state_reason.as_deref().and_then(|word| word.parse().ok()),
            in_body: closed.then(|| self.named(issue.body.as_deref().unwrap_or_default(), event.number)).flatten(),
            ..event
        })
    }

    /// The event of a comment's webhook: the item that the comment names, or that it no longer names one. It is
    /// attributed to the comment's author, not to the account that edited or deleted it.
    pub(crate) fn of_comment(&self, commented: &IssueCommentEvent) -> Option<OutcomeEvent> {
        let (issue, comment) = (&commented.issue, &commented.comment);
        if issue.pull_request.is_some() {
            return None;
        }
        let number = ItemNumber::new(issue.number).ok()?;
        let changed_at = comment.updated_at.or(comment.created_at).unwrap_or(self.received_at);
        let names = self.named(&comment.body, number);
        // The item that the comment named before, if the payload contains it. Without it, any item is possible.
        let was = self.event.raw["changes"]["body"]["from"].as_str();
        let may_have_named = was.is_none_or(|was| self.named(was, number).is_some());
        // A comment that never named an item has nothing to withdraw. The deletion itself reports what a deleted
        // comment named, whether or not its creation has arrived. An earlier edit reports what that edit removed.
        let (occurred_at, names, is_told) = match self.event.action.as_deref()? {
            "created" => (comment.created_at.unwrap_or(self.received_at), names, names.is_some()),
            "edited" => (changed_at, names, names.is_some() || may_have_named),
            // The payload has no time of its own.
            "deleted" => (self.received_at.max(changed_at), None, names.is_some()),
            _ => return None,
        };
        if !is_told {
            return None;
        }
        let role = self.event.raw["comment"]["author_association"].as_str();
        let event = self.event(issue, OutcomeKind::Commented, comment.user.as_ref(), role, occurred_at)?;
        Some(OutcomeEvent { duplicate_of: names, comment: Some(GithubId(comment.id)), ..event })
    }

    fn event(
        &self,
        issue: &RestIssue,
        kind: OutcomeKind,
        who: Option<&RestUser>,
        role: Option<&str>,
        occurred_at: Timestamp,
    ) -> Option<OutcomeEvent> {
        if issue.pull_request.is_some() {
            return None;
        }
        Some(OutcomeEvent {
            delivery_id: self.delivery_id.to_owned(),
            number: ItemNumber::new(issue.number).ok()?,
            kind,
            state_reason: None,
            actor: who.and_then(RestUser::to_login),
            by: self.by(who, role),
            duplicate_of: None,
            in_body: None,
            comment: None,
            labels: Some(issue.labels.iter().map(|label| label.name.replace('\0', "\u{fffd}")).collect()),
            cluster: Vec::new(),
            occurred_at,
        })
    }

    fn by(&self, who: Option<&RestUser>, role: Option<&str>) -> EventBy {
        let Some((user, login)) = who.and_then(|user| Some((user, user.to_login()?))) else { return EventBy::Unknown };
        if self.people.is_own(user) {
            return EventBy::Canonry;
        }
        if user.is_bot() {
            return EventBy::Bot;
        }
        let owns = login.as_str().eq_ignore_ascii_case(self.repo.owner());
        let trusted = role.is_some_and(|role| matches!(role, "OWNER" | "MEMBER" | "COLLABORATOR"));
        if owns || trusted || self.people.maintainers.contains(&login) { EventBy::Maintainer } else { EventBy::Person }
    }

    fn named(&self, text: &str, itself: ItemNumber) -> Option<ItemNumber> {
        named_duplicate(self.repo, text).filter(|named| *named != itself)
    }
}

fn is_human_label(issues: &IssuesEvent) -> bool {
    issues.label.as_ref().is_some_and(|label| label.name.eq_ignore_ascii_case(HUMAN_LABEL))
}

fn same(one: &RestUser, other: &RestUser) -> bool {
    one.to_login().is_some_and(|login| other.to_login() == Some(login))
}

#[cfg(test)]
mod tests {
    use canonry_domain::{EventBy, Login, Maintainers, OutcomeEvent, OutcomeKind, StateReason};
    use canonry_github::webhook::{EventBody, parse_event};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::{KnownPeople, OutcomeSource};

    const RECEIVED: &str = "2026-02-01T12:00:00Z";

    fn outcome_source(name: &str, payload: &Value) -> Option<OutcomeEvent> {
        let own: Login = "canonry[bot]".parse().expect("valid");
        let maintainers: Maintainers = ["mia"].iter().map(|login| login.parse::<Login>().expect("valid")).collect();
        let event = parse_event(name, payload.to_string().as_bytes()).expect("JSON");
        let outcome_source = OutcomeSource {
            delivery_id: "d1",
            received_at: RECEIVED.parse().expect("valid"),
            repo: &"tide/pool".parse().expect("valid"),
            event: &event,
            people: KnownPeople { own: Some(&own), maintainers: &maintainers },
        };
        match &event.body {
            EventBody::Issues(issues) => outcome_source.of_issue(issues),
            EventBody::IssueComment(comment) => outcome_source.of_comment(comment),
            other => panic!("{other:?}"),
        }
    }

    fn issue() -> Value {
        json!({
            "id": 1, "number": 7, "title": "t", "body": "Duplicate of #3", "state": "closed", "state_reason": "completed",
            "user": {"login": "rae"}, "author_association": "NONE", "labels": [{"name": "area/auth"}],
            "updated_at": "2026-02-01T10:00:01Z", "closed_at": "2026-02-01T10:00:00Z",
        })
    }

    fn by(login: &str, account_type: &str) -> Value {
        json!({"login": login, "type": account_type})
    }

    #[test]
    fn a_closing_says_who_why_and_what_the_body_names() {
        let closed = |sender: Value| {
            outcome_source("issues", &json!({"action": "closed", "issue": issue(), "sender": sender}))
                .expect("an event")
        };
        let event = closed(by("rae", "User"));
        assert_eq!(
            (event.kind, event.state_reason, event.by),
            (OutcomeKind::Closed, Some(StateReason::Completed), EventBy::Person)
        );
        assert_eq!((event.in_body.map(|number| number.get()), event.duplicate_of), (Some(3), None));
        assert_eq!(event.labels, Some(vec!["area/auth".to_owned()]));
        assert_eq!(event.occurred_at, "2026-02-01T10:00:00Z".parse::<Timestamp>().expect("valid"));
        for (sender, expected) in [
            (by("Mia", "User"), EventBy::Maintainer),
            (by("tide", "Organization"), EventBy::Maintainer),
            (by("stale[bot]", "Bot"), EventBy::Bot),
            (by("renovate", "Bot"), EventBy::Bot),
            (by("Canonry[bot]", "Bot"), EventBy::Canonry),
            (Value::Null, EventBy::Unknown),
            (json!({"login": "two words"}), EventBy::Unknown),
        ] {
            assert_eq!(closed(sender.clone()).by, expected, "{sender}");
        }
    }

    #[test]
    fn a_corrected_reason_has_the_time_of_the_correction() {
        let closed = |updated_at: &str| {
            let mut issue = issue();
            issue["updated_at"] = json!(updated_at);
            outcome_source("issues", &json!({"action": "closed", "issue": issue, "sender": by("rae", "User")}))
                .expect("an event")
                .occurred_at
                .to_string()
        };
        assert_eq!(closed("2026-02-01T10:00:05Z"), "2026-02-01T10:00:00Z");
        assert_eq!(closed("2026-02-01T10:02:00Z"), "2026-02-01T10:02:00Z");
    }

    #[test]
    fn an_authors_role_counts_for_the_author_alone() {
        let mut issue = issue();
        issue["author_association"] = json!("COLLABORATOR");
        let by = |login: &str| {
            outcome_source("issues", &json!({"action": "reopened", "issue": issue, "sender": by(login, "User")}))
                .map(|event| event.by)
        };
        assert_eq!((by("RAE"), by("sam")), (Some(EventBy::Maintainer), Some(EventBy::Person)));
    }

    #[test]
    fn only_the_label_of_people_is_told() {
        let labeled = |label: &str| {
            let payload =
                json!({"action": "labeled", "issue": issue(), "label": {"name": label}, "sender": by("sam", "User")});
            outcome_source("issues", &payload).map(|event| event.kind)
        };
        assert_eq!(
            (labeled("Duplicate"), labeled("possible-duplicate"), labeled("bug")),
            (Some(OutcomeKind::Labeled), None, None)
        );
        for action in ["opened", "edited", "assigned", "teleported"] {
            assert_eq!(outcome_source("issues", &json!({"action": action, "issue": issue()})), None, "{action}");
        }
    }

    #[test]
    fn pull_requests_tell_nothing() {
        let mut pull = issue();
        pull["pull_request"] = json!({});
        assert_eq!(outcome_source("issues", &json!({"action": "closed", "issue": pull})), None);
        let comment = json!({"id": 9, "body": "Duplicate of #3", "user": {"login": "mia"}});
        assert_eq!(
            outcome_source("issue_comment", &json!({"action": "created", "issue": pull, "comment": comment})),
            None
        );
    }

    #[test]
    fn a_comment_goes_by_its_author_and_can_take_its_word_back() {
        let comment = |action: &str, body: &str| {
            let comment = json!({
                "id": 9, "body": body, "user": {"login": "mia"}, "created_at": "2026-02-01T09:00:00Z", "updated_at": "2026-02-01T11:00:00Z",
            });
            outcome_source(
                "issue_comment",
                &json!({"action": action, "issue": issue(), "comment": comment, "sender": by("sam", "User")}),
            )
        };
        let word = |event: Option<OutcomeEvent>| {
            event.map(|event| (event.duplicate_of.map(|number| number.get()), event.by, event.occurred_at.to_string()))
        };
        let maintainer = EventBy::Maintainer;
        assert_eq!(
            word(comment("created", "Dup of #3")),
            Some((Some(3), maintainer, "2026-02-01T09:00:00Z".to_owned()))
        );
        assert_eq!(word(comment("created", "Thanks")), None);
        assert_eq!(word(comment("created", "Dup of #7")), None, "an issue is no duplicate of itself");
        assert_eq!(word(comment("edited", "Thanks")), Some((None, maintainer, "2026-02-01T11:00:00Z".to_owned())));
        assert_eq!(word(comment("deleted", "Dup of #3")), Some((None, maintainer, RECEIVED.to_owned())));
    }

    #[test]
    fn what_never_named_anything_has_nothing_to_take_back() {
        let comment = |action: &str, from: Option<&str>, body: &str| {
            let comment =
                json!({"id": 9, "body": body, "user": {"login": "mia"}, "created_at": "2026-02-01T09:00:00Z"});
            let changes = from.map_or_else(|| json!({}), |from| json!({"body": {"from": from}}));
            let payload = json!({"action": action, "issue": issue(), "comment": comment, "changes": changes});
            outcome_source("issue_comment", &payload).map(|event| event.duplicate_of.map(|number| number.get()))
        };
        assert_eq!(comment("edited", Some("Thanks"), "Thank you"), None);
        assert_eq!(comment("edited", Some("Dup of #7"), "Thank you"), None, "an issue is no duplicate of itself");
        assert_eq!(comment("edited", Some("Dup of #3"), "Thank you"), Some(None));
        assert_eq!(comment("edited", Some("Thanks"), "Dup of #3"), Some(Some(3)));
        assert_eq!(comment("edited", None, "Thank you"), Some(None));
        assert_eq!(comment("deleted", None, "Thanks"), None);
        assert_eq!(comment("deleted", None, "Dup of #3"), Some(None));
    }
}
