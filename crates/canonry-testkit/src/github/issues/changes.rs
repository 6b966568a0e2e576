//! Changes of issues: tests call these for people, handlers for API callers.

use serde_json::json;

use crate::github::issues::reactions::Reaction;
use crate::github::issues::timeline::{Event, EventKind};
use crate::github::pulls::pull::Pull;
use crate::github::world::{Comment, Issue, Label, State, World};

#[derive(Debug, Clone, Default)]
pub struct NewIssue {
    pub title: String,
    pub body: Option<String>,
    /// Names of labels; missing labels are created.
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    pub pull: Option<Pull>,
}

impl NewIssue {
    pub fn new(title: &str, body: &str) -> Self {
        Self { title: title.to_owned(), body: Some(body.to_owned()), ..Self::default() }
    }

    #[must_use]
    pub fn label(mut self, name: &str) -> Self {
        self.labels.push(name.to_owned());
        self
    }

    #[must_use]
    pub fn pull(mut self, pull: Pull) -> Self {
        self.pull = Some(pull);
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    Completed,
    NotPlanned,
    /// A duplicate, maybe of the issue with this id.
    Duplicate(Option<u64>),
}

impl CloseReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NotPlanned => "not_planned",
            Self::Duplicate(_) => "duplicate",
        }
    }
}

impl World {
    /// Opens an issue or pull request and returns its number.
    pub fn open(&mut self, repo: &str, by: &str, new: NewIssue) -> u64 {
        let at = self.stamp();
        let id = self.fresh_id();
        let position = self.position(repo);
        for label in &new.labels {
            self.ensure_label(repo, label);
        }
        let number = self.repos[position].take_number();
        let references = referenced_numbers(new.body.as_deref().unwrap_or(""));
        let issue = Issue {
            id,
            number,
            author: by.to_owned(),
            title: new.title,
            body: new.body,
            state: State::Open,
            state_reason: None,
            duplicate_of: None,
            labels: new.labels,
            assignees: new.assignees,
            milestone: None,
            locked: false,
            lock_reason: None,
            comments: 0,
            created_at: at,
            updated_at: at,
            closed_at: None,
            closed_by: None,
            reactions: Vec::new(),
            events: Vec::new(),
            pull: new.pull,
        };
        self.repos[position].issues.insert(number, issue);
        self.queue_issue_event("opened", position, number, by, json!({}));
        self.cross_reference(position, number, by, &references);
        number
    }

    pub fn edit_title(&mut self, repo: &str, number: u64, by: &str, title: &str) {
        let from = self.issue(repo, number).title.clone();
        if from == title {
            return;
        }
        self.change(repo, number).title = title.to_owned();
        self.happen(repo, number, by, EventKind::Renamed { from: from.clone(), to: title.to_owned() });
        let changes = json!({ "changes": { "title": { "from": from } } });
        self.queue_issue_event("edited", self.position(repo), number, by, changes);
    }

    pub fn edit_body(&mut self, repo: &str, number: u64, by: &str, body: &str) {
        let from = self.issue(repo, number).body.clone();
        if from.as_deref() == Some(body) {
            return;
        }
        self.change(repo, number).body = Some(body.to_owned());
        let changes = json!({ "changes": { "body": { "from": from.unwrap_or_default() } } });
        self.queue_issue_event("edited", self.position(repo), number, by, changes);
        self.cross_reference(self.position(repo), number, by, &referenced_numbers(body));
    }

    /// Closes an issue. If it is already closed, only the reason changes.
    pub fn close(&mut self, repo: &str, number: u64, by: &str, reason: CloseReason) {
        let at = self.stamp();
        let issue = self.issue(repo, number);
        let is_pull = issue.pull.is_some();
        let state_reason = (!is_pull).then(|| reason.as_str().to_owned());
        let target = match reason {
            CloseReason::Duplicate(target) if !is_pull => target,
            _ => None,
        };
        if issue.state == State::Closed && issue.state_reason == state_reason && issue.duplicate_of == target {
            return;
        }
        let issue = self.change(repo, number);
        issue.state = State::Closed;
        issue.state_reason.clone_from(&state_reason);
        issue.duplicate_of = target;
        issue.closed_at = Some(at);
        issue.closed_by = Some(by.to_owned());
        if target.is_some() {
            self.happen(repo, number, by, EventKind::MarkedAsDuplicate { of: target });
        }
        self.happen(repo, number, by, EventKind::Closed { state_reason });
        self.queue_issue_event("closed", self.position(repo), number, by, json!({}));
    }

