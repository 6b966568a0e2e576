//! Finds pull requests whose changes or base branch are unknown, stores base branches, and forgets changes.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType};
use jiff::Timestamp;

use crate::corpus::index_changes::{IndexChange, note_index_change};
use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::row_values::micros;
use crate::engine::rows::Read;
use crate::engine::transaction::{StoreError, on_pool, on_tx};

#[boxed]
impl CorpusStore<'_> {
    /// The pull requests without current changes that are open or were closed since then: first those without any,
    /// newest first. GitHub's list of issues does not say what happened to an open one, so each later activity counts
    /// as a push. What a closed one changes is final.
    pub async fn pulls_without_changes(
        self,
        repo: RepoId,
        closed_since: Timestamp,
    ) -> Result<Vec<ItemNumber>, StoreError> {
        let query = "SELECT number FROM items WHERE repo_id = $1 AND type = 'pr' AND gone IS NULL
            AND (state = 'open' OR closed_at >= $2) AND (changes IS NULL
                OR (state = 'open' AND coalesce(updated_at, 0) > coalesce(changes_as_of, -1)))
            ORDER BY changes IS NOT NULL, number DESC";
        let rows: Vec<Read<(ItemNumber,)>> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(micros(closed_since)).fetch_all(db).await?
        });
        Ok(rows.into_iter().map(|Read((number,))| number).collect())
    }

    /// Forgets what an open pull request changes, because its commits or its base have changed. A closed one keeps it:
    /// the webhook may be late.
    pub async fn forget_pull_changes(self, repo: RepoId, number: ItemNumber) -> Result<(), StoreError> {
        let update = "UPDATE items SET changes = NULL WHERE repo_id = $1 AND type = 'pr' AND number = $2
            AND state = 'open' AND changes IS NOT NULL";
        let mut tx = self.pool.begin().await?;
        let forgotten = on_tx!(&mut tx, |db| {
            sqlx::query(update).bind(repo.0).bind(number.get()).execute(db).await?.rows_affected()
        });
        if forgotten > 0 {
            note_index_change(&mut tx, repo, IndexChange::Items(&[(ItemType::Pr, number)])).await?;
        }
        tx.commit().await
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
