//! Queueing work that no delivery caused: schedules, syncs of new repositories, what people ask for.

use jiff::Timestamp;

use crate::jobs::{JobId, NewJob, insert_job};
use crate::open::Store;
use crate::row_values::storable;
use crate::transaction::{StoreError, Transaction, on_tx};

/// Any number that nothing else on the server uses as an advisory lock: whoever looks whether a job waits and queues
/// it if none does goes one after the other.
const ONCE_LOCK: i64 = 0x0043_414e_4f4e_4f4e;

impl Store {
    /// Queues a job that may run from that moment on.
    pub async fn queue_job(&self, new: &NewJob<'_>, run_after: Timestamp, now: Timestamp) -> Result<JobId, StoreError> {
        let mut tx = self.pool.begin().await?;
        let id = insert_job(&mut tx, new, None, run_after, now).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Queues a job unless one of its key and kind waits already, in which case it is `None`. One that runs does not
    /// count: what it read may be older than the reason for this one.
    pub async fn queue_job_once(
        &self,
        new: &NewJob<'_>,
        run_after: Timestamp,
        now: Timestamp,
    ) -> Result<Option<JobId>, StoreError> {
        let mut tx = self.pool.begin().await?;
        let id = queue_once(&mut tx, new, run_after, now).await?;
        tx.commit().await?;
        Ok(id)
    }
}

/// The same inside a transaction.
pub(crate) async fn queue_once(
    tx: &mut Transaction,
    new: &NewJob<'_>,
    run_after: Timestamp,
    now: Timestamp,
) -> Result<Option<JobId>, StoreError> {
    if let Transaction::Postgres(transaction) = tx {
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(ONCE_LOCK).execute(&mut **transaction).await?;
    }
    let waiting = "SELECT count(*) FROM jobs WHERE key = $1 AND kind = $2 AND state = 'queued'";
    let waiting: i64 = on_tx!(&mut *tx, |db| {
        sqlx::query_scalar(waiting).bind(storable(new.key)).bind(new.kind).fetch_one(db).await?
    });
    if waiting > 0 { Ok(None) } else { insert_job(tx, new, None, run_after, now).await.map(Some) }
}
