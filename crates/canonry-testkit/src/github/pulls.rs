//! Pull requests: list, get, files, patch.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::call::{Answer, Call, Reply, check_length, extended, required_text};
use super::changes::CloseReason;
use super::issue_list::{Order, cut, numbered_under_repo, read_state, with_next};
use super::issues::{require, time};
use super::people::{PULLS, Permission};
use super::repositories::Repo;
use super::world::{Issue, State, World};

/// What a pull request has beyond an issue.
#[derive(Debug, Clone)]
pub struct Pull {
    /// Whether it is a draft.
    pub draft: bool,
    /// When it was merged.
    pub merged_at: Option<Timestamp>,
    /// Login of who merged it.
    pub merged_by: Option<String>,
    /// Name of the branch it comes from.
    pub head_ref: String,
    /// Commit at its head.
    pub head_sha: String,
    /// Name of the branch it goes to.
    pub base_ref: String,
    /// Commit it starts from.
    pub base_sha: String,
    /// The files it changes.
    pub files: Vec<ChangedFile>,
    /// How many review comments it has.
    pub review_comments: u64,
}

impl Default for Pull {
    fn default() -> Self {
        Self {
            draft: false,
            merged_at: None,
            merged_by: None,
            head_ref: String::from("topic"),
            head_sha: "1".repeat(40),
            base_ref: String::from("main"),
            base_sha: "0".repeat(40),
            files: Vec::new(),
            review_comments: 0,
        }
    }
}

impl Pull {
    /// Adds a modified file with its patch.
    #[must_use]
    pub fn file(mut self, path: &str, patch: &str) -> Self {
        self.files.push(ChangedFile {
            path: path.to_owned(),
            status: String::from("modified"),
            patch: Some(patch.to_owned()),
        });
        self
    }
}

/// One file of a pull request.
#[derive(Debug, Clone)]
pub struct ChangedFile {
    /// Its path.
    pub path: String,
    /// `added`, `modified`, `removed`, `renamed`, …
    pub status: String,
    /// Its part of the diff; GitHub leaves it out for binary and very large files.
    pub patch: Option<String>,
}

impl ChangedFile {
    fn lines(&self, sign: char) -> usize {
        self.patch.as_deref().unwrap_or("").lines().filter(|line| line.starts_with(sign)).count()
    }
}

/// `GET …/pulls`
pub(super) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let order = Order::read(call, "created")?;
    let state = read_state(call)?;
    let base = call.query("base");
    let matching = |issue: &&Issue| {
        let wanted = |pull: &Pull| base.is_none_or(|base| pull.base_ref == base);
        issue.pull.as_ref().is_some_and(wanted) && state.is_none_or(|state| issue.state == state)
    };
    let repo = call.repo(world);
    let (page, next) = cut(world, call, repo, &order, matching)?;
    let answer = Answer::ok(page.iter().filter_map(|issue| simple_json(world, repo, issue)).collect());
    Ok(with_next(world, call, repo, answer, "pulls", next))
}

/// `GET …/pulls/{pull_number}`
pub(super) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (issue, _) = find(world, call)?;
    full_json(world, call.repo(world), issue)
}

/// `GET …/pulls/{pull_number}/files`
pub(super) fn files(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (_, pull) = find(world, call)?;
    let repo = call.repo(world);
    Ok(numbered_under_repo(world, call, &pull.files, |file| {
        let blob = format!("https://github.com/{}/blob/{}/{}", repo.full_name(), pull.head_sha, file.path);
        let (additions, deletions) = (file.lines('+'), file.lines('-'));
        let mut value = json!({
            "sha": pull.head_sha,
            "filename": file.path,
            "status": file.status,
            "additions": additions,
            "deletions": deletions,
            "changes": additions + deletions,
            "blob_url": blob,
            "raw_url": blob.replace("/blob/", "/raw/"),
            "contents_url": format!("{}/contents/{}?ref={}", repo.api(&world.api_url), file.path, pull.head_sha),
        });
        if let Some(patch) = &file.patch {
            value["patch"] = json!(patch);
        }
        value
    }))
}

