//! Ends a grace period without a close, and edits its comment to say why.

use canonry_boxed::boxed;
use canonry_domain::{
    GateReason, GithubId, GraceEnd, ItemNumber, ItemType, RowRefusal, SkipReason, WriteKey, WriteOrigin,
    cancelled_close_text, left_open_text,
};
use canonry_github::outbox::{Outbox, Write};
use canonry_store::{CloseRunId, Grace, GraceState, Repo, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::close::close_refusal::{CloseRefusal, RefusalCause};
use crate::close::close_writes::has_close_begun;
use crate::grace::begin_grace::{GraceError, begin_announced_grace};
use crate::online::posted_triage::{PostedTriage, TriageKeys};

/// How far back we search for grace periods that ended without an edit of the comment: the process that ended them
/// may have been killed in between.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_hours(48);

/// Ends the grace period of an item, and edits its comment to say that the close is cancelled and why. `false` if
/// none is waiting: it is always safe to call this. A grace period whose close has begun is left to the checks before
/// each of its writes, and one that a maintainer's ruling began ends only for the reasons that end rulings.
#[boxed]
pub async fn cancel_grace(
    store: &Store,
    outbox: Option<&Outbox>,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    end: GraceEnd,
    now: Timestamp,
) -> Result<bool, GraceError> {
    begin_announced_grace(store, None, repo, item_type, number).await?;
    let graces = store.close().graces_of_item(repo.id, item_type, number).await?;
    let Some(latest) = graces.first() else { return Ok(false) };
    let cancelled = latest.state == GraceState::Waiting
        && (latest.approved_by.is_none() || end.ends_ruled())
        && !is_closing(store, latest).await?
        && store.close().end_grace(latest.id, GraceState::Cancelled, Some(end.as_str()), now).await?;
    // The process that ended it may have been killed before it edited the comment.
    if let (Some(outbox), Some(ended)) = (outbox, store.close().grace(latest.id).await?) {
        post_end(store, outbox, &ended).await?;
    }
    if cancelled {
        tracing::info!(repo = %repo.name, number = number.get(), reason = end.as_str(), "a grace is cancelled");
    }
    Ok(cancelled)
}

/// Edits the comments of grace periods that ended recently, if they do not say so yet.
#[boxed]
pub async fn post_ended_graces(store: &Store, outbox: &Outbox, now: Timestamp) -> Result<(), GraceError> {
    for grace in store.close().graces_ended_since(now - TOLD_WITHIN).await? {
        post_end(store, outbox, &grace).await?;
    }
    Ok(())
}

/// Whether the close itself has begun: the process that applies it then checks each write.
#[boxed]
pub async fn is_closing(store: &Store, grace: &Grace) -> Result<bool, StoreError> {
    match grace.plan {
        Some(plan) => has_begun(store, grace, plan).await,
        None => Ok(false),
    }
}

/// Like `is_closing`, for a plan that the grace period may just have got.
pub(crate) async fn has_begun(store: &Store, grace: &Grace, plan: CloseRunId) -> Result<bool, StoreError> {
    has_close_begun(store, plan, grace.item_type, grace.number).await
}

/// Edits the comment that announced the close, if it still does. If a maintainer's ruling began the grace period,
/// they get a reply.
pub(crate) async fn post_end(store: &Store, outbox: &Outbox, grace: &Grace) -> Result<(), GraceError> {
    if !matches!(grace.state, GraceState::Cancelled | GraceState::Refused) {
        return Ok(());
    }
    let Some(comment_key) = &grace.comment_key else { return reply_to_maintainer(outbox, grace).await };
    let keys = TriageKeys { repo: grace.repo.id, item_type: grace.item_type, number: grace.number };
    let entries = store.outbox().of_item(grace.repo.id, grace.number).await?;
    let standing = PostedTriage::read(&entries).standing.filter(|standing| standing.key == *comment_key);
    let Some(body) = standing
        .and_then(|standing| cancelled_close_text(&standing.text?, why(grace.reason.as_deref().unwrap_or_default())))
    else {
        return Ok(());
    };
    let edit = Write::EditComment { comment_key: comment_key.clone(), body };
    outbox
        .enqueue_correction(grace.repo.id, grace.number, &keys.key(WriteOrigin::GraceCancelled, grace.id), edit)
        .await?;
    Ok(())
}

/// Posts one reply, once: the maintainer was promised that the item would be closed soon.
async fn reply_to_maintainer(outbox: &Outbox, grace: &Grace) -> Result<(), GraceError> {
    let end = grace.reason.as_deref().and_then(|reason| reason.parse::<GraceEnd>().ok());
    if grace.approved_by.is_none() || end.is_some_and(|end| !end.is_news_to_maintainer()) {
        return Ok(());
    }
    let repo = grace.repo.github_id.unwrap_or(GithubId(grace.repo.id.get()));
    let key = WriteKey::on_github(WriteOrigin::RulingAnswer, repo, grace.number, grace.id).with_record(grace.id);
    let body = left_open_text(why(grace.reason.as_deref().unwrap_or_default()));
    outbox.enqueue(grace.repo.id, grace.number, &key, Write::Comment { body }).await?;
    Ok(())
}

/// The reason as the comment on the item gives it. Reasons that only maintainers would understand appear only in the
/// logs.
pub(crate) fn why(reason: &str) -> &'static str {
    if let Ok(end) = reason.parse::<GraceEnd>() {
        return end.in_words();
    }
    if let Some(objection) = reason.parse::<GateReason>().ok().and_then(|reason| reason.objection_in_words()) {
        return objection;
    }
    match CloseRefusal::of(reason).cause {
        RefusalCause::Rule(RowRefusal::Skip(
            skip @ (SkipReason::MaintainerAuthor
            | SkipReason::MaintainerAssignee
            | SkipReason::InProgress
            | SkipReason::Pinned
            | SkipReason::Locked
            | SkipReason::ProtectedLabel
            | SkipReason::HumanReopened
            | SkipReason::ConflictingOverride),
        )) => skip.in_words(),
        RefusalCause::Rule(RowRefusal::Skip(SkipReason::UnsafeTarget)) => {
            "the other item is not open, or is a duplicate itself"
        }
        RefusalCause::Rule(RowRefusal::Drift(drift)) => drift.in_words(),
        RefusalCause::Withdrawn => "a maintainer decided about it",
        RefusalCause::GitHub => "GitHub refused the close",
        RefusalCause::Rule(RowRefusal::Skip(_) | RowRefusal::Grace(_)) | RefusalCause::Gate => {
            "a recheck was not sure enough"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::why;

    #[test]
    fn what_is_told_is_what_happened() {
        let told = [
            ("human_commented", "somebody commented"),
            ("maintainer_author", "a maintainer wrote it"),
            ("model_not_duplicate", "a recheck was not sure enough"),
            ("low_confidence", "a recheck was not sure enough"),
            ("no_shared_evidence", "the two texts share no error, stack frame or name in code"),
            ("unsafe_target", "the other item is not open, or is a duplicate itself"),
            ("drift:label_added", "a label was added"),
            ("drift:target_edited", "the text of the item that stays open was edited"),
            ("withdrawn: plan 9 came after it", "a maintainer decided about it"),
            ("GitHub answered 403: Resource not accessible by integration", "GitHub refused the close"),
        ];
        for (reason, words) in told {
            assert_eq!(why(reason), words, "{reason}");
        }
    }
}