    /// Merges a pull request. A test that needs its commit commits to the base branch first: the tip becomes the merge
    /// commit.
    pub fn merge(&mut self, repo: &str, number: u64, by: &str) {
        let at = self.stamp();
        let base = self.issue(repo, number).pull.as_ref().map(|pull| pull.base_ref.clone()).unwrap_or_default();
        let tip = self.get(repo).branches.get(&base).cloned();
        let issue = self.change(repo, number);
        let pull = issue.pull.as_mut().expect("only pull requests are merged");
        pull.merged_at = Some(at);
        pull.merged_by = Some(by.to_owned());
        pull.merge_commit = tip;
        issue.state = State::Closed;
        issue.closed_at = Some(at);
        issue.closed_by = Some(by.to_owned());
        self.happen(repo, number, by, EventKind::Merged);
        self.happen(repo, number, by, EventKind::Closed { state_reason: None });
        self.queue_issue_event("closed", self.position(repo), number, by, json!({}));
    }

    pub fn reopen(&mut self, repo: &str, number: u64, by: &str) {
        if self.issue(repo, number).state == State::Open {
            return;
        }
        let issue = self.change(repo, number);
        issue.state = State::Open;
        issue.state_reason = issue.pull.is_none().then(|| String::from("reopened"));
        issue.duplicate_of = None;
        issue.closed_at = None;
        issue.closed_by = None;
        self.happen(repo, number, by, EventKind::Reopened);
        self.queue_issue_event("reopened", self.position(repo), number, by, json!({}));
    }

    /// Writes a comment and returns its id. A comment that begins with "Duplicate of #N", by a user with triage
    /// rights, marks the issue, as on GitHub.
    pub fn comment(&mut self, repo: &str, number: u64, by: &str, body: &str) -> u64 {
        let at = self.stamp();
        let id = self.fresh_id();
        let position = self.position(repo);
        self.change(repo, number).comments += 1;
        let comment = Comment {
            id,
            issue: number,
            author: by.to_owned(),
            body: body.to_owned(),
            created_at: at,
            updated_at: at,
            reactions: Vec::new(),
        };
        self.repos[position].comments.insert(id, comment);
        self.queue_comment_event("created", position, id, by, json!({}));
        self.mark_from_comment(position, number, by, body);
        self.cross_reference(position, number, by, &referenced_numbers(body));
        id
    }

    pub fn edit_comment(&mut self, repo: &str, id: u64, by: &str, body: &str) {
        let at = self.stamp();
        let position = self.position(repo);
        let comment = self.repos[position].comments.get_mut(&id).expect("the comment exists");
        let from = std::mem::replace(&mut comment.body, body.to_owned());
        comment.updated_at = at;
        let number = comment.issue;
        self.change(repo, number);
        self.queue_comment_event("edited", position, id, by, json!({ "changes": { "body": { "from": from } } }));
    }

    pub fn delete_comment(&mut self, repo: &str, id: u64, by: &str) {
        let position = self.position(repo);
        self.queue_comment_event("deleted", position, id, by, json!({}));
        let comment = self.repos[position].comments.remove(&id).expect("the comment exists");
        self.change(repo, comment.issue).comments -= 1;
    }

    /// Adds a label, which is created if the repository has none of that name.
    pub fn label(&mut self, repo: &str, number: u64, by: &str, name: &str) {
        let name = self.ensure_label(repo, name);
        if self.issue(repo, number).labels.contains(&name) {
            return;
        }
        self.change(repo, number).labels.push(name.clone());
        self.happen(repo, number, by, EventKind::Labeled(name.clone()));
        let position = self.position(repo);
        let label = self.label_json(&self.repos[position], &name);
        self.queue_issue_event("labeled", position, number, by, json!({ "label": label }));
    }

