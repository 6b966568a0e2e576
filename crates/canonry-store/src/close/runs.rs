//! Close runs: plans that people review, and the runs that apply or undo them.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemType, Login, Probability, SkipReason, TargetPolicy, text_enum};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::close::plan_review::RowApproval;
use crate::close::results::CloseOutcome;
use crate::corpus::items::ItemKeys;
use crate::corpus::repos::{Repo, RepoId};
use crate::duplicates::candidate_sets::Representation;
use crate::engine::facets::PlanStore;
use crate::engine::ids::store_id;
use crate::engine::row_values::micros;
use crate::engine::rows::{StoreRow, from_row};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

store_id! {
    /// The number of a plan, or of a run that applies or undoes one.
    CloseRunId
}

text_enum! {
    pub enum CloseMode: "a mode of a close run" {
        Plan = "plan",
        Apply = "apply",
        /// Reopening the items that were closed for a plan.
        Undo = "undo",
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewPlan<'a> {
    pub representation: Representation,
    pub target_policy: TargetPolicy,
    pub min_close: Probability,
    pub config_hash: &'a str,
    pub run_id: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewPlanRow {
    /// The target has the same type.
    pub item_type: ItemType,
    pub number: ItemNumber,
    /// The item that this one duplicates; a row that closes has one.
    pub target: Option<ItemNumber>,
    /// Why the item is not closed; `None` if it is closed.
    pub skip: Option<SkipReason>,
    pub confidence: Option<Probability>,
    pub evidence: Value,
    /// Both items at planning time, to detect changes.
    pub snapshot: Value,
}

/// A plan, or a run that applies or undoes one.
#[derive(Debug, Clone, PartialEq)]
pub struct CloseRun {
    pub id: CloseRunId,
    pub repo: Repo,
    pub mode: CloseMode,
    /// The plan that is applied or undone; `None` for a plan.
    pub plan_id: Option<CloseRunId>,
    pub representation: Representation,
    pub target_policy: TargetPolicy,
    pub min_close: Probability,
    pub config_hash: String,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub run_id: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CloseRunRow {
    pub item_type: ItemType,
    pub number: ItemNumber,
    pub target: Option<ItemNumber>,
    /// Why the item is not closed; `None` for a row that closes.
    pub skip: Option<SkipReason>,
    pub confidence: Option<Probability>,
    /// A person's decision: `None` is undecided, `false` excludes the row.
    pub approved: Option<bool>,
    pub approved_at: Option<Timestamp>,
    /// Who decided; `None` if unknown, as on the command line.
    pub approved_by: Option<Login>,
    pub evidence: Value,
    /// Both items at planning time.
    pub snapshot: Value,
    /// `None` until the row has a result.
    pub result: Option<StoredCloseResult>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredCloseResult {
    pub outcome: CloseOutcome,
    pub reason: Option<String>,
    pub outbox_key: Option<String>,
    pub at: Timestamp,
}

macro_rules! runs {
    ($rest:literal) => {
        concat!(
            "SELECT c.id, c.repo_id, r.github_id, r.name, c.mode, c.plan_id, c.representation, c.target_policy, c.min_close,
                c.config_hash, c.created_at, c.finished_at, c.run_id
            FROM close_runs c JOIN repos r ON r.id = c.repo_id ",
            $rest
        )
    };
}

pub(crate) use runs;

#[boxed]
impl PlanStore<'_> {
    pub async fn create(
        self,
        repo: RepoId,
        plan: &NewPlan<'_>,
        rows: &[NewPlanRow],
        now: Timestamp,
    ) -> Result<CloseRunId, StoreError> {
        self.create_keeping_approvals(repo, plan, rows, &BTreeMap::new(), now).await
    }

    /// Creates a plan with the decisions of people about rows that still apply.
    pub async fn create_keeping_approvals(
        self,
        repo: RepoId,
        plan: &NewPlan<'_>,
        rows: &[NewPlanRow],
        words: &BTreeMap<(ItemType, ItemNumber), RowApproval>,
        now: Timestamp,
    ) -> Result<CloseRunId, StoreError> {
        let mut tx = self.pool.begin().await?;
        let id = insert_plan(&mut tx, repo, plan, rows, now).await?;
        let update = "UPDATE close_run_items SET approved = $4, approved_at = $5, approved_by = $6
            WHERE run_id = $7 AND item_id = (SELECT id FROM items WHERE repo_id = $1 AND type = $2 AND number = $3)";
        for ((item_type, number), word) in words {
            on_tx!(&mut tx, |db| {
                let query = sqlx::query(update).bind(repo.0).bind(item_type.as_str()).bind(number.get());
                let query = query.bind(word.approved).bind(micros(word.at)).bind(word.by.as_ref().map(Login::as_str));
                query.bind(id.0).execute(db).await?;
            });
        }
        tx.commit().await?;
        Ok(id)
    }

    pub async fn run(self, id: CloseRunId) -> Result<Option<CloseRun>, StoreError> {
        let query = runs!("WHERE c.id = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(id.0).fetch_optional(db).await?))
    }

    pub async fn rows(self, id: CloseRunId) -> Result<Vec<CloseRunRow>, StoreError> {
        let query =
            "SELECT i.type, i.number, t.number AS target, c.skip_reason, c.confidence, c.approved, c.approved_at,
                c.approved_by, c.evidence, c.snapshot, c.result, c.objected, c.result_reason, c.result_at, c.outbox_key
            FROM close_run_items c JOIN items i ON i.id = c.item_id LEFT JOIN items t ON t.id = c.target_item_id
            WHERE c.run_id = $1 ORDER BY i.number, i.type";
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(id.0).fetch_all(db).await?))
    }

    /// Returns the run that applies a plan, if one has begun.
    pub async fn apply_of(self, plan: CloseRunId) -> Result<Option<CloseRun>, StoreError> {
        let query = runs!("WHERE c.plan_id = $1 AND c.mode = 'apply'");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(plan.0).fetch_optional(db).await?))
    }

    /// Returns the run that applies a plan: the existing one, or a new one with the plan's rows. `None` if the plan
    /// does not exist.
    pub async fn begin_apply(
        self,
        plan: CloseRunId,
        run_id: &str,
        now: Timestamp,
    ) -> Result<Option<CloseRun>, StoreError> {
        let Some(run) = self.get(plan).await? else { return Ok(None) };
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(run.repo.id).await?;
        let find = runs!("WHERE c.plan_id = $1 AND c.mode = 'apply'");
        let copy = "INSERT INTO close_run_items (run_id, item_id, target_item_id, action, skip_reason, confidence, approved,
                approved_at, approved_by, evidence, snapshot)
            SELECT $2, item_id, target_item_id, action, skip_reason, confidence, approved, approved_at, approved_by, evidence,
                snapshot
            FROM close_run_items WHERE run_id = $1";
        let known: Option<CloseRun> =
            on_tx!(&mut tx, |db| sqlx::query_as(find).bind(plan.0).fetch_optional(db).await?);
        let run: CloseRun = match known {
            Some(known) => known,
            None => {
                let next = next_run(&mut tx).await?;
                on_tx!(&mut tx, |db| {
                    let query = sqlx::query(BEGIN).bind(plan.0).bind(CloseMode::Apply.as_str());
                    query.bind(micros(now)).bind(run_id).bind(next).execute(&mut *db).await?;
                    sqlx::query(copy).bind(plan.0).bind(next).execute(&mut *db).await?;
                    sqlx::query_as(find).bind(plan.0).fetch_one(db).await?
                })
            }
        };
        tx.commit().await?;
        Ok(Some(run))
    }

    /// Returns a run that undoes a plan, with a row for each item that was closed for it and is not undone, or only
    /// for the items in `only`. An unfinished undo is continued. `None` if the plan does not exist.
    pub async fn begin_undo(
        self,
        plan: CloseRunId,
        only: Option<&[(ItemType, ItemNumber)]>,
        run_id: &str,
        now: Timestamp,
    ) -> Result<Option<CloseRun>, StoreError> {
        let Some(run) = self.get(plan).await? else { return Ok(None) };
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(run.repo.id).await?;
        let find = runs!("WHERE c.plan_id = $1 AND c.mode = 'undo' AND c.finished_at IS NULL");
        let known: Option<CloseRun> =
            on_tx!(&mut tx, |db| sqlx::query_as(find).bind(plan.0).fetch_optional(db).await?);
        let run: CloseRun = match known {
            Some(known) => known,
            None => {
                let next = next_run(&mut tx).await?;
                on_tx!(&mut tx, |db| {
                    let query = sqlx::query(BEGIN).bind(plan.0).bind(CloseMode::Undo.as_str());
                    query.bind(micros(now)).bind(run_id).bind(next).execute(&mut *db).await?;
                    sqlx::query_as(find).bind(plan.0).fetch_one(db).await?
                })
            }
        };
        match only {
            None => copy_applied(&mut tx, plan, run.id, None).await?,
            Some(items) => {
                for (item_type, number) in items {
                    copy_applied(&mut tx, plan, run.id, Some((*item_type, *number))).await?;
                }
            }
        }
        tx.commit().await?;
        Ok(Some(run))
    }

    /// Records the end of a run; the first recorded time stays.
    pub async fn finish_run(self, id: CloseRunId, now: Timestamp) -> Result<(), StoreError> {
        let update = "UPDATE close_runs SET finished_at = $2 WHERE id = $1 AND finished_at IS NULL";
        on_pool!(self.pool, |db| {
            sqlx::query(update).bind(id.0).bind(micros(now)).execute(db).await?;
        });
        Ok(())
    }

    pub(crate) async fn get(self, id: CloseRunId) -> Result<Option<CloseRun>, StoreError> {
        Ok(self.run(id).await?.filter(|run| run.mode == CloseMode::Plan))
    }
}

