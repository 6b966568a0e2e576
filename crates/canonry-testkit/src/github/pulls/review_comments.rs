//! Comments on lines of a pull request.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::issue::{require, time};
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::issues::reactions::{Reaction, rollup};
use crate::github::people::accounts::{PULLS, Permission};
use crate::github::pulls::pull::{Pull, find, simple_json};
use crate::github::pulls::pull_diff::{ChangedFile, Side, bare_changes, moved_line, shown_line};
use crate::github::pulls::review_threads::ReviewThread;
use crate::github::pulls::reviews::{may_review, unprocessable};
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply, check_length, required_text};
use crate::github::world::{Issue, World};

/// A comment on a line, or a reply to one.
#[derive(Debug, Clone)]
pub struct ReviewComment {
    pub id: u64,
    pub review: u64,
    pub author: String,
    pub body: String,
    pub path: String,
    pub side: Side,
    /// The line at the head; `None` if the comment is outdated.
    pub line: Option<u64>,
    /// The first line of several, at the head.
    pub start_line: Option<u64>,
    /// The line when the comment was written.
    pub original_line: u64,
    /// The first line of several when the comment was written.
    pub original_start_line: Option<u64>,
    /// The last commit for which its lines were right.
    pub commit_id: String,
    pub original_commit_id: String,
    pub diff_hunk: String,
    /// The number of lines below the first hunk's header when the comment was written.
    pub original_position: u64,
    /// Id of the comment that started the conversation.
    pub in_reply_to: Option<u64>,
    /// When it became visible to others.
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
    pub reactions: Vec<Reaction>,
}

/// A comment whose position was found in the diff.
pub(crate) struct NewComment {
    pub(crate) path: String,
    pub(crate) side: Side,
    pub(crate) line: u64,
    pub(crate) start_line: Option<u64>,
    pub(crate) body: String,
    position: u64,
    diff_hunk: String,
}

impl NewComment {
    /// Reads one comment of a review; 422 for the whole review if its position is not in the diff.
    pub(crate) fn read(files: &[ChangedFile], value: &Value) -> Result<Self, Answer> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
        let body = text("body");
        if body.trim().is_empty() {
            return Err(unprocessable(&["Body can't be blank"]));
        }
        check_length("PullRequestReviewComment", "body", body)?;
        let side = |name: &str| match value.get(name).and_then(Value::as_str) {
            None | Some("RIGHT") => Ok(Side::Right),
            Some("LEFT") => Ok(Side::Left),
            Some(_) => Err(unprocessable(&["Side is not included in the list"])),
        };
        let number = |name: &str| value.get(name).and_then(Value::as_u64);
        if value.get("start_side").is_some_and(|start| start.as_str() != Some(side("side").map_or("", Side::as_str))) {
            return Err(unprocessable(&["Start side must be the same as the side"]));
        }
        let line = number("line").ok_or_else(|| unprocessable(&["Line could not be resolved"]))?;
        Self::place(files, text("path"), side("side")?, line, number("start_line"), body)
    }

    /// Finds the position of a comment in a diff.
    pub(crate) fn place(
        files: &[ChangedFile],
        path: &str,
        side: Side,
        line: u64,
        start_line: Option<u64>,
        body: &str,
    ) -> Result<Self, Answer> {
        let file = files.iter().find(|file| file.path == path);
        let patch = file.ok_or_else(|| unprocessable(&["Path could not be resolved"]))?.patch.as_deref();
        let lost = || unprocessable(&["Line could not be resolved"]);
        let patch = patch.ok_or_else(lost)?;
        let shown = shown_line(patch, side, line).ok_or_else(lost)?;
        if let Some(start) = start_line {
            let first = shown_line(patch, side, start).filter(|first| first.hunk == shown.hunk && start < line);
            first.ok_or_else(|| {
                unprocessable(&[
                    "Start line must precede the end line",
                    "Start line must be part of the same hunk as the line.",
                ])
            })?;
        }
        Ok(Self {
            path: path.to_owned(),
            side,
            line,
            start_line,
            body: body.to_owned(),
            position: shown.position,
            diff_hunk: shown.excerpt,
        })
    }
}

