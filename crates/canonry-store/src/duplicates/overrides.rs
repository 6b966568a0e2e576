//! Overrides: rulings of people about items, in force until they are removed.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemType, Login, Override, OverrideKind};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::items::{ItemKeys, NUMBERS_PER_STATEMENT};
use crate::corpus::repos::RepoId;
use crate::engine::facets::DuplicateStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::{Keyed, Read, read_row, unwrap_all};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewOverride<'a> {
    /// Both items have the same type.
    pub item_type: ItemType,
    pub kind: OverrideKind,
    pub item: ItemNumber,
    /// The other item of a pair; `None` for a canonical.
    pub other: Option<ItemNumber>,
    pub note: Option<&'a str>,
    /// `None` if unknown, as on the command line.
    pub by: Option<&'a Login>,
}

#[boxed]
impl DuplicateStore<'_> {
    /// Adds a ruling. An earlier identical ruling is replaced, so that one removal is enough.
    ///
    /// [`StoreError::UnknownItem`] means that an item does not exist and nothing was written.
    pub async fn add_override(
        self,
        repo: RepoId,
        new: NewOverride<'_>,
        now: Timestamp,
    ) -> Result<Override, StoreError> {
        let mut tx = self.pool.begin().await?;
        let added = add_override(&mut tx, repo, new, now).await?;
        tx.commit().await?;
        Ok(added)
    }

    /// Removes a ruling, and the edge that was stored because of it; `false` if no such ruling is in force.
    pub async fn remove_override(self, repo: RepoId, id: i64, now: Timestamp) -> Result<bool, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let remove = "UPDATE overrides SET removed_at = $3 WHERE repo_id = $1 AND id = $2 AND removed_at IS NULL
            RETURNING type, item_number, other_number";
        let end = "UPDATE judge_decisions SET superseded_at = $5
            WHERE origin = 'override' AND status = 'accepted' AND superseded_at IS NULL
            AND item_id = (SELECT id FROM items WHERE repo_id = $1 AND type = $2 AND number = $3)
            AND target_item_id = (SELECT id FROM items WHERE repo_id = $1 AND type = $2 AND number = $4)";
        on_tx!(&mut tx, |db| {
            let query = sqlx::query_as(remove).bind(repo.0).bind(id).bind(micros(now));
            let removed: Option<(String, i64, Option<i64>)> = query.fetch_optional(&mut *db).await?;
            let Some((item_type, item, other)) = removed else {
                return Ok(false);
            };
            sqlx::query(end).bind(repo.0).bind(item_type).bind(item).bind(other).bind(micros(now)).execute(db).await?;
        });
        tx.commit().await?;
        Ok(true)
    }

    /// Returns the rulings in force, oldest first.
    pub async fn overrides(self, repo: RepoId, item_type: Option<ItemType>) -> Result<Vec<Override>, StoreError> {
        let query = "SELECT id, type, kind, item_number, other_number, note, created_at, created_by FROM overrides
            WHERE repo_id = $1 AND ($2 IS NULL OR type = $2) AND removed_at IS NULL ORDER BY id";
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.map(ItemType::as_str)).fetch_all(db).await?
        })))
    }

    /// Returns the rulings in force that name at least one of these items, oldest first.
    pub async fn overrides_naming(
        self,
        repo: RepoId,
        item_type: ItemType,
        numbers: &[ItemNumber],
    ) -> Result<Vec<Override>, StoreError> {
        // Two batches may name the same pair.
        let mut named = BTreeMap::new();
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<Read<Override>> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT id, type, kind, item_number, other_number, note, created_at, created_by
                    FROM overrides WHERE repo_id = ",
                );
                query.push_bind(repo.0).push(" AND type = ").push_bind(item_type.as_str());
                query.push(" AND removed_at IS NULL AND (item_number IN (");
                query.push_list(batch.iter().map(|number| number.get())).push(" OR other_number IN (");
                query.push_list(batch.iter().map(|number| number.get())).push(")");
                query.build_query_as().fetch_all(db).await?
            });
            for Read(ruling) in rows {
                named.insert(ruling.id, ruling);
            }
        }
        Ok(named.into_values().collect())
    }

    /// Returns one page of the rulings in force, newest first, older than the one with the id `before`.
    pub async fn override_pages(
        self,
        repo: RepoId,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Override>, StoreError> {
        let query = "SELECT id, type, kind, item_number, other_number, note, created_at, created_by FROM overrides
            WHERE repo_id = $1 AND removed_at IS NULL AND id < $2 ORDER BY id DESC LIMIT $3";
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(before.unwrap_or(i64::MAX));
            query.bind(i64::from(limit)).fetch_all(db).await?
        })))
    }

    /// Returns every ruling ever made about an item, on either side of a pair, oldest first, each with the time of
    /// its removal.
    pub async fn overrides_ever(
        self,
        repo: RepoId,
        item_type: ItemType,
        item: ItemNumber,
    ) -> Result<Vec<(Override, Option<Timestamp>)>, StoreError> {
        let query = "SELECT id, type, kind, item_number, other_number, note, created_at, created_by, removed_at AS key
            FROM overrides WHERE repo_id = $1 AND type = $2 AND (item_number = $3 OR other_number = $3) ORDER BY id";
        let rows: Vec<Keyed<Option<Timestamp>, Override>> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(item.get()).fetch_all(db).await?
        });
        Ok(rows.into_iter().map(|Keyed(removed_at, ruling)| (ruling, removed_at)).collect())
    }
}

