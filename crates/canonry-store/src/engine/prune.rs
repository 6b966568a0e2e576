//! Throwing away what a service needs no more.

use canonry_boxed::boxed;
use jiff::{SignedDuration, Timestamp};

use crate::engine::facets::MaintenanceStore;
use crate::engine::row_values::micros;
use crate::engine::transaction::{StoreError, on_pool};

/// How much longer than all else it is kept who did what in the console: a year, which is when people ask.
const ACTIONS_KEPT: SignedDuration = SignedDuration::from_hours(365 * 24);

/// What was thrown away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PruneCounts {
    pub deliveries: u64,
    pub jobs: u64,
    /// Sessions of the console, and notes of what was done there, that are gone.
    pub console: u64,
}

#[boxed]
impl MaintenanceStore<'_> {
    /// Throws away the bodies of deliveries, and the jobs without a delivery, that were done or ignored before that
    /// moment: at most `limit` of each, so that no writer waits for long. Called again until nothing is left. A
    /// delivery's row stays, so that one that comes again is known; what was given up stays as it is. Sessions of the console
    /// that had ended go with them, and what people did there a year before that moment.
    pub async fn prune(self, before: Timestamp, limit: u32) -> Result<PruneCounts, StoreError> {
        // The state is looked at again by the update itself: it may have been replayed since. Not as a plain column,
        // or SQLite would go through all that are done by the index of states.
        let empty = "UPDATE deliveries SET payload = '', emptied = TRUE WHERE id IN (SELECT id FROM deliveries
                WHERE state IN ('done', 'ignored') AND emptied = FALSE AND finished_at < $1 ORDER BY finished_at LIMIT $2)
            AND state || '' IN ('done', 'ignored')";
        let delete = "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs
            WHERE state = 'done' AND delivery_id IS NULL AND finished_at < $1 ORDER BY finished_at LIMIT $2)";
        let ended = "DELETE FROM console_sessions WHERE id IN (SELECT id FROM console_sessions
            WHERE ends_at < $1 ORDER BY ends_at LIMIT $2)";
        let forgotten = "DELETE FROM console_actions WHERE id IN (SELECT id FROM console_actions
            WHERE at < $1 ORDER BY at LIMIT $2)";
        let acted = micros(before.saturating_sub(ACTIONS_KEPT).map_err(StoreError::damaged)?);
        let (before, limit) = (micros(before), i64::from(limit));
        Ok(on_pool!(self.pool, |db| PruneCounts {
            deliveries: sqlx::query(empty).bind(before).bind(limit).execute(db).await?.rows_affected(),
            jobs: sqlx::query(delete).bind(before).bind(limit).execute(db).await?.rows_affected(),
            console: sqlx::query(ended).bind(before).bind(limit).execute(db).await?.rows_affected()
                + sqlx::query(forgotten).bind(acted).bind(limit).execute(db).await?.rows_affected(),
        }))
    }
}
