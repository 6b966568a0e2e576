//! Reads items, and marks those that left their repository.

use canonry_boxed::boxed;
use std::collections::HashMap;

use canonry_domain::{GoneReason, Item, ItemNumber, ItemState, ItemType};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::index_changes::{IndexChange, note_index_change};
use crate::corpus::repos::RepoId;
use crate::engine::facets::CorpusStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, word};
use crate::engine::rows::{Read, read_row, unwrap_all};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

/// The columns of an item, for SQL that is a constant.
macro_rules! item_columns {
    () => {
        "type, number, github_id, title, body, state, state_reason, merged, draft, author, assignees, labels, comments, \
         review_comments, created_at, updated_at, closed_at, url, duplicate_of, changes, content_hash, content_version, \
         last_synced_at, gone, has_milestone, locked, base_branch"
    };
}

pub(crate) use item_columns;

/// The same columns, for SQL that is built at run time.
pub(crate) const COLUMNS: &str = item_columns!();

read_row! {
    Item {
        item_type: "type", number, github_id, title, body, state, state_reason, merged, draft, author, assignees,
        has_milestone, locked, labels, comments, review_comments, created_at, updated_at, closed_at, url, duplicate_of,
        changes, base_branch, content_hash, content_version, last_synced_at, gone,
    }
}

/// Selects items; `None` means any.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemFilter {
    pub item_type: Option<ItemType>,
    pub state: Option<ItemState>,
    pub with_gone: bool,
}

/// The number of items of a repository, without gone items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemCounts {
    pub open_issues: u64,
    pub closed_issues: u64,
    pub open_prs: u64,
    pub closed_prs: u64,
}

impl ItemCounts {
    pub fn total(self) -> u64 {
        self.open_issues + self.closed_issues + self.open_prs + self.closed_prs
    }
}

