//! Conversations on lines: comments, replies and resolving.

use serde_json::{Value, json};

use crate::github::pulls::pull::{Pull, simple_json};
use crate::github::pulls::pull_diff::Side;
use crate::github::pulls::review_comments::{NewComment, ReviewComment, comment_json};
use crate::github::pulls::reviews::ReviewState;
use crate::github::world::World;

/// A conversation on a line.
#[derive(Debug, Clone)]
pub struct ReviewThread {
    /// Its number; its GraphQL id is `PRRT_` and this number.
    pub id: u64,
    pub comment: u64,
    /// Login of the user who resolved it, while it is resolved.
    pub resolved_by: Option<String>,
}

impl ReviewThread {
    /// The GraphQL id.
    pub fn node_id(&self) -> String {
        format!("PRRT_{}", self.id)
    }
}

impl Pull {
    /// The comments of a conversation, oldest first.
    pub fn comments_of(&self, thread: &ReviewThread) -> Vec<&ReviewComment> {
        let of_thread =
            |comment: &&ReviewComment| comment.id == thread.comment || comment.in_reply_to == Some(thread.comment);
        self.review_comments.iter().filter(of_thread).collect()
    }
}

impl World {
    /// A user comments on a line of the new text at the head; returns the comment's id.
    ///
    /// # Panics
    /// If the diff does not show that line.
    pub fn comment_on_line(&mut self, repo: &str, number: u64, by: &str, path: &str, line: u64, body: &str) -> u64 {
        let pull = self.pull(repo, number);
        let head = pull.head_sha.clone();
        let placed = NewComment::place(&pull.files, path, Side::Right, line, None, body);
        let placed = placed.unwrap_or_else(|_| panic!("{path}:{line} is not in the diff of {repo}#{number}"));
        let review = self.begin_review(repo, number, by, &head, "");
        let id = self.add_review_comment(repo, number, review, placed);
        self.submit_review(repo, number, review, ReviewState::Commented);
        id
    }

    /// Replies in the conversation of a comment, in a separate review as on GitHub; returns the new comment's id.
    pub fn reply_in_thread(&mut self, repo: &str, comment: u64, by: &str, body: &str) -> u64 {
        let number = self.number_of(repo, comment);
        let (id, at) = (self.fresh_id(), self.stamp());
        let head = self.pull(repo, number).head_sha.clone();
        let review = self.begin_review(repo, number, by, &head, "");
        let pull = self.pull_mut(repo, number);
        let found = pull.review_comments.iter().find(|candidate| candidate.id == comment);
        let parent = found.expect("invariant: its number was found by it").clone();
        pull.review_comments.push(ReviewComment {
            id,
            review,
            author: by.to_owned(),
            body: body.to_owned(),
            in_reply_to: Some(parent.in_reply_to.unwrap_or(parent.id)),
            created_at: at,
            updated_at: at,
            reactions: Vec::new(),
            ..parent
        });
        self.submit_review(repo, number, review, ReviewState::Commented);
        id
    }

    pub fn resolve_thread(&mut self, repo: &str, comment: u64, by: &str) {
        self.set_resolved(repo, comment, by, true);
    }

    /// Reopens the conversation of a comment.
    pub fn unresolve_thread(&mut self, repo: &str, comment: u64, by: &str) {
        self.set_resolved(repo, comment, by, false);
    }

    /// A call that changes nothing sends no webhook.
    fn set_resolved(&mut self, repo: &str, comment: u64, by: &str, resolved: bool) {
        let number = self.number_of(repo, comment);
        let pull = self.pull_mut(repo, number);
        let found = pull.review_comments.iter().find(|candidate| candidate.id == comment);
        let root = found.and_then(|found| found.in_reply_to).unwrap_or(comment);
        let thread = pull.threads.iter_mut().find(|thread| thread.comment == root);
        let thread = thread.expect("invariant: every comment has a conversation");
        if thread.resolved_by.is_some() == resolved {
            return;
        }
        thread.resolved_by = resolved.then(|| by.to_owned());
        let id = thread.id;
        let action = if resolved { "resolved" } else { "unresolved" };
        self.queue_thread_event(action, repo, number, id, by);
    }

    fn queue_thread_event(&mut self, action: &str, repo: &str, number: u64, thread: u64, by: &str) {
        if self.webhook.is_none() {
            return;
        }
        let position = self.position(repo);
        let home = &self.repos[position];
        let issue = &home.issues[&number];
        let Some(pull) = &issue.pull else { return };
        let Some(thread) = pull.threads.iter().find(|candidate| candidate.id == thread) else { return };
        let comments: Vec<Value> = pull
            .comments_of(thread)
            .into_iter()
            .map(|comment| comment_json(self, home, number, pull, comment))
            .collect();
        let payload = json!({
            "thread": { "node_id": thread.node_id(), "comments": comments },
            "pull_request": simple_json(self, home, issue),
        });
        self.queue_event("pull_request_review_thread", Some(action), Some(position), Some(by), payload);
    }

    fn number_of(&self, repo: &str, comment: u64) -> u64 {
        self.pull_of_comment(repo, comment).unwrap_or_else(|| panic!("{repo} has no review comment {comment}"))
    }
}
