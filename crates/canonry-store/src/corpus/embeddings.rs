//! Embeddings: one vector for each item, representation and model.

use canonry_boxed::boxed;
use canonry_domain::{
    CARD_RENDER_VERSION, ContentHash, Extractor, Item, ItemNumber, ItemState, ItemType, TokenVectors,
};
use jiff::Timestamp;

use crate::corpus::index_changes::{IndexChange, note_index_change};
use crate::corpus::items::item_columns;
use crate::corpus::repos::RepoId;
use crate::corpus::token_vectors::write_token_vectors;
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::CorpusStore;
use crate::engine::row_values::micros;
use crate::engine::rows::unwrap_all;
use crate::engine::transaction::{Pool, StoreError, Transaction, on_pool};

/// What is embedded (the representation) and by which model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingKey {
    pub representation: Representation,
    pub model: String,
}

impl EmbeddingKey {
    pub fn raw(model: &str) -> Self {
        Self { representation: Representation::Raw, model: model.to_owned() }
    }

    /// The key of intent card vectors. Two extractors word their cards differently, so the model name in the key
    /// contains the extractor and their vectors are never mixed.
    pub fn intent(model: &str, extractor: Extractor) -> Self {
        Self { representation: Representation::Intent, model: format!("{model}{}", cards_suffix(extractor)) }
    }
}

