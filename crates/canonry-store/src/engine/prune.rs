//! Deletes data that a service no longer needs.

use canonry_boxed::boxed;
use jiff::{SignedDuration, Timestamp};

use crate::engine::facets::MaintenanceStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_pool};

/// How much longer console actions are kept than other data: a year, because people ask about them that late.
const ACTIONS_KEPT: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The number of deleted rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneCounts {
    pub deliveries: u64,
    pub jobs: u64,
    /// Deleted console sessions and console actions.
    pub console: u64,
}

#[boxed]
impl MaintenanceStore<'_> {
    /// Deletes the deliveries, with their jobs, and the jobs without a delivery, that were done or ignored before
    /// `before`: at most `limit` of each, so that no writer waits for long. The caller repeats this until nothing is
    /// left. A delivery that comes again after that counts as new; failed jobs and deliveries stay unchanged. Console
    /// sessions that ended before `before` are deleted too, and console actions from a year before it.
    pub async fn prune(self, before: Timestamp, limit: u32) -> Result<PruneCounts, StoreError> {
        // The delete checks the state again, because a delivery may have been replayed since. It does not use the
        // plain column, because SQLite would then walk all done deliveries in the index of states.
        macro_rules! delete_deliveries {
            ($emptied:literal) => {
                concat!(
                    "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries
                        WHERE state IN ('done', 'ignored') AND emptied = ",
                    $emptied,
                    " AND finished_at < $1 ORDER BY finished_at LIMIT $2) AND state || '' IN ('done', 'ignored')"
                )
            };
        }
        let (whole, emptied) = (delete_deliveries!("FALSE"), delete_deliveries!("TRUE"));
        let delete = "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs
            WHERE state = 'done' AND delivery_id IS NULL AND finished_at < $1 ORDER BY finished_at LIMIT $2)";
        let ended = "DELETE FROM console_sessions WHERE id IN (SELECT id FROM console_sessions
            WHERE ends_at < $1 ORDER BY ends_at LIMIT $2)";
        let forgotten = "DELETE FROM console_actions WHERE id IN (SELECT id FROM console_actions
            WHERE at < $1 ORDER BY at LIMIT $2)";
        let acted = micros(before.saturating_sub(ACTIONS_KEPT).map_err(StoreError::damaged)?);
        let (before, limit) = (micros(before), i64::from(limit));
        Ok(on_pool!(self.pool, |db| PruneCounts {
            deliveries: sqlx::query(whole).bind(before).bind(limit).execute(db).await?.rows_affected()
                + sqlx::query(emptied).bind(before).bind(limit).execute(db).await?.rows_affected(),
            jobs: sqlx::query(delete).bind(before).bind(limit).execute(db).await?.rows_affected(),
            console: sqlx::query(ended).bind(before).bind(limit).execute(db).await?.rows_affected()
                + sqlx::query(forgotten).bind(acted).bind(limit).execute(db).await?.rows_affected(),
        }))
    }
}
