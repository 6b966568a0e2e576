//! Upserts items from webhooks into the corpus.

use canonry_domain::{GoneReason, Item, ItemNumber, ItemRecord, OutcomeEvent, RecordChange};
use canonry_store::Repo;
use canonry_triage::refetch_item;

use super::webhook::Webhook;
use crate::jobs::job_handler::JobError;

/// Upserts an item from a webhook. Returns the item as it is now, or `None` if it has left the repository.
///
/// The store ignores a record that is older than the stored one, or that cannot be put in order ("close with comment"
/// sends two webhooks of the same second, in any order). In the second case GitHub is asked.
pub(super) async fn take_item(hook: Webhook<'_>, repo: &Repo, record: ItemRecord) -> Result<Option<Item>, JobError> {
    let (store, now) = (hook.service.store(), hook.service.now());
    let (item, change) = store.corpus().upsert_webhook_item(repo, record.clone(), now).await?;
    let item = match (change, hook.service.github()) {
        (RecordChange::Unordered, Some(github)) => {
            match refetch_item(store, github, repo, item.item_type, item.number).await? {
                None => return Ok(None),
                Some((_, RecordChange::Unordered)) => return Err(told_meanwhile()),
                Some((item, _)) => item,
            }
        }
        (RecordChange::Unordered, None) => take_blindly(hook, repo, &item, record).await?,
        _ => item,
    };
    Ok(Some(item).filter(|item| item.gone.is_none()))
}

fn told_meanwhile() -> JobError {
    JobError::Retry("another delivery about the same item came at the same time".to_owned())
}

/// Upserts a record that cannot be put in order when GitHub cannot be asked: only a webhook about the state itself
/// changes the state.
async fn take_blindly(hook: Webhook<'_>, repo: &Repo, known: &Item, record: ItemRecord) -> Result<Item, JobError> {
    let is_about_state = matches!(hook.action(), "closed" | "reopened");
    let record = match is_about_state {
        true => record,
        false => ItemRecord { state: None, state_reason: None, closed_at: None, ..record },
    };
    match hook.service.store().corpus().upsert_fetched_item(repo, Some(known), record, hook.service.now()).await? {
        (_, RecordChange::Unordered) => Err(told_meanwhile()),
        (item, _) => Ok(item),
    }
}

/// Marks an item that left the repository: its history stays, and nothing is compared with it any more.
pub(super) async fn leave(
    hook: Webhook<'_>,
    repo: &Repo,
    record: ItemRecord,
    gone: GoneReason,
) -> Result<(), JobError> {
    let number: ItemNumber = record.number;
    take_item(hook, repo, record).await?;
    hook.service.store().corpus().mark_gone(repo.id, number, gone, hook.service.now()).await?;
    Ok(())
}

/// Records what people did with an issue, and learns from it.
pub(super) async fn learn(hook: Webhook<'_>, repo: &Repo, event: Option<OutcomeEvent>) -> Result<(), JobError> {
    let Some(event) = event else { return Ok(()) };
    hook.service.store().learning().record_outcome_events(repo.id, &[event], hook.service.now()).await?;
    Ok(())
}

pub(super) fn no_item() -> JobError {
    JobError::ignored("it names no issue or pull request")
}
