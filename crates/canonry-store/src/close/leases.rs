//! The close lease, with which one process at a time closes or reopens items in a repository.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::CloseStore;
use crate::engine::row_values::{micros, moment};
use crate::engine::transaction::{StoreError, on_pool};

/// Which process may close and reopen in a repository, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCloseLease {
    pub owner: String,
    /// When the lease expires.
    pub until: Timestamp,
}

#[boxed]
impl CloseStore<'_> {
    /// Takes the lease or extends the owner's own; `false` if another process has it.
    pub async fn take_lease(
        self,
        repo: RepoId,
        owner: &str,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let take = "INSERT INTO close_leases (repo_id, owner, until) VALUES ($1, $2, $4)
            ON CONFLICT (repo_id) DO UPDATE SET owner = excluded.owner, until = excluded.until
            WHERE close_leases.owner = excluded.owner OR close_leases.until <= $3";
        let taken = on_pool!(self.pool, |db| {
            let query = sqlx::query(take).bind(repo.0).bind(owner).bind(micros(now)).bind(micros(until));
            query.execute(db).await?.rows_affected()
        });
        Ok(taken == 1)
    }

    pub async fn release_lease(self, repo: RepoId, owner: &str) -> Result<(), StoreError> {
        let release = "DELETE FROM close_leases WHERE repo_id = $1 AND owner = $2";
        on_pool!(self.pool, |db| {
            sqlx::query(release).bind(repo.0).bind(owner).execute(db).await?;
        });
        Ok(())
    }

    /// Returns the lease that was last taken and not released; it may have expired.
    pub async fn lease(self, repo: RepoId) -> Result<Option<StoredCloseLease>, StoreError> {
        let query = "SELECT owner, until FROM close_leases WHERE repo_id = $1";
        let row: Option<(String, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_optional(db).await?);
        row.map(|(owner, until)| Ok(StoredCloseLease { owner, until: moment(until)? })).transpose()
    }
}
