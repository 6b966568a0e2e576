//! Corrects times in the future that a fast clock wrote, so that nothing waits for them.

use canonry_boxed::boxed;
use canonry_domain::CLOCK_TOLERANCE;
use jiff::{SignedDuration, Timestamp};

use crate::engine::facets::MaintenanceStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_tx};

/// A correct clock delays no job for longer: GitHub's rate limits end within an hour.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_hours(24);

/// The number of times in the future that were found and corrected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FutureTimes {
    /// Schedules that fired in the future; they are due now.
    pub schedules: u64,
    /// Jobs that waited, or were leased, until a time in the future; they are due now.
    pub jobs: u64,
    /// Writes to GitHub that waited, or were leased, until a time in the future; they are due now.
    pub writes: u64,
    /// Writes that were counted as sent in the future, which would have delayed all others; they count as sent now.
    pub sent: u64,
    /// Close leases that began in the future; they have ended.
    pub close_leases: u64,
}

#[boxed]
impl MaintenanceStore<'_> {
    /// Makes everything due that waits for a time which only a fast clock can have written.
    ///
    /// A process that still works under such a lease renews it with the current clock, or finds at its next step that
    /// another process has taken over. All processes of a store have the same clock, which `serve` checks, so a time
    /// in the future is not the present of another process.
    ///
    /// The clock is read after the transaction has begun: while this process waits for a writer's lock, that writer
    /// may write times that would otherwise count as the future.
    pub async fn correct_future_times(self, clock: impl Fn() -> Timestamp + Send) -> Result<FutureTimes, StoreError> {
        let mut tx = self.pool.begin().await?;
        let now = clock();
        let (present, future) = (micros(now), micros(now.saturating_add(CLOCK_TOLERANCE).unwrap_or(Timestamp::MAX)));
        let too_long = micros(now.saturating_add(LONGEST_PAUSE + CLOCK_TOLERANCE).unwrap_or(Timestamp::MAX));
        let schedules = "UPDATE schedules SET last_fired_at = 0 WHERE last_fired_at > $1";
        let jobs = "UPDATE jobs SET run_after = $2, created_at = CASE WHEN created_at > $1 THEN $2 ELSE created_at END
            WHERE state = 'queued' AND run_after > $2 AND (created_at > $1 OR run_after > $3)";
        let leased = "UPDATE jobs SET lease_until = $2, begun_at = $2
            WHERE state = 'running' AND (begun_at > $1 OR lease_until > $3)";
        let writes = "UPDATE outbox SET not_before = CASE WHEN not_before > $2 THEN $2 ELSE not_before END,
            lease_until = CASE WHEN lease_until > $2 THEN $2 ELSE lease_until END, updated_at = $2
            WHERE state = 'pending' AND updated_at > $1";
        let sent = "UPDATE content_writes SET sent_at = $2 WHERE sent_at > $1";
        let close_leases = "UPDATE close_leases SET until = $2 WHERE until > $1";
        // A close lease lasts a minute.
        let lease_end = micros(now.saturating_add(CLOCK_TOLERANCE * 2).unwrap_or(Timestamp::MAX));
        let corrected = on_tx!(&mut tx, |db| {
            let queued = sqlx::query(jobs).bind(future).bind(present).bind(too_long);
            let queued = queued.execute(&mut *db).await?.rows_affected();
            let running = sqlx::query(leased).bind(future).bind(present).bind(too_long);
            FutureTimes {
                schedules: sqlx::query(schedules).bind(future).execute(&mut *db).await?.rows_affected(),
                jobs: queued + running.execute(&mut *db).await?.rows_affected(),
                writes: sqlx::query(writes).bind(future).bind(present).execute(&mut *db).await?.rows_affected(),
                sent: sqlx::query(sent).bind(future).bind(present).execute(&mut *db).await?.rows_affected(),
                close_leases: {
                    let leases = sqlx::query(close_leases).bind(lease_end).bind(present);
                    leases.execute(&mut *db).await?.rows_affected()
                },
            }
        });
        tx.commit().await?;
        if corrected != FutureTimes::default() {
            let FutureTimes { schedules, jobs, writes, sent, close_leases } = corrected;
            tracing::warn!(
                schedules,
                jobs,
                writes,
                sent,
                close_leases,
                "times in the future were found; the clock was ahead before, and what waited for them is due now"
            );
        }
        Ok(corrected)
    }
}
