//! The size of the queue, for metrics.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::engine::facets::JobStore;
use crate::engine::row_values::{count, micros, optional_moment};
use crate::engine::transaction::{StoreError, on_pool};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// Jobs that wait for their turn or for their next attempt.
    pub queued: u64,
    pub running: u64,
    pub dead: u64,
    /// When the job that has been due longest became due.
    pub oldest_due: Option<Timestamp>,
    /// When the job that has been running longest started its current attempt.
    pub oldest_running: Option<Timestamp>,
}

/// The number of queued and running jobs, and the earliest times of both.
type Waiting = (i64, i64, Option<i64>, Option<i64>);

#[boxed]
impl JobStore<'_> {
    /// When the next queued job may run; `None` if none is queued.
    pub async fn next_due(self) -> Result<Option<Timestamp>, StoreError> {
        let next = "SELECT min(run_after) FROM jobs WHERE state = 'queued'";
        let next: Option<i64> = on_pool!(self.pool, |db| sqlx::query_scalar(next).fetch_one(db).await?);
        optional_moment(next)
    }

    pub async fn status(self, now: Timestamp) -> Result<QueueStatus, StoreError> {
        let waiting = "SELECT count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'running'),
                min(run_after) FILTER (WHERE state = 'queued' AND run_after <= $1), min(begun_at) FILTER (WHERE state = 'running')
            FROM jobs WHERE state IN ('queued', 'running')";
        let dead = "SELECT count(*) FROM jobs WHERE state = 'dead'";
        let (waiting, dead): (Waiting, i64) = on_pool!(self.pool, |db| {
            let waiting = sqlx::query_as(waiting).bind(micros(now)).fetch_one(db).await?;
            (waiting, sqlx::query_scalar(dead).fetch_one(db).await?)
        });
        let (queued, running, oldest_due, oldest_running) = waiting;
        Ok(QueueStatus {
            queued: count(queued)?,
            running: count(running)?,
            dead: count(dead)?,
            oldest_due: optional_moment(oldest_due)?,
            oldest_running: optional_moment(oldest_running)?,
        })
    }
}
