//! Nearest vectors by the database itself: pgvector's index on PostgreSQL.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::{ItemNumber, ItemType};
use sqlx::{AssertSqlSafe, QueryBuilder};

use crate::corpus::embeddings::EmbeddingKey;
use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::lists::PushList as _;
use crate::engine::postgres_limits::lift_limits;
use crate::engine::transaction::{Pool, StoreError, Transaction};

/// The largest vector that pgvector's half-precision index takes; larger ones are scanned.
const INDEXED_DIMENSIONS: usize = 4_000;
/// How many neighbours the index keeps in view. 40, its default, loses one in ten of the true fifty
/// nearest on real issues; the look is in half precision and the answer is rescored in full.
const IN_VIEW: u32 = 200;

#[boxed]
impl CorpusStore<'_> {
    /// Makes the index for vectors of this dimension, once. SQLite has none: its vectors are scanned in
    /// memory.
    pub async fn ensure_vector_index(self, dim: usize) -> Result<(), StoreError> {
        let Pool::Postgres(db) = self.pool else { return Ok(()) };
        if dim == 0 || dim > INDEXED_DIMENSIONS {
            return Ok(());
        }
        // Looked for first: even where it is there, to ask for it would wait for everybody who writes vectors.
        let present: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
            .bind(format!("embeddings_near_{dim}"))
            .fetch_one(db)
            .await?;
        if present {
            return Ok(());
        }
        // Only a number is put into the text.
        let create = format!(
            "CREATE INDEX IF NOT EXISTS embeddings_near_{dim} ON embeddings \
             USING hnsw ((vector::halfvec({dim})) halfvec_ip_ops) WHERE dim = {dim}"
        );
        let mut tx = self.pool.begin().await?;
        if let Transaction::Postgres(transaction) = &mut tx {
            lift_limits(transaction).await?;
            sqlx::query(AssertSqlSafe(create)).execute(&mut **transaction).await?;
        }
        tx.commit().await
    }

    /// The items of a repository whose vectors have the greatest inner product with this one, best first,
    /// scored in full precision. `None` on SQLite, which leaves the scan to the index in memory.
    pub async fn nearest(
        self,
        repo: RepoId,
        key: &EmbeddingKey,
        item_type: ItemType,
        vector: &[f32],
        limit: u32,
    ) -> Result<Option<Vec<(ItemNumber, f32)>>, StoreError> {
        let Pool::Postgres(pool) = self.pool else { return Ok(None) };
        let dim = vector.len();
        let by_index = format!("e.vector::halfvec({dim}) <#> CAST(CAST($1 AS real[]) AS halfvec({dim}))");
        let exactly = "e.vector <#> CAST(CAST($1 AS real[]) AS vector)".to_owned();
        // The index is shared by all repositories and stops looking after a while: when it names fewer than
        // were asked for, a scan of this repository's own vectors says whether there are no more. Without the
        // last setting the planner sorts all vectors once it has statistics: 380 ms instead of 5 at 100,000.
        let look = format!(
            "SET LOCAL hnsw.iterative_scan = strict_order; SET LOCAL hnsw.ef_search = {IN_VIEW}; SET LOCAL enable_sort = off"
        );
        let mut ways = vec![(by_index, look), (exactly, String::new())];
        if dim > INDEXED_DIMENSIONS {
            ways.remove(0);
        }
        let mut rows: Vec<(i64, f32)> = Vec::new();
        for (distance, settings) in ways {
            // Two texts, because a prepared statement keeps its plan, whatever the settings are later.
            let query = format!(
                "WITH near AS MATERIALIZED (
                    SELECT e.item_id, e.vector FROM embeddings e
                    WHERE e.dim = {dim} AND e.model = $2 AND e.representation = $3
                    AND EXISTS (SELECT 1 FROM items i WHERE i.id = e.item_id AND i.repo_id = $4 AND i.type = $5
                        AND i.gone IS NULL AND i.content_hash = e.embedded_hash)
                    ORDER BY {distance} LIMIT $6)
                 SELECT i.number, CAST(-(near.vector <#> CAST(CAST($1 AS real[]) AS vector)) AS real) AS product
                 FROM near JOIN items i ON i.id = near.item_id ORDER BY product DESC, i.number"
            );
            let mut tx = pool.begin().await?;
            sqlx::raw_sql(AssertSqlSafe(settings)).execute(&mut *tx).await?;
            rows = sqlx::query_as(AssertSqlSafe(query))
                .bind(vector)
                .bind(key.model.as_str())
                .bind(key.representation.as_str())
                .bind(repo.0)
                .bind(item_type.as_str())
                .bind(i64::from(limit))
                .fetch_all(&mut *tx)
                .await?;
            tx.commit().await?;
            if rows.len() >= limit as usize {
                break;
            }
        }
        let read = |(number, product)| Ok((ItemNumber::new(number).map_err(StoreError::damaged)?, product));
        rows.into_iter().map(read).collect::<Result<_, _>>().map(Some)
    }

    /// Whether the database itself finds the nearest vectors.
    pub fn searches_vectors(self) -> bool {
        matches!(self.pool, Pool::Postgres(_))
    }

    /// The inner products of these items' vectors with this one, where they have one. Nothing on SQLite.
    pub async fn inner_products(
        self,
        repo: RepoId,
        key: &EmbeddingKey,
        item_type: ItemType,
        vector: &[f32],
        numbers: &[ItemNumber],
    ) -> Result<HashMap<ItemNumber, f32>, StoreError> {
        let Pool::Postgres(pool) = self.pool else { return Ok(HashMap::new()) };
        if numbers.is_empty() {
            return Ok(HashMap::new());
        }
        let mut query = QueryBuilder::new("SELECT i.number, CAST(-(e.vector <#> CAST(CAST(");
        query
            .push_bind(vector)
            .push(" AS real[]) AS vector)) AS real) FROM embeddings e JOIN items i ON i.id = e.item_id ");
        query.push("AND i.content_hash = e.embedded_hash WHERE i.repo_id = ").push_bind(repo.0);
        query.push(" AND i.type = ").push_bind(item_type.as_str());
        query.push(" AND e.representation = ").push_bind(key.representation.as_str());
        query.push(" AND e.model = ").push_bind(key.model.as_str()).push(" AND i.number IN (");
        query.push_list(numbers.iter().map(|number| number.get()));
        let rows: Vec<(i64, f32)> = query.build_query_as().fetch_all(pool).await?;
        let read = |(number, product)| Ok((ItemNumber::new(number).map_err(StoreError::damaged)?, product));
        rows.into_iter().map(read).collect()
    }
}