#[boxed]
impl CorpusStore<'_> {
    pub async fn item(self, repo: RepoId, item_type: ItemType, number: ItemNumber) -> Result<Option<Item>, StoreError> {
        let query = concat!("SELECT ", item_columns!(), " FROM items WHERE repo_id = $1 AND type = $2 AND number = $3");
        let row: Option<Read<Item>> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get()).fetch_optional(db).await?
        });
        Ok(row.map(|Read(row)| row))
    }

    /// Returns those of the given items that exist, ordered by number, each once.
    pub async fn items_by_number(
        self,
        repo: RepoId,
        item_type: ItemType,
        numbers: &[ItemNumber],
    ) -> Result<Vec<Item>, StoreError> {
        let mut numbers = numbers.to_vec();
        numbers.sort_unstable();
        numbers.dedup();
        let mut items = Vec::with_capacity(numbers.len());
        for batch in numbers.chunks(ITEMS_PER_STATEMENT) {
            let rows: Vec<Read<Item>> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(concat!("SELECT ", item_columns!(), " FROM items WHERE repo_id = "));
                query.push_bind(repo.0).push(" AND type = ").push_bind(item_type.as_str()).push(" AND number IN (");
                query.push_list(batch.iter().map(|number| number.get())).push(" ORDER BY number");
                query.build_query_as().fetch_all(db).await?
            });
            items.extend(unwrap_all(rows));
        }
        Ok(items)
    }

    /// Returns one page of items after `after`, ordered by number. Pages keep a large repository from having to fit
    /// in memory.
    pub async fn items_after(
        self,
        repo: RepoId,
        filter: ItemFilter,
        after: Option<(ItemNumber, ItemType)>,
        limit: u32,
    ) -> Result<Vec<Item>, StoreError> {
        let query = concat!(
            "SELECT ",
            item_columns!(),
            " FROM items WHERE repo_id = $1 AND ($2 IS NULL OR type = $2) AND ($3 IS NULL OR state = $3) \
            AND (gone IS NULL OR $4) AND (number > $5 OR (number = $5 AND type > $6)) ORDER BY number, type LIMIT $7"
        );
        let (number, item_type) = after.map_or((0, ""), |(number, item_type)| (number.get(), item_type.as_str()));
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            sqlx::query_as(query)
                .bind(repo.0)
                .bind(filter.item_type.map(ItemType::as_str))
                .bind(filter.state.map(ItemState::as_str))
                .bind(filter.with_gone)
                .bind(number)
                .bind(item_type)
                .bind(i64::from(limit))
                .fetch_all(db)
                .await?
        })))
    }

    /// One page of pull requests whose title or body may refer to an item (`#12`, `/12` or `GH-12`), ordered by number.
    /// The number may be part of a longer one: the caller reads the texts.
    pub async fn pulls_mentioning(
        self,
        repo: RepoId,
        number: ItemNumber,
        after: Option<ItemNumber>,
        limit: u32,
    ) -> Result<Vec<Item>, StoreError> {
        let query = concat!(
            "SELECT ",
            item_columns!(),
            " FROM items WHERE repo_id = $1 AND type = 'pr' AND gone IS NULL AND number > $2 \
            AND (title LIKE $3 OR title LIKE $4 OR title LIKE $5 OR body LIKE $3 OR body LIKE $4 OR body LIKE $5) \
            ORDER BY number LIMIT $6"
        );
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            let mut query = sqlx::query_as(query).bind(repo.0).bind(after.map_or(0, ItemNumber::get));
            for mark in ["#", "/", "-"] {
                query = query.bind(format!("%{mark}{number}%"));
            }
            query.bind(i64::from(limit)).fetch_all(db).await?
        })))
    }

    pub async fn item_counts(self, repo: RepoId) -> Result<ItemCounts, StoreError> {
        let query = "SELECT type, state, count(*) FROM items WHERE repo_id = $1 AND gone IS NULL GROUP BY type, state";
        let rows: Vec<(String, String, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?);
        let mut counts = ItemCounts::default();
        for (item_type, state, count) in rows {
            let place = match (word(&item_type)?, word(&state)?) {
                (ItemType::Issue, ItemState::Open) => &mut counts.open_issues,
                (ItemType::Issue, ItemState::Closed) => &mut counts.closed_issues,
                (ItemType::Pr, ItemState::Open) => &mut counts.open_prs,
                (ItemType::Pr, ItemState::Closed) => &mut counts.closed_prs,
            };
            *place = u64::try_from(count).map_err(StoreError::damaged)?;
        }
        Ok(counts)
    }

    /// Returns the numbers and types of all items that are not gone.
    pub async fn item_numbers(self, repo: RepoId) -> Result<Vec<(ItemNumber, ItemType)>, StoreError> {
        let query = "SELECT number, type FROM items WHERE repo_id = $1 AND gone IS NULL ORDER BY number";
        Ok(unwrap_all(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?)))
    }

    /// Marks an item that left the repository. Nothing is deleted; the item keeps its history.
    pub async fn mark_gone(
        self,
        repo: RepoId,
        number: ItemNumber,
        gone: GoneReason,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE items SET gone = $3, last_synced_at = $4 WHERE repo_id = $1 AND number = $2
            AND gone IS NULL RETURNING type";
        self.set_gone(repo, number, update, Some(gone), now).await
    }

    pub async fn gone_numbers(self, repo: RepoId) -> Result<Vec<ItemNumber>, StoreError> {
        let query = "SELECT number FROM items WHERE repo_id = $1 AND gone IS NOT NULL ORDER BY number";
        let rows: Vec<Read<(ItemNumber,)>> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?);
        Ok(rows.into_iter().map(|Read((number,))| number).collect())
    }

    /// Removes the gone mark of an item that is in the repository after all.
    pub async fn mark_back(self, repo: RepoId, number: ItemNumber, now: Timestamp) -> Result<(), StoreError> {
        let update =
            "UPDATE items SET gone = $3, last_synced_at = $4 WHERE repo_id = $1 AND number = $2 RETURNING type";
        self.set_gone(repo, number, update, None, now).await?;
        Ok(())
    }

    async fn set_gone(
        self,
        repo: RepoId,
        number: ItemNumber,
        update: &'static str,
        gone: Option<GoneReason>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.pool.begin().await?;
        let types: Vec<String> = on_tx!(&mut tx, |db| {
            let query = sqlx::query_scalar(update).bind(repo.0).bind(number.get());
            query.bind(gone.map(GoneReason::as_str)).bind(micros(now)).fetch_all(db).await?
        });
        let marked: Vec<(ItemType, ItemNumber)> =
            types.iter().map(|item_type| Ok((word(item_type)?, number))).collect::<Result<_, StoreError>>()?;
        note_index_change(&mut tx, repo, IndexChange::Items(&marked)).await?;
        tx.commit().await?;
        Ok(!marked.is_empty())
    }

    /// Records whether an item has a milestone and is locked, without any other field of the item.
    pub async fn set_item_conditions(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
        (has_milestone, locked): (bool, bool),
    ) -> Result<(), StoreError> {
        let update =
            "UPDATE items SET has_milestone = $4, locked = $5 WHERE repo_id = $1 AND type = $2 AND number = $3";
        on_pool!(self.pool, |db| {
            let query = sqlx::query(update).bind(repo.0).bind(item_type.as_str()).bind(number.get());
            query.bind(has_milestone).bind(locked).execute(db).await?;
        });
        Ok(())
    }

    /// Records which item people named as the duplicate target; `false` if the item does not exist.
    pub async fn set_duplicate_of(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
        target: ItemNumber,
    ) -> Result<bool, StoreError> {
        let update = "UPDATE items SET duplicate_of = $4 WHERE repo_id = $1 AND type = $2 AND number = $3";
        let mut tx = self.pool.begin().await?;
        let noted = on_tx!(&mut tx, |db| {
            let query = sqlx::query(update).bind(repo.0).bind(item_type.as_str()).bind(number.get());
            query.bind(target.get()).execute(db).await?.rows_affected()
        });
        if noted > 0 {
            note_index_change(&mut tx, repo, IndexChange::Items(&[(item_type, number)])).await?;
        }
        tx.commit().await?;
        Ok(noted > 0)
    }
}

