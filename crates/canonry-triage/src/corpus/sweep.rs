//! `sync --sweep`: finds items that left the repository, which no list of changes shows.

use canonry_boxed::boxed;
use std::collections::HashSet;

use canonry_domain::{GoneReason, ItemNumber, ItemType, RepoName};
use canonry_github::api::{IssueQuery, ListState};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{Repo, Store, SyncProgress};

use crate::corpus::identify::{identify, remember};
use crate::corpus::refetch_item::refetch_item;
use crate::corpus::sync::SyncError;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepReport {
    pub checked: u64,
    pub gone: Vec<(ItemNumber, GoneReason)>,
    /// Items that were marked as gone and exist again.
    pub back: Vec<ItemNumber>,
}

/// Lists the numbers that exist on GitHub and fetches each stored item that is not among them. Only the response for
/// the item itself marks it as gone: a list may lag behind.
#[boxed]
pub async fn sweep(
    store: &Store,
    github: &GitHub,
    asked: &RepoName,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<SweepReport, SyncError> {
    let identified = identify(store, github, asked).await?;
    let repo = remember(store, asked, &identified, github.now()).await?;
    let stored = store.corpus().item_numbers(repo.id).await?;
    let mut listed = HashSet::new();
    let mut pages = github.issues(&repo.name, IssueQuery { state: ListState::All, since: None });
    while let Some(page) = pages.next().await? {
        listed.extend(page.items.iter().map(|issue| issue.number));
        progress(listed.len() as u64);
    }
    let mut report = SweepReport { checked: stored.len() as u64, ..SweepReport::default() };
    for (number, item_type) in stored {
        // If issues are disabled, GitHub says for each issue that it is gone, but means the feature.
        let hidden = item_type == ItemType::Issue && !identified.has_issues;
        if hidden || listed.contains(&number.get()) {
            continue;
        }
        if let Some(gone) = what_became_of(github, &repo, number).await? {
            store.corpus().mark_gone(repo.id, number, gone, github.now()).await?;
            report.gone.push((number, gone));
        }
    }
    for number in store.corpus().gone_numbers(repo.id).await? {
        // It may have left after the list was read.
        if listed.contains(&number.get()) && what_became_of(github, &repo, number).await?.is_none() {
            for item_type in [ItemType::Issue, ItemType::Pr] {
                // In GitHub Actions its text was deleted meanwhile.
                if store.corpus().item(repo.id, item_type, number).await?.is_some_and(|item| item.title.is_empty()) {
                    refetch_item(store, github, &repo, item_type, number).await?;
                }
            }
            store.corpus().mark_back(repo.id, number, github.now()).await?;
            report.back.push(number);
        }
    }
    let known = store.corpus().sync_progress(repo.id).await?;
    store.corpus().write_sync_progress(repo.id, &SyncProgress { swept_at: Some(github.now()), ..known }).await?;
    Ok(report)
}

async fn what_became_of(github: &GitHub, repo: &Repo, number: ItemNumber) -> Result<Option<GoneReason>, GitHubError> {
    match github.issue(&repo.name, number).await {
        Ok(_) => Ok(None),
        Err(GitHubError::Gone { .. }) => Ok(Some(GoneReason::Deleted)),
        Err(GitHubError::Moved { .. }) => Ok(Some(GoneReason::Transferred)),
        // The repository itself was just read, so this is about the item: it is a discussion now.
        Err(GitHubError::NotFound { .. }) => Ok(Some(GoneReason::Converted)),
        Err(error) => Err(error),
    }
}
