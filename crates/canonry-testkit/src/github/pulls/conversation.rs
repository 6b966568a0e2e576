//! A pull request as a person sees it, as text for snapshots.

use jiff::Timestamp;

use crate::github::issues::reactions::Reaction;
use crate::github::pulls::pull::Pull;
use crate::github::pulls::review_comments::ReviewComment;
use crate::github::pulls::review_threads::ReviewThread;
use crate::github::pulls::reviews::{Review, ReviewState};
use crate::github::world::World;

impl World {
    /// Everything that a person sees on a pull request, in order of time: comments, reviews with their conversations
    /// on lines, check runs of its commits. HTML comments are left out, as on GitHub.
    pub fn conversation(&self, repo: &str, number: u64) -> String {
        let home = self.get(repo);
        let issue = self.issue(repo, number);
        let pull = self.pull(repo, number);
        let mut entries: Vec<(Timestamp, u64, String)> = Vec::new();
        for comment in self.comments(repo, number) {
            let edited = if comment.updated_at > comment.created_at { " (edited)" } else { "" };
            let text = format!(
                "## {} commented{edited}\n{}{}",
                comment.author,
                said(&comment.body, ""),
                reacted(&comment.reactions, "")
            );
            entries.push((comment.created_at, comment.id, text));
        }
        for review in pull.reviews.iter().filter(|review| review.state != ReviewState::Pending) {
            if let Some(text) = review_text(pull, review) {
                entries.push((review.submitted_at.unwrap_or(Timestamp::MIN), review.id, text));
            }
        }
        let heads = |sha: &str| pull.head_sha == sha || pull.commits.iter().any(|commit| commit.sha == sha);
        for run in home.check_runs.iter().filter(|run| heads(&run.head_sha)) {
            let state = run.conclusion.as_ref().unwrap_or(&run.status);
            let mut text = format!("## check {} on {}: {state}\n", run.name, short(&run.head_sha));
            for part in [&run.title, &run.summary, &run.text].into_iter().flatten() {
                text.push_str(&said(part, ""));
            }
            entries.push((run.completed_at.unwrap_or(run.started_at), run.id, text));
        }
        entries.sort_by_key(|(at, id, _)| (*at, *id));
        let draft = if pull.draft { ", draft" } else { "" };
        let mut text = format!("# {} ({}{draft}, by {})\n", issue.title, issue.state.as_str(), issue.author);
        text.push_str(&said(issue.body.as_deref().unwrap_or_default(), ""));
        for (_, _, entry) in entries {
            text.push('\n');
            text.push_str(&entry);
        }
        text
    }
}

/// `None` for the empty review that contains every reply.
fn review_text(pull: &Pull, review: &Review) -> Option<String> {
    let begun = |thread: &&ReviewThread| {
        pull.review_comments.iter().any(|comment| comment.id == thread.comment && comment.review == review.id)
    };
    let threads: Vec<&ReviewThread> = pull.threads.iter().filter(begun).collect();
    if threads.is_empty() && review.body.trim().is_empty() && review.state == ReviewState::Commented {
        return None;
    }
    let verdict = match review.state {
        ReviewState::Approved => "approved",
        ReviewState::ChangesRequested => "requested changes",
        ReviewState::Commented | ReviewState::Pending => "reviewed",
    };
    let mut text = format!("## {} {verdict} {}\n{}", review.author, short(&review.commit_id), said(&review.body, ""));
    for thread in threads {
        text.push_str(&thread_text(pull, thread));
    }
    Some(text)
}

fn thread_text(pull: &Pull, thread: &ReviewThread) -> String {
    let comments: Vec<&ReviewComment> =
        pull.comments_of(thread).into_iter().filter(|comment| !pull.is_pending(comment.review)).collect();
    let mut text = String::new();
    for comment in comments {
        if comment.id == thread.comment {
            let first = comment.start_line.or(comment.original_start_line).map(|first| format!("{first}-"));
            let line = comment.line.unwrap_or(comment.original_line);
            let outdated = if comment.line.is_none() { ", outdated" } else { "" };
            let resolved = thread.resolved_by.as_ref().map(|by| format!(", resolved by {by}"));
            let (first, resolved) = (first.unwrap_or_default(), resolved.unwrap_or_default());
            text.push_str(&format!("  {}:{first}{line}{outdated}{resolved}\n", comment.path));
        }
        let edited = if comment.updated_at > comment.created_at { " (edited)" } else { "" };
        text.push_str(&format!("    {}{edited}:\n", comment.author));
        text.push_str(&said(&comment.body, "      "));
        text.push_str(&reacted(&comment.reactions, "      "));
    }
    text
}

fn short(sha: &str) -> &str {
    sha.get(..7).unwrap_or(sha)
}

/// A text without HTML comments and without the blank lines that they leave at its ends, each line indented.
fn said(text: &str, indent: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<!--") {
        shown.push_str(before);
        rest = after.split_once("-->").map_or("", |(_, after)| after);
    }
    shown.push_str(rest);
    let lines = shown.trim().lines().map(str::trim_end);
    lines.map(|line| if line.is_empty() { String::from("\n") } else { format!("{indent}{line}\n") }).collect()
}

fn reacted(reactions: &[Reaction], indent: &str) -> String {
    if reactions.is_empty() {
        return String::new();
    }
    let list: Vec<String> =
        reactions.iter().map(|reaction| format!("{} {}", reaction.content, reaction.author)).collect();
    format!("{indent}[{}]\n", list.join(", "))
}
