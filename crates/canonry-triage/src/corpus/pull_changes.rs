//! The second step of a sync: fetches what pull requests change and their base branches, which GitHub's list of issues
//! does not contain.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, PullChanges, RepoName};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{Repo, Store, StoreError};
use jiff::SignedDuration;

/// How many requests a sync of the command line sends for changes, unless it is told otherwise.
pub const CHANGES_PER_SYNC: u64 = 200;

/// Changes are fetched of open pull requests and of those closed since then: older ones are rarely sent again.
const CLOSED_WITHIN: SignedDuration = SignedDuration::from_hours(24 * 90);
/// Pull requests of which one request lists the base branches.
const LISTED: usize = 100;
/// One request in ten is for lists: in a large repository they would leave none for changes.
const LISTS_AMONG: u64 = 10;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangesReport {
    /// The pull requests whose changes were stored.
    pub stored: u64,
    /// The pull requests whose changes are left for the next sync.
    pub left: u64,
    /// The pull requests whose base branch was stored.
    pub base_branches: u64,
    /// Why it ended before it was done or had sent all its requests.
    pub stopped: Option<String>,
}

/// Fetches the missing base branches and changes of pull requests, newest first, with at most so many requests.
///
/// Each answer is stored at once, and the next call continues with what is still missing. It ends early if little of
/// GitHub's rate limit is left, or if GitHub does not answer: the sync itself is done by then.
#[boxed]
pub async fn sync_changes(
    store: &Store,
    github: &GitHub,
    repo: &Repo,
    requests: u64,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<ChangesReport, StoreError> {
    let mut step = ChangesStep { store, github, repo, requests, report: ChangesReport::default() };
    let ended = match step.add_base_branches().await {
        Ok(()) => step.add_changes(progress).await,
        ended => ended,
    };
    match ended {
        Ok(()) => {}
        Err(Ending::RateIsLow) => step.report.stopped = Some("little of GitHub's rate limit is left".to_owned()),
        Err(Ending::GitHub(error)) => step.report.stopped = Some(error.to_string()),
        Err(Ending::Store(error)) => return Err(error),
    }
    step.report.left = step.pulls_without_changes().await?.len() as u64;
    Ok(step.report)
}

/// The changes of a pull request, limited to the first hundred files: a judge sees fewer, and a pull request with
/// thousands of files would cost dozens of requests.
pub(crate) async fn fetch_changes(
    github: &GitHub,
    repo: &RepoName,
    number: ItemNumber,
) -> Result<PullChanges, GitHubError> {
    let files = github.pull_files(repo, number).next().await?;
    let files = files.map(|page| page.items).unwrap_or_default();
    let patches = files.iter().map(|file| (file.filename.as_str(), file.patch.as_deref().unwrap_or_default()));
    Ok(PullChanges::of_patches(patches))
}

struct ChangesStep<'a> {
    store: &'a Store,
    github: &'a GitHub,
    repo: &'a Repo,
    /// How many may still be sent.
    requests: u64,
    report: ChangesReport,
}

#[derive(Debug, thiserror::Error)]
enum Ending {
    #[error("little of the rate limit is left")]
    RateIsLow,
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ChangesStep<'_> {
    /// Counts a request that is about to be sent; `false` if there is none left.
    fn may_ask(&mut self) -> Result<bool, Ending> {
        if self.requests == 0 {
            return Ok(false);
        }
        if self.github.is_rate_low() {
            return Err(Ending::RateIsLow);
        }
        self.requests -= 1;
        Ok(true)
    }

    async fn add_base_branches(&mut self) -> Result<(), Ending> {
        let missing = self.store.corpus().pulls_without_base(self.repo.id).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let stored = self.store.corpus().item_numbers(self.repo.id).await?;
        let stored: Vec<ItemNumber> =
            stored.into_iter().filter(|(_, item_type)| *item_type == ItemType::Pr).map(|(number, _)| number).collect();
        let (mut missing, mut page) = (missing.as_slice(), 0);
        for _ in 0..self.requests.div_ceil(LISTS_AMONG) {
            let Some(next) = missing.first() else { break };
            // The list has no way to begin at a number, but its pages are in the order of numbers. A pull request that
            // was opened meanwhile moves it to the next page.
            let newer = stored.len() - stored.partition_point(|number| number <= next);
            page = (newer / LISTED + 1).max(page + 1);
            if !self.may_ask()? {
                break;
            }
            let listed = match self.github.newest_pulls(&self.repo.name, page).await {
                // Of a very large repository GitHub does not list the oldest.
                Err(error) if is_refusal(&error) => {
                    tracing::info!(%error, page, "base branches of pull requests could not be fetched");
                    break;
                }
                listed => listed?,
            };
            let Some(lowest) = listed.iter().map(|pull| pull.number).min() else { break };
            let bases = listed.into_iter().filter(|pull| !pull.base.branch.is_empty());
            let bases = bases.filter_map(|pull| Some((ItemNumber::new(pull.number).ok()?, pull.base.branch)));
            let bases: Vec<(ItemNumber, String)> = bases.collect();
            self.report.base_branches += self.store.corpus().add_base_branches(self.repo.id, &bases).await?;
            missing = &missing[missing.partition_point(|number| number.get() >= lowest)..];
        }
        Ok(())
    }

    async fn pulls_without_changes(&self) -> Result<Vec<ItemNumber>, StoreError> {
        let closed_since = self.github.now() - CLOSED_WITHIN;
        self.store.corpus().pulls_without_changes(self.repo.id, closed_since).await
    }

    async fn add_changes(&mut self, progress: &mut (dyn FnMut(u64) + Send)) -> Result<(), Ending> {
        let mut has_failed = false;
        for number in self.pulls_without_changes().await? {
            if !self.may_ask()? {
                break;
            }
            let changes = match fetch_changes(self.github, &self.repo.name, number).await {
                Ok(changes) => changes,
                Err(error) => {
                    // GitHub fails to show some very large changes; if it fails twice, it is down.
                    let is_down = matches!(error, GitHubError::Unavailable { .. });
                    if !is_refusal(&error) && (has_failed || !is_down) {
                        return Err(error.into());
                    }
                    has_failed |= is_down;
                    tracing::info!(%error, %number, "the changes of a pull request could not be fetched");
                    continue;
                }
            };
            let pull = self.store.corpus().item(self.repo.id, ItemType::Pr, number).await?;
            if let Some(pull) = pull.filter(|pull| pull.gone.is_none()) {
                self.store.corpus().upsert_pull_changes(self.repo, &pull, changes, self.github.now()).await?;
                self.report.stored += 1;
                progress(self.report.stored);
            }
        }
        Ok(())
    }
}

/// Whether GitHub refuses one request, which says nothing about the others.
const fn is_refusal(error: &GitHubError) -> bool {
    matches!(
        error,
        GitHubError::NotFound { .. }
            | GitHubError::Gone { .. }
            | GitHubError::Moved { .. }
            | GitHubError::Refused { .. }
            | GitHubError::BadAnswer { .. }
    )
}
