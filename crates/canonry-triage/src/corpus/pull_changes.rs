//! The second step of a sync: fetches what pull requests change and their base branches, which GitHub's list of issues
//! does not contain.

use canonry_boxed::boxed;
use canonry_domain::{Item, ItemNumber, ItemType, PullChanges, RepoName};
use canonry_github::api::RestPull;
use canonry_github::{GitHub, GitHubError};
use canonry_store::{Repo, Store, StoreError};
use jiff::SignedDuration;

/// How many requests a sync of the command line sends for changes, unless it is told otherwise.
pub const CHANGES_PER_SYNC: u64 = 200;

/// Changes are fetched of open pull requests and of those closed since then: older ones are rarely sent again.
const CLOSED_WITHIN: SignedDuration = SignedDuration::from_hours(24 * 90);
/// Pull requests of which one request lists the base branches.
const LISTED: usize = 100;
/// One request in ten is for base branches: in a large repository they would leave none for changes.
const LISTS_AMONG: u64 = 10;
/// With fewer than this among a hundred numbers, each is fetched by itself: finding the page that lists them takes as
/// many requests.
const LISTED_FROM: usize = 3;
/// Pages that are fetched in vain before a pull request is fetched by itself.
const MISSES: usize = 3;

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

/// Fetches the missing base branches of pull requests, and changes that are missing or may no longer be current, newest
/// first, with at most so many requests.
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
        if self.github.is_rate_low(&self.repo.name) {
            return Err(Ending::RateIsLow);
        }
        self.requests -= 1;
        Ok(true)
    }

    async fn add_base_branches(&mut self) -> Result<(), Ending> {
        let mut missing = self.store.corpus().pulls_without_base(self.repo.id).await?;
        if missing.is_empty() {
            return Ok(());
        }
        let stored = self.store.corpus().item_numbers(self.repo.id).await?;
        let stored: Vec<ItemNumber> =
            stored.into_iter().filter(|(_, item_type)| *item_type == ItemType::Pr).map(|(number, _)| number).collect();
        let mut search = PageSearch::default();
        for _ in 0..self.requests.div_ceil(LISTS_AMONG) {
            let Some(&next) = missing.first() else { break };
            if !self.may_ask()? {
                break;
            }
            if search.is_hopeless(&missing) {
                self.add_base_branch(next).await?;
                missing.remove(0);
                search.give_up();
                continue;
            }
            let newer = stored.len() - stored.partition_point(|number| *number <= next);
            let listed = self.list_base_branches(search.page_of(next, newer)).await?;
            missing.retain(|number| !listed.covers(*number));
            search.note(listed, next);
        }
        Ok(())
    }

    /// Stores the base branches of one page of the list of all pull requests.
    async fn list_base_branches(&mut self, page: usize) -> Result<ListedPage, Ending> {
        let listed = match self.github.newest_pulls(&self.repo.name, page).await {
            // Of a very large repository GitHub does not list the oldest.
            Err(error) if is_refusal(&error) => {
                tracing::info!(%error, page, "base branches of pull requests could not be fetched");
                Vec::new()
            }
            listed => listed?,
        };
        let numbers = || listed.iter().map(|pull| pull.number);
        let (highest, lowest) = (numbers().max().unwrap_or(0), numbers().min().unwrap_or(0));
        let bases: Vec<(ItemNumber, String)> = listed.into_iter().filter_map(base_of).collect();
        self.report.base_branches += self.store.corpus().add_base_branches(self.repo.id, &bases).await?;
        Ok(ListedPage { page, highest, lowest })
    }

    /// Fetches one pull request for its base branch.
    async fn add_base_branch(&mut self, number: ItemNumber) -> Result<(), Ending> {
        let pull = match self.github.pull(&self.repo.name, number).await {
            Err(error) if is_refusal(&error) => {
                tracing::info!(%error, %number, "the base branch of a pull request could not be fetched");
                return Ok(());
            }
            pull => pull?,
        };
        let bases: Vec<(ItemNumber, String)> = base_of(pull).into_iter().collect();
        self.report.base_branches += self.store.corpus().add_base_branches(self.repo.id, &bases).await?;
        Ok(())
    }

    async fn pulls_without_changes(&self) -> Result<Vec<ItemNumber>, StoreError> {
        let closed_since = self.github.now() - CLOSED_WITHIN;
        self.store.corpus().pulls_without_changes(self.repo.id, closed_since).await
    }

    async fn add_changes(&mut self, progress: &mut (dyn FnMut(u64) + Send)) -> Result<(), Ending> {
        let mut has_failed = false;
        for number in self.pulls_without_changes().await? {
            let Some(pull) = self.stored_pull(number).await? else { continue };
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
            // It may have left meanwhile.
            if self.stored_pull(number).await?.is_some() {
                self.store.corpus().upsert_pull_changes(self.repo, &pull, changes, self.github.now()).await?;
                self.report.stored += 1;
                progress(self.report.stored);
            }
        }
        Ok(())
    }

    async fn stored_pull(&self, number: ItemNumber) -> Result<Option<Item>, StoreError> {
        let pull = self.store.corpus().item(self.repo.id, ItemType::Pr, number).await?;
        Ok(pull.filter(|pull| pull.gone.is_none()))
    }
}