/// 10 columns a row; SQLite accepts at most 32,766 values in a statement.
const ROWS_PER_STATEMENT: usize = 1_000;

const BEGIN: &str =
    "INSERT INTO close_runs (id, repo_id, mode, plan_id, representation, target_policy, min_close, config_hash,
        created_at, run_id)
    SELECT $5, repo_id, $2, id, representation, target_policy, min_close, config_hash, $3, $4 FROM close_runs WHERE id = $1";

/// Returns a number that no run has or had. A purge may have deleted the runs with the largest numbers, and comments
/// on GitHub still name their plans.
async fn next_run(tx: &mut Transaction) -> Result<i64, StoreError> {
    let next = match tx {
        // No other transaction writes meanwhile.
        Transaction::Sqlite(db) => {
            let query = "SELECT 1 + max((SELECT coalesce(max(id), 0) FROM close_runs),
                coalesce((SELECT last FROM used_numbers WHERE name = 'close_runs'), 0))";
            sqlx::query_scalar(query).fetch_one(&mut **db).await?
        }
        Transaction::Postgres(db) => {
            let query = "SELECT nextval(pg_get_serial_sequence('close_runs', 'id'))";
            sqlx::query_scalar(query).fetch_one(&mut **db).await?
        }
    };
    Ok(next)
}

