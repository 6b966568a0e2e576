//! Fetches an item from GitHub if the order of stored and reported changes is unknown.

use canonry_boxed::boxed;
use canonry_domain::{Item, ItemNumber, ItemType, RecordChange};
use canonry_github::{GitHub, GitHubError, item_from_issue};
use canonry_store::{Repo, Store};

use crate::close::live_item::is_gone;
use crate::corpus::sync::SyncError;

/// A process that loses to other writers this often in a row may stop: their data is as new as its own.
pub(crate) const FETCHES: usize = 4;

/// Fetches one item from GitHub and upserts the answer. Repeats this if another process stored something meanwhile.
/// Returns the stored item and what the answer changed, or `None` if the item is no longer in the repository.
#[boxed]
pub async fn refetch_item(
    store: &Store,
    github: &GitHub,
    repo: &Repo,
    item_type: ItemType,
    number: ItemNumber,
) -> Result<Option<(Item, RecordChange)>, SyncError> {
    let mut stored = None;
    for _ in 0..FETCHES {
        // Read before the request, so that only data that arrives after it can be newer than the answer.
        let seen = store.corpus().item(repo.id, item_type, number).await?;
        let issue = match github.issue(&repo.name, number).await {
            Ok(issue) => issue,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let answer = item_from_issue(&issue, github.now()).map_err(|error| not_an_item(&error))?;
        let (item, change) = store.corpus().upsert_fetched_item(repo, seen.as_ref(), answer, github.now()).await?;
        stored = Some((item, change));
        if change != RecordChange::Unordered {
            break;
        }
    }
    Ok(stored)
}

/// No item can have this number, so the answer cannot be trusted.
pub(crate) fn not_an_item(error: &canonry_domain::InvalidNumber) -> GitHubError {
    GitHubError::BadAnswer { what: "an item".to_owned(), detail: error.to_string() }
}