pub(crate) fn cards_suffix(extractor: Extractor) -> String {
    format!("+cards:{extractor}.{CARD_RENDER_VERSION}")
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewEmbedding {
    pub item_type: ItemType,
    pub number: ItemNumber,
    /// The content hash of the text that was embedded.
    pub embedded_hash: ContentHash,
    pub vector: Vec<f32>,
    /// The vectors of the text's tokens, if the model produces them.
    pub tokens: Option<TokenVectors>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredEmbedding {
    pub number: ItemNumber,
    /// The content hash of the text that was embedded.
    pub embedded_hash: ContentHash,
    pub fresh: bool,
    pub vector: Vec<f32>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EmbedFilter {
    pub item_type: Option<ItemType>,
    pub state: Option<ItemState>,
    /// Selects only items that were never embedded, or whose text or own text changed since.
    pub only_changed: bool,
}

#[boxed]
impl CorpusStore<'_> {
    /// Returns one page of items to embed after `after`, ordered by number, without gone items.
    pub async fn items_to_embed(
        self,
        repo: RepoId,
        key: &EmbeddingKey,
        filter: EmbedFilter,
        after: Option<(ItemNumber, ItemType)>,
        limit: u32,
    ) -> Result<Vec<Item>, StoreError> {
        let query = concat!(
            "SELECT ",
            item_columns!(),
            " FROM items i WHERE repo_id = $1 AND ($2 IS NULL OR type = $2) AND ($3 IS NULL OR state = $3) AND gone IS NULL \
            AND (number > $4 OR (number = $4 AND type > $5)) \
            AND NOT ($6 AND EXISTS (SELECT 1 FROM embeddings e WHERE e.item_id = i.id AND e.representation = $7 \
                AND e.model = $8 AND e.embedded_hash = i.content_hash AND NOT e.outdated)) ORDER BY number, type LIMIT $9"
        );
        let (number, item_type) = after.map_or((0, ""), |(number, item_type)| (number.get(), item_type.as_str()));
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            sqlx::query_as(query)
                .bind(repo.0)
                .bind(filter.item_type.map(ItemType::as_str))
                .bind(filter.state.map(ItemState::as_str))
                .bind(number)
                .bind(item_type)
                .bind(filter.only_changed)
                .bind(key.representation.as_str())
                .bind(key.model.as_str())
                .bind(i64::from(limit))
                .fetch_all(db)
                .await?
        })))
    }

    /// Returns how many items [`CorpusStore::items_to_embed`] returns on all pages.
    pub async fn count_items_to_embed(
        self,
        repo: RepoId,
        key: &EmbeddingKey,
        filter: EmbedFilter,
    ) -> Result<u64, StoreError> {
        let query = "SELECT COUNT(*) FROM items i WHERE repo_id = $1 AND ($2 IS NULL OR type = $2) \
            AND ($3 IS NULL OR state = $3) AND gone IS NULL \
            AND NOT ($4 AND EXISTS (SELECT 1 FROM embeddings e WHERE e.item_id = i.id AND e.representation = $5 \
                AND e.model = $6 AND e.embedded_hash = i.content_hash AND NOT e.outdated))";
        let count: i64 = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query)
                .bind(repo.0)
                .bind(filter.item_type.map(ItemType::as_str))
                .bind(filter.state.map(ItemState::as_str))
                .bind(filter.only_changed)
                .bind(key.representation.as_str())
                .bind(key.model.as_str())
                .fetch_one(db)
                .await?
        });
        Ok(count.unsigned_abs())
    }

    /// Writes all vectors or none. Each replaces an earlier vector of the same item, representation and model, and
    /// the token vectors of that earlier vector.
    pub async fn write_embeddings(
        self,
        repo: RepoId,
        key: &EmbeddingKey,
        embeddings: &[NewEmbedding],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        for embedding in embeddings {
            write_embedding(&mut tx, repo, key, embedding, micros(now)).await?;
            write_token_vectors(&mut tx, repo, key, embedding).await?;
        }
        let items: Vec<_> = embeddings.iter().map(|embedding| (embedding.item_type, embedding.number)).collect();
        note_index_change(&mut tx, repo, IndexChange::Items(&items)).await?;
        tx.commit().await
    }

    /// Returns one page of vectors of one item type after the number `after`, ordered by number, without gone items.
    pub async fn embeddings_after(
        self,
        repo: RepoId,
        key: &EmbeddingKey,
        item_type: ItemType,
        after: Option<ItemNumber>,
        limit: u32,
    ) -> Result<Vec<StoredEmbedding>, StoreError> {
        let after = after.map_or(0, ItemNumber::get);
        let limit = i64::from(limit);
        let rows: Vec<(i64, String, bool, Vec<f32>)> = match self.pool {
            Pool::Sqlite(db) => {
                let query = "SELECT i.number, e.embedded_hash, e.embedded_hash = i.content_hash, e.vector
                    FROM embeddings e JOIN items i ON i.id = e.item_id WHERE i.repo_id = $1 AND i.type = $2 AND i.gone IS NULL
                    AND e.representation = $3 AND e.model = $4 AND i.number > $5 ORDER BY i.number LIMIT $6";
                let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
                let query = query.bind(key.representation.as_str()).bind(key.model.as_str()).bind(after).bind(limit);
                let rows: Vec<(i64, String, bool, Vec<u8>)> = query.fetch_all(db).await?;
                rows.into_iter().map(|(number, hash, fresh, bytes)| (number, hash, fresh, from_bytes(&bytes))).collect()
            }
            Pool::Postgres(db) => {
                let query = "SELECT i.number, e.embedded_hash, e.embedded_hash = i.content_hash, CAST(e.vector AS real[])
                    FROM embeddings e JOIN items i ON i.id = e.item_id WHERE i.repo_id = $1 AND i.type = $2 AND i.gone IS NULL
                    AND e.representation = $3 AND e.model = $4 AND i.number > $5 ORDER BY i.number LIMIT $6";
                let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
                query
                    .bind(key.representation.as_str())
                    .bind(key.model.as_str())
                    .bind(after)
                    .bind(limit)
                    .fetch_all(db)
                    .await?
            }
        };
        rows.into_iter()
            .map(|(number, hash, fresh, vector)| {
                let number = ItemNumber::new(number).map_err(StoreError::damaged)?;
                Ok(StoredEmbedding { number, embedded_hash: ContentHash::stored(hash), fresh, vector })
            })
            .collect()
    }

    /// Returns the models that embedded a repository's items in one representation, each with its number of vectors.
    pub async fn embedding_models(
        self,
        repo: RepoId,
        representation: Representation,
    ) -> Result<Vec<(String, u64)>, StoreError> {
        let query = "SELECT e.model, count(*) FROM embeddings e JOIN items i ON i.id = e.item_id
            WHERE i.repo_id = $1 AND e.representation = $2 AND i.gone IS NULL GROUP BY e.model ORDER BY e.model";
        let rows: Vec<(String, i64)> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(representation.as_str()).fetch_all(db).await?
        });
        rows.into_iter().map(|(model, count)| Ok((model, u64::try_from(count).map_err(StoreError::damaged)?))).collect()
    }

    /// Returns a model's calibration as it was stored.
    pub async fn calibration(self, model: &str) -> Result<Option<serde_json::Value>, StoreError> {
        let query = "SELECT calibration FROM calibrations WHERE model = $1";
        let row: Option<sqlx::types::Json<serde_json::Value>> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(model).fetch_optional(db).await?);
        Ok(row.map(|json| json.0))
    }

    /// Stores a model's calibration and replaces an earlier one.
    pub async fn write_calibration(
        self,
        model: &str,
        calibration: &serde_json::Value,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let upsert = "INSERT INTO calibrations (model, calibration, fitted_at) VALUES ($1, $2, $3)
            ON CONFLICT (model) DO UPDATE SET calibration = excluded.calibration, fitted_at = excluded.fitted_at";
        on_pool!(self.pool, |db| {
            let query = sqlx::query(upsert).bind(model).bind(sqlx::types::Json(calibration)).bind(micros(now));
            query.execute(db).await?;
        });
        Ok(())
    }
}

