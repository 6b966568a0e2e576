//! Single issues: get, create, patch, lock.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::changes::{CloseReason, NewIssue};
use crate::github::issues::reactions::rollup;
use crate::github::people::accounts::{ISSUES, ISSUES_OR_PULLS, Permission};
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply, check_length, required_text};
use crate::github::world::{Gone, Issue, State, World};

pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

impl World {
    /// The issue that a path names, or GitHub's answer if it no longer exists.
    pub(crate) fn find_issue(&self, call: &Call) -> Result<&Issue, Answer> {
        let number = call.number("issue_number")?;
        let repo = call.repo(self);
        if !repo.issues_enabled && repo.issues.get(&number).is_none_or(|issue| issue.pull.is_none()) {
            return Err(Answer::message(410, "Issues are disabled for this repo"));
        }
        self.find_number(repo, number)
    }

    pub(crate) fn find_number<'world>(&self, repo: &'world Repo, number: u64) -> Result<&'world Issue, Answer> {
        if let Some(issue) = repo.issues.get(&number) {
            return Ok(issue);
        }
        Err(match repo.gone.get(&number) {
            Some(Gone::Deleted) => Answer::message(410, "This issue was deleted"),
            Some(Gone::Transferred { repo_id, number }) => {
                Answer::moved(301, &format!("{}/repositories/{repo_id}/issues/{number}", self.api_url))
            }
            Some(Gone::Converted) | None => Answer::not_found(),
        })
    }

    pub(crate) fn issue_with_id(&self, id: u64) -> Option<(&Repo, &Issue)> {
        self.repos.iter().find_map(|repo| Some((repo, repo.issues.values().find(|issue| issue.id == id)?)))
    }

    pub(crate) fn association(&self, repo: &Repo, login: &str) -> &'static str {
        if repo.owner.eq_ignore_ascii_case(login) {
            return "OWNER";
        }
        match repo.collaborators.get(&login.to_ascii_lowercase()) {
            Some(&permission) if permission >= Permission::Triage => "COLLABORATOR",
            _ => "NONE",
        }
    }

    /// An issue as lists and webhooks show it.
    pub(crate) fn issue_json(&self, repo: &Repo, issue: &Issue) -> Value {
        let api = repo.api(&self.api_url);
        let url = format!("{api}/issues/{}", issue.number);
        let word = if issue.pull.is_some() { "pull" } else { "issues" };
        let html = format!("https://github.com/{}/{word}/{}", repo.full_name(), issue.number);
        let labels: Vec<Value> = issue.labels.iter().map(|name| self.label_json(repo, name)).collect();
        let assignees: Vec<Value> = issue.assignees.iter().map(|login| self.user_json(login)).collect();
        let milestone = issue.milestone.and_then(|number| repo.milestones.get(&number));
        let mut value = json!({
            "id": issue.id,
            "node_id": format!("I_{}", issue.id),
            "url": url,
            "repository_url": api,
            "labels_url": format!("{url}/labels{{/name}}"),
            "comments_url": format!("{url}/comments"),
            "events_url": format!("{url}/events"),
            "timeline_url": format!("{url}/timeline"),
            "html_url": html,
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "user": self.user_json(&issue.author),
            "state": issue.state.as_str(),
            "state_reason": issue.state_reason,
            "labels": labels,
            "assignee": assignees.first(),
            "assignees": assignees,
            "milestone": milestone.map(|milestone| self.milestone_json(repo, milestone)),
            "locked": issue.locked,
            "active_lock_reason": issue.lock_reason,
            "comments": issue.comments,
            "created_at": time(issue.created_at),
            "updated_at": time(issue.updated_at),
            "closed_at": issue.closed_at.map(time),
            "author_association": self.association(repo, &issue.author),
            "reactions": rollup(&issue.reactions, &url),
            "performed_via_github_app": null,
        });
        if let Some(pull) = &issue.pull {
            value["draft"] = json!(pull.draft);
            value["pull_request"] = json!({
                "url": format!("{api}/pulls/{}", issue.number),
                "html_url": html,
                "diff_url": format!("{html}.diff"),
                "patch_url": format!("{html}.patch"),
                "merged_at": pull.merged_at.map(time),
            });
        }
        value
    }

    /// A single issue, including who closed it.
    fn full_issue_json(&self, repo: &Repo, issue: &Issue) -> Value {
        let mut value = self.issue_json(repo, issue);
        value["closed_by"] = issue.closed_by.as_deref().map_or(Value::Null, |login| self.user_json(login));
        value
    }
}

/// `GET …/issues/{issue_number}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let issue = world.find_issue(call)?;
    Ok(Answer::ok(world.full_issue_json(call.repo(world), issue)))
}

