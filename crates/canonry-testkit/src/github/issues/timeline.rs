//! The history of an issue: the timeline (with comments and cross-references) and the events (without).

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::issue::time;
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::ISSUES_OR_PULLS;
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Call, Reply};
use crate::github::world::{Issue, World};

#[derive(Debug, Clone)]
pub struct Event {
    pub id: u64,
    pub actor: String,
    pub at: Timestamp,
    pub kind: EventKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    Closed {
        /// `completed`, `not_planned` or `duplicate`.
        state_reason: Option<String>,
    },
    Reopened,
    Merged,
    Labeled(String),
    Unlabeled(String),
    Assigned(String),
    Unassigned(String),
    Milestoned(String),
    Demilestoned(String),
    Renamed {
        from: String,
        to: String,
    },
    Locked,
    Unlocked,
    Pinned,
    Unpinned,
    /// Marked as a duplicate; REST does not show of which issue.
    MarkedAsDuplicate {
        of: Option<u64>,
    },
    CrossReferenced {
        repo_id: u64,
        number: u64,
    },
}

impl EventKind {
    fn name(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Reopened => "reopened",
            Self::Merged => "merged",
            Self::Labeled(_) => "labeled",
            Self::Unlabeled(_) => "unlabeled",
            Self::Assigned(_) => "assigned",
            Self::Unassigned(_) => "unassigned",
            Self::Milestoned(_) => "milestoned",
            Self::Demilestoned(_) => "demilestoned",
            Self::Renamed { .. } => "renamed",
            Self::Locked => "locked",
            Self::Unlocked => "unlocked",
            Self::Pinned => "pinned",
            Self::Unpinned => "unpinned",
            Self::MarkedAsDuplicate { .. } => "marked_as_duplicate",
            Self::CrossReferenced { .. } => "cross-referenced",
        }
    }
}

/// `GET …/issues/{issue_number}/timeline`
pub(crate) fn timeline(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let issue = world.find_issue(call)?;
    let repo = call.repo(world);
    let mut entries: Vec<(Timestamp, u64, Value)> = Vec::new();
    for event in &issue.events {
        if let Some(value) = event_json(world, repo, issue, event) {
            entries.push((event.at, event.id, value));
        }
    }
    for comment in repo.comments.values().filter(|comment| comment.issue == issue.number) {
        let mut value = world.comment_json(repo, comment);
        value["event"] = json!("commented");
        value["actor"] = value["user"].clone();
        entries.push((comment.created_at, comment.id, value));
    }
    entries.sort_by_key(|(at, id, _)| (*at, *id));
    Ok(numbered_under_repo(world, call, &entries, |(_, _, value)| value.clone()))
}

/// `GET …/issues/{issue_number}/events`
pub(crate) fn events(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let issue = world.find_issue(call)?;
    let repo = call.repo(world);
    let plain = |event: &&Event| !matches!(event.kind, EventKind::CrossReferenced { .. });
    let events: Vec<Value> =
        issue.events.iter().filter(plain).filter_map(|event| event_json(world, repo, issue, event)).collect();
    Ok(numbered_under_repo(world, call, &events, Value::clone))
}

/// `None` if the issue that mentions this one no longer exists.
fn event_json(world: &World, repo: &Repo, issue: &Issue, event: &Event) -> Option<Value> {
    if let EventKind::CrossReferenced { repo_id, number } = &event.kind {
        let home = world.repos.iter().find(|candidate| candidate.id == *repo_id)?;
        let mut source = world.issue_json(home, home.issues.get(number)?);
        source["repository"] = world.repo_json(home);
        return Some(json!({
            "event": "cross-referenced",
            "actor": world.user_json(&event.actor),
            "created_at": time(event.at),
            "updated_at": time(event.at),
            "source": { "type": "issue", "issue": source },
        }));
    }
    let mut value = json!({
        "id": event.id,
        "node_id": format!("EV_{}", event.id),
        "url": format!("{}/issues/events/{}", repo.api(&world.api_url), event.id),
        "actor": world.user_json(&event.actor),
        "event": event.kind.name(),
        "commit_id": null,
        "commit_url": null,
        "created_at": time(event.at),
        "performed_via_github_app": null,
    });
    match &event.kind {
        EventKind::Closed { state_reason } => value["state_reason"] = json!(state_reason),
        EventKind::Reopened => value["state_reason"] = Value::Null,
        EventKind::Labeled(name) | EventKind::Unlabeled(name) => {
            let label = world.label_json(repo, name);
            value["label"] = json!({ "name": label["name"], "color": label["color"] });
        }
        EventKind::Assigned(login) | EventKind::Unassigned(login) => {
            value["assignee"] = world.user_json(login);
            value["assigner"] = world.user_json(&event.actor);
        }
        EventKind::Milestoned(title) | EventKind::Demilestoned(title) => value["milestone"] = json!({ "title": title }),
        EventKind::Renamed { from, to } => value["rename"] = json!({ "from": from, "to": to }),
        EventKind::Locked => value["lock_reason"] = json!(issue.lock_reason),
        _ => {}
    }
    Some(value)
}