/// Writes a plan with its rows inside a transaction.
pub(crate) async fn insert_plan(
    tx: &mut Transaction,
    repo: RepoId,
    plan: &NewPlan<'_>,
    rows: &[NewPlanRow],
    now: Timestamp,
) -> Result<CloseRunId, StoreError> {
    let named = rows.iter().flat_map(|row| std::iter::once(row.number).chain(row.target));
    let keys = ItemKeys::read(&mut *tx, repo, named).await?;
    let insert =
        "INSERT INTO close_runs (repo_id, mode, representation, target_policy, min_close, config_hash, created_at,
            run_id, id)
        VALUES ($1, 'plan', $2, $3, $4, $5, $6, $7, $8)";
    let id = next_run(&mut *tx).await?;
    on_tx!(&mut *tx, |db| {
        sqlx::query(insert)
            .bind(repo.0)
            .bind(plan.representation.as_str())
            .bind(plan.target_policy.as_str())
            .bind(plan.min_close.get())
            .bind(plan.config_hash)
            .bind(micros(now))
            .bind(plan.run_id)
            .bind(id)
            .execute(db)
            .await?;
    });
    let mut known = Vec::with_capacity(rows.len());
    for row in rows {
        let item = keys.id(row.item_type, row.number)?;
        known.push((item, keys.optional_id(row.item_type, row.target)?, row));
    }
    for batch in known.chunks(ROWS_PER_STATEMENT) {
        write_rows(&mut *tx, id, batch).await?;
    }
    Ok(CloseRunId(id))
}