/// Adds a ruling inside a larger transaction.
pub(crate) async fn add_override(
    tx: &mut Transaction,
    repo: RepoId,
    new: NewOverride<'_>,
    now: Timestamp,
) -> Result<Override, StoreError> {
    tx.lock_items_of(repo).await?;
    let keys = ItemKeys::read(tx, repo, std::iter::once(new.item).chain(new.other)).await?;
    keys.id(new.item_type, new.item)?;
    keys.optional_id(new.item_type, new.other)?;
    // The same ruling, and every other ruling about the same pair, is replaced: removing the new one later must not
    // bring an older one back into force. Only two kinds of rulings can be in force together: that each is a
    // duplicate of the other, and that a duplicate must not be closed, because an exclusion replaces nothing else.
    let replace = "UPDATE overrides SET removed_at = $6 WHERE repo_id = $1 AND type = $2 AND removed_at IS NULL AND (
        (kind = $3 AND item_number = $4 AND COALESCE(other_number, 0) = $5)
        OR (kind <> 'canonical' AND $3 NOT IN ('canonical', 'excluded') AND (kind <> $3 OR kind = 'not_duplicate')
            AND ((item_number = $4 AND other_number = $5) OR (item_number = $5 AND other_number = $4))))";
    let insert = "INSERT INTO overrides (repo_id, type, kind, item_number, other_number, note, created_at, created_by)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        RETURNING id, type, kind, item_number, other_number, note, created_at, created_by";
    let other = new.other.map(ItemNumber::get);
    let Read(ruling) = on_tx!(tx, |db| {
        let query = sqlx::query(replace).bind(repo.0).bind(new.item_type.as_str()).bind(new.kind.as_str());
        query.bind(new.item.get()).bind(other.unwrap_or(0)).bind(micros(now)).execute(&mut *db).await?;
        let query = sqlx::query_as(insert).bind(repo.0).bind(new.item_type.as_str()).bind(new.kind.as_str());
        let query = query.bind(new.item.get()).bind(other).bind(new.note.map(storable)).bind(micros(now));
        query.bind(new.by.map(Login::as_str)).fetch_one(db).await?
    });
    Ok(ruling)
}

read_row! {
    Override {
        id, item_type: "type", kind, item: "item_number", other: "other_number", note, created_at, created_by,
    }
}
