//! `import`: upserts the records of files into the corpus and reports each bad record.

use canonry_boxed::boxed;
use std::path::PathBuf;

use canonry_domain::{ItemRecord, RepoName};
use canonry_store::{Repo, Store, StoreError};
use jiff::Timestamp;
use tokio::sync::mpsc;

use crate::corpus::import_source::{ImportSource, UnusableFile, open_all};
use crate::corpus::record_reader::Record;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    pub read: u64,
    pub inserted: u64,
    pub updated: u64,
    pub unchanged: u64,
    pub failed: u64,
    /// The reasons, for the first [`ERRORS_KEPT`] of them.
    pub errors: Vec<BadRecord>,
    pub repos: Vec<RepoName>,
}

/// A record that could not be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRecord {
    pub file: String,
    pub line: u64,
    pub message: String,
}

/// The messages of a file with a million bad lines must not fill the memory; all are counted.
pub const ERRORS_KEPT: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportProgress {
    pub done: u64,
    pub total: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ImportFailure {
    /// A file cannot be read; nothing was written.
    #[error(transparent)]
    File(#[from] UnusableFile),
    /// The database failed; what was committed stays, and running the import again completes it.
    #[error("{0}; what was imported so far is kept, run the same import again to complete it")]
    Store(#[from] StoreError),
}

/// Imports files. A record belongs to the repository in its own `repo` field. A record without this field belongs to
/// `repo`; a record that names another repository than `repo` is refused.
///
/// Every file is read completely before the first write. Records are then committed in batches.
#[boxed]
pub async fn import(
    store: &Store,
    paths: Vec<PathBuf>,
    repo: Option<&RepoName>,
    now: Timestamp,
    progress: &mut (dyn FnMut(ImportProgress) + Send),
) -> Result<ImportReport, ImportFailure> {
    let (sources, total) = blocking(move || open_all(&paths)).await?;
    // The reader stays two batches ahead: parsing and writing overlap, and memory stays bounded.
    let (sender, mut batches) = mpsc::channel(2);
    let wanted = repo.cloned();
    let reading = tokio::task::spawn_blocking(move || read_batches(&sources, wanted.as_ref(), &sender));
    let mut report = ImportReport::default();
    while let Some(batch) = batches.recv().await {
        take_batch(store, batch, now, &mut report).await?;
        progress(ImportProgress { done: report.read, total });
    }
    reading.await.expect("invariant: the reader does not panic")?;
    Ok(report)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("invariant: reading a file does not panic")
}

/// Records of one repository, and the bad records between them.
#[derive(Default)]
struct RecordBatch {
    repo: Option<RepoName>,
    records: Vec<ItemRecord>,
    bytes: usize,
    bad: Vec<BadRecord>,
}

/// Measured on the benchmark's 21,811 rows: larger batches are no faster, smaller ones pay for more commits.
const BATCH_RECORDS: usize = 1_000;
/// Limits the memory of a batch of very long texts.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

impl RecordBatch {
    fn is_full(&self) -> bool {
        self.records.len() + self.bad.len() >= BATCH_RECORDS || self.bytes >= BATCH_BYTES
    }

    fn add(&mut self, repo: RepoName, record: ItemRecord, bytes: usize) {
        self.bytes += bytes;
        self.repo = Some(repo);
        self.records.push(record);
    }
}

/// Sends the batches; stops without an error when the receiver is gone.
fn read_batches(
    sources: &[ImportSource],
    wanted: Option<&RepoName>,
    sender: &mpsc::Sender<RecordBatch>,
) -> Result<(), UnusableFile> {
    let mut batch = RecordBatch::default();
    for source in sources {
        let mut records = source.records()?;
        while let Some(span) = records.next_span() {
            let Record { line, bytes, parsed } = span.map_err(|error| source.unusable(&error))?.parse();
            let placed = parsed.and_then(|line| Ok((place(line.repo, wanted)?, line.record)));
            match placed {
                Ok((repo, record)) => {
                    if batch.repo.as_ref().is_some_and(|other| other.key() != repo.key())
                        && sender.blocking_send(std::mem::take(&mut batch)).is_err()
                    {
                        return Ok(());
                    }
                    batch.add(repo, record, bytes);
                }
                Err(message) => batch.bad.push(BadRecord { file: source.name.clone(), line, message }),
            }
            if batch.is_full() && sender.blocking_send(std::mem::take(&mut batch)).is_err() {
                return Ok(());
            }
        }
    }
    // The receiver is gone only if the database failed, and that is already reported.
    let _ = sender.blocking_send(batch);
    Ok(())
}

fn place(named: Option<RepoName>, wanted: Option<&RepoName>) -> Result<RepoName, String> {
    match (named, wanted) {
        (Some(named), Some(wanted)) if named.key() != wanted.key() => {
            Err(format!("the record belongs to {named}, not to {wanted} as --repo says"))
        }
        (Some(named), _) => Ok(named),
        (None, Some(wanted)) => Ok(wanted.clone()),
        (None, None) => Err("the record names no repo; name it with --repo owner/name".to_owned()),
    }
}

async fn take_batch(
    store: &Store,
    batch: RecordBatch,
    now: Timestamp,
    report: &mut ImportReport,
) -> Result<(), StoreError> {
    report.read += (batch.records.len() + batch.bad.len()) as u64;
    report.failed += batch.bad.len() as u64;
    let room = ERRORS_KEPT.saturating_sub(report.errors.len());
    report.errors.extend(batch.bad.into_iter().take(room));
    let Some(name) = batch.repo else {
        return Ok(());
    };
    let repo: Repo = store.repos().ensure(&name, now).await?;
    let (inserted, updated, unchanged) = store.corpus().upsert_items(&repo, batch.records, now).await?.counts();
    report.inserted += inserted;
    report.updated += updated;
    report.unchanged += unchanged;
    if !report.repos.contains(&repo.name) {
        report.repos.push(repo.name);
    }
    Ok(())
}
