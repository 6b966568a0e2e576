//! The judge's decisions, with all their inputs.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{
    ContentVersion, DecisionOrigin, DecisionStatus, Edge, ItemNumber, ItemType, Probability, Similarity, Structure,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sqlx::QueryBuilder;

use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::JudgeStore;
use crate::engine::ids::store_id;
use crate::engine::lists::PushList as _;
use crate::engine::rows::{Read, from_row, read_row, unwrap_all};
use crate::engine::transaction::{StoreError, on_pool};

store_id! {
    /// The store's own key of a decision; a later decision has a greater key.
    DecisionId
}

/// A candidate as the judge saw it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DecidedCandidate {
    pub number: ItemNumber,
    pub score: Similarity,
    pub content_version: ContentVersion,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewDecision {
    /// Source and target have the same type.
    pub item_type: ItemType,
    pub number: ItemNumber,
    /// The item that the source duplicates. An accepted decision has one.
    pub target: Option<ItemNumber>,
    pub representation: Representation,
    pub candidate_set: Option<i64>,
    pub origin: DecisionOrigin,
    pub status: DecisionStatus,
    /// Whether this decision ends the source's accepted edge even if it accepts nothing and that edge is not stale.
    pub replaces: bool,
    /// The judge's own answer; `None` if it was not asked or its answer was invalid.
    pub model_is_duplicate: Option<bool>,
    /// The judge's confidence. An accepted decision has one.
    pub confidence: Option<Probability>,
    pub reasoning: Option<String>,
    /// The relation of the two items, as answered by the judge.
    pub structure: Option<Structure>,
    /// The gate that decided, unless the decision was accepted or the judge itself rejected it.
    pub reason: Option<String>,
    /// The judge's verbatim answer, for replays; stored up to [`ANSWER_LIMIT`](crate::ANSWER_LIMIT) characters.
    pub answer: Option<String>,
    pub provider: String,
    pub model: String,
    pub prompt_version: i64,
    pub config_hash: String,
    /// The hash of the judge's whole input; empty if it was not asked.
    pub input_hash: String,
    pub source_version: ContentVersion,
    /// The version of the target's text. An accepted decision has one.
    pub target_version: Option<ContentVersion>,
    pub candidates: Vec<DecidedCandidate>,
    pub run_id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredDecision {
    pub id: DecisionId,
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub target: Option<ItemNumber>,
    pub representation: Representation,
    pub candidate_set: Option<i64>,
    pub origin: DecisionOrigin,
    pub status: DecisionStatus,
    /// When another decision replaced it, or the override behind it was removed; an accepted decision without it is
    /// the edge in force.
    pub superseded_at: Option<Timestamp>,
    pub model_is_duplicate: Option<bool>,
    pub confidence: Option<Probability>,
    pub reasoning: Option<String>,
    /// The relation of the two items, as answered by the judge.
    pub structure: Option<Structure>,
    pub reason: Option<String>,
    pub answer: Option<String>,
    pub provider: String,
    pub model: String,
    pub prompt_version: i64,
    pub config_hash: String,
    /// The hash of the judge's whole input.
    pub input_hash: String,
    pub source_version: ContentVersion,
    pub target_version: Option<ContentVersion>,
    pub candidates: Vec<DecidedCandidate>,
    pub created_at: Timestamp,
    pub run_id: String,
}

macro_rules! decisions {
    () => {
        "SELECT d.id, i.type, i.number, t.number AS target, d.representation, d.candidate_set_id, d.origin, d.status, \
        d.superseded_at, d.model_is_duplicate, d.confidence, d.reasoning, d.structure, d.reason, d.answer, d.provider, \
        d.model, d.prompt_version, d.config_hash, d.input_hash, d.source_version, d.target_version, d.candidates, \
        d.created_at, d.run_id FROM judge_decisions d JOIN items i ON i.id = d.item_id \
        LEFT JOIN items t ON t.id = d.target_item_id "
    };
}

#[boxed]
impl JudgeStore<'_> {
    /// Returns whether anything was ever decided in a repository.
    pub async fn has_decisions(self, repo: RepoId) -> Result<bool, StoreError> {
        let query = "SELECT id FROM judge_decisions WHERE repo_id = $1 LIMIT 1";
        let first: Option<i64> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(repo.0).fetch_optional(db).await?);
        Ok(first.is_some())
    }

    /// Returns every decision with this item as the source, newest first.
    pub async fn decisions_of(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Vec<StoredDecision>, StoreError> {
        let query = concat!(decisions!(), "WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY d.id DESC");
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get()).fetch_all(db).await?
        }))
    }

    /// Returns the newest decision about each of these items.
    pub async fn latest_decisions(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
        numbers: &[ItemNumber],
    ) -> Result<BTreeMap<ItemNumber, StoredDecision>, StoreError> {
        let mut newest = BTreeMap::new();
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<StoredDecision> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(concat!(
                    decisions!(),
                    "WHERE d.id IN (SELECT max(n.id) FROM judge_decisions n JOIN items s ON s.id = n.item_id \
                    WHERE s.repo_id = "
                ));
                query.push_bind(repo.0).push(" AND s.type = ").push_bind(item_type.as_str());
                query.push(" AND n.representation = ").push_bind(representation.as_str());
                query.push(" AND s.number IN (");
                query.push_list(batch.iter().map(|number| number.get())).push(" GROUP BY n.item_id)");
                query.build_query_as().fetch_all(db).await?
            });
            newest.extend(rows.into_iter().map(|decision| (decision.number, decision)));
        }
        Ok(newest)
    }

    /// Returns the newest decision about an item that contains a judge's answer to the question with this hash, so
    /// that the judge need not be asked again.
    pub async fn answered_decision(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
        representation: Representation,
        input_hash: &str,
    ) -> Result<Option<StoredDecision>, StoreError> {
        let query = concat!(
            decisions!(),
            "WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 AND d.representation = $4 AND d.input_hash = $5 \
            AND d.answer IS NOT NULL ORDER BY d.id DESC LIMIT 1"
        );
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get());
            query.bind(representation.as_str()).bind(input_hash).fetch_optional(db).await?
        }))
    }

    /// Returns the judge's reasoning for each source with an accepted decision in force, if there is one.
    pub async fn accepted_reasonings(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
    ) -> Result<BTreeMap<ItemNumber, String>, StoreError> {
        let query = "SELECT i.number, d.reasoning FROM judge_decisions d JOIN items i ON i.id = d.item_id
            WHERE d.repo_id = $1 AND i.type = $2 AND d.representation = $3 AND d.status = 'accepted'
            AND d.superseded_at IS NULL AND d.reasoning IS NOT NULL";
        let rows: Vec<Read<(ItemNumber, String)>> = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
            query.bind(representation.as_str()).fetch_all(db).await?
        });
        Ok(unwrap_all(rows).into_iter().collect())
    }

    /// Returns the accepted decisions in force of one type and representation, ordered by source. Those that follow
    /// from a person's override are marked; the overrides themselves are not included.
    pub async fn accepted_edges(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
    ) -> Result<Vec<Edge>, StoreError> {
        let query = "SELECT i.number AS source, t.number AS target, d.confidence, d.source_version, d.target_version,
                d.origin = 'override' AS human
            FROM judge_decisions d JOIN items i ON i.id = d.item_id JOIN items t ON t.id = d.target_item_id
            WHERE d.repo_id = $1 AND i.type = $2 AND d.representation = $3 AND d.status = 'accepted'
            AND d.superseded_at IS NULL ORDER BY i.number";
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
            query.bind(representation.as_str()).fetch_all(db).await?
        })))
    }
}

read_row!(Edge { source, target, confidence, source_version, target_version, human });
from_row! {
    StoredDecision {
        id, item_type: "type", number, target, representation, candidate_set: "candidate_set_id", origin, status,
        superseded_at, model_is_duplicate, confidence, reasoning, structure, reason, answer, provider, model,
        prompt_version, config_hash, input_hash, source_version, target_version, candidates, created_at, run_id,
    }
}