async fn write_embedding(
    tx: &mut Transaction,
    repo: RepoId,
    key: &EmbeddingKey,
    embedding: &NewEmbedding,
    now: i64,
) -> Result<(), StoreError> {
    let dim = i64::try_from(embedding.vector.len()).map_err(StoreError::damaged)?;
    macro_rules! bound {
        ($sql:expr, $vector:expr) => {
            sqlx::query($sql)
                .bind(repo.0)
                .bind(embedding.item_type.as_str())
                .bind(embedding.number.get())
                .bind(key.representation.as_str())
                .bind(key.model.as_str())
                .bind(dim)
                .bind($vector)
                .bind(embedding.embedded_hash.as_str())
                .bind(now)
        };
    }
    match tx {
        Transaction::Sqlite(db) => {
            let upsert =
                "INSERT INTO embeddings (item_id, representation, model, dim, vector, embedded_hash, embedded_at)
                SELECT id, $4, $5, $6, $7, $8, $9 FROM items WHERE repo_id = $1 AND type = $2 AND number = $3
                ON CONFLICT (item_id, representation, model) DO UPDATE SET dim = excluded.dim, vector = excluded.vector,
                    embedded_hash = excluded.embedded_hash, embedded_at = excluded.embedded_at, outdated = FALSE";
            bound!(upsert, to_bytes(&embedding.vector)).execute(&mut **db).await?;
        }
        Transaction::Postgres(db) => {
            // The driver has no vector type; the server converts an array of reals.
            let upsert =
                "INSERT INTO embeddings (item_id, representation, model, dim, vector, embedded_hash, embedded_at)
                SELECT id, $4, $5, $6, CAST(CAST($7 AS real[]) AS vector), $8, $9
                FROM items WHERE repo_id = $1 AND type = $2 AND number = $3
                ON CONFLICT (item_id, representation, model) DO UPDATE SET dim = excluded.dim, vector = excluded.vector,
                    embedded_hash = excluded.embedded_hash, embedded_at = excluded.embedded_at, outdated = FALSE";
            bound!(upsert, embedding.vector.as_slice()).execute(&mut **db).await?;
        }
    }
    Ok(())
}

pub(crate) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|number| number.to_le_bytes()).collect()
}

pub(crate) fn from_bytes(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect()
}