/// `POST …/issues`
pub(crate) fn create(world: &mut World, call: &Call) -> Reply {
    let permission = world.may_write(call, ISSUES)?;
    if !call.repo(world).issues_enabled {
        return Err(Answer::message(410, "Issues are disabled for this repo"));
    }
    let title = required_text(call, "Issue", "title")?;
    let body = call.field("body").and_then(Value::as_str).map(str::to_owned);
    check_length("Issue", "body", body.as_deref().unwrap_or(""))?;
    let mut new = NewIssue { title, body, ..NewIssue::default() };
    if permission >= Permission::Triage {
        new.labels = names(call.field("labels"), "name");
        new.assignees = names(call.field("assignees"), "login");
    }
    let repo = call.repo(world).full_name();
    let number = world.open(&repo, &call.login(), new);
    let repo = call.repo(world);
    let value = world.full_issue_json(repo, &repo.issues[&number]);
    let location = value["url"].as_str().unwrap_or_default().to_owned();
    Ok(Answer::json(201, value).header("location", &location))
}

/// `PATCH …/issues/{issue_number}`
pub(crate) fn patch(world: &mut World, call: &Call) -> Reply {
    let issue = world.find_issue(call)?;
    let areas = if issue.pull.is_some() { ISSUES_OR_PULLS } else { ISSUES };
    let number = issue.number;
    let edit = Edit::read(world, call, issue)?;
    let permission = world.may_write(call, areas)?;
    let issue = world.find_issue(call)?;
    edit.check_rights(issue, &call.login(), permission)?;
    edit.apply(world, call, number, permission);
    let issue = world.find_issue(call)?;
    Ok(Answer::ok(world.full_issue_json(call.repo(world), issue)))
}

/// `PUT …/issues/{issue_number}/lock`
pub(crate) fn lock(world: &mut World, call: &Call) -> Reply {
    let number = world.find_issue(call)?.number;
    let permission = world.may_write(call, ISSUES_OR_PULLS)?;
    require(permission, Permission::Write)?;
    let reason = call.field("lock_reason").and_then(Value::as_str);
    if reason.is_some_and(|reason| !["off-topic", "too heated", "resolved", "spam"].contains(&reason)) {
        return Err(Answer::invalid("Issue", "lock_reason", "invalid"));
    }
    let repo = call.repo(world).full_name();
    world.lock(&repo, number, &call.login(), reason);
    Ok(Answer::empty(204))
}

/// `DELETE …/issues/{issue_number}/lock`
pub(crate) fn unlock(world: &mut World, call: &Call) -> Reply {
    let number = world.find_issue(call)?.number;
    let permission = world.may_write(call, ISSUES_OR_PULLS)?;
    require(permission, Permission::Write)?;
    let repo = call.repo(world).full_name();
    world.unlock(&repo, number, &call.login());
    Ok(Answer::empty(204))
}

/// 403 unless the caller's role is sufficient.
pub(crate) fn require(permission: Permission, wanted: Permission) -> Result<(), Answer> {
    if permission >= wanted { Ok(()) } else { Err(Answer::message(403, "Must have admin rights to Repository.")) }
}

/// The names in an array of strings or of objects with a name.
pub(crate) fn names(field: Option<&Value>, key: &str) -> Vec<String> {
    let entries = field.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let name = |entry: &Value| entry.as_str().or_else(|| entry.get(key)?.as_str()).map(str::to_owned);
    entries.iter().filter_map(name).collect()
}

/// A well-formed patch.
struct Edit {
    title: Option<String>,
    body: Option<String>,
    state: Option<StateChange>,
    labels: Option<Vec<String>>,
    assignees: Option<Vec<String>>,
    /// The outer option says whether the patch contains the milestone at all.
    milestone: Option<Option<u64>>,
}

enum StateChange {
    Close(CloseReason),
    Reopen,
}

impl Edit {
    fn read(world: &World, call: &Call, issue: &Issue) -> Result<Self, Answer> {
        let title = match call.field("title") {
            Some(Value::Null) | None => None,
            Some(_) => Some(required_text(call, "Issue", "title")?),
        };
        let body = call.field("body").map(|body| body.as_str().unwrap_or_default().to_owned());
        check_length("Issue", "body", body.as_deref().unwrap_or(""))?;
        let milestone = match call.field("milestone") {
            None => None,
            Some(Value::Null) => Some(None),
            Some(value) => {
                let number = value.as_u64().filter(|number| call.repo(world).milestones.contains_key(number));
                Some(Some(number.ok_or_else(|| Answer::invalid("Issue", "milestone", "invalid"))?))
            }
        };
        Ok(Self {
            title,
            body,
            state: read_state(world, call, issue)?,
            labels: call.field("labels").map(|labels| names(Some(labels), "name")),
            assignees: call.field("assignees").map(|assignees| names(Some(assignees), "login")),
            milestone,
        })
    }