impl World {
    /// The comments of a user on lines, oldest first, including pending ones.
    pub fn review_comments_by(&self, repo: &str, number: u64, login: &str) -> Vec<&ReviewComment> {
        let comments = self.pull(repo, number).review_comments.iter();
        comments.filter(|comment| comment.author.eq_ignore_ascii_case(login)).collect()
    }

    /// Reacts to a comment on a line; returns the reaction's id.
    pub fn react_to_review_comment(&mut self, repo: &str, comment: u64, by: &str, content: &str) -> u64 {
        let reaction = self.new_reaction(by, content);
        crate::github::issues::changes::add_reaction(&mut self.review_comment_mut(repo, comment).reactions, reaction)
    }

    pub fn unreact_to_review_comment(&mut self, repo: &str, comment: u64, by: &str, content: &str) {
        self.revision += 1;
        let reactions = &mut self.review_comment_mut(repo, comment).reactions;
        reactions.retain(|reaction| !(reaction.author.eq_ignore_ascii_case(by) && reaction.content == content));
    }

    pub(crate) fn add_review_comment(&mut self, repo: &str, number: u64, review: u64, new: NewComment) -> u64 {
        let (id, thread, at) = (self.fresh_id(), self.fresh_id(), self.stamp());
        let git = self.get(repo).git.clone();
        let issue = self.get_mut(repo).issues.get_mut(&number);
        let pull = issue.and_then(|issue| issue.pull.as_mut()).expect("invariant: callers found it");
        let review = pull.reviews.iter().find(|candidate| candidate.id == review).expect("invariant: just made");
        // If the comment was written for an earlier commit, its line may have moved or changed since.
        let earlier = git.filter(|_| review.commit_id != pull.head_sha && new.side == Side::Right);
        let changes = earlier.map(|git| bare_changes(&git, &review.commit_id, &pull.head_sha)).unwrap_or_default();
        let line = moved_line(&changes, &new.path, new.line);
        let comment = ReviewComment {
            id,
            review: review.id,
            author: review.author.clone(),
            body: new.body,
            side: new.side,
            line,
            start_line: new
                .start_line
                .filter(|_| line.is_some())
                .and_then(|start| moved_line(&changes, &new.path, start)),
            path: new.path,
            original_line: new.line,
            original_start_line: new.start_line,
            commit_id: review.commit_id.clone(),
            original_commit_id: review.commit_id.clone(),
            diff_hunk: new.diff_hunk,
            original_position: new.position,
            in_reply_to: None,
            created_at: at,
            updated_at: at,
            reactions: Vec::new(),
        };
        pull.review_comments.push(comment);
        pull.threads.push(ReviewThread { id: thread, comment: id, resolved_by: None });
        id
    }

    /// The pull request that contains a comment.
    pub(crate) fn pull_of_comment(&self, repo: &str, comment: u64) -> Option<u64> {
        let issues = self.get(repo).issues.values();
        let has = |pull: &Pull| pull.review_comments.iter().any(|candidate| candidate.id == comment);
        issues.filter(|issue| issue.pull.as_ref().is_some_and(has)).map(|issue| issue.number).next()
    }

    /// Returns a comment on a line for a change; the `updated_at` of its pull request does not change.
    pub(crate) fn review_comment_mut(&mut self, repo: &str, id: u64) -> &mut ReviewComment {
        let pulls = self.get_mut(repo).issues.values_mut().filter_map(|issue| issue.pull.as_mut());
        let found = pulls.flat_map(|pull| pull.review_comments.iter_mut()).find(|comment| comment.id == id);
        found.unwrap_or_else(|| panic!("{repo} has no review comment {id}"))
    }

    pub(crate) fn queue_review_comment_event(
        &mut self,
        action: &str,
        repo: &str,
        number: u64,
        comment: u64,
        by: &str,
        extra: Value,
    ) {
        if self.webhook.is_none() {
            return;
        }
        let position = self.position(repo);
        let home = &self.repos[position];
        let issue = &home.issues[&number];
        let Some(pull) = &issue.pull else { return };
        let found = pull.review_comments.iter().find(|candidate| candidate.id == comment);
        let comment = found.map(|comment| comment_json(self, home, number, pull, comment));
        let payload = json!({ "comment": comment, "pull_request": simple_json(self, home, issue) });
        let payload = crate::github::serve::call::extended(payload, extra);
        self.queue_event("pull_request_review_comment", Some(action), Some(position), Some(by), payload);
    }