/// A page of the list of all pull requests, the newest first, and the numbers that it lists; 0 if it lists none.
#[derive(Debug, Clone, Copy)]
struct ListedPage {
    page: usize,
    highest: i64,
    lowest: i64,
}

impl ListedPage {
    fn covers(&self, number: ItemNumber) -> bool {
        (self.lowest..=self.highest).contains(&number.get())
    }

    /// The page that lists a number, if the numbers are as dense there as here.
    fn page_of(&self, number: ItemNumber) -> usize {
        let per_page = self.highest - self.lowest + 1;
        let pages = |distance: i64| usize::try_from(distance / per_page).unwrap_or(0).max(1);
        match number.get() < self.lowest {
            true => self.page + pages(self.lowest - number.get()),
            false => self.page.saturating_sub(pages(number.get() - self.highest)).max(1),
        }
    }
}

/// The search for the pages that list some pull requests. The list has no way to begin at a number, but its pages are in
/// the order of numbers.
#[derive(Debug, Default)]
struct PageSearch {
    last: Option<ListedPage>,
    /// How many pages were fetched in vain since one listed what was searched.
    misses: usize,
}

impl PageSearch {
    /// The page that probably lists a pull request, given how many stored ones are newer. Of a repository that is not
    /// stored as a whole GitHub lists many more: after a miss the numbers of the last page show where it is.
    fn page_of(&self, next: ItemNumber, newer: usize) -> usize {
        match self.last {
            Some(last) if self.misses > 0 => last.page_of(next),
            // A pull request that was opened meanwhile moves the others to the next page.
            last => (newer / LISTED + 1).max(last.map_or(1, |last| last.page + 1)),
        }
    }

    fn note(&mut self, listed: ListedPage, searched: ItemNumber) {
        self.misses = if listed.covers(searched) { 0 } else { self.misses + 1 };
        self.last = Some(listed);
    }

    /// Whether the first of these numbers, which are in descending order, is better fetched by itself.
    fn is_hopeless(&self, missing: &[ItemNumber]) -> bool {
        let is_past_the_end = self.last.is_some_and(|last| last.highest == 0);
        let is_alone = missing.first().is_some_and(|next| {
            let hundredth = next.get() - LISTED as i64;
            missing.partition_point(|number| number.get() > hundredth) < LISTED_FROM
        });
        is_past_the_end || self.misses >= MISSES || (self.misses > 0 && is_alone)
    }

    /// What is searched next may be elsewhere in the list.
    fn give_up(&mut self) {
        self.misses = self.misses.min(1);
    }
}

fn base_of(pull: RestPull) -> Option<(ItemNumber, String)> {
    let number = ItemNumber::new(pull.number).ok()?;
    (!pull.base.branch.is_empty()).then_some((number, pull.base.branch))
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
