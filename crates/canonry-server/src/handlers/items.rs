//! Items as webhooks tell of them, taken into the corpus.

use canonry_domain::{Gone, Item, ItemNumber, ItemRecord, OutcomeEvent};
use canonry_github::{GitHubError, item_from_issue};
use canonry_store::Repo;

use super::webhook::Webhook;
use crate::handler::{Handled, JobError};

/// Takes in what a webhook says about an item; the item as it is now, or none when it has left the repository.
///
/// A record that is older than what is known changes nothing: the store sees to that. One of the same second may be
/// either ("close with comment" is two webhooks of one second, in any order), so that GitHub is asked. An item that was
/// deleted or moved comes back only by a record that is newer than its leaving, because a webhook may be delivered again
/// after it.
pub(super) async fn take_item(hook: Webhook<'_>, repo: &Repo, record: ItemRecord) -> Result<Option<Item>, JobError> {
    let store = hook.service.store();
    let (item_type, number) = (record.item_type, record.number);
    let record = match store.item(repo.id, item_type, number).await? {
        Some(known) if known.gone.is_some() && record.updated_at <= known.last_synced_at => return Ok(None),
        Some(known) if known.gone.is_none() && cannot_be_ordered(&known, &record) => {
            match of_the_same_second(hook, repo, record).await? {
                Some(record) => record,
                None => return Ok(None),
            }
        }
        _ => record,
    };
    store.take_in(repo, vec![record], hook.service.now()).await?;
    Ok(store.item(repo.id, item_type, number).await?.filter(|item| item.gone.is_none()))
}

/// Whether a record tells something else than what is known, at the same time: GitHub's times are whole seconds.
fn cannot_be_ordered(known: &Item, record: &ItemRecord) -> bool {
    let differs = record.state.is_some_and(|state| state != known.state)
        || record.title != known.title
        || record.body.as_ref().is_some_and(|body| *body != known.body)
        || record.labels.as_ref().is_some_and(|labels| *labels != known.labels);
    record.updated_at.is_some() && record.updated_at == known.updated_at && differs
}

/// What GitHub says now instead of a record that cannot be ordered; none when the item has left. When nobody can be
/// asked, only a webhook about the state itself changes the state.
async fn of_the_same_second(
    hook: Webhook<'_>,
    repo: &Repo,
    record: ItemRecord,
) -> Result<Option<ItemRecord>, JobError> {
    let Some(github) = hook.service.github() else {
        let is_about_state = matches!(hook.action(), "closed" | "reopened");
        let silent = ItemRecord { state: None, state_reason: None, closed_at: None, ..record.clone() };
        return Ok(Some(if is_about_state { record } else { silent }));
    };
    match github.issue(&repo.name, record.number).await {
        Ok(issue) => Ok(Some(item_from_issue(&issue, hook.service.now()).unwrap_or(record))),
        Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// An item that left the repository: its history stays, and nothing is compared with it any more.
pub(super) async fn leave(hook: Webhook<'_>, repo: &Repo, record: ItemRecord, gone: Gone) -> Result<Handled, JobError> {
    let number: ItemNumber = record.number;
    take_item(hook, repo, record).await?;
    hook.service.store().mark_gone(repo.id, number, gone, hook.service.now()).await?;
    Ok(Handled::Done)
}

/// Adds what people did with an issue to the log, and learns from it.
pub(super) async fn learn(hook: Webhook<'_>, repo: &Repo, event: Option<OutcomeEvent>) -> Result<(), JobError> {
    let Some(event) = event else { return Ok(()) };
    hook.service.store().record_outcome_events(repo.id, &[event], hook.service.now()).await?;
    Ok(())
}

/// A number that no item can have.
pub(super) fn no_item() -> Handled {
    Handled::ignored("it names no item")
}