    pub(crate) fn find_review_comment(&self, call: &Call) -> Result<(&Issue, &Pull, &ReviewComment), Answer> {
        let id = call.number("comment_id")?;
        let repo = call.repo(self);
        let number = self.pull_of_comment(&repo.full_name(), id).ok_or_else(Answer::not_found)?;
        let issue = &repo.issues[&number];
        let pull = issue.pull.as_ref().ok_or_else(Answer::not_found)?;
        let seen = |comment: &&ReviewComment| comment.id == id && pull.shows(comment.review, call.actor.login());
        let comment = pull.review_comments.iter().find(seen).ok_or_else(Answer::not_found)?;
        Ok((issue, pull, comment))
    }
}

/// `GET …/pulls/{pull_number}/comments`: pending comments are left out, even for their author.
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (issue, pull) = find(world, call)?;
    let since = call.query("since").map(str::parse::<Timestamp>).transpose();
    let since = since.map_err(|_| Answer::invalid("PullRequestReviewComment", "since", "invalid"))?;
    let matching = |comment: &&ReviewComment| {
        !pull.is_pending(comment.review) && since.is_none_or(|since| comment.updated_at >= since)
    };
    let mut comments: Vec<&ReviewComment> = pull.review_comments.iter().filter(matching).collect();
    match call.query("sort") {
        Some("updated") => comments.sort_by_key(|comment| (comment.updated_at, comment.id)),
        _ => comments.sort_by_key(|comment| (comment.created_at, comment.id)),
    }
    if call.query("direction") == Some("desc") {
        comments.reverse();
    }
    let repo = call.repo(world);
    Ok(numbered_under_repo(world, call, &comments, |comment| comment_json(world, repo, issue.number, pull, comment)))
}

/// `GET …/pulls/comments/{comment_id}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (issue, pull, comment) = world.find_review_comment(call)?;
    Ok(Answer::ok(comment_json(world, call.repo(world), issue.number, pull, comment)))
}

/// `PATCH …/pulls/comments/{comment_id}`
pub(crate) fn edit(world: &mut World, call: &Call) -> Reply {
    let (number, id) = own_or_writable(world, call)?;
    let body = required_text(call, "PullRequestReviewComment", "body")?;
    check_length("PullRequestReviewComment", "body", &body)?;
    let repo = call.repo(world).full_name();
    let at = world.stamp();
    world.change(&repo, number);
    let comment = world.review_comment_mut(&repo, id);
    let from = std::mem::replace(&mut comment.body, body);
    comment.updated_at = at;
    let review = comment.review;
    if !find_pull(world, call, number)?.1.is_pending(review) {
        let changes = json!({ "changes": { "body": { "from": from } } });
        world.queue_review_comment_event("edited", &repo, number, id, &call.login(), changes);
    }
    show(world, call)
}

/// `DELETE …/pulls/comments/{comment_id}`
pub(crate) fn delete(world: &mut World, call: &Call) -> Reply {
    let (number, id) = own_or_writable(world, call)?;
    let repo = call.repo(world).full_name();
    let pending = {
        let (_, pull, comment) = world.find_review_comment(call)?;
        pull.is_pending(comment.review)
    };
    if !pending {
        world.queue_review_comment_event("deleted", &repo, number, id, &call.login(), json!({}));
    }
    let pull = world.pull_mut(&repo, number);
    pull.review_comments.retain(|comment| comment.id != id);
    // The conversation continues with its next comment.
    let next = pull.review_comments.iter().find(|comment| comment.in_reply_to == Some(id)).map(|comment| comment.id);
    match next {
        Some(next) => {
            pull.threads.iter_mut().filter(|thread| thread.comment == id).for_each(|thread| thread.comment = next);
            for comment in pull.review_comments.iter_mut().filter(|comment| comment.in_reply_to == Some(id)) {
                comment.in_reply_to = (comment.id != next).then_some(next);
            }
        }
        None => pull.threads.retain(|thread| thread.comment != id),
    }
    Ok(Answer::empty(204))
}

