//! Reactions on issues and comments of both kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::github::issues::issue::time;
use crate::github::issues::issue_list::numbered_under_repo;
use crate::github::people::accounts::{ISSUES_OR_PULLS, PULLS, Permission};
use crate::github::serve::call::{Answer, Call, Reply};
use crate::github::world::World;

/// The eight reactions of GitHub.
const CONTENTS: [&str; 8] = ["+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes"];

#[derive(Debug, Clone)]
pub struct Reaction {
    pub id: u64,
    pub author: String,
    /// `+1`, `-1`, `laugh`, `confused`, `heart`, `hooray`, `rocket` or `eyes`.
    pub content: String,
    pub created_at: Timestamp,
}

/// The counts of reactions in the JSON of issues and comments.
pub(crate) fn rollup(reactions: &[Reaction], url: &str) -> Value {
    let mut counts = json!({ "url": format!("{url}/reactions"), "total_count": reactions.len() });
    for content in CONTENTS {
        let count = reactions.iter().filter(|reaction| reaction.content == content).count();
        counts[content] = json!(count);
    }
    counts
}

/// `GET …/issues/{issue_number}/reactions`
pub(crate) fn list_of_issue(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let issue = world.find_issue(call)?;
    Ok(list(world, call, &issue.reactions))
}

/// `GET …/issues/comments/{comment_id}/reactions`
pub(crate) fn list_of_comment(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, ISSUES_OR_PULLS)?;
    let comment = world.find_comment(call)?;
    Ok(list(world, call, &comment.reactions))
}

/// `POST …/issues/{issue_number}/reactions`
pub(crate) fn react_to_issue(world: &mut World, call: &Call) -> Reply {
    let issue = world.find_issue(call)?;
    let (number, locked, before) = (issue.number, issue.locked, issue.reactions.len());
    let content = writable(world, call, locked)?;
    let repo = call.repo(world).full_name();
    let id = world.react(&repo, number, &call.login(), &content);
    Ok(created(world, &world.issue(&repo, number).reactions, id, before))
}

/// `POST …/issues/comments/{comment_id}/reactions`
pub(crate) fn react_to_comment(world: &mut World, call: &Call) -> Reply {
    let comment = world.find_comment(call)?;
    let (comment, before) = (comment.id, comment.reactions.len());
    let content = writable(world, call, false)?;
    let repo = call.repo(world).full_name();
    let id = world.react_to_comment(&repo, comment, &call.login(), &content);
    Ok(created(world, &call.repo(world).comments[&comment].reactions, id, before))
}

/// `DELETE …/issues/{issue_number}/reactions/{reaction_id}`
pub(crate) fn delete_from_issue(world: &mut World, call: &Call) -> Reply {
    let issue = world.find_issue(call)?;
    let number = issue.number;
    let id = own(world, call, &issue.reactions)?;
    let issue = call.repo_mut(world).issues.get_mut(&number).ok_or_else(Answer::not_found)?;
    issue.reactions.retain(|reaction| reaction.id != id);
    Ok(Answer::empty(204))
}

/// `DELETE …/issues/comments/{comment_id}/reactions/{reaction_id}`
pub(crate) fn delete_from_comment(world: &mut World, call: &Call) -> Reply {
    let comment = world.find_comment(call)?;
    let comment_id = comment.id;
    let id = own(world, call, &comment.reactions)?;
    let comment = call.repo_mut(world).comments.get_mut(&comment_id).ok_or_else(Answer::not_found)?;
    comment.reactions.retain(|reaction| reaction.id != id);
    Ok(Answer::empty(204))
}

/// `GET …/pulls/comments/{comment_id}/reactions`
pub(crate) fn list_of_review_comment(world: &mut World, call: &Call) -> Reply {
    world.may_read(call, PULLS)?;
    let (_, _, comment) = world.find_review_comment(call)?;
    Ok(list(world, call, &comment.reactions))
}

/// `POST …/pulls/comments/{comment_id}/reactions`
pub(crate) fn react_to_review_comment(world: &mut World, call: &Call) -> Reply {
    let (_, _, comment) = world.find_review_comment(call)?;
    let (comment, before) = (comment.id, comment.reactions.len());
    world.may_write(call, PULLS)?;
    let content = writable(world, call, false)?;
    let repo = call.repo(world).full_name();
    let id = world.react_to_review_comment(&repo, comment, &call.login(), &content);
    let (_, _, comment) = world.find_review_comment(call)?;
    Ok(created(world, &comment.reactions, id, before))
}

/// `DELETE …/pulls/comments/{comment_id}/reactions/{reaction_id}`
pub(crate) fn delete_from_review_comment(world: &mut World, call: &Call) -> Reply {
    let (_, _, comment) = world.find_review_comment(call)?;
    let comment_id = comment.id;
    let id = own(world, call, &comment.reactions)?;
    let repo = call.repo(world).full_name();
    world.review_comment_mut(&repo, comment_id).reactions.retain(|reaction| reaction.id != id);
    Ok(Answer::empty(204))
}

fn list(world: &World, call: &Call, reactions: &[Reaction]) -> Answer {
    let wanted = call.query("content");
    let matching = |reaction: &&Reaction| wanted.is_none_or(|content| reaction.content == content);
    let reactions: Vec<&Reaction> = reactions.iter().filter(matching).collect();
    numbered_under_repo(world, call, &reactions, |reaction| reaction_json(world, reaction))
}

fn writable(world: &World, call: &Call, locked: bool) -> Result<String, Answer> {
    let permission = world.may_write(call, ISSUES_OR_PULLS)?;
    if locked && permission < Permission::Write {
        return Err(Answer::message(403, "Unable to create reaction because issue is locked."));
    }
    let content = call.field("content").and_then(Value::as_str).unwrap_or_default();
    if !CONTENTS.contains(&content) {
        return Err(Answer::invalid("Reaction", "content", "invalid"));
    }
    Ok(content.to_owned())
}

/// 201 for a new reaction, 200 for an existing one.
fn created(world: &World, reactions: &[Reaction], id: u64, before: usize) -> Answer {
    let status = if reactions.len() > before { 201 } else { 200 };
    let found = reactions.iter().find(|reaction| reaction.id == id);
    Answer::json(status, found.map_or(Value::Null, |reaction| reaction_json(world, reaction)))
}

/// A caller can delete only their own reactions.
fn own(world: &World, call: &Call, reactions: &[Reaction]) -> Result<u64, Answer> {
    world.may_write(call, ISSUES_OR_PULLS)?;
    let id = call.number("reaction_id")?;
    let reaction = reactions.iter().find(|reaction| reaction.id == id).ok_or_else(Answer::not_found)?;
    if !reaction.author.eq_ignore_ascii_case(&call.login()) {
        return Err(Answer::message(403, "You must be the author of a reaction to delete it."));
    }
    Ok(id)
}

fn reaction_json(world: &World, reaction: &Reaction) -> Value {
    json!({
        "id": reaction.id,
        "node_id": format!("REA_{}", reaction.id),
        "user": world.user_json(&reaction.author),
        "content": reaction.content,
        "created_at": time(reaction.created_at),
    })
}
