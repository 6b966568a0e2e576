//! What triage has written on an item so far, according to the outbox, and the keys of its writes.

use canonry_domain::{ItemNumber, ItemType, POSSIBLE_DUPLICATE, WriteArea, WriteKey, WriteOrigin};
use canonry_github::outbox::{COMMENT_GONE, Receipt, Write};
use canonry_store::{OutboxEntry, OutboxState, RepoId};
use jiff::Timestamp;

/// The keys of an item's writes. Every key names the item, and the triage or the generation that requests the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TriageKeys {
    pub(crate) repo: RepoId,
    pub(crate) item_type: ItemType,
    pub(crate) number: ItemNumber,
}

impl TriageKeys {
    /// The n-th comment, counted from 1. The first stays the only one unless people delete it.
    pub(crate) fn comment(&self, generation: usize) -> WriteKey {
        self.key(WriteOrigin::TriageComment, i64::try_from(generation).unwrap_or(i64::MAX))
    }

    /// The write of one origin that a triage, a grace period or a ruling requests.
    pub(crate) fn key(&self, origin: WriteOrigin, record: i64) -> WriteKey {
        WriteKey::of_item(origin, self.repo.get(), self.item_type, self.number).and(record).with_record(record)
    }
}

/// The comment that stands on an item, or that is queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StandingComment {
    pub(crate) key: String,
    /// The text after everything about the comment is sent.
    pub(crate) text: Option<String>,
}

/// The outbox entries of an item, summarized.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PostedTriage {
    /// The comment that can be edited; `None` if there is none, or people deleted it.
    pub(crate) standing: Option<StandingComment>,
    /// How many comments were ever queued.
    pub(crate) generations: usize,
    /// When the last comment was written, even if it was deleted since.
    pub(crate) last_said_at: Option<Timestamp>,
    /// Whether the label was ever queued.
    pub(crate) was_labelled: bool,
    /// Whether we removed the label last. If people removed it, it is not set again.
    pub(crate) label_taken_off: bool,
    /// Whether the latest text of the comment says that a person ruled otherwise.
    pub(crate) is_ruled_apart: bool,
}

impl PostedTriage {
    /// Reads all entries of an item; they are in the order in which they are sent.
    pub(crate) fn read(entries: &[OutboxEntry]) -> Self {
        let comments: Vec<&OutboxEntry> =
            entries.iter().filter(|entry| entry.source.origin == WriteOrigin::TriageComment).collect();
        let is_standing = |comment: &&&OutboxEntry| {
            comment.is_sent_or_pending()
                && !edits_of(entries, &comment.key).any(|edit| edit.reason.as_deref() == Some(COMMENT_GONE))
        };
        let standing = comments.iter().rev().find(is_standing).map(|comment| {
            let about = std::iter::once(*comment).chain(edits_of(entries, &comment.key));
            let last = about.filter(|entry| entry.is_sent_or_pending()).last();
            (StandingComment { key: comment.key.clone(), text: last.and_then(said_by) }, last.is_some_and(is_ruling))
        });
        let (standing, is_ruled_apart) = standing.map_or((None, false), |(standing, ruled)| (Some(standing), ruled));
        let sent = comments.iter().filter(|comment| comment.state == OutboxState::Sent);
        Self {
            standing,
            generations: comments.len(),
            last_said_at: sent.map(|comment| comment.updated_at).max(),
            was_labelled: entries.iter().any(|entry| entry.source.origin == WriteOrigin::TriageLabel),
            label_taken_off: label_taken_off(entries),
            is_ruled_apart,
        }
    }
}

/// Whether an entry withdraws a suggestion because of a person's ruling.
pub(crate) fn is_ruling(entry: &OutboxEntry) -> bool {
    entry.source.origin == WriteOrigin::RulingEdit
}

/// The last write about the label decides. An unlabelling that found no label removed nothing.
fn label_taken_off(entries: &[OutboxEntry]) -> bool {
    let ours = |entry: &&OutboxEntry| entry.source.origin.area() == WriteArea::Triage && entry.is_sent_or_pending();
    let last = entries.iter().rev().filter(ours).find_map(|entry| match Write::of_entry(entry)? {
        Write::Label { name } if name == POSSIBLE_DUPLICATE => Some(false),
        Write::Unlabel { name } if name == POSSIBLE_DUPLICATE => Some(!was_so_already(entry)),
        _ => None,
    });
    last.unwrap_or(false)
}

fn was_so_already(entry: &OutboxEntry) -> bool {
    Receipt::of_entry(entry).is_some_and(|receipt| receipt.already)
}

fn edits_of<'a>(entries: &'a [OutboxEntry], comment: &str) -> impl Iterator<Item = &'a OutboxEntry> {
    entries.iter().filter(move |entry| match Write::of_entry(entry) {
        Some(Write::EditComment { comment_key, .. }) => comment_key == comment,
        _ => false,
    })
}

/// The text of an entry, if it has one.
pub(crate) fn said_by(entry: &OutboxEntry) -> Option<String> {
    Write::of_entry(entry)?.into_text()
}
