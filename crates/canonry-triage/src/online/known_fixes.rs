//! Finds the pull requests that say that they fix an issue, without what was reverted.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{ChangeText, FixBase, FixingPull, Item, ItemNumber, changes_in_place};
use canonry_store::{MergedPullText, Repo, Store, StoreError};
use jiff::Timestamp;

use crate::retrieval::index_upkeep::off_async_threads;

/// Pull requests that are read at once.
const PAGE: u32 = 200;
/// Pull requests whose reverts are searched at once: the query names each of them.
const REVERTED_AT_ONCE: usize = 50;

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
            fixes.extend(fixing(repo, pulls, issue).await.into_iter().map(|pull| (pull.number, pull)));
        }
    }
    let default_branch = store.repos().default_branch(repo.id).await?;
    let reverted = reverted_among(store, repo, fixes.values(), default_branch.as_deref()).await?;
    fixes.retain(|number, _| !reverted.contains(number));
    Ok(fixes.values().map(|pull| FixingPull::new(pull, default_branch.as_deref())).collect())
}

/// Those of the pull requests that say that they fix the issue.
async fn fixing(repo: &Repo, mut pulls: Vec<Item>, issue: ItemNumber) -> Vec<Item> {
    let repo = repo.clone();
    off_async_threads(move || {
        pulls.retain(|pull| change_text(&repo, pull).fixed_issues().contains(&issue));
        pulls
    })
    .await
}

/// A merged pull request whose text was read.
struct MergedChange {
    number: ItemNumber,
    merged_at: Option<Timestamp>,
    text: ChangeText,
}

/// Which of these pull requests later ones reverted, and nothing put back.
pub(crate) async fn reverted_among(
    store: &Store,
    repo: &Repo,
    pulls: impl Iterator<Item = &Item> + Send,
    default_branch: Option<&str>,
) -> Result<BTreeSet<ItemNumber>, StoreError> {
    let pulls: Vec<MergedPullText> = pulls.filter(|pull| pull.merged).map(merged_text).collect();
    let Some(since) = pulls.iter().map(|pull| pull.closed_at.unwrap_or(Timestamp::UNIX_EPOCH)).min() else {
        return Ok(BTreeSet::new());
    };
    let mut changes: BTreeMap<ItemNumber, MergedChange> = BTreeMap::new();
    let mut found = read_texts(repo, pulls).await;
    // A revert may be reverted itself.
    while !found.is_empty() {
        let numbers: Vec<ItemNumber> = found.iter().map(|change| change.number).collect();
        let possible = possible_reverts(store, repo, &numbers, since, default_branch).await?;
        (changes, found) = off_async_threads(move || with_reverts(changes, found, possible)).await;
    }
    Ok(off_async_threads(move || reverted(changes)).await)
}

/// Reads the texts of the pull requests that may revert one of these. What is reverted on a release branch is still on
/// the default branch.
async fn possible_reverts(
    store: &Store,
    repo: &Repo,
    numbers: &[ItemNumber],
    since: Timestamp,
    default_branch: Option<&str>,
) -> Result<Vec<MergedChange>, StoreError> {
    let mut possible = Vec::new();
    for numbers in numbers.chunks(REVERTED_AT_ONCE) {
        let mut after = None;
        loop {
            let mut page = store.corpus().possible_reverts(repo.id, numbers, since, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.number);
            page.retain(|pull| FixBase::of(pull.base_branch.as_deref(), default_branch) != FixBase::AnotherBranch);
            possible.extend(read_texts(repo, page).await);
        }
    }
    Ok(possible)
}

async fn read_texts(repo: &Repo, pulls: Vec<MergedPullText>) -> Vec<MergedChange> {
    let name = repo.name.clone();
    let read = move |pull: MergedPullText| MergedChange {
        number: pull.number,
        merged_at: pull.closed_at,
        text: ChangeText::of_pull(&name, pull.number, &pull.title, &pull.body),
    };
    off_async_threads(move || pulls.into_iter().map(read).collect()).await
}

/// Adds what was found to the known changes, and returns those of the possible reverts that revert something of it and
/// are new.
fn with_reverts(
    mut changes: BTreeMap<ItemNumber, MergedChange>,
    found: Vec<MergedChange>,
    mut possible: Vec<MergedChange>,
) -> (BTreeMap<ItemNumber, MergedChange>, Vec<MergedChange>) {
    possible.retain(|revert| found.iter().any(|change| revert.text.reverts(&change.text)));
    changes.extend(found.into_iter().map(|change| (change.number, change)));
    possible.retain(|revert| !changes.contains_key(&revert.number));
    (changes, possible)
}

fn reverted(changes: BTreeMap<ItemNumber, MergedChange>) -> BTreeSet<ItemNumber> {
    let mut changes: Vec<MergedChange> = changes.into_values().collect();
    changes.sort_by_key(|change| (change.merged_at, change.number));
    let (numbers, texts): (Vec<ItemNumber>, Vec<ChangeText>) =
        changes.into_iter().map(|change| (change.number, change.text)).unzip();
    let in_place = changes_in_place(&texts);
    numbers.into_iter().zip(in_place).filter(|(_, in_place)| !in_place).map(|(number, _)| number).collect()
}

fn merged_text(pull: &Item) -> MergedPullText {
    MergedPullText {
        number: pull.number,
        title: pull.title.clone(),
        body: pull.body.clone(),
        closed_at: pull.closed_at,
        base_branch: pull.base_branch.clone(),
    }
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
