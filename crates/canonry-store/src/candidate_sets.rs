//! Candidate sets: an item's nearest neighbours at one version of its text.

use std::collections::BTreeMap;

use canonry_domain::{ContentVersion, ItemNumber, ItemType};
use jiff::Timestamp;
use sqlx::types::Json;

use crate::open::Store;
use crate::repos::RepoId;
use crate::row_values::{micros, moment};
use crate::transaction::{StoreError, on_pool, on_tx};

/// The text that items were compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// Title and body.
    Raw,
    /// The intent card.
    Intent,
}

impl Representation {
    /// The stored and printed word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Intent => "intent",
        }
    }
}

/// Whether a set still describes its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetStatus {
    /// It does.
    Fresh,
    /// The text changed, or a newer set took its place.
    Stale,
}

impl SetStatus {
    /// The stored and printed word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Stale => "stale",
        }
    }
}

/// One neighbour.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateMember {
    /// The neighbour, of the same repository and type.
    pub number: ItemNumber,
    /// The calibrated similarity.
    pub score: f64,
    /// What the score came from.
    pub parts: BTreeMap<String, f64>,
}

/// A set to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewCandidateSet {
    /// Issue or pull request.
    pub item_type: ItemType,
    /// The item whose neighbours these are.
    pub number: ItemNumber,
    /// What was compared.
    pub representation: Representation,
    /// The version of the item's text that was compared.
    pub content_version: ContentVersion,
    /// The model behind the scores.
    pub model: String,
    /// The neighbours, best first; there may be none.
    pub members: Vec<CandidateMember>,
}

/// A stored set.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateSet {
    /// What was compared.
    pub representation: Representation,
    /// Whether it still holds.
    pub status: SetStatus,
    /// The version of the item's text that was compared.
    pub content_version: ContentVersion,
    /// The model behind the scores.
    pub model: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The neighbours, best first.
    pub members: Vec<CandidateMember>,
}

type MemberRow = (i64, f64, Json<BTreeMap<String, f64>>);

impl Store {
    /// Writes a set and makes the item's earlier fresh one of that representation stale, in one transaction.
    ///
    /// `false` says that the item is not there, or its text has changed since `content_version`: the set
    /// describes a text that is no more, and nothing was written.
    pub async fn write_candidate_set(
        &self,
        repo: RepoId,
        set: &NewCandidateSet,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let find = "SELECT id FROM items WHERE repo_id = $1 AND type = $2 AND number = $3 AND content_version = $4";
        let stale = "UPDATE candidate_sets SET status = 'stale' WHERE item_id = $1 AND representation = $2 AND status = 'fresh'";
        let insert = "INSERT INTO candidate_sets (item_id, representation, status, content_version, model, created_at)
            VALUES ($1, $2, 'fresh', $3, $4, $5) RETURNING id";
        let member = "INSERT INTO candidate_set_members (set_id, rank, item_id, score, parts)
            SELECT $1, $2, id, $6, $7 FROM items WHERE repo_id = $3 AND type = $4 AND number = $5";
        on_tx!(&mut tx, |db| {
            let find = sqlx::query_scalar(find).bind(repo.0).bind(set.item_type.as_str()).bind(set.number.get());
            let item: Option<i64> = find.bind(set.content_version.get()).fetch_optional(&mut *db).await?;
            let Some(item) = item else {
                return Ok(false);
            };
            sqlx::query(stale).bind(item).bind(set.representation.as_str()).execute(&mut *db).await?;
            let insert = sqlx::query_scalar(insert).bind(item).bind(set.representation.as_str());
            let insert = insert.bind(set.content_version.get()).bind(set.model.as_str()).bind(micros(now));
            let id: i64 = insert.fetch_one(&mut *db).await?;
            for (rank, neighbour) in (1_i64..).zip(&set.members) {
                sqlx::query(member)
                    .bind(id)
                    .bind(rank)
                    .bind(repo.0)
                    .bind(set.item_type.as_str())
                    .bind(neighbour.number.get())
                    .bind(neighbour.score)
                    .bind(Json(&neighbour.parts))
                    .execute(&mut *db)
                    .await?;
            }
        });
        tx.commit().await?;
        Ok(true)
    }

    /// An item's sets, newest first.
    pub async fn candidate_sets(
        &self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Vec<CandidateSet>, StoreError> {
        let sets = "SELECT s.id, s.representation, s.status, s.content_version, s.model, s.created_at
            FROM candidate_sets s JOIN items i ON i.id = s.item_id
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY s.id DESC";
        let members = "SELECT i.number, m.score, m.parts FROM candidate_set_members m JOIN items i ON i.id = m.item_id
            WHERE m.set_id = $1 ORDER BY m.rank";
        let mut found = Vec::new();
        on_pool!(&self.pool, |db| {
            let query = sqlx::query_as(sets).bind(repo.0).bind(item_type.as_str()).bind(number.get());
            let rows: Vec<(i64, String, String, i64, String, i64)> = query.fetch_all(db).await?;
            for (id, representation, status, version, model, created_at) in rows {
                let rows: Vec<MemberRow> = sqlx::query_as(members).bind(id).fetch_all(db).await?;
                found.push(CandidateSet {
                    representation: if representation == "intent" {
                        Representation::Intent
                    } else {
                        Representation::Raw
                    },
                    status: if status == "fresh" { SetStatus::Fresh } else { SetStatus::Stale },
                    content_version: ContentVersion::stored(version),
                    model,
                    created_at: moment(created_at)?,
                    members: rows
                        .into_iter()
                        .map(|(number, score, Json(parts))| {
                            let number = ItemNumber::new(number).map_err(StoreError::damaged)?;
                            Ok(CandidateMember { number, score, parts })
                        })
                        .collect::<Result<_, StoreError>>()?,
                });
            }
        });
        Ok(found)
    }
}
