//! Keeps comments that name other items correct: the back-link on a canonical item, and the closing comments of
//! duplicates whose canonical item is itself closed as a duplicate.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{
    ItemNumber, ItemState, ItemType, WriteKey, WriteKind, WriteOrigin, back_link_comment, repointed_comment,
};
use canonry_github::outbox::Write;
use canonry_store::{AppliedClose, CloseRunId, OutboxEntry, OutboxState};
use sha2::{Digest, Sha256};

use crate::close::close_recheck::NoClose;
use crate::close::close_writes::{CloseContext, ClosingError, RowItem, WriteEnd, close_key};
use crate::online::posted_triage::said_by;

/// Updates comments on other items after `moved` were closed as duplicates of `canonical`, or were reopened: the
/// back-link on the canonical item, and the closing comments of everything that was closed as a duplicate of `moved`
/// before.
///
/// Reads only the store to find what to send. Returns a description of each write and how it ended.
pub(crate) async fn relink(
    closing: CloseContext<'_>,
    run: CloseRunId,
    canonical: RowItem,
    moved: &[ItemNumber],
) -> Result<Vec<(String, WriteEnd)>, ClosingError> {
    StandingCloses::read(closing, canonical.item_type).await?.relink(closing, run, canonical, moved).await
}

/// The closes of ours that stand: neither undone nor objected to, and the item is still closed as far as is known.
pub(crate) struct StandingCloses {
    closes: BTreeMap<ItemNumber, AppliedClose>,
}

impl StandingCloses {
    pub(crate) async fn read(closing: CloseContext<'_>, item_type: ItemType) -> Result<Self, ClosingError> {
        let all = closing.store.plans().applied_closes(closing.repo.id, item_type).await?;
        let standing = all.into_iter().filter(|close| close.undone_at.is_none() && !close.objected);
        // If an item was closed several times, the last close counts.
        let mut closes: BTreeMap<ItemNumber, AppliedClose> = standing.map(|close| (close.number, close)).collect();
        let numbers: Vec<ItemNumber> = closes.keys().copied().collect();
        let items = closing.store.corpus().items_by_number(closing.repo.id, item_type, &numbers).await?;
        let closed: BTreeSet<ItemNumber> =
            items.iter().filter(|item| item.state == ItemState::Closed).map(|item| item.number).collect();
        closes.retain(|number, _| closed.contains(number));
        Ok(Self { closes })
    }

    /// Like [`relink`], for a caller that has already read the closes. They are the same for every canonical item as
    /// long as nothing is closed or reopened.
    pub(crate) async fn relink(
        &self,
        closing: CloseContext<'_>,
        run: CloseRunId,
        canonical: RowItem,
        moved: &[ItemNumber],
    ) -> Result<Vec<(String, WriteEnd)>, ClosingError> {
        let mut sent = Vec::new();
        if let Some(ended) = self.update_back_link(closing, run, canonical).await? {
            sent.push((format!("the back-link on #{}", canonical.number), ended));
        }
        let earlier: Vec<_> = moved.iter().flat_map(|number| self.pointing_at(*number)).collect();
        for earlier in earlier {
            if let Some(ended) = self.point(closing, run, canonical.item_type, earlier).await? {
                sent.push((format!("the new target on #{}", earlier.number), ended));
            }
        }
        Ok(sent)
    }

    /// Updates or writes the one comment on a canonical item that lists its duplicates. `None` if nothing had to be
    /// sent.
    async fn update_back_link(
        &self,
        closing: CloseContext<'_>,
        run: CloseRunId,
        canonical: RowItem,
    ) -> Result<Option<WriteEnd>, ClosingError> {
        let duplicates = self.duplicates_of(canonical.number);
        let entries = closing.store.outbox().of_item(closing.repo.id, canonical.number).await?;
        let RowItem { item_type, number } = canonical;
        let base = WriteKey::of_item(WriteOrigin::BackLink, closing.repo.id.get(), item_type, number);
        let of_this_run = base.clone().and(run);
        let body = back_link_comment(canonical.item_type, &duplicates);
        let ours = |entry: &&OutboxEntry| {
            entry.kind == WriteKind::Comment
                && entry.source.origin == WriteOrigin::BackLink
                && entry.source.item_type == Some(item_type)
                && entry.is_sent_or_pending()
        };
        if let Some(home) = entries.iter().rev().find(ours) {
            let comment = OutboxComment { on: canonical.number, key: &home.key, entries: &entries };
            return comment.must_say(closing, &body, of_this_run).await;
        }
        if duplicates.is_empty() {
            return Ok(None);
        }
        // The next run retries a write that GitHub refused, such as a comment on a locked item.
        let key = if entries.iter().any(|entry| entry.key == base.text) { of_this_run } else { base };
        if let Some(refused) = entries.iter().find(|entry| entry.key == key.text) {
            return Ok(Some(WriteEnd::of(refused)));
        }
        Ok(Some(closing.write(canonical.number, &key, Write::Comment { body }).await?))
    }