    pub fn unlabel(&mut self, repo: &str, number: u64, by: &str, name: &str) {
        let labels = &self.issue(repo, number).labels;
        let Some(index) = labels.iter().position(|label| label.eq_ignore_ascii_case(name)) else { return };
        let name = self.change(repo, number).labels.remove(index);
        self.happen(repo, number, by, EventKind::Unlabeled(name.clone()));
        let position = self.position(repo);
        let label = self.label_json(&self.repos[position], &name);
        self.queue_issue_event("unlabeled", position, number, by, json!({ "label": label }));
    }

    pub fn assign(&mut self, repo: &str, number: u64, by: &str, assignee: &str) {
        if self.issue(repo, number).assignees.iter().any(|login| login.eq_ignore_ascii_case(assignee)) {
            return;
        }
        self.change(repo, number).assignees.push(assignee.to_owned());
        self.happen(repo, number, by, EventKind::Assigned(assignee.to_owned()));
        let user = self.user_json(assignee);
        self.queue_issue_event("assigned", self.position(repo), number, by, json!({ "assignee": user }));
    }

    pub fn unassign(&mut self, repo: &str, number: u64, by: &str, assignee: &str) {
        let assignees = &self.issue(repo, number).assignees;
        let Some(index) = assignees.iter().position(|login| login.eq_ignore_ascii_case(assignee)) else { return };
        let login = self.change(repo, number).assignees.remove(index);
        self.happen(repo, number, by, EventKind::Unassigned(login.clone()));
        let user = self.user_json(&login);
        self.queue_issue_event("unassigned", self.position(repo), number, by, json!({ "assignee": user }));
    }

    pub fn set_milestone(&mut self, repo: &str, number: u64, by: &str, milestone: Option<u64>) {
        let before = self.issue(repo, number).milestone;
        if before == milestone {
            return;
        }
        self.change(repo, number).milestone = milestone;
        let title = |world: &Self, which: u64| world.get(repo).milestones[&which].title.clone();
        if let Some(old) = before {
            let kind = EventKind::Demilestoned(title(self, old));
            self.happen(repo, number, by, kind);
        }
        if let Some(new) = milestone {
            let kind = EventKind::Milestoned(title(self, new));
            self.happen(repo, number, by, kind);
        }
        let action = if milestone.is_some() { "milestoned" } else { "demilestoned" };
        self.queue_issue_event(action, self.position(repo), number, by, json!({}));
    }

    pub fn lock(&mut self, repo: &str, number: u64, by: &str, reason: Option<&str>) {
        let issue = self.change(repo, number);
        issue.locked = true;
        issue.lock_reason = reason.map(str::to_owned);
        self.happen(repo, number, by, EventKind::Locked);
        self.queue_issue_event("locked", self.position(repo), number, by, json!({}));
    }

    pub fn unlock(&mut self, repo: &str, number: u64, by: &str) {
        let issue = self.change(repo, number);
        issue.locked = false;
        issue.lock_reason = None;
        self.happen(repo, number, by, EventKind::Unlocked);
        self.queue_issue_event("unlocked", self.position(repo), number, by, json!({}));
    }

    /// Pins or unpins an issue; REST shows it in the timeline only.
    pub fn pin(&mut self, repo: &str, number: u64, by: &str, pinned: bool) {
        let kind = if pinned { EventKind::Pinned } else { EventKind::Unpinned };
        let action = if pinned { "pinned" } else { "unpinned" };
        self.change(repo, number);
        self.happen(repo, number, by, kind);
        self.queue_issue_event(action, self.position(repo), number, by, json!({}));
    }

    /// Reacts to an issue with `+1`, `-1`, `confused`, …; returns the reaction's id. Reactions neither
    /// change `updated_at` nor have a webhook.
    pub fn react(&mut self, repo: &str, number: u64, by: &str, content: &str) -> u64 {
        let reaction = self.new_reaction(by, content);
        let issue = self.get_mut(repo).issues.get_mut(&number).expect("the issue exists");
        add_reaction(&mut issue.reactions, reaction)
    }

