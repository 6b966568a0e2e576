//! Triage records: Canonry's verdict about a new item, with all its candidates.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, HashMap};

use canonry_domain::{ContentVersion, FixMatch, ItemNumber, ItemState, ItemType, Probability, Similarity, Verdict};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::{ItemKeys, NUMBERS_PER_STATEMENT};
use crate::corpus::repos::RepoId;
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::DuplicateStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::{Keyed, from_row, keyed, read_row, unwrap_all};
use crate::engine::transaction::{StoreError, on_pool, on_tx};
use crate::learning::issue_outcomes::relearn;
use crate::learning::predicted_cluster::freeze_clusters;
use crate::learning::thresholds::log_adjustments;

/// A neighbour of an item at triage time.
#[derive(Debug, Clone, PartialEq)]
pub struct TriageCandidate {
    pub number: ItemNumber,
    pub score: Similarity,
    pub parts: BTreeMap<String, f64>,
    pub state: ItemState,
    /// Whether the judge saw it; candidates below the threshold are stored too.
    pub judged: bool,
}

/// The verdict about a new item.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTriageRecord {
    /// The candidates have the same type.
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub verdict: Verdict,
    pub target: Option<ItemNumber>,
    pub target_score: Option<Similarity>,
    pub is_duplicate: bool,
    /// The judge's confidence; `None` if it gave no answer.
    pub confidence: Option<Probability>,
    pub reason: String,
    /// The judge's own reason; empty if it gave none.
    pub reasoning: String,
    pub effective_source: Representation,
    pub source_fallback_reason: Option<String>,
    pub provider: String,
    pub model: String,
    pub prompt_version: i64,
    pub config_hash: String,
    pub content_version: ContentVersion,
    pub embed_model: String,
    pub run_id: String,
    /// Best first.
    pub candidates: Vec<TriageCandidate>,
    /// The closed report with the same problem whose fix is merged; only if no open item is the target.
    pub fix: Option<FixMatch>,
}

