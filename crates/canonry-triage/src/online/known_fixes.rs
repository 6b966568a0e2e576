//! Finds the pull requests that say that they fix an issue, without what was reverted.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{ChangeText, FixBase, FixingPull, Item, ItemNumber, changes_in_place};
use canonry_store::{Repo, Store, StoreError};
use jiff::Timestamp;

/// Pull requests that are read at once.
const PAGE: u32 = 200;

/// The pull requests that say that they fix one of these issues, and are open or were not reverted.
pub(crate) async fn fixes_of(
    store: &Store,
    repo: &Repo,
    issues: BTreeSet<ItemNumber>,
) -> Result<Vec<FixingPull>, StoreError> {
    let mut fixes: BTreeMap<ItemNumber, Item> = BTreeMap::new();
    for issue in issues {
        let mut after = None;
        loop {
            let pulls = store.corpus().pulls_mentioning(repo.id, issue, after, PAGE).await?;
            let Some(last) = pulls.last() else { break };
            after = Some(last.number);
            let says_so = |pull: &Item| change_text(repo, pull).fixed_issues().contains(&issue);
            fixes.extend(pulls.into_iter().filter(says_so).map(|pull| (pull.number, pull)));
        }
    }
    let default_branch = store.repos().default_branch(repo.id).await?;
    let reverted = reverted_among(store, repo, fixes.values(), default_branch.as_deref()).await?;
    fixes.retain(|number, _| !reverted.contains(number));
    Ok(fixes.values().map(|pull| FixingPull::new(pull, default_branch.as_deref())).collect())
}

/// Which of these pull requests later ones reverted, and nothing put back.
pub(crate) async fn reverted_among(
    store: &Store,
    repo: &Repo,
    pulls: impl Iterator<Item = &Item> + Send,
    default_branch: Option<&str>,
) -> Result<BTreeSet<ItemNumber>, StoreError> {
    let mut merged: BTreeMap<ItemNumber, Item> =
        pulls.filter(|pull| pull.merged).map(|pull| (pull.number, pull.clone())).collect();
    let Some(since) = merged.values().map(|pull| pull.closed_at.unwrap_or(Timestamp::UNIX_EPOCH)).min() else {
        return Ok(BTreeSet::new());
    };
    let mut after = None;
    loop {
        let reverts = store.corpus().reverts_since(repo.id, since, after, PAGE).await?;
        let Some(last) = reverts.last() else { break };
        after = Some(last.number);
        // What is reverted on a release branch is still on the default branch.
        let is_here = |pull: &Item| FixBase::of(pull.base_branch.as_deref(), default_branch) != FixBase::AnotherBranch;
        merged.extend(reverts.into_iter().filter(is_here).map(|pull| (pull.number, pull)));
    }
    let mut merged: Vec<Item> = merged.into_values().collect();
    merged.sort_by_key(|pull| (pull.closed_at, pull.number));
    let texts: Vec<ChangeText> = merged.iter().map(|pull| change_text(repo, pull)).collect();
    let in_place = changes_in_place(&texts);
    Ok(merged.iter().zip(in_place).filter(|(_, in_place)| !in_place).map(|(pull, _)| pull.number).collect())
}

/// Whether a merged pull request was reverted, and not put back.
pub(crate) async fn is_reverted(store: &Store, repo: &Repo, pull: &Item) -> Result<bool, StoreError> {
    let default_branch = store.repos().default_branch(repo.id).await?;
    let reverted = reverted_among(store, repo, std::iter::once(pull), default_branch.as_deref()).await?;
    Ok(reverted.contains(&pull.number))
}

/// Whether a pull request only takes another one back.
pub(crate) fn is_revert(repo: &Repo, pull: &Item) -> bool {
    // Most titles say nothing of that, and reading a body takes time.
    pull.title.to_lowercase().contains("revert") && change_text(repo, pull).is_revert()
}

pub(crate) fn change_text(repo: &Repo, pull: &Item) -> ChangeText {
    ChangeText::of_pull(&repo.name, pull.number, &pull.title, &pull.body)
}
