//! Audits: a sample of candidate sets that a cheap and a strong judge answered, and the comparison of the two.

use canonry_boxed::boxed;
use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{AuditClass, AuditItem, AuditTally, ItemNumber, ItemType, JudgeProof, LaneResult, Probability};
use jiff::Timestamp;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::corpus::items::ItemKeys;
use crate::corpus::repos::RepoId;
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::JudgeStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{micros, number, storable, word};
use crate::engine::rows::{Read, StoreRow, from_row, read_row};
use crate::engine::transaction::{StoreError, on_pool, on_tx};

#[derive(Debug, Clone, PartialEq)]
pub struct NewAudit {
    pub representation: Representation,
    pub seed: i64,
    pub sample_size: u32,
    pub cheap_provider: String,
    pub cheap_model: String,
    pub strong_provider: String,
    pub strong_model: String,
    pub min_edge: Probability,
    pub run_id: String,
    /// The version of the prompt; `None` for audits from before it was stored.
    pub prompt_version: Option<i64>,
    /// How many of the cheap judge's accepted answers were right, if known.
    pub proof: Option<JudgeProof>,
}

/// A stored judge: another model or another prompt is another judge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredJudge {
    pub provider: String,
    pub model: String,
    pub prompt_version: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditedItem {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub candidate_set: Option<i64>,
    /// The candidates of the item, and each judge's result.
    pub item: AuditItem,
    pub class: AuditClass,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditRun {
    pub id: i64,
    pub repo: RepoId,
    pub audit: NewAudit,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditFilter<'a> {
    /// Only audits in which the cheap or the strong judge has this provider.
    pub judge: Option<&'a str>,
    pub representation: Option<Representation>,
}

macro_rules! audits {
    ($rest:literal) => {
        concat!(
            "SELECT id, repo_id, representation, seed, sample_size, cheap_provider, cheap_model, strong_provider,
                strong_model, min_edge, created_at, run_id, prompt_version, right_answers, wrong_answers
                FROM judge_audit_runs ",
            $rest
        )
    };
}

#[boxed]
impl JudgeStore<'_> {
    /// Writes an audit with all its sources, and returns its number.
    pub async fn write_audit(
        self,
        repo: RepoId,
        audit: &NewAudit,
        items: &[AuditedItem],
        now: Timestamp,
    ) -> Result<i64, StoreError> {
        let mut tx = self.pool.begin().await?;
        let keys = ItemKeys::read(&mut tx, repo, items.iter().map(|item| item.number)).await?;
        let mut known = Vec::with_capacity(items.len());
        for item in items {
            known.push((keys.id(item.item_type, item.number)?, item));
        }
        let insert =
            "INSERT INTO judge_audit_runs (repo_id, representation, seed, sample_size, cheap_provider, cheap_model,
                strong_provider, strong_model, min_edge, created_at, run_id, prompt_version, right_answers, wrong_answers)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING id";
        let counted = |count: fn(JudgeProof) -> u64| {
            let counted = audit.proof.map(|proof| i64::try_from(count(proof)));
            counted.transpose().map_err(StoreError::damaged)
        };
        let (right, wrong) = (counted(|proof| proof.right)?, counted(|proof| proof.wrong)?);
        let run: i64 = on_tx!(&mut tx, |db| {
            sqlx::query_scalar(insert)
                .bind(repo.0)
                .bind(audit.representation.as_str())
                .bind(audit.seed)
                .bind(i64::from(audit.sample_size))
                .bind(audit.cheap_provider.as_str())
                .bind(audit.cheap_model.as_str())
                .bind(audit.strong_provider.as_str())
                .bind(audit.strong_model.as_str())
                .bind(audit.min_edge.get())
                .bind(micros(now))
                .bind(audit.run_id.as_str())
                .bind(audit.prompt_version)
                .bind(right)
                .bind(wrong)
                .fetch_one(db)
                .await?
        });
        for batch in known.chunks(ROWS_PER_STATEMENT) {
            on_tx!(&mut tx, |db| {
                let mut query = QueryBuilder::new(
                    "INSERT INTO judge_audit_run_items (run_id, item_id, candidate_set_id, candidates, cheap_status, \
                    cheap_target, cheap_confidence, cheap_reason, strong_status, strong_target, strong_confidence, \
                    strong_reason, class) ",
                );
                query.push_values(batch, |mut row, (key, audited)| {
                    row.push_bind(run).push_bind(*key).push_bind(audited.candidate_set);
                    row.push_bind(Json(&audited.item.candidates));
                    for lane in [&audited.item.cheap, &audited.item.strong] {
                        row.push_bind(lane.status.as_str())
                            .push_bind(lane.target.map(ItemNumber::get))
                            .push_bind(lane.confidence.map(Probability::get))
                            .push_bind(lane.reason.as_deref().map(storable));
                    }
                    row.push_bind(audited.class.as_str());
                });
                query.build().execute(db).await?;
            });
        }
        tx.commit().await?;
        Ok(run)
    }

    pub async fn audit_run(self, id: i64) -> Result<Option<AuditRun>, StoreError> {
        let query = audits!("WHERE id = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(id).fetch_optional(db).await?))
    }

    /// Returns a repository's newest audit.
    pub async fn latest_audit(self, repo: RepoId) -> Result<Option<AuditRun>, StoreError> {
        let query = audits!("WHERE repo_id = $1 ORDER BY id DESC LIMIT 1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_optional(db).await?))
    }

    /// Returns the audits of a repository with the count of each class, newest first, older than `before`.
    pub async fn audits(
        self,
        repo: RepoId,
        filter: AuditFilter<'_>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<(AuditRun, AuditTally)>, StoreError> {
        let query = audits!(
            "WHERE repo_id = $1 AND id < $2 AND ($4 IS NULL OR cheap_provider = $4 OR strong_provider = $4)
            AND ($5 IS NULL OR representation = $5) ORDER BY id DESC LIMIT $3"
        );
        let rows: Vec<AuditRun> = on_pool!(self.pool, |db| {
            sqlx::query_as(query)
                .bind(repo.0)
                .bind(before.unwrap_or(i64::MAX))
                .bind(i64::from(limit))
                .bind(filter.judge.map(storable))
                .bind(filter.representation.map(Representation::as_str))
                .fetch_all(db)
                .await?
        });
        let mut classes: BTreeMap<i64, Vec<(AuditClass, usize)>> = BTreeMap::new();
        if !rows.is_empty() {
            let counted: Vec<(i64, String, i64)> = on_pool!(self.pool, |db| {
                let mut query =
                    QueryBuilder::new("SELECT run_id, class, count(*) FROM judge_audit_run_items WHERE run_id IN (");
                query.push_list(rows.iter().map(|row| row.id)).push(" GROUP BY run_id, class");
                query.build_query_as().fetch_all(db).await?
            });
            for (run, class, items) in counted {
                let items = usize::try_from(items).map_err(StoreError::damaged)?;
                classes.entry(run).or_default().push((word(&class)?, items));
            }
        }
        let with_tally = |run: AuditRun| {
            let classes = classes.remove(&run.id).unwrap_or_default().into_iter();
            let tally = classes.flat_map(|(class, items)| std::iter::repeat_n(class, items)).collect();
            (run, tally)
        };
        Ok(rows.into_iter().map(with_tally).collect())
    }

    /// Returns how many of a judge's accepted answers were right, from its newest audit with at least `least_answers`
    /// known answers.
    pub async fn judge_proof(
        self,
        repo: RepoId,
        judge: &StoredJudge,
        least_answers: u64,
    ) -> Result<Option<JudgeProof>, StoreError> {
        let query = "SELECT right_answers, wrong_answers FROM judge_audit_runs WHERE repo_id = $1 AND cheap_provider = $2
            AND cheap_model = $3 AND prompt_version = $4 AND right_answers + wrong_answers >= $5 ORDER BY id DESC LIMIT 1";
        let row: Option<Read<JudgeProof>> = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(judge.provider.as_str()).bind(judge.model.as_str());
            let query = query.bind(judge.prompt_version).bind(i64::try_from(least_answers).unwrap_or(i64::MAX));
            query.fetch_optional(db).await?
        });
        Ok(row.map(|Read(proof)| proof))
    }

    /// Returns the judges of the accepted decisions in force for one type and representation, by source, without
    /// rulings.
    pub async fn accepted_judges(
        self,
        repo: RepoId,
        item_type: ItemType,
        representation: Representation,
    ) -> Result<BTreeMap<ItemNumber, StoredJudge>, StoreError> {
        let query = "SELECT i.number, d.provider, d.model, d.prompt_version FROM judge_decisions d
            JOIN items i ON i.id = d.item_id WHERE d.repo_id = $1 AND i.type = $2 AND d.representation = $3
            AND d.status = 'accepted' AND d.superseded_at IS NULL AND d.origin <> 'override'";
        let rows: Vec<(i64, String, String, i64)> = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str());
            query.bind(representation.as_str()).fetch_all(db).await?
        });
        let judge = |(source, provider, model, prompt_version)| {
            Ok((number(source)?, StoredJudge { provider, model, prompt_version }))
        };
        rows.into_iter().map(judge).collect()
    }

    /// Returns the judges whose accepted decisions are in force in a repository, and the judge of its newest triaged
    /// item.
    pub async fn judges_in_use(self, repo: RepoId) -> Result<BTreeSet<StoredJudge>, StoreError> {
        let query = "SELECT DISTINCT provider, model, prompt_version FROM judge_decisions WHERE repo_id = $1
                AND status = 'accepted' AND superseded_at IS NULL AND origin <> 'override'
            UNION SELECT provider, model, prompt_version FROM triage_records
            WHERE id = (SELECT max(id) FROM triage_records WHERE repo_id = $1)";
        let rows: Vec<(String, String, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_all(db).await?);
        let judge = |(provider, model, prompt_version)| StoredJudge { provider, model, prompt_version };
        Ok(rows.into_iter().map(judge).collect())
    }

    /// Returns the sources of an audit, ordered by number.
    pub async fn audit_items(self, id: i64) -> Result<Vec<AuditedItem>, StoreError> {
        let query = "SELECT i.type, i.number, a.candidate_set_id, a.candidates, a.cheap_status, a.cheap_target, a.cheap_confidence,
                a.cheap_reason, a.strong_status, a.strong_target, a.strong_confidence, a.strong_reason, a.class
            FROM judge_audit_run_items a JOIN items i ON i.id = a.item_id WHERE a.run_id = $1 ORDER BY i.number, i.type";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(id).fetch_all(db).await?))
    }
}

