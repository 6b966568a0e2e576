//! Stores the vectors of an item's tokens: written and deleted with the item's vector, and read for a few items at a
//! time.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::{ItemNumber, ItemType, TokenVectors};

use crate::corpus::embeddings::{EmbeddingKey, NewEmbedding};
use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::transaction::{Pool, StoreError, Transaction, on_tx};

#[boxed]
impl CorpusStore<'_> {
    /// Returns the token vectors of these items' current texts. An item is skipped if it has none, only those of an
    /// older text, or damaged ones: it is then compared less precisely.
    pub async fn token_vectors(
        self,
        repo: RepoId,
        key: &EmbeddingKey,
        item_type: ItemType,
        numbers: &[ItemNumber],
    ) -> Result<HashMap<ItemNumber, TokenVectors>, StoreError> {
        if numbers.is_empty() {
            return Ok(HashMap::new());
        }
        let numbers: Vec<i64> = numbers.iter().map(|number| number.get()).collect();
        // All numbers in one value: the statement is the same for any number of items and is prepared once.
        macro_rules! read {
            ($db:expr, $among:literal, $numbers:expr) => {{
                let query = concat!(
                    "SELECT i.number, t.vectors FROM items i JOIN token_vectors t ON t.item_id = i.id
                        AND t.representation = $3 AND t.model = $4 AND t.embedded_hash = i.content_hash
                    WHERE i.repo_id = $1 AND i.type = $2 AND i.number ",
                    $among
                );
                let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
                let query = query.bind(key.representation.as_str()).bind(key.model.as_str()).bind($numbers);
                query.fetch_all($db).await?
            }};
        }
        let rows: Vec<(i64, Vec<u8>)> = match self.pool {
            Pool::Sqlite(db) => read!(db, "IN (SELECT value FROM json_each($5))", sqlx::types::Json(&numbers)),
            Pool::Postgres(db) => read!(db, "= ANY ($5)", &numbers),
        };
        let mut found = HashMap::with_capacity(rows.len());
        for (number, bytes) in rows {
            let number = ItemNumber::new(number).map_err(StoreError::damaged)?;
            match TokenVectors::from_bytes(&bytes) {
                Ok(tokens) => {
                    found.insert(number, tokens);
                }
                Err(error) => tracing::warn!(%item_type, %number, %error, "the vectors of its tokens are not used"),
            }
        }
        Ok(found)
    }
}

/// Writes the token vectors of an embedding that was just written, or deletes those of the vector it replaced.
pub(crate) async fn write_token_vectors(
    tx: &mut Transaction,
    repo: RepoId,
    key: &EmbeddingKey,
    embedding: &NewEmbedding,
) -> Result<(), StoreError> {
    let upsert = "INSERT INTO token_vectors (item_id, representation, model, embedded_hash, vectors)
        SELECT id, $4, $5, $6, $7 FROM items WHERE repo_id = $1 AND type = $2 AND number = $3
        ON CONFLICT (item_id, representation, model) DO UPDATE
            SET embedded_hash = excluded.embedded_hash, vectors = excluded.vectors";
    let delete = "DELETE FROM token_vectors WHERE representation = $4 AND model = $5
        AND item_id = (SELECT id FROM items WHERE repo_id = $1 AND type = $2 AND number = $3)";
    on_tx!(tx, |db| {
        let query = sqlx::query(if embedding.tokens.is_some() { upsert } else { delete });
        let query = query.bind(repo.0).bind(embedding.item_type.as_str()).bind(embedding.number.get());
        let query = query.bind(key.representation.as_str()).bind(key.model.as_str());
        let query = match &embedding.tokens {
            Some(tokens) => query.bind(embedding.embedded_hash.as_str()).bind(tokens.to_bytes()),
            None => query,
        };
        query.execute(db).await?;
    });
    Ok(())
}