async fn write_rows(
    tx: &mut Transaction,
    run: i64,
    rows: &[(i64, Option<i64>, &NewPlanRow)],
) -> Result<(), StoreError> {
    on_tx!(tx, |db| {
        let mut query = QueryBuilder::new(
            "INSERT INTO close_run_items (run_id, item_id, target_item_id, action, skip_reason, confidence, evidence, snapshot) ",
        );
        query.push_values(rows, |mut values, (item, target, row)| {
            values
                .push_bind(run)
                .push_bind(*item)
                .push_bind(*target)
                .push_bind(if row.skip.is_some() { "skip" } else { "close" })
                .push_bind(row.skip.map(SkipReason::as_str))
                .push_bind(row.confidence.map(Probability::get))
                .push_bind(Json(&row.evidence))
                .push_bind(Json(&row.snapshot));
        });
        query.build().execute(db).await?;
    });
    Ok(())
}

/// Adds the rows of an undo: the plan's closed items that are not undone and not yet in this undo.
async fn copy_applied(
    tx: &mut Transaction,
    plan: CloseRunId,
    undo: CloseRunId,
    only: Option<(ItemType, ItemNumber)>,
) -> Result<(), StoreError> {
    let copy = "INSERT INTO close_run_items (run_id, item_id, target_item_id, action, confidence, approved, approved_at,
            approved_by, evidence, snapshot)
        SELECT $2, a.item_id, a.target_item_id, a.action, a.confidence, a.approved, a.approved_at, a.approved_by, a.evidence,
            a.snapshot
        FROM close_run_items a JOIN close_runs r ON r.id = a.run_id JOIN items i ON i.id = a.item_id
        WHERE r.plan_id = $1 AND r.mode = 'apply' AND a.result = 'applied'
        AND ($3 IS NULL OR i.type = $3) AND ($4 IS NULL OR i.number = $4)
        AND NOT EXISTS (SELECT 1 FROM close_run_items u JOIN close_runs v ON v.id = u.run_id
            WHERE v.plan_id = $1 AND v.mode = 'undo' AND u.item_id = a.item_id AND (u.result = 'applied' OR v.id = $2))";
    let (item_type, number) = only.unzip();
    on_tx!(tx, |db| {
        let query = sqlx::query(copy).bind(plan.0).bind(undo.0).bind(item_type.map(ItemType::as_str));
        query.bind(number.map(ItemNumber::get)).execute(db).await?;
    });
    Ok(())
}

from_row! {
    CloseRun {
        id, repo: flatten, mode, plan_id, representation, target_policy, min_close, config_hash, created_at,
        finished_at, run_id,
    }
}

from_row! {
    CloseRunRow {
        item_type: "type", number, target, skip: "skip_reason", confidence, approved, approved_at, approved_by,
        evidence, snapshot, result: (read_result),
    }
}

fn read_result(row: &impl StoreRow) -> Result<Option<StoredCloseResult>, sqlx::Error> {
    let (result, at): (Option<String>, Option<Timestamp>) = (row.column("result")?, row.column("result_at")?);
    let Some((result, at)) = result.zip(at) else { return Ok(None) };
    let outcome = CloseOutcome::stored(&result, row.column("objected")?)?;
    Ok(Some(StoredCloseResult {
        outcome,
        reason: row.column("result_reason")?,
        outbox_key: row.column("outbox_key")?,
        at,
    }))
}
