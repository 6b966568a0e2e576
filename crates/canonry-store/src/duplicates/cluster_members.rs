//! The members of stored clusters, and the edges between them.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{Edge, ItemNumber, ItemType};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::DuplicateStore;
use crate::engine::lists::PushList as _;
use crate::engine::rows::{Read, unwrap_all};
use crate::engine::transaction::{StoreError, on_pool};

#[boxed]
impl DuplicateStore<'_> {
    /// Returns the canonical of a cluster and then its other members, ordered by number, each with its start time.
    /// With `after`, returns only the members after that number.
    pub async fn cluster_members(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
        canonical: ItemNumber,
        after: Option<ItemNumber>,
        limit: u32,
    ) -> Result<Vec<(ItemNumber, Timestamp)>, StoreError> {
        let query = "SELECT item_number, since FROM canonicals
            WHERE repo_id = $1 AND type = $2 AND representation = $3 AND canonical_number = $4
            AND ($6 = 0 OR (item_number > $6 AND item_number <> canonical_number))
            ORDER BY item_number <> canonical_number, item_number LIMIT $5";
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(representation.as_str());
            let query = query.bind(canonical.get()).bind(i64::from(limit));
            query.bind(after.map_or(0, ItemNumber::get)).fetch_all(db).await?
        })))
    }

    /// Returns the stored canonical of each of these items that is in a cluster.
    pub async fn canonicals_of(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
        numbers: &[ItemNumber],
    ) -> Result<BTreeMap<ItemNumber, ItemNumber>, StoreError> {
        let mut canonicals = BTreeMap::new();
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<Read<(ItemNumber, ItemNumber)>> = on_pool!(self.pool, |db| {
                let mut query =
                    QueryBuilder::new("SELECT item_number, canonical_number FROM canonicals WHERE repo_id = ");
                query.push_bind(repo.0).push(" AND type = ").push_bind(item_type.as_str());
                query.push(" AND representation = ").push_bind(representation.as_str()).push(" AND item_number IN (");
                query.push_list(batch.iter().map(|number| number.get()));
                query.build_query_as().fetch_all(db).await?
            });
            canonicals.extend(unwrap_all(rows));
        }
        Ok(canonicals)
    }

    /// Returns the accepted decisions in force about these items, ordered by source. Rulings without a decision of a
    /// judge are not included.
    pub async fn edges_from(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
        numbers: &[ItemNumber],
    ) -> Result<Vec<Edge>, StoreError> {
        let mut edges = Vec::new();
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<Read<Edge>> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT s.number AS source, t.number AS target, d.confidence, d.source_version, d.target_version,
                        d.origin = 'override' AS human
                    FROM items s JOIN judge_decisions d ON d.item_id = s.id JOIN items t ON t.id = d.target_item_id
                    WHERE d.status = 'accepted' AND d.superseded_at IS NULL AND d.representation = ",
                );
                query.push_bind(representation.as_str()).push(" AND s.repo_id = ").push_bind(repo.0);
                query.push(" AND s.type = ").push_bind(item_type.as_str()).push(" AND s.number IN (");
                query.push_list(batch.iter().map(|number| number.get())).push(" ORDER BY s.number");
                query.build_query_as().fetch_all(db).await?
            });
            edges.extend(unwrap_all(rows));
        }
        Ok(edges)
    }
}
