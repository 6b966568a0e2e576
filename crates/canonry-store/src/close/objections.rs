//! Objections of people to closes by Canonry: one for each close.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, Login, text_enum};
use jiff::Timestamp;

use crate::corpus::items::ItemKeys;
use crate::corpus::repos::RepoId;
use crate::engine::facets::CloseStore;
use crate::engine::row_values::{count, micros};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool, on_tx};

text_enum! {
    pub enum ObjectionKind: "a kind of objection" {
        Reopened = "reopened",
        Undone = "undone",
        NotADuplicate = "not_a_duplicate",
        /// People reacted to the closing comment with 👎 or 😕.
        Reaction = "reaction",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewObjection<'a> {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub close_key: &'a str,
    pub kind: ObjectionKind,
    pub by: Option<&'a Login>,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub close_key: String,
    pub kind: ObjectionKind,
    pub by: Option<Login>,
    pub at: Timestamp,
}

from_row!(Objection { item_type: "type", number, close_key, kind, by: "by_login", at });

#[boxed]
impl CloseStore<'_> {
    /// Records an objection; `false` if that close already has one.
    pub async fn record_objection(self, repo: RepoId, new: &NewObjection<'_>) -> Result<bool, StoreError> {
        let mut tx = self.pool.begin().await?;
        let item = ItemKeys::read(&mut tx, repo, [new.number]).await?.id(new.item_type, new.number)?;
        let insert = "INSERT INTO objections (repo_id, item_id, close_key, kind, by_login, at)
            VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (close_key) DO NOTHING";
        let written = on_tx!(&mut tx, |db| {
            sqlx::query(insert)
                .bind(repo.0)
                .bind(item)
                .bind(new.close_key)
                .bind(new.kind.as_str())
                .bind(new.by.map(Login::as_str))
                .bind(micros(new.at))
                .execute(db)
                .await?
                .rows_affected()
        });
        tx.commit().await?;
        Ok(written == 1)
    }

    /// Counts the closes with an objection since then.
    pub async fn objections_since(self, repo: RepoId, since: Timestamp) -> Result<u64, StoreError> {
        let query = "SELECT count(*) FROM objections WHERE repo_id = $1 AND at >= $2";
        let counted: i64 = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(micros(since)).fetch_one(db).await?
        });
        count(counted)
    }

    /// Returns all objections of a repository, oldest first.
    pub async fn objections(self, repo: RepoId) -> Result<Vec<Objection>, StoreError> {
        let query = "SELECT i.type, i.number, o.close_key, o.kind, o.by_login, o.at FROM objections o
            JOIN items i ON i.id = o.item_id WHERE o.repo_id = $1 ORDER BY o.at, o.id";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?))
    }
}
