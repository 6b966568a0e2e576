//! Work that comes round: each period once, however many processes keep the time.

use canonry_boxed::boxed;
use jiff::{SignedDuration, Timestamp};

use crate::engine::facets::JobStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_tx};
use crate::jobs::enqueue::queue_once;
use crate::jobs::queue::NewJob;

#[boxed]
impl JobStore<'_> {
    /// Queues the jobs of a schedule, each to run from its own moment on, if `every` has gone by since it last fired, or
    /// it never did. `true` for exactly one of several processes; a job that still waits from the last time is not
    /// queued twice.
    pub async fn fire_schedule(
        self,
        name: &str,
        every: SignedDuration,
        jobs: &[(NewJob<'_>, Timestamp)],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        // Waits for whoever is at it, and then finds that it has fired.
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
