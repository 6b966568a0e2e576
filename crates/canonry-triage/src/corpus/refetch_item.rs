//! Asking GitHub how an item is, where what is known and what was told cannot be put in order.

use canonry_boxed::boxed;
use canonry_domain::{Item, ItemNumber, ItemType, RecordChange};
use canonry_github::{GitHub, GitHubError, item_from_issue};
use canonry_store::{Repo, Store};

use crate::close::live_item::is_gone;
use crate::corpus::sync::SyncError;

/// Whoever loses to others so often in a row may leave it to them: each of their words is as new.
pub(crate) const FETCHES: usize = 4;

/// Asks GitHub about one item and takes the answer in, again when somebody else has stored something meanwhile. The item
/// as it is stored then and what the answer did, or `None` when the item is no longer in the repository.
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
        // Read before the question, so that only what is told after it can be later than the answer.
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

/// A number that no item can have: the answer is not to be trusted.
pub(crate) fn not_an_item(error: &canonry_domain::InvalidNumber) -> GitHubError {
    GitHubError::BadAnswer { what: "an item".to_owned(), detail: error.to_string() }
}
