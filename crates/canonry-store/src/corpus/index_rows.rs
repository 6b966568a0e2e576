//! Reads what an in-memory index is built from, and what shows whether the index is up to date.

use std::collections::HashMap;

use canonry_boxed::boxed;
use canonry_domain::{ContentVersion, ItemNumber, ItemState, ItemType, Login, PullChanges};
use futures_util::TryStreamExt as _;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::embeddings::{EmbeddingKey, from_bytes};
use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{optional_moment, optional_word, word};
use crate::engine::transaction::{Pool, StoreError, on_pool};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRow {
    pub number: ItemNumber,
    pub state: ItemState,
    pub created_at: Option<Timestamp>,
    pub author: Option<Login>,
    pub duplicate_of: Option<ItemNumber>,
    /// The first bytes of the item's content hash.
    pub text_hash: u64,
    pub content_version: ContentVersion,
    /// A hash of the stored changes of a pull request; 0 if the changes are unknown. SQLite and PostgreSQL hash
    /// differently.
    pub changes_hash: u64,
    pub embedded: bool,
    /// When the vector was made: a new vector may have replaced it although the text is the same.
    pub embedded_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct IndexEntry {
    pub number: ItemNumber,
    pub title: String,
    pub body: String,
    pub changes: Option<PullChanges>,
    /// `None` if the item has no vector, or only one of an older text.
    pub vector: Option<Vec<f32>>,
}

type Row = (i64, String, Option<i64>, Option<i64>, String, i64, u64, Option<i64>, Option<String>);
type RowWithChanges = (i64, String, Option<i64>, Option<i64>, String, i64, Option<String>, Option<i64>, Option<String>);
type TextRow = (i64, String, String, Option<Json<PullChanges>>);

#[boxed]
impl CorpusStore<'_> {
    /// Returns the items of one type without their texts, ordered by number, without gone items: all, or those in
    /// `numbers`.
    pub async fn index_rows(
        self,
        repo: RepoId,
        key: &EmbeddingKey,
        item_type: ItemType,
        numbers: Option<&[ItemNumber]>,
    ) -> Result<Vec<IndexRow>, StoreError> {
        let numbers: Option<Vec<i64>> = numbers.map(|numbers| numbers.iter().map(|number| number.get()).collect());
        macro_rules! rows {
            ($db:expr, $changes:literal, $among:literal, $numbers:expr) => {{
                let query = concat!(
                    "SELECT i.number, i.state, i.created_at, i.duplicate_of, i.content_hash, i.content_version, ",
                    $changes,
                    ", e.embedded_at, i.author
                    FROM items i LEFT JOIN embeddings e ON e.item_id = i.id AND e.representation = $3 AND e.model = $4
                        AND e.embedded_hash = i.content_hash
                    WHERE i.repo_id = $1 AND i.type = $2 AND i.gone IS NULL",
                    $among,
                    " ORDER BY i.number"
                );
                let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
                let query = query.bind(key.representation.as_str()).bind(key.model.as_str());
                let query = match $numbers {
                    Some(numbers) => query.bind(numbers),
                    None => query,
                };
                let mut read = query.fetch($db);
                let mut rows: Vec<Row> = Vec::new();
                // Row by row, because the changes of all pull requests together may be larger than memory.
                while let Some(row) = read.try_next().await? {
                    let (a, b, c, d, e, f, changes, h, i): RowWithChanges = row;
                    rows.push((a, b, c, d, e, f, changes.as_deref().map_or(0, hash_of), h, i));
                }
                rows
            }};
        }
        let listed = numbers.as_ref().map(Json);
        let rows: Vec<Row> = match (self.pool, numbers.is_some()) {
            // SQLite has no hash function.
            (Pool::Sqlite(db), false) => rows!(db, "i.changes", "", None::<i64>),
            (Pool::Sqlite(db), true) => {
                rows!(db, "i.changes", " AND i.number IN (SELECT value FROM json_each($5))", listed)
            }
            (Pool::Postgres(db), false) => rows!(db, "md5(CAST(i.changes AS TEXT))", "", None::<i64>),
            (Pool::Postgres(db), true) => {
                rows!(db, "md5(CAST(i.changes AS TEXT))", " AND i.number = ANY ($5)", numbers.as_ref())
            }
        };
        rows.into_iter()
            .map(|(number, state, created_at, duplicate_of, hash, version, changes_hash, embedded_at, author)| {
                Ok(IndexRow {
                    number: ItemNumber::new(number).map_err(StoreError::damaged)?,
                    state: word(&state)?,
                    created_at: optional_moment(created_at)?,
                    author: optional_word(author.as_deref())?,
                    duplicate_of: duplicate_of.map(ItemNumber::new).transpose().map_err(StoreError::damaged)?,
                    text_hash: hash
                        .get(..16)
                        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
                        .unwrap_or_default(),
                    content_version: ContentVersion::stored(version),
                    changes_hash,
                    embedded: embedded_at.is_some(),
                    embedded_at: optional_moment(embedded_at)?,
                })
            })
            .collect()
    }

    /// Returns the texts of these items (a few hundred at most), with their vectors if `vectors_of` is given.
    pub async fn index_entries(
        self,
        repo: RepoId,
        item_type: ItemType,
        numbers: &[ItemNumber],
        vectors_of: Option<&EmbeddingKey>,
    ) -> Result<Vec<IndexEntry>, StoreError> {
        // PostgreSQL accepts no empty list.
        if numbers.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<TextRow> = on_pool!(self.pool, |db| {
            let mut query =
                QueryBuilder::new("SELECT number, title, body, changes FROM items WHERE gone IS NULL AND repo_id = ");
            query.push_bind(repo.0).push(" AND type = ").push_bind(item_type.as_str()).push(" AND number IN (");
            query.push_list(numbers.iter().map(|number| number.get())).push(" ORDER BY number");
            query.build_query_as().fetch_all(db).await?
        });
        let mut vectors = match vectors_of {
            Some(key) => self.vectors_of(repo, item_type, numbers, key).await?,
            None => Vec::new(),
        };
        vectors.sort_unstable_by_key(|(number, _)| *number);
        rows.into_iter()
            .map(|(number, title, body, changes)| {
                let vector = vectors.binary_search_by_key(&number, |(number, _)| *number);
                Ok(IndexEntry {
                    number: ItemNumber::new(number).map_err(StoreError::damaged)?,
                    title,
                    body,
                    changes: changes.map(|Json(changes)| changes),
                    vector: vector.ok().map(|place| std::mem::take(&mut vectors[place].1)),
                })
            })
            .collect()
    }

    /// Returns the vector of an item's current text.
    pub async fn item_vector(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
        key: &EmbeddingKey,
    ) -> Result<Option<Vec<f32>>, StoreError> {
        Ok(self.vectors_of(repo, item_type, &[number], key).await?.pop().map(|(_, vector)| vector))
    }

    /// Returns the vectors of these items' current texts (a few hundred at most) by number; items without one are
    /// left out.
    pub async fn item_vectors(
        self,
        repo: RepoId,
        item_type: ItemType,
        numbers: &[ItemNumber],
        key: &EmbeddingKey,
    ) -> Result<HashMap<ItemNumber, Vec<f32>>, StoreError> {
        // PostgreSQL accepts no empty list.
        if numbers.is_empty() {
            return Ok(HashMap::new());
        }
        let vectors = self.vectors_of(repo, item_type, numbers, key).await?.into_iter();
        vectors.map(|(number, vector)| Ok((ItemNumber::new(number).map_err(StoreError::damaged)?, vector))).collect()
    }

    /// Returns the vectors of these items' current texts.
    async fn vectors_of(
        self,
        repo: RepoId,
        item_type: ItemType,
        numbers: &[ItemNumber],
        key: &EmbeddingKey,
    ) -> Result<Vec<(i64, Vec<f32>)>, StoreError> {
        const JOIN: &str = " FROM embeddings e JOIN items i ON i.id = e.item_id AND i.content_hash = e.embedded_hash WHERE i.repo_id = ";
        macro_rules! asked {
            ($select:literal) => {{
                let mut query = QueryBuilder::new($select);
                query.push(JOIN).push_bind(repo.0).push(" AND i.type = ").push_bind(item_type.as_str());
                query.push(" AND e.representation = ").push_bind(key.representation.as_str());
                query.push(" AND e.model = ").push_bind(key.model.as_str()).push(" AND i.number IN (");
                query.push_list(numbers.iter().map(|number| number.get()));
                query
            }};
        }
        Ok(match self.pool {
            Pool::Sqlite(db) => {
                let rows: Vec<(i64, Vec<u8>)> =
                    asked!("SELECT i.number, e.vector").build_query_as().fetch_all(db).await?;
                rows.into_iter().map(|(number, bytes)| (number, from_bytes(&bytes))).collect()
            }
            Pool::Postgres(db) => {
                asked!("SELECT i.number, CAST(e.vector AS real[])").build_query_as().fetch_all(db).await?
            }
        })
    }
}

/// The first eight bytes of a text's SHA-256: the author of a pull request must not be able to construct a collision.
fn hash_of(text: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = <[u8; 32]>::from(Sha256::digest(text));
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