    /// Authors may edit, close and reopen their own items (unless another user closed them); otherwise closing needs
    /// triage rights, editing write rights.
    fn check_rights(&self, issue: &Issue, login: &str, permission: Permission) -> Result<(), Answer> {
        let author = issue.author.eq_ignore_ascii_case(login);
        if !author && permission < Permission::Triage {
            return Err(Answer::message(403, "Must have admin rights to Repository."));
        }
        if !author && (self.title.is_some() || self.body.is_some()) {
            require(permission, Permission::Write)?;
        }
        let closed_by_author = issue.closed_by.as_deref().is_none_or(|closer| closer.eq_ignore_ascii_case(login));
        if matches!(self.state, Some(StateChange::Reopen)) && !closed_by_author {
            require(permission, Permission::Triage)?;
        }
        Ok(())
    }

    /// Without triage rights labels, assignees and milestone are dropped silently.
    fn apply(self, world: &mut World, call: &Call, number: u64, permission: Permission) {
        let repo = call.repo(world).full_name();
        let by = call.login();
        if let Some(title) = &self.title {
            world.edit_title(&repo, number, &by, title);
        }
        if let Some(body) = &self.body {
            world.edit_body(&repo, number, &by, body);
        }
        if permission >= Permission::Triage {
            if let Some(labels) = &self.labels {
                replace_labels(world, &repo, number, &by, labels);
            }
            if let Some(assignees) = &self.assignees {
                for login in world.issue(&repo, number).assignees.clone() {
                    if !assignees.contains(&login) {
                        world.unassign(&repo, number, &by, &login);
                    }
                }
                for login in assignees {
                    world.assign(&repo, number, &by, login);
                }
            }
            if let Some(milestone) = self.milestone {
                world.set_milestone(&repo, number, &by, milestone);
            }
        }
        match self.state {
            Some(StateChange::Close(reason)) => world.close(&repo, number, &by, reason),
            Some(StateChange::Reopen) => world.reopen(&repo, number, &by),
            None => {}
        }
    }
}

pub(crate) fn replace_labels(world: &mut World, repo: &str, number: u64, by: &str, labels: &[String]) {
    for old in world.issue(repo, number).labels.clone() {
        if !labels.iter().any(|label| label.eq_ignore_ascii_case(&old)) {
            world.unlabel(repo, number, by, &old);
        }
    }
    for label in labels {
        world.label(repo, number, by, label);
    }
}

fn read_state(world: &World, call: &Call, issue: &Issue) -> Result<Option<StateChange>, Answer> {
    let reason = match call.field("state_reason") {
        None | Some(Value::Null) => None,
        Some(value) => match value.as_str() {
            Some(word @ ("completed" | "not_planned" | "duplicate" | "reopened")) => Some(word),
            _ => return Err(Answer::invalid("Issue", "state_reason", "invalid")),
        },
    };
    let state = match call.field("state").map(Value::as_str) {
        None => return Ok(None),
        Some(Some("open")) => State::Open,
        Some(Some("closed")) => State::Closed,
        Some(_) => return Err(Answer::invalid("Issue", "state", "invalid")),
    };
    if state == State::Open {
        if issue.pull.as_ref().is_some_and(|pull| pull.merged_at.is_some()) {
            return Err(Answer::invalid_because(
                "PullRequest",
                "state",
                "state cannot be changed. The pull request is merged.",
            ));
        }
        return Ok(Some(StateChange::Reopen));
    }
    let reason = match reason {
        Some("not_planned") => CloseReason::NotPlanned,
        Some("duplicate") => CloseReason::Duplicate(read_target(world, call, issue)?),
        Some("reopened") => return Err(Answer::invalid("Issue", "state_reason", "invalid")),
        _ => CloseReason::Completed,
    };
    Ok(Some(StateChange::Close(reason)))
}

/// `duplicate_issue_id` must be the id, not the number, of another issue that the caller can see.
fn read_target(world: &World, call: &Call, issue: &Issue) -> Result<Option<u64>, Answer> {
    let Some(value) = call.field("duplicate_issue_id") else { return Ok(None) };
    let invalid = || Answer::invalid("Issue", "duplicate_issue_id", "invalid");
    let id = value.as_u64().ok_or_else(invalid)?;
    let (home, target) = world.issue_with_id(id).ok_or_else(invalid)?;
    let same_repo = home.id == call.repo(world).id;
    if target.id == issue.id || (home.private && !same_repo) || target.pull.is_some() {
        return Err(invalid());
    }
    Ok(Some(id))
}
