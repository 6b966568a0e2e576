//! Finds who changed the state of an issue if a sync found the change without its actor.

use canonry_boxed::boxed;
use std::collections::BTreeSet;

use canonry_domain::{
    EventBy, EventOrigin, GithubId, HUMAN_LABEL, Item, ItemNumber, ItemType, Login, OutcomeEvent, OutcomeKind,
    RepoName, StateReason, explains_closing, named_duplicate,
};
use canonry_github::api::RestTimelineEvent;
use canonry_github::{GitHub, GitHubError};
use canonry_store::{Repo, Store};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::close::live_item::is_gone;
use crate::corpus::sync::SyncError;

/// A timeline may lack recent events. What it does not contain after this time it never will.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_hours(1);
/// After this many failures in a row the problem is GitHub, not an issue.
const FAILURES: u32 = 3;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActorsReport {
    pub asked: u64,
    pub resolved: u64,
    /// Issues that are no longer available.
    pub gone: u64,
}

/// Reads the timeline of each triaged issue whose state was changed by an unknown actor, and records what it
/// contains: who closed or reopened the issue, who labelled it `duplicate`, and which comments around the close name
/// a duplicate. An issue whose timeline cannot be read does not stop the others; the first failure is returned at the
/// end.
#[boxed]
pub async fn resolve_actors(
    store: &Store,
    github: &GitHub,
    repo: &Repo,
    own: Option<&Login>,
    now: Timestamp,
) -> Result<ActorsReport, SyncError> {
    let maintainers = known_maintainers(store, repo).await?;
    let people = ActorRoles { own, maintainers: &maintainers };
    let mut report = ActorsReport::default();
    let (mut first_failure, mut failures) = (None, 0);
    for number in store.learning().issues_with_unknown_actor(repo.id).await? {
        let Some(item) = store.corpus().item(repo.id, ItemType::Issue, number).await? else { continue };
        report.asked += 1;
        let timeline = match github.timeline(&repo.name, number).all().await {
            Ok(timeline) => timeline,
            Err(error) if is_gone(&error) => {
                report.gone += 1;
                continue;
            }
            Err(error @ GitHubError::RateLimited { .. }) => return Err(error.into()),
            Err(error) => {
                first_failure.get_or_insert(error);
                failures += 1;
                if failures >= FAILURES {
                    break;
                }
                continue;
            }
        };
        failures = 0;
        let known = store.learning().outcome_events(repo.id, number).await?;
        let told = told_by_timeline(&repo.name, &item, &known, &timeline, people, now);
        if !told.is_empty() {
            let learned = store.learning().record_outcome_events(repo.id, &told, now).await?;
            let is_resolved = learned.new_events > 0 && told.iter().any(|event| event.by != EventBy::Unknown);
            report.resolved += u64::from(is_resolved);
        }
    }
    first_failure.map_or(Ok(report), |failure| Err(failure.into()))
}

pub(crate) async fn known_maintainers(store: &Store, repo: &Repo) -> Result<BTreeSet<Login>, SyncError> {
    Ok(store.repos().maintainers(repo.id).await?.map(|list| list.logins.into_iter().collect()).unwrap_or_default())
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ActorRoles<'a> {
    /// The account that Canonry writes with, if known.
    pub(crate) own: Option<&'a Login>,
    pub(crate) maintainers: &'a BTreeSet<Login>,
}

impl ActorRoles<'_> {
    /// The actor of an event and their role.
    fn by(&self, event: &RestTimelineEvent) -> Option<(Login, EventBy)> {
        let user = event.actor.as_ref()?;
        let login = user.to_login()?;
        let association = event.other.get("author_association").and_then(Value::as_str);
        let by = if self.own == Some(&login) {
            EventBy::Canonry
        } else if user.is_bot() {
            EventBy::Bot
        } else if self.maintainers.contains(&login) || association.is_some_and(is_maintainers) {
            EventBy::Maintainer
        } else {
            EventBy::Person
        };
        Some((login, by))
    }
}

/// Whether GitHub says that the person belongs to the project.
fn is_maintainers(association: &str) -> bool {
    matches!(association, "OWNER" | "MEMBER" | "COLLABORATOR")
}

