//! Loads the writes that the outbox has sent, or is about to send, on a pull request.

use canonry_domain::{ItemNumber, WriteKey, WriteOrigin};
use canonry_github::outbox::{COMMENT_GONE, Write};
use canonry_store::{OutboxEntry, OutboxId, OutboxState, RepoId, ReviewId, Store, StoreError};

use super::keys::WriteSubject;

/// The writes of one pull request, oldest first: loaded once for a publication, which adds what it sends.
///
/// Missing a write of another process does no harm. A write that an older review enqueues after the load is refused
/// before it is sent, because its review is not the latest; a newer review ends this publication in the same way.
pub(super) struct PullWrites(Vec<PullWrite>);

pub(super) struct PullWrite {
    pub(super) entry: OutboxEntry,
    /// `None` if a newer version stored it.
    pub(super) write: Option<Write>,
}

impl PullWrite {
    fn new(entry: OutboxEntry) -> Self {
        Self { write: Write::of_entry(&entry), entry }
    }

    fn body(&self) -> Option<&str> {
        match self.write.as_ref()? {
            Write::Comment { body } | Write::EditComment { body, .. } => Some(body),
            _ => None,
        }
    }

    fn edits(&self, comment: &str) -> bool {
        matches!(&self.write, Some(Write::EditComment { comment_key, .. }) if comment_key == comment)
    }
}

/// The one comment in the conversation: the status if there are no check runs, or the summary of an earlier version.
pub(super) struct StandingSummary<'a> {
    pub(super) key: &'a str,
    pub(super) text: Option<&'a str>,
    pub(super) last: &'a PullWrite,
}

impl PullWrites {
    pub(super) async fn load(store: &Store, repo: RepoId, number: ItemNumber) -> Result<Self, StoreError> {
        Ok(Self(store.outbox().of_item(repo, number).await?.into_iter().map(PullWrite::new).collect()))
    }

    pub(super) fn note(&mut self, entry: OutboxEntry) {
        match self.0.iter_mut().find(|one| one.entry.id == entry.id) {
            Some(known) => known.entry = entry,
            None => self.0.push(PullWrite::new(entry)),
        }
    }

    pub(super) fn is_another_pending(&self, id: OutboxId) -> bool {
        self.0.iter().any(|one| one.entry.id != id && one.entry.state == OutboxState::Pending)
    }

    pub(super) fn of_origin(&self, origin: WriteOrigin) -> impl DoubleEndedIterator<Item = &PullWrite> {
        self.0.iter().filter(move |one| one.entry.source.origin == origin)
    }

    pub(super) fn of_run(&self, origin: WriteOrigin, run: ReviewId) -> impl DoubleEndedIterator<Item = &PullWrite> {
        self.of_origin(origin).filter(move |one| one.entry.source.record == Some(run.get()))
    }

    /// The check runs of all commits, without refused and failed ones.
    pub(super) fn living_checks(&self) -> impl DoubleEndedIterator<Item = &PullWrite> {
        let is_check = |origin| matches!(origin, WriteOrigin::ReviewCheck | WriteOrigin::ReviewCheckLeft);
        self.0.iter().filter(move |one| is_check(one.entry.source.origin) && one.entry.is_sent_or_pending())
    }

    /// The used keys with this start, numbered from zero: each attempt has its own.
    pub(super) fn tries(&self, begins: &WriteKey) -> impl Iterator<Item = WriteKey> {
        let is_used = move |key: &WriteKey| self.0.iter().any(|one| one.entry.key == key.text);
        (0..=self.0.len()).map(move |number| begins.numbered(number)).take_while(is_used)
    }

    pub(super) fn next_key(&self, begins: &WriteKey) -> WriteKey {
        begins.numbered(self.tries(begins).count())
    }

    /// The comment under a key, and its edits.
    fn about_comment<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a PullWrite> {
        let comment = self.0.iter().filter(move |one| one.entry.key == key);
        comment.chain(self.0.iter().filter(move |one| one.edits(key))).filter(|one| one.entry.is_sent_or_pending())
    }

    /// The status or summary comment of a pull request; `None` if there is none, or if people deleted it.
    pub(super) fn standing_summary(&self) -> Option<StandingSummary<'_>> {
        let is_gone = |comment: &PullWrite| {
            let mut edits = self.0.iter().filter(|one| one.edits(&comment.entry.key));
            edits.any(|edit| edit.entry.reason.as_deref() == Some(COMMENT_GONE))
        };
        let mut comments = self.of_origin(WriteOrigin::ReviewSummary).rev();
        let comment = comments.find(|comment| comment.entry.is_sent_or_pending() && !is_gone(comment))?;
        let last = self.about_comment(&comment.entry.key).last()?;
        Some(StandingSummary { key: &comment.entry.key, text: last.body(), last })
    }

    /// The text of that comment after the last completed review.
    pub(super) fn last_reviews_summary(&self) -> Option<&str> {
        let standing = self.standing_summary()?;
        let of_reviews = self
            .about_comment(standing.key)
            .filter(|one| matches!(WriteSubject::of(&one.entry), Some(WriteSubject::Run(_))));
        of_reviews.filter_map(PullWrite::body).last()
    }
}
