//! Comments on issues and pull requests.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::issue::{require, time};
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::issues::reactions::rollup;
use crate::github::people::accounts::{ISSUES_OR_PULLS, Permission};
use crate::github::repos::repositories::Repo;
use crate::github::serve::call::{Answer, Call, Reply, check_length, required_text};
use crate::github::world::{Comment, World};

/// `GET …/issues/{issue_number}/comments`
pub(crate) fn list(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let number = world.find_issue(call)?.number;
    let since = read_since(call)?;
    let repo = call.repo(world);
    let comments = repo.comments.values().filter(|comment| comment.issue == number);
    let comments: Vec<&Comment> =
        comments.filter(|comment| since.is_none_or(|since| comment.updated_at >= since)).collect();
    Ok(numbered_under_repo(world, call, &comments, |comment| world.comment_json(repo, comment)))
}

/// `GET …/issues/comments`
pub(crate) fn list_all(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let since = read_since(call)?;
    let repo = call.repo(world);
    let comments = repo.comments.values();
    let mut comments: Vec<&Comment> =
        comments.filter(|comment| since.is_none_or(|since| comment.updated_at >= since)).collect();
    if call.query("sort") == Some("updated") {
        comments.sort_by_key(|comment| (comment.updated_at, comment.id));
    }
    // Without `sort` GitHub ignores `direction` and sorts by id.
    if call.query("sort").is_some() && call.query("direction") != Some("asc") {
        comments.reverse();
    }
    Ok(numbered_under_repo(world, call, &comments, |comment| world.comment_json(repo, comment)))
}

/// `GET …/issues/comments/{comment_id}`
pub(crate) fn show(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let comment = world.find_comment(call)?;
    Ok(Answer::ok(world.comment_json(call.repo(world), comment)))
}

/// `POST …/issues/{issue_number}/comments`
pub(crate) fn create(world: &mut World, call: &Call) -> Reply {
    let issue = world.find_issue(call)?;
    let (number, locked) = (issue.number, issue.locked);
    let permission = world.may_write(call, ISSUES_OR_PULLS)?;
    if locked && permission < Permission::Write {
        return Err(Answer::message(403, "Unable to create comment because issue is locked."));
    }
    let body = required_text(call, "IssueComment", "body")?;
    check_length("IssueComment", "body", &body)?;
    let repo = call.repo(world).full_name();
    let id = world.comment(&repo, number, &call.login(), &body);
    let repo = call.repo(world);
    let value = world.comment_json(repo, &repo.comments[&id]);
    let location = value["url"].as_str().unwrap_or_default().to_owned();
    Ok(Answer::json(201, value).header("location", &location))
}

/// `PATCH …/issues/comments/{comment_id}`
pub(crate) fn edit(world: &mut World, call: &Call) -> Reply {
    let id = own_or_writable(world, call)?;
    let body = required_text(call, "IssueComment", "body")?;
    check_length("IssueComment", "body", &body)?;
    let repo = call.repo(world).full_name();
    world.edit_comment(&repo, id, &call.login(), &body);
    let repo = call.repo(world);
    Ok(Answer::ok(world.comment_json(repo, &repo.comments[&id])))
}

/// `DELETE …/issues/comments/{comment_id}`
pub(crate) fn delete(world: &mut World, call: &Call) -> Reply {
    let id = own_or_writable(world, call)?;
    let repo = call.repo(world).full_name();
    world.delete_comment(&repo, id, &call.login());
    Ok(Answer::empty(204))
}

impl World {
    pub(crate) fn find_comment(&self, call: &Call) -> Result<&Comment, Answer> {
        let id = call.number("comment_id")?;
        call.repo(self).comments.get(&id).ok_or_else(Answer::not_found)
    }

    pub(crate) fn comment_json(&self, repo: &Repo, comment: &Comment) -> Value {
        let api = repo.api(&self.api_url);
        let url = format!("{api}/issues/comments/{}", comment.id);
        let is_pull = repo.issues.get(&comment.issue).is_some_and(|issue| issue.pull.is_some());
        let word = if is_pull { "pull" } else { "issues" };
        let page = format!("https://github.com/{}/{word}/{}", repo.full_name(), comment.issue);
        json!({
            "id": comment.id,
            "node_id": format!("IC_{}", comment.id),
            "url": url,
            "html_url": format!("{page}#issuecomment-{}", comment.id),
            "issue_url": format!("{api}/issues/{}", comment.issue),
            "user": self.user_json(&comment.author),
            "body": comment.body,
            "created_at": time(comment.created_at),
            "updated_at": time(comment.updated_at),
            "author_association": self.association(repo, &comment.author),
            "reactions": rollup(&comment.reactions, &url),
            "performed_via_github_app": null,
        })
    }
}

fn own_or_writable(world: &World, call: &Call) -> Result<u64, Answer> {
    let comment = world.find_comment(call)?;
    let permission = world.may_write(call, ISSUES_OR_PULLS)?;
    if !comment.author.eq_ignore_ascii_case(&call.login()) {
        require(permission, Permission::Write)?;
    }
    Ok(comment.id)
}

fn read_since(call: &Call) -> Result<Option<Timestamp>, Answer> {
    let parse = |text: &str| text.parse().map_err(|_| Answer::invalid("IssueComment", "since", "invalid"));
    call.query("since").map(parse).transpose()
}
