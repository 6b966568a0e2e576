//! Schedules: each fires once per period, in however many processes.

use canonry_boxed::boxed;
use jiff::{SignedDuration, Timestamp};

use crate::engine::facets::JobStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_pool, on_tx};
use crate::jobs::enqueue::queue_once;
use crate::jobs::queue::NewJob;

#[boxed]
impl JobStore<'_> {
    pub async fn has_fired(self, name: &str) -> Result<bool, StoreError> {
        let count = "SELECT COUNT(*) FROM schedules WHERE name = $1";
        let fired: i64 = on_pool!(self.pool, |db| sqlx::query_scalar(count).bind(name).fetch_one(db).await?);
        Ok(fired > 0)
    }

    /// Queues the jobs of a schedule, each from its own time on, if the schedule never fired or `every` has passed
    /// since it last fired. Returns `true` to exactly one of several processes. A job that is still queued from the
    /// last time is not queued again.
    pub async fn fire_schedule(
        self,
        name: &str,
        every: SignedDuration,
        jobs: &[(NewJob<'_>, Timestamp)],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        // Waits for a process that is firing the schedule, then finds that it has fired.
        let fire = "INSERT INTO schedules (name, last_fired_at) VALUES ($1, $2)
            ON CONFLICT (name) DO UPDATE SET last_fired_at = excluded.last_fired_at WHERE schedules.last_fired_at <= $3";
        let mut tx = self.pool.begin().await?;
        let fired = on_tx!(&mut tx, |db| {
            let fire = sqlx::query(fire).bind(name).bind(micros(now)).bind(micros(now - every));
            fire.execute(db).await?.rows_affected()
        });
        if fired == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        for (job, run_after) in jobs {
            queue_once(&mut tx, job, *run_after, now).await?;
        }
        tx.commit().await?;
        Ok(true)
    }
}
