//! Items that no run handled: their event was lost, or the database that knew about them.

use canonry_domain::{ItemNumber, ItemState, ItemType, POSSIBLE_DUPLICATE, RepoName};
use canonry_store::{ItemFilter, Repo, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::jobs::service_job::queue_once;
use crate::jobs::triage_job::TriageJob;

const PAGE: u32 = 500;
/// How old an item may be whose event was lost. A comment on an older one would surprise.
const MISSED_FOR: SignedDuration = SignedDuration::from_hours(72);

/// Queues a triage for each open item that has the label of a suggestion, after the database was lost: announced closes
/// are found by the markers of their comments. Returns the number of items.
pub(crate) async fn queue_lost_suggestions(store: &Store, repo: &RepoName, now: Timestamp) -> Result<u64, StoreError> {
    let Some(repo) = store.repos().find(repo).await? else { return Ok(0) };
    let open = ItemFilter { state: Some(ItemState::Open), ..ItemFilter::default() };
    let (mut queued, mut after) = (0, None);
    loop {
        let page = store.corpus().items_after(repo.id, open, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(queued) };
        after = Some((last.number, last.item_type));
        for item in page.iter().filter(|item| item.labels.iter().any(|label| label == POSSIBLE_DUPLICATE)) {
            queued += u64::from(queue_triage(store, &repo, item.item_type, item.number, now).await?);
        }
    }
}

/// Queues a triage for each new item whose event no run handled, such as that of a run that was cancelled while it
/// waited for the state. Returns the number of items.
pub(crate) async fn queue_missed_items(store: &Store, repo: &RepoName, now: Timestamp) -> Result<u64, StoreError> {
    let Some(repo) = store.repos().find(repo).await? else { return Ok(0) };
    let mut queued = 0;
    for (number, item_type) in store.duplicates().untriaged_since(repo.id, now - MISSED_FOR).await? {
        queued += u64::from(queue_triage(store, &repo, item_type, number, now).await?);
    }
    Ok(queued)
}

async fn queue_triage(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let Some(github_id) = repo.github_id else { return Ok(false) };
    let job = TriageJob { github_id, item_type, number };
    Ok(queue_once(store, &job, Some(&repo.name), now, now).await?.is_some())
}
