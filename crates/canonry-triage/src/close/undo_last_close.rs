//! Undoes Canonry's last close of an item when a person asks for it on the item.

use canonry_boxed::boxed;
use canonry_config::RepoConfig;
use canonry_domain::{ItemNumber, ItemState, ItemType, Login, UndoReason};
use canonry_github::GitHub;
use canonry_github::outbox::Outbox;
use canonry_store::{CloseRunId, ObjectionKind, OutboxState, Repo, Store, StoreError};

use crate::close::close_report::RowResult;
use crate::close::close_writes::{ClosingError, RowItem, close_key};
use crate::close::objections::Objections;
use crate::close::undo_close::{ALREADY_OPEN, UndoError, UndoOptions, undo_close};
use crate::grace::begin_grace::GraceError;
use crate::grace::cancel_grace::is_closing;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoneLast {
    Reopened,
    AlreadyOpen,
    NotOurs,
    /// Canonry never closed the item.
    Nothing,
    /// It has begun, and continues when it is requested again.
    Pending(String),
    Failed(String),
}

/// Undoes the last close of an item, if it is Canonry's and still the last one. The request counts as an objection,
/// and too many objections trip the breaker. This also works in a paused repository.
#[expect(clippy::too_many_arguments, reason = "where, what, who and why; each is another thing")]
#[boxed]
pub async fn undo_last_close(
    store: &Store,
    github: &GitHub,
    outbox: &Outbox,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    by: &Login,
    reason: UndoReason,
    handle: &str,
) -> Result<UndoneLast, UndoError> {
    let Some(plan) = last_plan(store, repo, item_type, number).await? else { return Ok(UndoneLast::Nothing) };
    let config = RepoConfig::default();
    let note = format!("Requested by {by}.");
    let run_id = format!("asked-by-{by}-{}", github.now());
    let options = UndoOptions {
        run: plan,
        item: Some(number),
        reason,
        note: Some(&note),
        by: Some(by),
        config: &config,
        run_id: &run_id,
        most_rows: None,
    };
    let report = match undo_close(store, github, outbox, repo, options, &mut |_| {}).await {
        Ok(report) => report,
        Err(UndoError::NothingToUndo(_)) => {
            // A close without a clear answer from GitHub is not finished, and may have happened.
            let close = store.outbox().of_key(&close_key(plan, RowItem { item_type, number }).text).await?;
            let pending = close.filter(|close| close.state == OutboxState::Pending);
            return Ok(
                pending.map_or(UndoneLast::Nothing, |_| UndoneLast::Pending("its close is not finished".to_owned()))
            );
        }
        Err(error) => return Err(error),
    };
    let row = report.rows.into_iter().find(|row| row.item_type == item_type && row.number == number);
    let Some(row) = row else { return Ok(UndoneLast::Nothing) };
    let words = row.reason.unwrap_or_default();
    let undone = match row.result {
        RowResult::Applied => UndoneLast::Reopened,
        // It was undone before, and another account has closed it since.
        RowResult::AlreadyUndone if !is_open(store, repo, item_type, number).await? => return Ok(UndoneLast::NotOurs),
        RowResult::AlreadyUndone | RowResult::AlreadyApplied => UndoneLast::AlreadyOpen,
        RowResult::Skipped if words == ALREADY_OPEN => UndoneLast::AlreadyOpen,
        RowResult::Skipped => return Ok(UndoneLast::NotOurs),
        RowResult::Pending => return Ok(UndoneLast::Pending(words)),
        RowResult::Failed => return Ok(UndoneLast::Failed(words)),
    };
    let kind = match reason {
        UndoReason::NotDuplicate => ObjectionKind::NotADuplicate,
        UndoReason::WrongTarget | UndoReason::Other => ObjectionKind::Undone,
    };
    let objections = Objections { store, outbox: Some(outbox), repo, handle };
    match objections.object(item_type, number, kind, Some(by), github.now()).await {
        Ok(_) => Ok(undone),
        Err(GraceError::Store(error)) => Err(error.into()),
        Err(GraceError::Outbox(error)) => Err(error.into()),
    }
}

/// The stored state: our undo records the item as open, and each later webhook updates it.
async fn is_open(store: &Store, repo: &Repo, item_type: ItemType, number: ItemNumber) -> Result<bool, StoreError> {
    let item = store.corpus().item(repo.id, item_type, number).await?;
    Ok(item.is_none_or(|item| item.state == ItemState::Open))
}

/// The plan of the last close, or of a close in progress.
async fn last_plan(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<Option<CloseRunId>, ClosingError> {
    if let Some(grace) = store.close().waiting_grace(repo.id, item_type, number).await?
        && is_closing(store, &grace).await?
    {
        return Ok(grace.plan);
    }
    let closes = store.plans().applied_closes(repo.id, item_type).await?;
    Ok(closes.iter().rfind(|close| close.number == number).map(|close| close.plan_id))
}
