//! Pull requests: list, get, files, patch, requested reviewers.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::changes::CloseReason;
use crate::github::issues::issue::{require, time};
use crate::github::issues::issue_list::{Order, cut, numbered_under_repo, read_state, with_next};
use crate::github::people::accounts::{PULLS, Permission};
use crate::github::pulls::pull_diff::ChangedFile;
use crate::github::pulls::review_comments::ReviewComment;
use crate::github::pulls::review_threads::ReviewThread;
use crate::github::pulls::reviews::Review;
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply, check_length, extended, required_text};
use crate::github::world::{Issue, State, World};

/// What a pull request has beyond an issue.
#[derive(Debug, Clone)]
pub struct Pull {
    pub draft: bool,
    pub merged_at: Option<Timestamp>,
    pub merged_by: Option<String>,
    /// The tip of the base branch after the merge; `None` without git.
    pub merge_commit: Option<String>,
    /// Login of the fork's owner, if the branch belongs to a fork.
    pub fork: Option<String>,
    pub head_ref: String,
    pub head_sha: String,
    pub base_ref: String,
    /// The commit at the tip of that branch when the pull request was last opened, pushed to or retargeted.
    pub base_sha: String,
    pub files: Vec<ChangedFile>,
    /// The commits, oldest first; empty without git.
    pub commits: Vec<PullCommit>,
    /// Logins of requested reviewers who have not reviewed yet.
    pub requested_reviewers: Vec<String>,
    /// Reviews, oldest first, including pending ones.
    pub reviews: Vec<Review>,
    /// Comments on lines, oldest first, including pending ones.
    pub review_comments: Vec<ReviewComment>,
    /// Conversations on lines, oldest first.
    pub threads: Vec<ReviewThread>,
}

#[derive(Debug, Clone)]
pub struct PullCommit {
    pub sha: String,
    /// The changes of the pull request up to this commit.
    pub files: Vec<ChangedFile>,
}

impl Default for Pull {
    fn default() -> Self {
        Self {
            draft: false,
            merged_at: None,
            merged_by: None,
            merge_commit: None,
            fork: None,
            head_ref: String::from("topic"),
            head_sha: "1".repeat(40),
            base_ref: String::from("main"),
            base_sha: "0".repeat(40),
            files: Vec::new(),
            commits: Vec::new(),
            requested_reviewers: Vec::new(),
            reviews: Vec::new(),
            review_comments: Vec::new(),
            threads: Vec::new(),
        }
    }
}

impl Pull {
    /// Adds a modified file with its patch.
    #[must_use]
    pub fn file(mut self, path: &str, patch: &str) -> Self {
        self.files.push(ChangedFile::modified(path, patch));
        self
    }

    /// The changes up to one of its commits; `None` if the commit does not belong to it.
    pub(crate) fn files_at(&self, commit: &str) -> Option<&[ChangedFile]> {
        if commit == self.head_sha {
            return Some(&self.files);
        }
        self.commits.iter().find(|known| known.sha == commit).map(|known| known.files.as_slice())
    }

    /// The source branch, as the repository's own tables name it.
    pub(crate) fn head_branch(&self) -> String {
        match &self.fork {
            Some(owner) => format!("{owner}:{}", self.head_ref),
            None => self.head_ref.clone(),
        }
    }
}

/// `GET …/pulls`
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
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
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (issue, _) = find(world, call)?;
    full_json(world, call.repo(world), issue)
}

/// `GET …/pulls/{pull_number}/files`
pub(crate) fn files(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (_, pull) = find(world, call)?;
    let repo = call.repo(world);
    Ok(numbered_under_repo(world, call, &pull.files, |file| file_json(world, repo, &pull.head_sha, file)))
}

/// A changed file as pull requests and commits show it.
pub(crate) fn file_json(world: &World, repo: &Repo, commit: &str, file: &ChangedFile) -> Value {
    let blob = format!("https://github.com/{}/blob/{commit}/{}", repo.full_name(), file.path);
    let mut value = json!({
        "sha": file.sha,
        "filename": file.path,
        "status": file.status,
        "additions": file.additions,
        "deletions": file.deletions,
        "changes": file.additions + file.deletions,
        "blob_url": blob,
        "raw_url": blob.replace("/blob/", "/raw/"),
        "contents_url": format!("{}/contents/{}?ref={commit}", repo.api(&world.api_url), file.path),
    });
    if let Some(patch) = &file.patch {
        value["patch"] = json!(patch);
    }
    if let Some(previous) = &file.previous_path {
        value["previous_filename"] = json!(previous);
    }
    value
}