    /// Makes the closing comment of an earlier duplicate name its current canonical item.
    async fn point(
        &self,
        closing: CloseContext<'_>,
        run: CloseRunId,
        item_type: ItemType,
        earlier: &AppliedClose,
    ) -> Result<Option<WriteEnd>, ClosingError> {
        let number = earlier.number;
        let key = close_key(earlier.plan_id, RowItem { item_type, number }).text;
        let entries = closing.store.outbox().of_item(closing.repo.id, number).await?;
        let said = entries.iter().find(|entry| entry.key == key).and_then(said_by);
        let Some(said) = said else { return Ok(None) };
        let canonical = self.canonical_of(number);
        let body = match canonical == earlier.target {
            true => said,
            false => repointed_comment(item_type, earlier.target, canonical),
        };
        let comment = OutboxComment { on: number, key: &key, entries: &entries };
        let edit = WriteKey::of_item(WriteOrigin::Repoint, run.get(), item_type, number).with_record(run.get());
        comment.must_say(closing, &body, edit).await
    }

    /// Follows the chain of closes from this item to its last target.
    fn canonical_of(&self, number: ItemNumber) -> ItemNumber {
        let mut seen = BTreeSet::from([number]);
        let mut at = number;
        while let Some(close) = self.closes.get(&at)
            && seen.insert(close.target)
        {
            at = close.target;
        }
        at
    }

    fn duplicates_of(&self, canonical: ItemNumber) -> Vec<ItemNumber> {
        let numbers = self.closes.keys().copied();
        numbers.filter(|number| *number != canonical && self.canonical_of(*number) == canonical).collect()
    }

    /// The closes as duplicates of an item, directly or through other items.
    fn pointing_at(&self, number: ItemNumber) -> Vec<&AppliedClose> {
        // This check is cheap and usually ends the function; the walks below cost far more.
        if !self.closes.values().any(|close| close.target == number) {
            return Vec::new();
        }
        let leads_there = |close: &&AppliedClose| {
            let (mut at, mut seen) = (close.number, BTreeSet::new());
            while let Some(next) = self.closes.get(&at)
                && seen.insert(at)
            {
                if next.target == number {
                    return true;
                }
                at = next.target;
            }
            false
        };
        self.closes.values().filter(leads_there).collect()
    }
}

/// A comment in the outbox, and all outbox entries of its item.
struct OutboxComment<'a> {
    on: ItemNumber,
    key: &'a str,
    entries: &'a [OutboxEntry],
}

impl OutboxComment<'_> {
    /// Edits the comment unless the last entry about it already has this text. The key of the edit is `edit` followed
    /// by a hash of the text, since one run may have to change a comment several times.
    async fn must_say(
        &self,
        closing: CloseContext<'_>,
        body: &str,
        edit: WriteKey,
    ) -> Result<Option<WriteEnd>, ClosingError> {
        let about = |entry: &&OutboxEntry| {
            let is_about = entry.key == self.key || edited_comment(entry).as_deref() == Some(self.key);
            is_about && entry.is_sent_or_pending()
        };
        let last = self.entries.iter().rev().find(about);
        let key = edit.and(fingerprint(body));
        match last {
            Some(last) if said_by(last).as_deref() == Some(body) => match last.state {
                OutboxState::Pending => {
                    let entry = closing.outbox.publish(last.id, &NoClose(closing)).await?;
                    Ok(Some(WriteEnd::of(&entry)))
                }
                _ => Ok(None),
            },
            _ => {
                let write = Write::EditComment { comment_key: self.key.to_owned(), body: body.to_owned() };
                Ok(Some(closing.write(self.on, &key, write).await?))
            }
        }
    }
}

fn edited_comment(entry: &OutboxEntry) -> Option<String> {
    match Write::of_entry(entry)? {
        Write::EditComment { comment_key, .. } => Some(comment_key),
        _ => None,
    }
}

fn fingerprint(text: &str) -> String {
    canonry_domain::hex_digits(&Sha256::digest(text)[..8])
}
