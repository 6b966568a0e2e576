//! Candidate sets: an item's nearest neighbours at one version of its text.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, HashMap};

use canonry_domain::{ContentVersion, ItemNumber, ItemState, ItemType, text_enum};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::{ItemKeys, NUMBERS_PER_STATEMENT};
use crate::corpus::repos::RepoId;
use crate::engine::facets::DuplicateStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::micros;
use crate::engine::rows::{Keyed, from_row};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

text_enum! {
    /// The text by which items were compared.
    pub enum Representation: "a representation" {
        Raw = "raw",
        Intent = "intent",
    }
}

text_enum! {
    /// Whether a set still describes its item.
    pub enum SetStatus: "a status of a candidate set" {
        Fresh = "fresh",
        /// The text changed, or a newer set replaced this one.
        Stale = "stale",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct CandidateMember {
    /// The number of the neighbour, which has the same repository and type.
    pub number: ItemNumber,
    pub score: f64,
    pub parts: BTreeMap<String, f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewCandidateSet {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub representation: Representation,
    /// The version of the item's text that was compared.
    pub content_version: ContentVersion,
    pub model: String,
    /// Best first; may be empty.
    pub members: Vec<CandidateMember>,
    /// The known similarities between neighbours.
    pub pairs: Vec<(ItemNumber, ItemNumber, f64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CandidateSet {
    /// A newer set has a greater key.
    pub id: i64,
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub representation: Representation,
    pub status: SetStatus,
    /// The version of the item's text that was compared.
    pub content_version: ContentVersion,
    pub model: String,
    pub created_at: Timestamp,
    /// Best first.
    pub members: Vec<CandidateMember>,
    /// The known similarities between neighbours.
    pub pairs: Vec<(ItemNumber, ItemNumber, f64)>,
}

/// Selects sets; `None` means any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetFilter {
    pub item_type: Option<ItemType>,
    pub representation: Representation,
    pub source_state: Option<ItemState>,
    /// Include sets whose item's text has changed since.
    pub allow_stale: bool,
}

from_row!(CandidateMember { number, score, parts });
from_row! {
    CandidateSet {
        id, item_type: "type", number, representation, status, content_version, model, created_at, members: default, pairs,
    }
}

macro_rules! sets {
    ($rest:literal) => {
        concat!(
            "SELECT s.id, i.type, i.number, s.representation, s.status, s.content_version, s.model, s.created_at, s.pairs
            FROM candidate_sets s JOIN items i ON i.id = s.item_id ",
            $rest
        )
    };
}

#[boxed]
impl DuplicateStore<'_> {
    /// Writes a set and makes the item's earlier fresh set of that representation stale, in one transaction.
    ///
    /// `false` if the item does not exist or its text has changed since `content_version`: the set describes an old
    /// text, and nothing was written.
    pub async fn write_candidate_set(
        self,
        repo: RepoId,
        set: &NewCandidateSet,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self
            .write_candidate_sets(repo, std::slice::from_ref(set), now)
            .await?
            .first()
            .is_some_and(|written| *written))
    }

    /// Writes many sets in one transaction; the answers are in their order.
    pub async fn write_candidate_sets(
        self,
        repo: RepoId,
        sets: &[NewCandidateSet],
        now: Timestamp,
    ) -> Result<Vec<bool>, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let named: Vec<ItemNumber> = sets.iter().flat_map(|set| &set.members).map(|member| member.number).collect();
        let keys = ItemKeys::read(&mut tx, repo, named).await?;
        let mut written = Vec::with_capacity(sets.len());
        for set in sets {
            written.push(write_set(&mut tx, repo, &keys, set, now).await?);
        }
        tx.commit().await?;
        Ok(written)
    }

    /// Returns an item's sets, newest first.
    pub async fn candidate_sets(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Vec<CandidateSet>, StoreError> {
        let query = sets!("WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY s.id DESC");
        let rows: Vec<CandidateSet> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get()).fetch_all(db).await?
        });
        self.with_members(rows).await
    }

    /// Returns one page of the newest set of each item after `after`, ordered by item number, without gone items.
    pub async fn latest_candidate_sets(
        self,
        repo: RepoId,
        filter: SetFilter,
        after: Option<(ItemNumber, ItemType)>,
        limit: u32,
    ) -> Result<Vec<CandidateSet>, StoreError> {
        let query = sets!(
            "WHERE i.repo_id = $1 AND ($2 IS NULL OR i.type = $2) AND ($3 IS NULL OR i.state = $3) AND i.gone IS NULL
            AND i.number >= $4 AND (i.number > $4 OR i.type > $5) AND s.representation = $6 AND ($7 OR s.status = 'fresh')
            AND s.id = (SELECT max(n.id) FROM candidate_sets n WHERE n.item_id = i.id AND n.representation = $6)
            ORDER BY i.number, i.type LIMIT $8"
        );
        let (number, item_type) = after.map_or((0, ""), |(number, item_type)| (number.get(), item_type.as_str()));
        let rows: Vec<CandidateSet> = on_pool!(self.pool, |db| {
            sqlx::query_as(query)
                .bind(repo.0)
                .bind(filter.item_type.map(ItemType::as_str))
                .bind(filter.source_state.map(ItemState::as_str))
                .bind(number)
                .bind(item_type)
                .bind(filter.representation.as_str())
                .bind(filter.allow_stale)
                .bind(i64::from(limit))
                .fetch_all(db)
                .await?
        });
        self.with_members(rows).await
    }

    /// Adds the members to sets, with one query for thousands of sets.
    async fn with_members(self, mut sets: Vec<CandidateSet>) -> Result<Vec<CandidateSet>, StoreError> {
        let mut members: HashMap<i64, Vec<CandidateMember>> = HashMap::with_capacity(sets.len());
        for batch in sets.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<Keyed<i64, CandidateMember>> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT m.set_id AS key, i.number, m.score, m.parts FROM candidate_set_members m \
                    JOIN items i ON i.id = m.item_id WHERE m.set_id IN (",
                );
                query.push_list(batch.iter().map(|set| set.id)).push(" ORDER BY m.set_id, m.rank");
                query.build_query_as().fetch_all(db).await?
            });
            for Keyed(set, member) in rows {
                members.entry(set).or_default().push(member);
            }
        }
        for set in &mut sets {
            set.members = members.remove(&set.id).unwrap_or_default();
        }
        Ok(sets)
    }
}

