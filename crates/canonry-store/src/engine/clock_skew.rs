//! Measures how far the database's clock differs from the local clock.

use canonry_boxed::boxed;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use crate::engine::open::Store;
use crate::engine::row_values::{micros, moment};
use crate::engine::transaction::{Pool, StoreError};

#[boxed]
impl Store {
    /// Returns the database's time minus `now`; `None` on SQLite, which has no clock of its own. Leases of several
    /// processes work only if their clocks agree, and the shared server can check that.
    ///
    /// The time until the server reads its clock counts as a difference; the time to get a connection does not.
    pub async fn clock_skew(&self, now: Timestamp) -> Result<Option<SignedDuration>, StoreError> {
        let Pool::Postgres(pool) = &self.pool else { return Ok(None) };
        let begun = Instant::now();
        let mut connection = pool.acquire().await?;
        let ours = micros(now).saturating_add(i64::try_from(begun.elapsed().as_micros()).unwrap_or(i64::MAX));
        let query = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
        let theirs: i64 = sqlx::query_scalar(query).fetch_one(&mut *connection).await?;
        Ok(Some(moment(theirs)?.duration_since(moment(ours)?)))
    }
}
