//! `sync` and `refresh`: imports GitHub's items page by page.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemRecord, ItemState, ItemType, RecordChange, RepoName, merge_record};
use canonry_github::api::{IssueQuery, ListState, RestIssue};
use canonry_github::{Answer, EtagCache, GitHub, GitHubError, Page, item_from_issue};
use canonry_store::{Repo, Store, StoreError, SyncPage, SyncProgress};
use jiff::{SignedDuration, Timestamp};

use crate::corpus::identify::{IdentifyError, identify, remember};
use crate::corpus::refetch_item::refetch_item;
use crate::corpus::stored_etags::StoredEtags;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncOptions {
    pub item_type: Option<ItemType>,
    pub state: Option<ItemState>,
    /// Only items that changed at this time or later.
    pub since: Option<Timestamp>,
    /// Only items that are not stored yet.
    pub only_new: bool,
    pub dry_run: bool,
}

impl SyncOptions {
    fn wants(&self, record: &ItemRecord) -> bool {
        self.item_type.is_none_or(|wanted| record.item_type == wanted)
            && (self.state.is_none() || record.state == self.state)
    }

    /// Whether every change is imported, so that the next run may begin where this one ended.
    fn is_whole(&self) -> bool {
        self.item_type.is_none() && self.state.is_none() && !self.only_new && !self.dry_run
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncReport {
    pub repo: Option<RepoName>,
    /// The former name, if the repository was renamed.
    pub renamed_from: Option<RepoName>,
    /// Items that GitHub listed and that match the options.
    pub fetched: u64,
    pub inserted: u64,
    pub updated: u64,
    pub content_changed: u64,
    pub unchanged: u64,
    pub pages: u64,
    /// GitHub reported that nothing changed since the last run.
    pub not_modified: bool,
}

impl SyncReport {
    fn count(&mut self, changes: &[RecordChange]) {
        for change in changes {
            match change {
                RecordChange::Inserted => self.inserted += 1,
                RecordChange::Updated { content } => {
                    self.updated += 1;
                    self.content_changed += u64::from(*content);
                }
                RecordChange::Unchanged | RecordChange::Older | RecordChange::Unordered => self.unchanged += 1,
            }
        }
    }
}

/// A run that ended early. Every page before that is stored, and the next run continues after it.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct SyncFailure {
    pub so_far: SyncReport,
    #[source]
    pub cause: SyncError,
}

#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    #[error(transparent)]
    Identify(#[from] IdentifyError),
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Listings lag behind: an item may appear a little after others that changed later. Each run starts this far before
/// the end of the last one.
const OVERLAP: SignedDuration = SignedDuration::from_secs(60);

/// Imports what GitHub has.
///
/// Items are listed by their last change, oldest first, so the last item of a stored page shows where to continue: a
/// run never starts over, even if it was killed or reached the rate limit. An item that changes while the list is
/// read moves to its end and is read again.
#[boxed]
pub async fn sync(
    store: &Store,
    github: &GitHub,
    asked: &RepoName,
    options: SyncOptions,
    progress: &mut (dyn FnMut(&SyncReport) + Send),
) -> Result<SyncReport, Box<SyncFailure>> {
    let mut report = SyncReport::default();
    match run(store, github, asked, options, &mut report, progress).await {
        Ok(()) => Ok(report),
        Err(cause) => Err(Box::new(SyncFailure { so_far: report, cause })),
    }
}

async fn run(
    store: &Store,
    github: &GitHub,
    asked: &RepoName,
    options: SyncOptions,
    report: &mut SyncReport,
    progress: &mut (dyn FnMut(&SyncReport) + Send),
) -> Result<(), SyncError> {
    let identified = identify(store, github, asked).await?;
    report.renamed_from = (identified.name.key() != asked.key()).then(|| asked.clone());
    report.repo = Some(identified.name.clone());
    let repo = if options.dry_run {
        identified.known.clone()
    } else {
        Some(remember(store, asked, &identified, github.now()).await?)
    };
    let known = match &repo {
        Some(repo) => store.corpus().sync_progress(repo.id).await?,
        None => SyncProgress::default(),
    };
    let mut reading = SyncCursor::new(options, known);
    let mut pages = github.issues(&identified.name, IssueQuery { state: reading.list_state(), since: reading.since });
    let mut first = true;
    loop {
        let page = match (&repo, first && options.is_whole()) {
            (Some(repo), true) => {
                let etags = StoredEtags { store, repo: repo.id, now: github.now() };
                match pages.first_if_changed(&etags).await? {
                    Answer::Fresh(page) => Some(page),
                    Answer::NotModified => {
                        report.not_modified = true;
                        None
                    }
                }
            }
            _ => pages.next().await?,
        };
        first = false;
        let Some(page) = page else { break };
        report.pages += 1;
        take_page(store, github, repo.as_ref(), &mut reading, &page, report).await?;
        progress(report);
    }
    if let (Some(repo), true) = (&repo, reading.moves_on) {
        let finished = SyncProgress { finished_at: Some(github.now()), ..reading.progress };
        store.corpus().write_sync_progress(repo.id, &finished).await?;
    }
    Ok(())
}

/// The position of a run in the list.
struct SyncCursor {
    options: SyncOptions,
    since: Option<Timestamp>,
    progress: SyncProgress,
    /// Whether this run continues what earlier runs read, without a gap.
    moves_on: bool,
}

impl SyncCursor {
    fn new(options: SyncOptions, progress: SyncProgress) -> Self {
        let watermark = progress.watermark.map(|watermark| watermark - OVERLAP);
        let since = match (options.since, watermark) {
            (Some(asked), Some(watermark)) => Some(asked.max(watermark)),
            (asked, watermark) => asked.or(watermark),
        };
        let joins = match (since, watermark) {
            (None, _) => true,
            (Some(since), Some(watermark)) => since <= watermark,
            (Some(_), None) => false,
        };
        // A run that covers only some items reads them from the beginning: the progress of other runs does not show
        // what earlier narrow runs left out.
        let since = if options.is_whole() || options.only_new { since } else { options.since };
        Self { options, since, progress, moves_on: options.is_whole() && joins }
    }

    const fn list_state(&self) -> ListState {
        match self.options.state {
            None => ListState::All,
            Some(ItemState::Open) => ListState::Open,
            Some(ItemState::Closed) => ListState::Closed,
        }
    }
}

async fn take_page(
    store: &Store,
    github: &GitHub,
    repo: Option<&Repo>,
    reading: &mut SyncCursor,
    page: &Page<RestIssue>,
    report: &mut SyncReport,
) -> Result<(), SyncError> {
    let now = github.now();
    let records = page.items.iter().filter_map(|issue| record_of(issue, now));
    let mut records: Vec<ItemRecord> = records.filter(|record| reading.options.wants(record)).collect();
    let newest = page.items.iter().filter_map(|issue| issue.updated_at).max();
    if let (Some(repo), true) = (repo, reading.options.only_new) {
        records = unknown(store, repo, records).await?;
    }
    report.fetched += records.len() as u64;
    match repo {
        Some(repo) if !reading.options.dry_run => {
            reading.progress.watermark = reading.progress.watermark.max(newest);
            let progress = reading.moves_on.then_some(reading.progress);
            let keys: Vec<_> = records.iter().map(|record| (record.item_type, record.number)).collect();
            let mut changes = store.corpus().upsert_sync_page(repo, SyncPage { records, progress }, now).await?.changes;
            if ask_again(store, github, repo, &keys, &mut changes).await?
                && let Some(progress) = &progress
            {
                store.corpus().write_sync_progress(repo.id, progress).await?;
            }
            report.count(&changes);
            // Stored only now: an ETag without its items would hide them from the next run.
            if let Some(etag) = page.etag.as_ref().filter(|_| reading.moves_on) {
                StoredEtags { store, repo: repo.id, now }.put(etag).await;
            }
        }
        _ => report.count(&preview(store, repo, records).await?),
    }
    Ok(())
}

/// Fetches each item of a page for which another process stored something since the page was read: the order of the
/// two is unknown. Returns whether there were such items.
async fn ask_again(
    store: &Store,
    github: &GitHub,
    repo: &Repo,
    keys: &[(ItemType, ItemNumber)],
    changes: &mut [RecordChange],
) -> Result<bool, SyncError> {
    let mut were_some = false;
    for ((item_type, number), change) in keys.iter().zip(changes) {
        if *change == RecordChange::Unordered {
            were_some = true;
            *change = match refetch_item(store, github, repo, *item_type, *number).await {
                // The sweep finds items that have left.
                Ok(fetched) => fetched.map_or(RecordChange::Unordered, |(_, change)| change),
                // One item that GitHub does not return must not stop every sync at its page.
                Err(SyncError::GitHub(error @ (GitHubError::Refused { .. } | GitHubError::BadAnswer { .. }))) => {
                    tracing::warn!(%error, %number, "an item could not be fetched and keeps its stored version");
                    RecordChange::Unordered
                }
                Err(error) => return Err(error),
            };
        }
    }
    Ok(were_some)
}

/// A number that no item can have is GitHub's mistake; one such entry must not end the sync.
fn record_of(issue: &RestIssue, now: Timestamp) -> Option<ItemRecord> {
    item_from_issue(issue, now).inspect_err(|error| tracing::warn!(%error, "an entry was left out")).ok()
}

async fn unknown(store: &Store, repo: &Repo, records: Vec<ItemRecord>) -> Result<Vec<ItemRecord>, StoreError> {
    let mut unknown = Vec::new();
    for record in records {
        if store.corpus().item(repo.id, record.item_type, record.number).await?.is_none() {
            unknown.push(record);
        }
    }
    Ok(unknown)
}

async fn preview(
    store: &Store,
    repo: Option<&Repo>,
    records: Vec<ItemRecord>,
) -> Result<Vec<RecordChange>, StoreError> {
    let mut changes = Vec::new();
    for record in records {
        let known = match repo {
            Some(repo) => store.corpus().item(repo.id, record.item_type, record.number).await?,
            None => None,
        };
        changes.push(merge_record(known.as_ref(), record).change);
    }
    Ok(changes)
}
