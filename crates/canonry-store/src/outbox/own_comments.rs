//! Counts the comments on an item that Canonry wrote.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::ItemNumber;

use crate::corpus::repos::RepoId;
use crate::engine::facets::OutboxStore;
use crate::engine::row_values::number;
use crate::engine::transaction::{StoreError, on_pool};

#[boxed]
impl OutboxStore<'_> {
    /// Returns the number of Canonry's comments on each item of a repository, or on one: comments of the outbox that
    /// were not deleted again, and comments at lines of a diff. Items without any are left out. Comments that people
    /// deleted on GitHub are still counted.
    pub async fn own_comments(
        self,
        repo: RepoId,
        only: Option<ItemNumber>,
    ) -> Result<BTreeMap<ItemNumber, u32>, StoreError> {
        let query = "SELECT number, sum(written) FROM (
                SELECT number, CASE WHEN kind = 'delete_comment' THEN -1 ELSE 1 END AS written FROM outbox
                    WHERE repo_id = $1 AND (CAST($2 AS BIGINT) IS NULL OR number = $2) AND state = 'sent'
                    AND kind IN ('comment', 'close', 'reply', 'delete_comment')
                UNION ALL
                SELECT number, 1 AS written FROM posted_findings WHERE repo_id = $1 AND (CAST($2 AS BIGINT) IS NULL OR number = $2)
            ) AS own GROUP BY number";
        let only = only.map(ItemNumber::get);
        let rows: Vec<(i64, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).bind(only).fetch_all(db).await?);
        let own = rows.into_iter().map(|(of, written)| Ok((number(of)?, u32::try_from(written).unwrap_or(0))));
        own.collect()
    }
}