/// `POST …/pulls/{pull_number}/comments/{comment_id}/replies`
pub(crate) fn reply(world: &mut World, call: &Call) -> Reply {
    let number = find(world, call)?.0.number;
    let (issue, pull, comment) = world.find_review_comment(call)?;
    if issue.number != number || pull.is_pending(comment.review) {
        return Err(Answer::not_found());
    }
    may_review(world, call, issue)?;
    if comment.in_reply_to.is_some() {
        return Err(unprocessable(&["In reply to must be a top-level comment"]));
    }
    if pull.pending_of(&call.login()).is_some() {
        return Err(unprocessable(&["User can only have one pending review per pull request"]));
    }
    let parent = comment.id;
    let body = required_text(call, "PullRequestReviewComment", "body")?;
    check_length("PullRequestReviewComment", "body", &body)?;
    let repo = call.repo(world).full_name();
    let id = world.reply_in_thread(&repo, parent, &call.login(), &body);
    let (issue, pull) = find_pull(world, call, number)?;
    let comment = pull.review_comments.iter().find(|comment| comment.id == id).ok_or_else(Answer::not_found)?;
    let value = comment_json(world, call.repo(world), issue.number, pull, comment);
    let location = value["url"].as_str().unwrap_or_default().to_owned();
    Ok(Answer::json(201, value).header("location", &location))
}

fn find_pull<'world>(world: &'world World, call: &Call, number: u64) -> Result<(&'world Issue, &'world Pull), Answer> {
    let issue = world.find_number(call.repo(world), number)?;
    Ok((issue, issue.pull.as_ref().ok_or_else(Answer::not_found)?))
}

fn own_or_writable(world: &World, call: &Call) -> Result<(u64, u64), Answer> {
    let (issue, _, comment) = world.find_review_comment(call)?;
    let permission = world.may_write(call, PULLS)?;
    if !comment.author.eq_ignore_ascii_case(&call.login()) {
        require(permission, Permission::Write)?;
    }
    Ok((issue.number, comment.id))
}

/// A comment on a line. An outdated comment has no `line` and no `position`, although GitHub's description does not
/// say so.
pub(crate) fn comment_json(world: &World, repo: &Repo, number: u64, pull: &Pull, comment: &ReviewComment) -> Value {
    let api = repo.api(&world.api_url);
    let url = format!("{api}/pulls/comments/{}", comment.id);
    let html = format!("https://github.com/{}/pull/{number}#discussion_r{}", repo.full_name(), comment.id);
    let pull_url = format!("{api}/pulls/{number}");
    let patch = pull.files.iter().find(|file| file.path == comment.path).and_then(|file| file.patch.as_deref());
    let shown = patch.zip(comment.line).and_then(|(patch, line)| shown_line(patch, comment.side, line));
    let start_side = comment.original_start_line.map(|_| comment.side.as_str());
    let mut value = json!({
        "id": comment.id,
        "node_id": format!("PRRC_{}", comment.id),
        "pull_request_review_id": comment.review,
        "url": url,
        "html_url": html,
        "pull_request_url": pull_url,
        "diff_hunk": comment.diff_hunk,
        "path": comment.path,
        "position": shown.map(|shown| shown.position),
        "original_position": comment.original_position,
        "commit_id": comment.commit_id,
        "original_commit_id": comment.original_commit_id,
        "user": world.user_json(&comment.author),
        "body": comment.body,
        "created_at": time(comment.created_at),
        "updated_at": time(comment.updated_at),
        "author_association": world.association(repo, &comment.author),
        "_links": { "self": { "href": url }, "html": { "href": html }, "pull_request": { "href": pull_url } },
        "line": comment.line,
        "original_line": comment.original_line,
        "start_line": comment.start_line,
        "original_start_line": comment.original_start_line,
        "side": comment.side.as_str(),
        "start_side": start_side,
        "subject_type": "line",
        "reactions": rollup(&comment.reactions, &url),
    });
    if let Some(parent) = comment.in_reply_to {
        value["in_reply_to_id"] = json!(parent);
    }
    value
}
