//! The newest verdict and the outcome of each of several items, for lists.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemType, Probability, Similarity, Verdict};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::engine::facets::DuplicateStore;
use crate::engine::lists::PushList as _;
use crate::engine::rows::{Keyed, from_row, keyed};
use crate::engine::transaction::{StoreError, on_pool};
use crate::learning::issue_outcomes::StoredOutcome;

/// The newest triage record of an item, without its candidates.
#[derive(Debug, Clone, PartialEq)]
pub struct LatestTriage {
    pub id: i64,
    pub verdict: Verdict,
    pub target: Option<ItemNumber>,
    pub target_score: Option<Similarity>,
    pub confidence: Option<Probability>,
    pub reason: String,
    pub created_at: Timestamp,
}

#[boxed]
impl DuplicateStore<'_> {
    /// Returns the newest triage record of each of these items.
    pub async fn latest_triage(
        self,
        repo: RepoId,
        item_type: ItemType,
        numbers: &[ItemNumber],
    ) -> Result<BTreeMap<ItemNumber, LatestTriage>, StoreError> {
        let mut newest = BTreeMap::new();
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<Keyed<ItemNumber, LatestTriage>> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT i.number AS key, d.id, d.verdict, t.number AS target, d.target_score, d.confidence, d.reason, d.created_at
                    FROM triage_records d JOIN items i ON i.id = d.item_id LEFT JOIN items t ON t.id = d.target_item_id
                    WHERE d.id IN (SELECT max(n.id) FROM items s JOIN triage_records n ON n.item_id = s.id WHERE s.repo_id = ",
                );
                query.push_bind(repo.0).push(" AND s.type = ").push_bind(item_type.as_str());
                query.push(" AND s.number IN (");
                query.push_list(batch.iter().map(|number| number.get())).push(" GROUP BY n.item_id)");
                query.build_query_as().fetch_all(db).await?
            });
            newest.extend(keyed(rows));
        }
        Ok(newest)
    }

    /// Returns the outcome of each of these issues that has one.
    pub async fn outcomes_of(
        self,
        repo: RepoId,
        numbers: &[ItemNumber],
    ) -> Result<BTreeMap<ItemNumber, StoredOutcome>, StoreError> {
        let mut outcomes = BTreeMap::new();
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<Keyed<ItemNumber, StoredOutcome>> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT i.number AS key, o.outcome, o.lesson, o.triage_id, o.updated_at FROM items i
                    JOIN issue_outcomes o ON o.item_id = i.id WHERE i.repo_id = ",
                );
                query.push_bind(repo.0).push(" AND i.type = 'issue' AND i.number IN (");
                query.push_list(batch.iter().map(|number| number.get()));
                query.build_query_as().fetch_all(db).await?
            });
            outcomes.extend(keyed(rows));
        }
        Ok(outcomes)
    }
}

from_row!(LatestTriage { id, verdict, target, target_score, confidence, reason, created_at });
