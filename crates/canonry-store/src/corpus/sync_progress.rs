//! The progress of a sync, stored together with the items it fetched.

use canonry_boxed::boxed;
use canonry_domain::{ItemRecord, RecordChange};
use jiff::Timestamp;

use crate::corpus::repos::{Repo, RepoId};
use crate::corpus::upsert_items::{UpsertSummary, upsert_records};
use crate::engine::facets::CorpusStore;
use crate::engine::row_values::{micros, optional_moment};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::learning::thresholds::log_adjustments;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SyncProgress {
    /// All changes up to this time are stored.
    pub watermark: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    /// When the repository was last searched for items that left it.
    pub swept_at: Option<Timestamp>,
}

/// One page of GitHub's list, and the progress it completes.
#[derive(Debug, Clone)]
pub struct SyncPage {
    pub records: Vec<ItemRecord>,
    /// The progress once the records are stored; `None` does not change it, for a run that covers only some of the
    /// items.
    pub progress: Option<SyncProgress>,
}

type ProgressRow = (Option<i64>, Option<i64>, Option<i64>);

#[boxed]
impl CorpusStore<'_> {
    pub async fn sync_progress(self, repo: RepoId) -> Result<SyncProgress, StoreError> {
        let query = "SELECT watermark, finished_at, swept_at FROM sync_progress WHERE repo_id = $1";
        let row: Option<ProgressRow> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_optional(db).await?);
        let Some((watermark, finished_at, swept_at)) = row else {
            return Ok(SyncProgress::default());
        };
        Ok(SyncProgress {
            watermark: optional_moment(watermark)?,
            finished_at: optional_moment(finished_at)?,
            swept_at: optional_moment(swept_at)?,
        })
    }

    /// Stores a page together with its progress: a crash between the two could lose a page or make the next run start
    /// over. The progress is not written if a record is [`RecordChange::Unordered`]: that item must be fetched from
    /// GitHub first.
    pub async fn upsert_sync_page(
        self,
        repo: &Repo,
        page: SyncPage,
        now: Timestamp,
    ) -> Result<UpsertSummary, StoreError> {
        let mut tx = self.pool.begin().await?;
        let (taken, adjusted) = upsert_records(&mut tx, repo, page.records, now).await?;
        let is_whole = !taken.changes.contains(&RecordChange::Unordered);
        if let Some(progress) = page.progress.as_ref().filter(|_| is_whole) {
            write_progress(&mut tx, repo.id, progress).await?;
        }
        tx.commit().await?;
        log_adjustments(&adjusted);
        Ok(taken)
    }

    pub async fn write_sync_progress(self, repo: RepoId, progress: &SyncProgress) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        write_progress(&mut tx, repo, progress).await?;
        tx.commit().await
    }
}

async fn write_progress(tx: &mut Transaction, repo: RepoId, progress: &SyncProgress) -> Result<(), StoreError> {
    let upsert = "INSERT INTO sync_progress (repo_id, watermark, finished_at, swept_at) VALUES ($1, $2, $3, $4)
        ON CONFLICT (repo_id) DO UPDATE SET watermark = excluded.watermark,
            finished_at = excluded.finished_at, swept_at = excluded.swept_at";
    on_tx!(tx, |db| {
        sqlx::query(upsert)
            .bind(repo.0)
            .bind(progress.watermark.map(micros))
            .bind(progress.finished_at.map(micros))
            .bind(progress.swept_at.map(micros))
            .execute(db)
            .await?;
    });
    Ok(())
}
