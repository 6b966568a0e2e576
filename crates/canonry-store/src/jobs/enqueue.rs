//! Queues jobs that no delivery caused: schedules, syncs of new repositories, requests of people.

use canonry_boxed::boxed;
use jiff::Timestamp;
use serde_json::Value;

use crate::engine::facets::JobStore;
use crate::engine::row_values::{micros, storable};
use crate::engine::transaction::{StoreError, Transaction, on_tx};
use crate::jobs::queue::{JobId, NewJob, insert_job};

/// Any number that nothing else on the server uses as an advisory lock. The lock makes "queue a job unless one is
/// queued" run one process at a time.
const ONCE_LOCK: i64 = 0x0043_414e_4f4e_4f4e;

#[boxed]
impl JobStore<'_> {
    /// Queues a job that may run from `run_after` on.
    pub async fn enqueue(self, new: &NewJob<'_>, run_after: Timestamp, now: Timestamp) -> Result<JobId, StoreError> {
        let mut tx = self.pool.begin().await?;
        let id = insert_job(&mut tx, new, None, run_after, now).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Queues a job; `None` if a job of its key and kind is already queued. A running job does not count: it may have
    /// read data that is older than the reason for this job.
    pub async fn enqueue_once(
        self,
        new: &NewJob<'_>,
        run_after: Timestamp,
        now: Timestamp,
    ) -> Result<Option<JobId>, StoreError> {
        let mut tx = self.pool.begin().await?;
        let id = queue_once(&mut tx, new, run_after, now).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Queues a job; `None` if a queued or running job of its key and kind has an equivalent payload (`is_same`). Of
    /// several concurrent callers exactly one queues it.
    pub async fn enqueue_unless_active(
        self,
        new: &NewJob<'_>,
        is_same: impl Fn(&Value) -> bool + Send,
        run_after: Timestamp,
        now: Timestamp,
    ) -> Result<Option<JobId>, StoreError> {
        let mut tx = self.pool.begin().await?;
        lock_once(&mut tx).await?;
        let active = "SELECT payload FROM jobs WHERE key = $1 AND kind = $2 AND state IN ('queued', 'running')";
        let active: Vec<String> = on_tx!(&mut tx, |db| {
            sqlx::query_scalar(active).bind(storable(new.key)).bind(new.kind.as_str()).fetch_all(db).await?
        });
        for payload in active {
            if is_same(&serde_json::from_str(&payload).map_err(StoreError::damaged)?) {
                tx.rollback().await?;
                return Ok(None);
            }
        }
        let id = insert_job(&mut tx, new, None, run_after, now).await?;
        tx.commit().await?;
        Ok(Some(id))
    }

    /// Queues a job, or merges it into a queued job of its key and kind: `join` combines both payloads. The merged
    /// job runs at the earlier of the two times, and its attempts start at 0. A running job does not count: it may
    /// have read data that is older than the reason for this job.
    pub async fn enqueue_joined(
        self,
        new: &NewJob<'_>,
        join: impl Fn(&Value, &Value) -> Value + Send,
        run_after: Timestamp,
        now: Timestamp,
    ) -> Result<JobId, StoreError> {
        let mut tx = self.pool.begin().await?;
        lock_once(&mut tx).await?;
        let waiting =
            "SELECT id, payload FROM jobs WHERE key = $1 AND kind = $2 AND state = 'queued' ORDER BY id LIMIT 1";
        let waiting: Option<(i64, String)> = on_tx!(&mut tx, |db| {
            sqlx::query_as(waiting).bind(storable(new.key)).bind(new.kind.as_str()).fetch_optional(db).await?
        });
        if let Some((id, payload)) = waiting {
            let payload: Value = serde_json::from_str(&payload).map_err(StoreError::damaged)?;
            let joined = join(&payload, new.payload).to_string();
            // A worker may have leased it since.
            let update = "UPDATE jobs SET payload = $2, attempts = 0, run_after = CASE WHEN run_after < $3 THEN run_after ELSE $3 END
                WHERE id = $1 AND state = 'queued'";
            let changed = on_tx!(&mut tx, |db| {
                let query = sqlx::query(update).bind(id).bind(joined).bind(micros(run_after));
                query.execute(db).await?.rows_affected()
            });
            if changed == 1 {
                tx.notify_workers().await?;
                tx.commit().await?;
                return Ok(JobId(id));
            }
        }
        let id = insert_job(&mut tx, new, None, run_after, now).await?;
        tx.commit().await?;
        Ok(id)
    }
}

pub(crate) async fn queue_once(
    tx: &mut Transaction,
    new: &NewJob<'_>,
    run_after: Timestamp,
    now: Timestamp,
) -> Result<Option<JobId>, StoreError> {
    lock_once(tx).await?;
    let waiting = "SELECT count(*) FROM jobs WHERE key = $1 AND kind = $2 AND state = 'queued'";
    let waiting: i64 = on_tx!(&mut *tx, |db| {
        sqlx::query_scalar(waiting).bind(storable(new.key)).bind(new.kind.as_str()).fetch_one(db).await?
    });
    if waiting > 0 { Ok(None) } else { insert_job(tx, new, None, run_after, now).await.map(Some) }
}

async fn lock_once(tx: &mut Transaction) -> Result<(), StoreError> {
    if let Transaction::Postgres(transaction) = tx {
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(ONCE_LOCK).execute(&mut **transaction).await?;
    }
    Ok(())
}