/// 13 columns a row; SQLite accepts at most 32,766 values in a statement.
const ROWS_PER_STATEMENT: usize = 1_000;

from_row!(AuditRun { id, repo: "repo_id", audit: flatten, created_at });
from_row! {
    NewAudit {
        representation, seed, sample_size, cheap_provider, cheap_model, strong_provider, strong_model, min_edge, run_id,
        prompt_version, proof: (read_proof),
    }
}

fn read_proof(row: &impl StoreRow) -> Result<Option<JudgeProof>, sqlx::Error> {
    let (right, wrong): (Option<u64>, Option<u64>) = (row.column("right_answers")?, row.column("wrong_answers")?);
    Ok(right.zip(wrong).map(|(right, wrong)| JudgeProof { right, wrong }))
}

read_row!(JudgeProof { right: "right_answers", wrong: "wrong_answers" });

from_row!(AuditedItem { item_type: "type", number, candidate_set: "candidate_set_id", item: flatten, class });
read_row!(AuditItem { candidates, cheap: (read_cheap), strong: (read_strong) });

fn read_cheap(row: &impl StoreRow) -> Result<LaneResult, sqlx::Error> {
    lane(row, ["cheap_status", "cheap_target", "cheap_confidence", "cheap_reason"])
}

fn read_strong(row: &impl StoreRow) -> Result<LaneResult, sqlx::Error> {
    lane(row, ["strong_status", "strong_target", "strong_confidence", "strong_reason"])
}

fn lane(row: &impl StoreRow, [status, target, confidence, reason]: [&str; 4]) -> Result<LaneResult, sqlx::Error> {
    Ok(LaneResult {
        status: row.column(status)?,
        target: row.column(target)?,
        confidence: row.column(confidence)?,
        reason: row.column(reason)?,
    })
}
