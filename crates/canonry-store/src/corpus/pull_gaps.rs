//! Finds pull requests whose changes or base branch are unknown, and stores base branches.

use canonry_boxed::boxed;
use canonry_domain::ItemNumber;
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::row_values::micros;
use crate::engine::rows::Read;
use crate::engine::transaction::{StoreError, on_pool, on_tx};

#[boxed]
impl CorpusStore<'_> {
    /// The pull requests without stored changes that are open or were closed since then, newest first.
    pub async fn pulls_without_changes(
        self,
        repo: RepoId,
        closed_since: Timestamp,
    ) -> Result<Vec<ItemNumber>, StoreError> {
        let query = "SELECT number FROM items WHERE repo_id = $1 AND type = 'pr' AND gone IS NULL AND changes IS NULL
            AND (state = 'open' OR closed_at >= $2) ORDER BY number DESC";
        let rows: Vec<Read<(ItemNumber,)>> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(micros(closed_since)).fetch_all(db).await?
        });
        Ok(rows.into_iter().map(|Read((number,))| number).collect())
    }

    /// The open and merged pull requests whose base branch is unknown, newest first. A pull request that was closed
    /// without a merge changed no branch.
    pub async fn pulls_without_base(self, repo: RepoId) -> Result<Vec<ItemNumber>, StoreError> {
        let query = "SELECT number FROM items WHERE repo_id = $1 AND type = 'pr' AND gone IS NULL
            AND base_branch IS NULL AND (state = 'open' OR merged) ORDER BY number DESC";
        let rows: Vec<Read<(ItemNumber,)>> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?);
        Ok(rows.into_iter().map(|Read((number,))| number).collect())
    }

    /// Stores base branches that are unknown, and returns their number. A stored one stays: a webhook may have stored
    /// a newer one since the list was read.
    pub async fn add_base_branches(self, repo: RepoId, bases: &[(ItemNumber, String)]) -> Result<u64, StoreError> {
        let update = "UPDATE items SET base_branch = $3 WHERE repo_id = $1 AND type = 'pr' AND number = $2
            AND gone IS NULL AND base_branch IS NULL";
        let mut tx = self.pool.begin().await?;
        let mut added = 0;
        for (number, base) in bases {
            // PostgreSQL cannot store U+0000, which no branch name contains.
            if base.contains('\0') {
                continue;
            }
            added += on_tx!(&mut tx, |db| {
                let query = sqlx::query(update).bind(repo.0).bind(number.get());
                query.bind(base.as_str()).execute(db).await?.rows_affected()
            });
        }
        tx.commit().await?;
        Ok(added)
    }
}