/// Whole items are large, so few are read at once.
const ITEMS_PER_STATEMENT: usize = 500;
/// SQLite accepts at most 32,766 values in a statement.
pub(crate) const NUMBERS_PER_STATEMENT: usize = 5_000;

/// The store's own keys of items.
pub(crate) struct ItemKeys(HashMap<(ItemNumber, ItemType), i64>);

impl ItemKeys {
    /// Reads the keys of these items, of any type, in few queries.
    pub(crate) async fn read(
        tx: &mut Transaction,
        repo: RepoId,
        numbers: impl IntoIterator<Item = ItemNumber>,
    ) -> Result<Self, StoreError> {
        let mut numbers: Vec<ItemNumber> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut keys = HashMap::with_capacity(numbers.len());
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<(i64, String, i64)> = on_tx!(&mut *tx, |db| {
                let mut query = QueryBuilder::new("SELECT id, type, number FROM items WHERE repo_id = ");
                query.push_bind(repo.0).push(" AND number IN (");
                query.push_list(batch.iter().map(|number| number.get()));
                query.build_query_as().fetch_all(db).await?
            });
            for (id, item_type, number) in rows {
                keys.insert((crate::engine::row_values::number(number)?, word(&item_type)?), id);
            }
        }
        Ok(Self(keys))
    }

    pub(crate) fn id(&self, item_type: ItemType, number: ItemNumber) -> Result<i64, StoreError> {
        self.0.get(&(number, item_type)).copied().ok_or(StoreError::UnknownItem { item_type, number })
    }

    /// The same for an optional number.
    pub(crate) fn optional_id(
        &self,
        item_type: ItemType,
        number: Option<ItemNumber>,
    ) -> Result<Option<i64>, StoreError> {
        number.map(|number| self.id(item_type, number)).transpose()
    }
}
