//! Stores the text that many items of a repository share, as last learned from them.

use canonry_boxed::boxed;
use canonry_domain::{Boilerplate, ItemNumber, ItemType, Login};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::index_changes::{IndexChange, note_index_change};
use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::CorpusStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::micros;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool, on_tx};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredBoilerplate {
    pub boilerplate: Boilerplate,
    /// The result of [`CorpusStore::count_texts`] when the boilerplate was learned.
    pub texts: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemText {
    pub number: ItemNumber,
    pub author: Option<Login>,
    pub title: String,
    pub body: String,
}

from_row!(ItemText { number, author, title, body });
from_row!(StoredBoilerplate { boilerplate: "learned", texts });

#[boxed]
impl CorpusStore<'_> {
    /// Returns the boilerplate last learned for an item type; `None` if none was learned yet.
    pub async fn boilerplate(self, repo: RepoId, item_type: ItemType) -> Result<Option<StoredBoilerplate>, StoreError> {
        let query = "SELECT learned, texts FROM boilerplate WHERE repo_id = $1 AND type = $2";
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).fetch_optional(db).await?
        }))
    }

    /// Returns a number that grows with every new item and every text change.
    pub async fn count_texts(self, repo: RepoId, item_type: ItemType) -> Result<u64, StoreError> {
        let query = "SELECT CAST(COALESCE(sum(content_version), 0) AS BIGINT) FROM items
            WHERE repo_id = $1 AND type = $2 AND gone IS NULL";
        let texts: i64 = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(item_type.as_str()).fetch_one(db).await?
        });
        u64::try_from(texts).map_err(StoreError::damaged)
    }

    /// Returns one page of texts after the number `after`, ordered by number, without gone items.
    pub async fn texts_after(
        self,
        repo: RepoId,
        item_type: ItemType,
        after: Option<ItemNumber>,
        limit: u32,
    ) -> Result<Vec<ItemText>, StoreError> {
        let query = "SELECT number, author, title, body FROM items
            WHERE repo_id = $1 AND type = $2 AND gone IS NULL AND number > $3 ORDER BY number LIMIT $4";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
            query.bind(after.map_or(0, ItemNumber::get)).bind(i64::from(limit)).fetch_all(db).await?
        }))
    }

    /// Stores the learned boilerplate and marks the vectors of the items in `changed`, whose own text changed, as
    /// outdated. An outdated vector counts until it is recomputed. `since` is the
    /// [`IndexVersion`](crate::IndexVersion) from before the texts were read: items that changed later were not
    /// compared with the new boilerplate.
    pub async fn write_boilerplate(
        self,
        repo: RepoId,
        item_type: ItemType,
        learned: &StoredBoilerplate,
        changed: &[ItemNumber],
        since: i64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        let upsert = "INSERT INTO boilerplate (repo_id, type, learned, texts, learned_at) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT (repo_id, type) DO UPDATE
            SET learned = excluded.learned, texts = excluded.texts, learned_at = excluded.learned_at";
        let texts = i64::try_from(learned.texts).map_err(StoreError::damaged)?;
        on_tx!(&mut tx, |db| {
            let query = sqlx::query(upsert).bind(repo.0).bind(item_type.as_str()).bind(Json(&learned.boilerplate));
            query.bind(texts).bind(micros(now)).execute(db).await?;
        });
        for batch in changed.chunks(NUMBERS_PER_STATEMENT) {
            on_tx!(&mut tx, |db| {
                let mut query = QueryBuilder::new("UPDATE embeddings SET outdated = TRUE WHERE representation = ");
                query.push_bind(Representation::Raw.as_str());
                query.push(" AND item_id IN (SELECT id FROM items WHERE repo_id = ").push_bind(repo.0);
                query.push(" AND type = ").push_bind(item_type.as_str()).push(" AND number IN (");
                query.push_list(batch.iter().map(|number| number.get())).push(")");
                query.build().execute(db).await?;
            });
        }
        note_index_change(&mut tx, repo, IndexChange::Boilerplate { item_type, changed, since }).await?;
        tx.commit().await
    }
}
