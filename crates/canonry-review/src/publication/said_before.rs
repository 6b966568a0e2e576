//! What the outbox has written, or is about to write, on a pull request.

use canonry_github::outbox::{COMMENT_GONE, Write};
use canonry_store::{OutboxEntry, OutboxId, OutboxState};

use super::keys::{About, Keys, about};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StandingSummary {
    pub(super) key: String,
    /// What it says once everything about it is sent.
    pub(super) text: Option<String>,
    pub(super) last: OutboxId,
    pub(super) is_sent: bool,
}

/// The summary of a pull request; `None` when there is none, or people deleted it.
pub(super) fn standing_summary(keys: &Keys, entries: &[OutboxEntry]) -> Option<StandingSummary> {
    let begins = keys.all("summary");
    let comments = entries.iter().rev().filter(|entry| entry.key.starts_with(&begins) && is_living(entry));
    let mut standing = comments
        .filter(|comment| !edits_of(entries, &comment.key).any(|edit| edit.reason.as_deref() == Some(COMMENT_GONE)));
    let comment = standing.next()?;
    let about = std::iter::once(comment).chain(edits_of(entries, &comment.key));
    let last = about.filter(|entry| is_living(entry)).last()?;
    Some(StandingSummary {
        key: comment.key.clone(),
        text: body_of(last),
        last: last.id,
        is_sent: last.state == OutboxState::Sent,
    })
}

/// What the last completed review made the summary say, which findings off the diff stand in alone.
pub(super) fn last_reviews_summary(keys: &Keys, entries: &[OutboxEntry]) -> Option<String> {
    let standing = standing_summary(keys, entries)?;
    let comment = entries.iter().filter(|entry| entry.key == standing.key);
    let said = comment.chain(edits_of(entries, &standing.key)).filter(|entry| is_living(entry));
    said.filter(|entry| matches!(about(&entry.key), Some(About::Run(_)))).filter_map(body_of).last()
}

pub(super) fn is_living(entry: &OutboxEntry) -> bool {
    matches!(entry.state, OutboxState::Sent | OutboxState::Pending)
}

/// What an entry writes; `None` when a newer version stored it.
pub(super) fn write_of(entry: &OutboxEntry) -> Option<Write> {
    serde_json::from_value(entry.payload.clone()).ok()
}

fn edits_of<'a>(entries: &'a [OutboxEntry], comment: &str) -> impl Iterator<Item = &'a OutboxEntry> {
    entries.iter().filter(move |entry| match write_of(entry) {
        Some(Write::EditComment { comment_key, .. }) => comment_key == comment,
        _ => false,
    })
}

fn body_of(entry: &OutboxEntry) -> Option<String> {
    match write_of(entry)? {
        Write::Comment { body } | Write::EditComment { body, .. } => Some(body),
        _ => None,
    }
}