    /// Reacts to a comment; returns the reaction's id.
    pub fn react_to_comment(&mut self, repo: &str, comment: u64, by: &str, content: &str) -> u64 {
        let reaction = self.new_reaction(by, content);
        let comment = self.get_mut(repo).comments.get_mut(&comment).expect("the comment exists");
        add_reaction(&mut comment.reactions, reaction)
    }

    pub fn push(&mut self, repo: &str, branch: &str, by: &str, path: &str, text: &str) {
        let position = self.position(repo);
        let before = self.repos[position].branches.get(branch).cloned();
        let (before, after) = if self.repos[position].git.is_some() {
            (before, self.commit(repo, branch, &[(path, Some(text))]))
        } else {
            self.get_mut(repo).file_at(branch, path, text);
            (Some(format!("{:040x}", self.fresh_id())), format!("{:040x}", self.fresh_id()))
        };
        self.queue_push(position, branch, by, before.as_deref(), &after, &[path], false);
    }

    /// Creates a label unless the repository has it; returns the name as written there.
    pub fn ensure_label(&mut self, repo: &str, name: &str) -> String {
        let id = self.fresh_id();
        let key = name.to_lowercase();
        let label = self.get_mut(repo).labels.entry(key).or_insert_with(|| Label {
            id,
            name: name.to_owned(),
            color: String::from("ededed"),
            description: None,
        });
        label.name.clone()
    }

    /// Returns an issue for a change and sets its `updated_at`.
    pub(crate) fn change(&mut self, repo: &str, number: u64) -> &mut Issue {
        let at = self.stamp();
        self.revision += 1;
        let issue = self.get_mut(repo).issues.get_mut(&number);
        let issue = issue.unwrap_or_else(|| panic!("{repo}#{number} is not in the emulated GitHub"));
        issue.updated_at = at;
        issue
    }

    fn happen(&mut self, repo: &str, number: u64, by: &str, kind: EventKind) {
        let id = self.fresh_id();
        let event = Event { id, actor: by.to_owned(), at: self.stamp(), kind };
        self.change(repo, number).events.push(event);
    }

    fn cross_reference(&mut self, position: usize, source: u64, by: &str, targets: &[u64]) {
        let repo = self.repos[position].full_name();
        let repo_id = self.repos[position].id;
        for &target in targets {
            let Some(issue) = self.repos[position].issues.get(&target) else { continue };
            let kind = EventKind::CrossReferenced { repo_id, number: source };
            if target == source || issue.events.iter().any(|event| event.kind == kind) {
                continue;
            }
            self.happen(&repo, target, by, kind);
        }
    }

    fn mark_from_comment(&mut self, position: usize, number: u64, by: &str, body: &str) {
        let start = body.trim_start().to_ascii_lowercase();
        let Some(rest) = start.strip_prefix("duplicate of ") else { return };
        let repo = &self.repos[position];
        let Some(target) = referenced_numbers(rest).first().and_then(|target| repo.issues.get(target)) else { return };
        if rest.starts_with('#') && self.permission_of(repo, by) >= crate::github::people::accounts::Permission::Triage
        {
            let of = Some(target.id);
            let full_name = repo.full_name();
            self.happen(&full_name, number, by, EventKind::MarkedAsDuplicate { of });
        }
    }

    pub(crate) fn new_reaction(&mut self, by: &str, content: &str) -> Reaction {
        Reaction { id: self.fresh_id(), author: by.to_owned(), content: content.to_owned(), created_at: self.stamp() }
    }
}

/// Each person has at most one reaction of a kind: adding it again returns the first.
pub(crate) fn add_reaction(reactions: &mut Vec<Reaction>, new: Reaction) -> u64 {
    let same = |old: &&Reaction| old.author.eq_ignore_ascii_case(&new.author) && old.content == new.content;
    if let Some(old) = reactions.iter().find(same) {
        return old.id;
    }
    let id = new.id;
    reactions.push(new);
    id
}

/// The numbers behind `#` in a text, each once.
fn referenced_numbers(text: &str) -> Vec<u64> {
    let mut numbers = Vec::new();
    for part in text.split('#').skip(1) {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        if let Ok(number) = digits.parse()
            && !numbers.contains(&number)
        {
            numbers.push(number);
        }
    }
    numbers
}
