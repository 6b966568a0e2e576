//! How far the database's clock is from ours.

use canonry_boxed::boxed;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

use crate::engine::open::Store;
use crate::engine::row_values::{micros, moment};
use crate::engine::transaction::{Pool, StoreError};

#[boxed]
impl Store {
    /// The database's time less ours, which is `now`; `None` on SQLite, which has no clock of its own. Leases of several
    /// processes hold only while their clocks agree, and the server that they share can tell.
    ///
    /// The time until the server looks at its clock counts as a difference; that until a connection is there does not.
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