/// `PATCH …/pulls/{pull_number}`
pub(super) fn patch(world: &mut World, call: &Call) -> Reply {
    let (issue, pull) = find(world, call)?;
    let (number, merged) = (issue.number, pull.merged_at.is_some());
    let author = issue.author.clone();
    let permission = world.may_write(call, PULLS)?;
    let by = call.login();
    if !author.eq_ignore_ascii_case(&by) {
        require(permission, Permission::Write)?;
    }
    let title = call.field("title").map(|_| required_text(call, "PullRequest", "title")).transpose()?;
    let body = call.field("body").map(|body| body.as_str().unwrap_or_default().to_owned());
    check_length("PullRequest", "body", body.as_deref().unwrap_or(""))?;
    let state = match call.field("state").map(Value::as_str) {
        None => None,
        Some(Some("open")) if merged => {
            return Err(Answer::invalid_because(
                "PullRequest",
                "state",
                "state cannot be changed. The pull request is merged.",
            ));
        }
        Some(Some("open")) => Some(State::Open),
        Some(Some("closed")) => Some(State::Closed),
        Some(_) => return Err(Answer::invalid("PullRequest", "state", "invalid")),
    };
    let repo = call.repo(world).full_name();
    if let Some(title) = title {
        world.edit_title(&repo, number, &by, &title);
    }
    if let Some(body) = body {
        world.edit_body(&repo, number, &by, &body);
    }
    match state {
        Some(State::Open) => world.reopen(&repo, number, &by),
        Some(State::Closed) => world.close(&repo, number, &by, CloseReason::Completed),
        None => {}
    }
    let (issue, _) = find(world, call)?;
    full_json(world, call.repo(world), issue)
}

fn find<'world>(world: &'world World, call: &Call) -> Result<(&'world Issue, &'world Pull), Answer> {
    let issue = world.find_number(call.repo(world), call.number("pull_number")?)?;
    let pull = issue.pull.as_ref().ok_or_else(Answer::not_found)?;
    Ok((issue, pull))
}

/// A pull request as the list shows it.
fn simple_json(world: &World, repo: &Repo, issue: &Issue) -> Option<Value> {
    let pull = issue.pull.as_ref()?;
    let as_issue = world.issue_json(repo, issue);
    let api = repo.api(&world.api_url);
    let url = format!("{api}/pulls/{}", issue.number);
    let side = |branch: &str, sha: &str| {
        json!({
            "label": format!("{}:{branch}", repo.owner),
            "ref": branch,
            "sha": sha,
            "user": world.user_json(&repo.owner),
            "repo": world.repo_json(repo),
        })
    };
    let href = |url: String| json!({ "href": url });
    let issue_url = format!("{api}/issues/{}", issue.number);
    let statuses = format!("{api}/statuses/{}", pull.head_sha);
    let mut value = json!({
        "id": issue.id,
        "node_id": format!("PR_{}", issue.id),
        "url": url,
        "diff_url": as_issue["pull_request"]["diff_url"],
        "patch_url": as_issue["pull_request"]["patch_url"],
        "issue_url": issue_url,
        "commits_url": format!("{url}/commits"),
        "review_comments_url": format!("{url}/comments"),
        "review_comment_url": format!("{api}/pulls/comments{{/number}}"),
        "comments_url": format!("{issue_url}/comments"),
        "statuses_url": statuses,
        "merge_commit_sha": null,
        "merged_at": pull.merged_at.map(time),
        "requested_reviewers": [],
        "requested_teams": [],
        "head": side(&pull.head_ref, &pull.head_sha),
        "base": side(&pull.base_ref, &pull.base_sha),
        "auto_merge": null,
        "draft": pull.draft,
        "_links": {
            "self": href(url.clone()),
            "html": href(as_issue["html_url"].as_str().unwrap_or_default().to_owned()),
            "issue": href(issue_url.clone()),
            "comments": href(format!("{issue_url}/comments")),
            "review_comments": href(format!("{url}/comments")),
            "review_comment": href(format!("{api}/pulls/comments{{/number}}")),
            "commits": href(format!("{url}/commits")),
            "statuses": href(statuses),
        },
    });
    let shared = [
        "html_url",
        "number",
        "state",
        "locked",
        "active_lock_reason",
        "title",
        "user",
        "body",
        "labels",
        "milestone",
        "assignee",
        "assignees",
        "created_at",
        "updated_at",
        "closed_at",
        "author_association",
    ];
    for key in shared {
        value[key] = as_issue[key].clone();
    }
    Some(value)
}

pub(super) fn full_json(world: &World, repo: &Repo, issue: &Issue) -> Reply {
    let value = simple_json(world, repo, issue).ok_or_else(Answer::not_found)?;
    let pull = issue.pull.as_ref().ok_or_else(Answer::not_found)?;
    let more = json!({
        "merged": pull.merged_at.is_some(),
        "mergeable": true,
        "rebaseable": true,
        "mergeable_state": "clean",
        "merged_by": pull.merged_by.as_deref().map(|login| world.user_json(login)),
        "comments": issue.comments,
        "review_comments": pull.review_comments,
        "maintainer_can_modify": false,
        "commits": 1,
        "additions": pull.files.iter().map(|file| file.lines('+')).sum::<usize>(),
        "deletions": pull.files.iter().map(|file| file.lines('-')).sum::<usize>(),
        "changed_files": pull.files.len(),
    });
    Ok(Answer::ok(extended(value, more)))
}