impl NewTriageRecord {
    /// The item that a comment about this record names, and how similar it is.
    pub fn named_item(&self) -> Option<(ItemNumber, Option<Similarity>)> {
        match &self.fix {
            Some(fix) => Some((fix.report, Some(fix.score))),
            None => self.target.map(|target| (target, self.target_score)),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredTriageRecord {
    /// A later record has a greater key.
    pub id: i64,
    pub record: NewTriageRecord,
    pub created_at: Timestamp,
}

#[boxed]
impl DuplicateStore<'_> {
    /// Returns open items of people that were created at `since` or later, and since the repository is known, of which
    /// neither a webhook nor a triage is stored.
    pub async fn untriaged_since(
        self,
        repo: RepoId,
        since: Timestamp,
    ) -> Result<Vec<(ItemNumber, ItemType)>, StoreError> {
        let query = "SELECT i.number, i.type FROM items i JOIN repos r ON r.id = i.repo_id
            WHERE i.repo_id = $1 AND i.state = 'open' AND i.gone IS NULL AND i.created_at >= $2 AND i.created_at >= r.created_at
                AND i.author IS NOT NULL AND i.author NOT LIKE '%[bot]'
                AND NOT EXISTS (SELECT 1 FROM triage_records t WHERE t.item_id = i.id)
                AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.repo = r.name_key AND d.number = i.number AND d.action = 'opened')
            ORDER BY i.number";
        Ok(unwrap_all(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(micros(since)).fetch_all(db).await?
        })))
    }

    /// Writes a record with its candidates, and returns its key.
    pub async fn write_triage_record(
        self,
        repo: RepoId,
        record: &NewTriageRecord,
        now: Timestamp,
    ) -> Result<i64, StoreError> {
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(repo).await?;
        let others = record.candidates.iter().map(|candidate| candidate.number).chain(record.target);
        let others = others.chain(record.fix.as_ref().map(|fix| fix.report));
        let keys = ItemKeys::read(&mut tx, repo, std::iter::once(record.number).chain(others)).await?;
        let item = keys.id(record.item_type, record.number)?;
        let target = keys.optional_id(record.item_type, record.target)?;
        let report = keys.optional_id(record.item_type, record.fix.as_ref().map(|fix| fix.report))?;
        let mut candidates = Vec::with_capacity(record.candidates.len());
        for (rank, candidate) in (1_i64..).zip(&record.candidates) {
            candidates.push((rank, keys.id(record.item_type, candidate.number)?, candidate));
        }
        let insert = "INSERT INTO triage_records (repo_id, item_id, verdict, target_item_id, target_score, is_duplicate, confidence, reason,
                reasoning, effective_source, source_fallback_reason, provider, model, prompt_version, config_hash,
                content_version, embed_model, created_at, run_id)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) RETURNING id";
        let id: i64 = on_tx!(&mut tx, |db| {
            let id = sqlx::query_scalar(insert)
                .bind(repo.0)
                .bind(item)
                .bind(record.verdict.as_str())
                .bind(target)
                .bind(record.target_score.map(Similarity::get))
                .bind(record.is_duplicate)
                .bind(record.confidence.map(Probability::get))
                .bind(storable(&record.reason))
                .bind(storable(&record.reasoning))
                .bind(record.effective_source.as_str())
                .bind(record.source_fallback_reason.as_deref().map(storable))
                .bind(record.provider.as_str())
                .bind(record.model.as_str())
                .bind(record.prompt_version)
                .bind(record.config_hash.as_str())
                .bind(record.content_version.get())
                .bind(record.embed_model.as_str())
                .bind(micros(now))
                .bind(record.run_id.as_str())
                .fetch_one(&mut *db)
                .await?;
            if !candidates.is_empty() {
                let mut query = QueryBuilder::new(
                    "INSERT INTO triage_candidates (triage_id, rank, item_id, score, parts, state, judged) ",
                );
                query.push_values(&candidates, |mut row, (rank, item, candidate)| {
                    row.push_bind(id)
                        .push_bind(*rank)
                        .push_bind(*item)
                        .push_bind(candidate.score.get())
                        .push_bind(Json(&candidate.parts))
                        .push_bind(candidate.state.as_str())
                        .push_bind(candidate.judged);
                });
                query.build().execute(&mut *db).await?;
            }
            if let Some(fix) = &record.fix {
                sqlx::query(INSERT_FIX)
                    .bind(id)
                    .bind(report)
                    .bind(fix.kind.as_str())
                    .bind(fix.score.get())
                    .bind(fix.confidence.map(Probability::get))
                    .bind(fix.fix.get())
                    .bind(micros(fix.merged_at))
                    .bind(fix.release.as_deref().map(storable))
                    .execute(db)
                    .await?;
            }
            id
        });
        // The record may count for an earlier outcome of the issue, or for reactions to an earlier comment.
        let adjusted = match record.item_type {
            ItemType::Issue => {
                freeze_clusters(&mut tx, repo, item).await?;
                relearn(&mut tx, repo, &[item], now).await?
            }
            ItemType::Pr => Vec::new(),
        };
        tx.commit().await?;
        log_adjustments(&adjusted);
        Ok(id)
    }

    /// Returns the triage records of an item, newest first.
    pub async fn triage_records_of(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Vec<StoredTriageRecord>, StoreError> {
        let query = "SELECT d.id, i.type, i.number, d.verdict, t.number AS target, d.target_score, d.is_duplicate, d.confidence,
                d.reason, d.reasoning, d.effective_source, d.source_fallback_reason, d.provider, d.model, d.prompt_version,
                d.config_hash, d.content_version, d.embed_model, d.created_at, d.run_id
            FROM triage_records d JOIN items i ON i.id = d.item_id LEFT JOIN items t ON t.id = d.target_item_id
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY d.id DESC";
        let mut records: Vec<StoredTriageRecord> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get()).fetch_all(db).await?
        });
        let mut candidates: HashMap<i64, Vec<TriageCandidate>> = HashMap::with_capacity(records.len());
        let mut fixes: HashMap<i64, FixMatch> = HashMap::new();
        for batch in records.chunks(NUMBERS_PER_STATEMENT) {
            let found: Vec<Keyed<i64, TriageCandidate>> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT c.triage_id AS key, i.number, c.score, c.parts, c.state, c.judged FROM triage_candidates c \
                    JOIN items i ON i.id = c.item_id WHERE c.triage_id IN (",
                );
                query.push_list(batch.iter().map(|row| row.id)).push(" ORDER BY c.triage_id, c.rank");
                query.build_query_as().fetch_all(db).await?
            });
            for Keyed(record, candidate) in found {
                candidates.entry(record).or_default().push(candidate);
            }
            let found: Vec<Keyed<i64, FixMatch>> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT f.triage_id AS key, f.kind, i.number AS report, f.score, f.confidence, f.fix, f.merged_at, f.release \
                    FROM fix_matches f JOIN items i ON i.id = f.report_item_id WHERE f.triage_id IN (",
                );
                query.push_list(batch.iter().map(|row| row.id));
                query.build_query_as().fetch_all(db).await?
            });
            fixes.extend(keyed(found));
        }
        for stored in &mut records {
            stored.record.fix = fixes.remove(&stored.id);
            stored.record.candidates = candidates.remove(&stored.id).unwrap_or_default();
        }
        Ok(records)
    }
}

from_row!(TriageCandidate { number, score, parts, state, judged });

from_row!(StoredTriageRecord { id, record: flatten, created_at });
from_row! {
    NewTriageRecord {
        item_type: "type", number, verdict, target, target_score, is_duplicate, confidence, reason, reasoning,
        effective_source, source_fallback_reason, provider, model, prompt_version, config_hash, content_version,
        embed_model, run_id, candidates: default, fix: default,
    }
}
read_row!(FixMatch { kind, report, score, confidence, fix, merged_at, release });

const INSERT_FIX: &str =
    "INSERT INTO fix_matches (triage_id, report_item_id, kind, score, confidence, fix, merged_at, release)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