/// The outcome events of a timeline that are not known yet. A change without an actor is recorded too, with an
/// unknown actor, so that it is not fetched for ever.
fn told_by_timeline(
    repo: &RepoName,
    item: &Item,
    known: &[OutcomeEvent],
    timeline: &[RestTimelineEvent],
    people: ActorRoles<'_>,
    now: Timestamp,
) -> Vec<OutcomeEvent> {
    let issue = IssueTimeline { repo, item, people };
    let is_unknown = |event: &&OutcomeEvent| {
        event.by == EventBy::Unknown
            && event.origin() == EventOrigin::Sync
            && matches!(event.kind, OutcomeKind::Closed | OutcomeKind::Reopened)
    };
    let (mut told, mut by_nobody) = (Vec::new(), Vec::new());
    for event in known.iter().filter(is_unknown) {
        match issue.state_change(event, timeline) {
            Some(change) => told.push(change),
            None if now.duration_since(event.occurred_at) > TOLD_WITHIN => by_nobody.push(OutcomeEvent {
                delivery_id: issue.id(event.kind, &event.occurred_at.to_string()),
                ..event.clone()
            }),
            None => {}
        }
    }
    if told.is_empty() {
        return by_nobody;
    }
    told.extend(timeline.iter().filter_map(|event| issue.labelling(event)));
    let closed_at: Vec<Timestamp> =
        told.iter().filter(|event| event.kind == OutcomeKind::Closed).map(|event| event.occurred_at).collect();
    told.extend(timeline.iter().filter_map(|event| issue.comment(event, &closed_at, known)));
    told.extend(by_nobody);
    told
}

pub(crate) struct IssueTimeline<'a> {
    pub(crate) repo: &'a RepoName,
    pub(crate) item: &'a Item,
    pub(crate) people: ActorRoles<'a>,
}

impl IssueTimeline<'_> {
    /// The event of a change that a sync found. It keeps the time from the sync, which for a reopening is only the
    /// issue's last change: this time identifies the change.
    fn state_change(&self, found: &OutcomeEvent, timeline: &[RestTimelineEvent]) -> Option<OutcomeEvent> {
        let word = match found.kind {
            OutcomeKind::Closed => "closed",
            OutcomeKind::Reopened => "reopened",
            _ => return None,
        };
        // GitHub's times have whole seconds.
        let until = found.occurred_at.as_second();
        let not_later = |event: &&RestTimelineEvent| event.created_at.is_some_and(|at| at.as_second() <= until);
        let event = timeline.iter().rev().filter(|event| event.event == word).find(not_later)?;
        let (actor, by) = self.people.by(event)?;
        let reason: Option<StateReason> = event.state_reason.as_deref().and_then(|word| word.parse().ok());
        Some(OutcomeEvent {
            delivery_id: self.id(found.kind, &found.occurred_at.to_string()),
            // After a correction of the reason, the issue has the new one, but the event of its close does not.
            state_reason: found.state_reason.or(reason),
            actor: Some(actor),
            by,
            ..found.clone()
        })
    }

    fn labelling(&self, event: &RestTimelineEvent) -> Option<OutcomeEvent> {
        let kind = match event.event.as_str() {
            "labeled" => OutcomeKind::Labeled,
            "unlabeled" => OutcomeKind::Unlabeled,
            _ => return None,
        };
        event.label.as_ref().filter(|label| label.name.eq_ignore_ascii_case(HUMAN_LABEL))?;
        let at = event.created_at?;
        self.event(kind, event, &at.to_string(), at)
    }

    /// A comment that names a duplicate around a close, or a comment that is known to have named one: it may have
    /// been edited since.
    fn comment(
        &self,
        event: &RestTimelineEvent,
        closed_at: &[Timestamp],
        known: &[OutcomeEvent],
    ) -> Option<OutcomeEvent> {
        let (written_at, id) = (event.created_at?, GithubId(event.id?));
        if event.event != "commented" || !closed_at.iter().any(|closed| explains_closing(written_at, *closed)) {
            return None;
        }
        let names = event.body.as_deref().and_then(|body| named_duplicate(self.repo, body));
        let names = names.filter(|target| *target != self.item.number);
        let is_known = known.iter().any(|before| before.comment == Some(id));
        if names.is_none() && !is_known {
            return None;
        }
        let edited_at = event.other.get("updated_at").and_then(Value::as_str).and_then(|at| at.parse().ok());
        let at = edited_at.filter(|_| is_known).unwrap_or(written_at);
        self.naming(event, names, at)
    }

    pub(crate) fn naming(
        &self,
        event: &RestTimelineEvent,
        names: Option<ItemNumber>,
        at: Timestamp,
    ) -> Option<OutcomeEvent> {
        let id = GithubId(event.id?);
        let told = self.event(OutcomeKind::Commented, event, &format!("{}:{at}", id.0), at)?;
        Some(OutcomeEvent { duplicate_of: names, comment: Some(id), ..told })
    }

    fn event(&self, kind: OutcomeKind, event: &RestTimelineEvent, id: &str, at: Timestamp) -> Option<OutcomeEvent> {
        let (actor, by) = self.people.by(event)?;
        Some(OutcomeEvent {
            delivery_id: self.id(kind, id),
            number: self.item.number,
            kind,
            state_reason: None,
            actor: Some(actor),
            by,
            duplicate_of: None,
            in_body: None,
            comment: None,
            labels: None,
            cluster: Vec::new(),
            occurred_at: at,
        })
    }

    fn id(&self, kind: OutcomeKind, rest: &str) -> String {
        EventOrigin::Timeline.id(format_args!("{}#{}:{kind}:{rest}", self.repo, self.item.number))
    }
}
