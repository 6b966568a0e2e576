//! Begins a grace period: after the comment that announces a close is on GitHub, or by a maintainer's ruling.

use canonry_boxed::boxed;
use canonry_domain::{
    ActionReason, GraceEnd, ItemNumber, ItemType, Login, WriteOrigin, cancelled_close_text, corrected_announcement,
};
use canonry_github::outbox::{Outbox, OutboxError, Receipt, Write};
use canonry_store::{NewGrace, OutboxEntry, OutboxState, Repo, Store, StoreError, TriageActionKind};
use jiff::{SignedDuration, Timestamp};

use crate::grace::cancel_grace::cancel_grace;
use crate::online::posted_triage::{TriageKeys, said_by};

/// For how long we check whether the comment of an announced close is on GitHub: a comment that was not posted by
/// then never will be.
const LOOKED_FOR: SignedDuration = SignedDuration::from_hours(30 * 24);

/// Why an operation on a grace period failed. It is safe to repeat it.
#[derive(Debug, thiserror::Error)]
pub enum GraceError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Outbox(#[from] OutboxError),
}

/// The result of a maintainer's ruling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraceStart {
    Yes,
    Already,
    ItemUnknown,
}

/// Begins the grace period of an item whose last suggestion announced a close, as soon as that comment is on GitHub.
/// `false` if there is nothing to begin. The time always runs from when the comment was written, no matter when or by
/// which process it is found. An announcement that was sent late is edited to name the real end.
pub(crate) async fn begin_announced_grace(
    store: &Store,
    outbox: Option<&Outbox>,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<bool, GraceError> {
    let actions = store.duplicates().triage_actions_of(repo.id, item_type, number).await?;
    let said = actions.iter().map(|stored| &stored.action).find(|action| action.action != TriageActionKind::Recorded);
    let Some((action, &ActionReason::Announced { hours })) = said.map(|action| (action, &action.reason)) else {
        return Ok(false);
    };
    // GitHub notifies nobody of an edit, so only a new comment announces.
    let entry = match action.comment_key.as_deref().filter(|_| action.action == TriageActionKind::Commented) {
        Some(key) => store.outbox().of_key(key).await?,
        None => None,
    };
    let Some(entry) = entry.filter(|entry| entry.state == OutboxState::Sent) else { return Ok(false) };
    // The rules may have changed between the decision and the comment.
    let announced = said_by(&entry).filter(|text| cancelled_close_text(text, "").is_some());
    let Some(announced) = announced else { return Ok(false) };
    let records = store.duplicates().triage_records_of(repo.id, item_type, number).await?;
    let record = records.iter().find(|record| record.id == action.triage_id);
    let Some((record, target)) = record.and_then(|record| Some((record, record.record.target?))) else {
        return Ok(false);
    };
    let began_at = written_at(&entry).unwrap_or(entry.updated_at);
    let due_at = began_at + SignedDuration::from_hours(i64::from(hours));
    if let (Some(outbox), Some(body)) = (outbox, corrected_announcement(&announced, due_at)) {
        let key = TriageKeys { repo: repo.id, item_type, number }.key(WriteOrigin::TriageEdit, action.triage_id);
        let edit = Write::EditComment { comment_key: entry.key.clone(), body };
        outbox.enqueue_correction(repo.id, number, &key, edit).await?;
    }
    let new = NewGrace {
        item_type,
        number,
        target,
        triage_id: Some(action.triage_id),
        comment_key: action.comment_key.as_deref(),
        approved_by: None,
        content_version: record.record.content_version,
        began_at,
        due_at,
    };
    Ok(store.close().begin_grace(repo.id, &new).await?)
}

/// When GitHub wrote the comment: people's time to object runs by its clock, not by ours.
fn written_at(entry: &OutboxEntry) -> Option<Timestamp> {
    Receipt::of_entry(entry)?.comment?.created_at
}

/// Begins every grace period whose announcement has been written since the last call.
#[boxed]
pub async fn begin_announced_graces(store: &Store, outbox: Option<&Outbox>, now: Timestamp) -> Result<u64, GraceError> {
    let mut begun = 0;
    for announced in store.close().announced_without_grace(now - LOOKED_FOR).await? {
        let (repo, item_type, number) = (&announced.repo, announced.item_type, announced.number);
        let is_begun = begin_announced_grace(store, outbox, repo, item_type, number).await?;
        begun += u64::from(is_begun);
    }
    Ok(begun)
}

/// Has an item closed because a maintainer ruled that it is a duplicate: the next sweep closes it, with every check.
/// The ruling itself must be stored before.
#[expect(clippy::too_many_arguments, reason = "where, which pair, who and when; each is another thing")]
#[boxed]
pub async fn begin_grace_by_ruling(
    store: &Store,
    outbox: Option<&Outbox>,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    target: ItemNumber,
    by: &Login,
    now: Timestamp,
) -> Result<GraceStart, GraceError> {
    let item = store.corpus().item(repo.id, item_type, number).await?;
    let (Some(item), Some(_)) = (item, store.corpus().item(repo.id, item_type, target).await?) else {
        return Ok(GraceStart::ItemUnknown);
    };
    cancel_grace(store, outbox, repo, item_type, number, GraceEnd::Superseded, now).await?;
    let new = NewGrace {
        item_type,
        number,
        target,
        triage_id: None,
        comment_key: None,
        approved_by: Some(by),
        content_version: item.content_version,
        began_at: now,
        due_at: now,
    };
    Ok(if store.close().begin_grace(repo.id, &new).await? { GraceStart::Yes } else { GraceStart::Already })
}