/// 5 columns a row; SQLite accepts at most 32,766 values in a statement.
const ROWS_PER_STATEMENT: usize = 5_000;

/// Writes one set inside a transaction that has locked the repository's items.
async fn write_set(
    tx: &mut Transaction,
    repo: RepoId,
    keys: &ItemKeys,
    set: &NewCandidateSet,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let find = "SELECT id FROM items WHERE repo_id = $1 AND type = $2 AND number = $3 AND content_version = $4";
    let stale =
        "UPDATE candidate_sets SET status = 'stale' WHERE item_id = $1 AND representation = $2 AND status = 'fresh'";
    let insert =
        "INSERT INTO candidate_sets (item_id, representation, status, content_version, model, created_at, pairs)
        VALUES ($1, $2, 'fresh', $3, $4, $5, $6) RETURNING id";
    on_tx!(tx, |db| {
        let find = sqlx::query_scalar(find).bind(repo.0).bind(set.item_type.as_str()).bind(set.number.get());
        let item: Option<i64> = find.bind(set.content_version.get()).fetch_optional(&mut *db).await?;
        let Some(item) = item else {
            return Ok(false);
        };
        sqlx::query(stale).bind(item).bind(set.representation.as_str()).execute(&mut *db).await?;
        let insert = sqlx::query_scalar(insert).bind(item).bind(set.representation.as_str());
        let insert = insert.bind(set.content_version.get()).bind(set.model.as_str()).bind(micros(now));
        let id: i64 = insert.bind(Json(&set.pairs)).fetch_one(&mut *db).await?;
        // A neighbour that no longer exists leaves a gap in the ranks.
        let members: Vec<_> = (1_i64..)
            .zip(&set.members)
            .filter_map(|(rank, member)| Some((rank, keys.id(set.item_type, member.number).ok()?, member)))
            .collect();
        for batch in members.chunks(ROWS_PER_STATEMENT) {
            let mut query =
                QueryBuilder::new("INSERT INTO candidate_set_members (set_id, rank, item_id, score, parts) ");
            query.push_values(batch, |mut row, (rank, item, member)| {
                row.push_bind(id)
                    .push_bind(*rank)
                    .push_bind(*item)
                    .push_bind(member.score)
                    .push_bind(Json(&member.parts));
            });
            query.build().execute(&mut *db).await?;
        }
    });
    Ok(true)
}