/// `PATCH …/pulls/{pull_number}`
pub(crate) fn patch(world: &mut World, call: &Call) -> Reply {
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

/// `GET …/pulls/{pull_number}/requested_reviewers`
pub(crate) fn list_requested(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (_, pull) = find(world, call)?;
    Ok(Answer::ok(json!({ "users": world.users_json(&pull.requested_reviewers), "teams": [] })))
}

/// `POST …/pulls/{pull_number}/requested_reviewers`
pub(crate) fn request(world: &mut World, call: &Call) -> Reply {
    let issue = find(world, call)?.0;
    let (number, author) = (issue.number, issue.author.clone());
    let permission = world.may_write(call, PULLS)?;
    let by = call.login();
    if !author.eq_ignore_ascii_case(&by) {
        require(permission, Permission::Triage)?;
    }
    let reviewers = crate::github::issues::issue::names(call.field("reviewers"), "login");
    let repo = call.repo(world).full_name();
    for reviewer in &reviewers {
        if reviewer.eq_ignore_ascii_case(&author) {
            return Err(Answer::message(422, "Review cannot be requested from pull request author."));
        }
        if !call.repo(world).collaborators.contains_key(&reviewer.to_ascii_lowercase()) {
            let why = format!(
                "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the {repo} repository."
            );
            return Err(Answer::message(422, &why));
        }
    }
    for reviewer in &reviewers {
        world.request_review(&repo, number, &by, reviewer);
    }
    let (issue, _) = find(world, call)?;
    let value = simple_json(world, call.repo(world), issue).ok_or_else(Answer::not_found)?;
    Ok(Answer::json(201, value))
}

pub(crate) fn find<'world>(world: &'world World, call: &Call) -> Result<(&'world Issue, &'world Pull), Answer> {
    let issue = world.find_number(call.repo(world), call.number("pull_number")?)?;
    let pull = issue.pull.as_ref().ok_or_else(Answer::not_found)?;
    Ok((issue, pull))
}

/// A pull request as the list shows it.
pub(crate) fn simple_json(world: &World, repo: &Repo, issue: &Issue) -> Option<Value> {
    let pull = issue.pull.as_ref()?;
    let as_issue = world.issue_json(repo, issue);
    let api = repo.api(&world.api_url);
    let url = format!("{api}/pulls/{}", issue.number);
    let side = |owner: &str, branch: &str, sha: &str| {
        let home = world.repos.iter().find(|home| home.owner == *owner && home.name == repo.name);
        json!({
            "label": format!("{owner}:{branch}"),
            "ref": branch,
            "sha": sha,
            "user": world.user_json(owner),
            "repo": home.map(|home| world.repo_json(home)),
        })
    };
    let fork = pull.fork.as_deref();
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
        "merge_commit_sha": pull.merge_commit,
        "merged_at": pull.merged_at.map(time),
        "requested_reviewers": world.users_json(&pull.requested_reviewers),
        "requested_teams": [],
        "head": side(fork.unwrap_or(&repo.owner), &pull.head_ref, &pull.head_sha),
        "base": side(&repo.owner, &pull.base_ref, &pull.base_sha),
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

pub(crate) fn full_json(world: &World, repo: &Repo, issue: &Issue) -> Reply {
    let value = simple_json(world, repo, issue).ok_or_else(Answer::not_found)?;
    let pull = issue.pull.as_ref().ok_or_else(Answer::not_found)?;
    let more = json!({
        "merged": pull.merged_at.is_some(),
        "mergeable": true,
        "rebaseable": true,
        "mergeable_state": "clean",
        "merged_by": pull.merged_by.as_deref().map(|login| world.user_json(login)),
        "comments": issue.comments,
        "review_comments": pull.review_comments.iter().filter(|comment| !pull.is_pending(comment.review)).count(),
        "maintainer_can_modify": false,
        "commits": pull.commits.len().max(1),
        "additions": pull.files.iter().map(|file| file.additions).sum::<usize>(),
        "deletions": pull.files.iter().map(|file| file.deletions).sum::<usize>(),
        "changed_files": pull.files.len(),
    });
    Ok(Answer::ok(extended(value, more)))
}
