//! Decisions of people about the rows of a plan, and the checks whether a plan is outdated.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemType, Login};
use jiff::Timestamp;
use serde_json::Value;
use sqlx::QueryBuilder;
use sqlx::types::Json;

use crate::close::runs::{CloseRun, CloseRunId};
use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::engine::facets::PlanStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{count, micros, moment, number, optional_word, word};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};

/// A query about the targets of a plan's rows that people ruled about since the plan was made, in `touched`, each with
/// the newest of those rulings.
///
/// The rulings first, then the rows by each of their two items: SQLite runs a cross join from left to right, and
/// `run_id + 0` keeps it from reading all rows of the plan for each ruling, which took 7 seconds for 10,000 rows and
/// 1,000 rulings.
macro_rules! ruled_targets {
    ($rest:literal) => {
        concat!(
            "WITH since AS (
                SELECT o.id, o.repo_id, o.type, o.item_number, o.other_number FROM close_runs p
                JOIN overrides o ON o.repo_id = p.repo_id AND o.kind <> 'excluded'
                    AND (o.created_at > p.created_at OR o.removed_at > p.created_at)
                WHERE p.id = $1),
            ruled AS (SELECT i.id AS item, max(named.id) AS ruling FROM (
                SELECT id, repo_id, type, item_number AS number FROM since
                UNION ALL SELECT id, repo_id, type, other_number FROM since) AS named
                JOIN items i ON i.repo_id = named.repo_id AND i.type = named.type AND i.number = named.number
                GROUP BY i.id),
            touched AS (SELECT target, max(ruling) AS ruling FROM (
                SELECT c.target_item_id AS target, ruled.ruling FROM ruled CROSS JOIN close_run_items c
                WHERE c.run_id = $1 AND c.item_id = ruled.item AND c.action = 'close'
                UNION ALL
                SELECT c.target_item_id, ruled.ruling FROM ruled CROSS JOIN close_run_items c
                WHERE c.run_id + 0 = $1 AND c.target_item_id = ruled.item AND c.action = 'close') AS found
                GROUP BY target)",
            $rest
        )
    };
}

#[boxed]
impl PlanStore<'_> {
    /// Records a person's decision about rows of a plan that close: approved, excluded, or reset to undecided.
    /// Returns the number of changed rows. Rows that already have a result do not change; the rows of the run that
    /// applies the plan change too. `by` is recorded if known.
    ///
    /// An exclusion is a ruling that later plans follow too. Another decision lifts it, also on a row that is skipped
    /// only because of an exclusion: that row closes from then on.
    pub async fn set_approved(
        self,
        plan: CloseRunId,
        item_type: ItemType,
        numbers: &[ItemNumber],
        approved: Option<bool>,
        by: Option<&Login>,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let Some(run) = self.get(plan).await? else { return Ok(0) };
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(run.repo.id).await?;
        let mut noted = 0;
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            noted += note_word(&mut tx, &run, WordOn::Items(item_type, batch), approved, by, now).await?;
        }
        tx.commit().await?;
        Ok(noted)
    }

    /// Records the decision for every undecided row of a plan, or resets every decided row. With a type, only for
    /// rows of that type.
    pub async fn set_all_approved(
        self,
        plan: CloseRunId,
        item_type: Option<ItemType>,
        approved: Option<bool>,
        by: Option<&Login>,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let Some(run) = self.get(plan).await? else { return Ok(0) };
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(run.repo.id).await?;
        let on = if approved.is_some() { WordOn::Undecided(item_type) } else { WordOn::Decided(item_type) };
        let noted = note_word(&mut tx, &run, on, approved, by, now).await?;
        tx.commit().await?;
        Ok(noted)
    }

    /// Returns the current decision about one row of a plan. A missing row is an error, not an undecided row.
    pub async fn approval_of_row(
        self,
        plan: CloseRunId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Option<bool>, StoreError> {
        let query = "SELECT c.approved FROM close_runs p JOIN items i ON i.repo_id = p.repo_id
            JOIN close_run_items c ON c.run_id = p.id AND c.item_id = i.id
            WHERE p.id = $1 AND i.type = $2 AND i.number = $3";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_scalar(query).bind(plan.get()).bind(item_type.as_str());
            query.bind(number.get()).fetch_one(db).await?
        }))
    }

    /// Returns a newer plan that contains an item which this plan closes, or that closes a target of this plan. Plans
    /// that graces made for one item each do not count: the checks before each write detect their closes.
    pub async fn newer_of_items(self, plan: CloseRunId) -> Result<Option<CloseRunId>, StoreError> {
        // Three kinds of overlap, each found by an index and ended at the first match; pages run this query too.
        let query = "SELECT n.id FROM close_runs p JOIN close_runs n ON n.repo_id = p.repo_id AND n.mode = 'plan' AND n.id > p.id
            WHERE p.id = $1 AND NOT EXISTS (SELECT 1 FROM graces g WHERE g.close_run_id = n.id) AND (
                EXISTS (SELECT 1 FROM close_run_items c JOIN close_run_items m ON m.run_id = n.id AND m.item_id = c.item_id
                    WHERE c.run_id = p.id AND c.action = 'close')
                OR EXISTS (SELECT 1 FROM close_run_items c JOIN close_run_items m ON m.run_id = n.id AND m.target_item_id = c.item_id
                    WHERE c.run_id = p.id AND c.action = 'close')
                OR EXISTS (SELECT 1 FROM close_run_items c JOIN close_run_items m ON m.run_id = n.id AND m.item_id = c.target_item_id
                    WHERE c.run_id = p.id AND c.action = 'close'))
            ORDER BY n.id DESC LIMIT 1";
        let newest: Option<i64> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(plan.get()).fetch_optional(db).await?);
        Ok(newest.map(CloseRunId::new))
    }

    /// Whether an item is about to be closed as a duplicate of another one: by its waiting grace, or by a row of a
    /// plan made since `since` that nobody excluded and that is not applied yet.
    pub async fn is_closing_towards(
        self,
        repo: RepoId,
        item_type: ItemType,
        (item, target): (ItemNumber, ItemNumber),
        since: Timestamp,
    ) -> Result<bool, StoreError> {
        let query = "SELECT EXISTS (
                SELECT 1 FROM items i JOIN items t ON t.repo_id = i.repo_id AND t.type = i.type
                WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 AND t.number = $4 AND (
                    EXISTS (SELECT 1 FROM graces g
                        WHERE g.item_id = i.id AND g.target_item_id = t.id AND g.state = 'waiting')
                    OR EXISTS (SELECT 1 FROM close_run_items c JOIN close_runs p ON p.id = c.run_id
                        WHERE c.item_id = i.id AND c.target_item_id = t.id AND c.action = 'close'
                        AND (c.approved IS NULL OR c.approved) AND p.mode = 'plan' AND p.created_at >= $5
                        AND NOT EXISTS (SELECT 1 FROM close_runs a JOIN close_run_items d ON d.run_id = a.id
                            WHERE a.plan_id = p.id AND d.item_id = i.id AND d.result IS NOT NULL))))";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_scalar(query).bind(repo.0).bind(item_type.as_str()).bind(item.get());
            query.bind(target.get()).bind(micros(since)).fetch_one(db).await?
        }))
    }

    /// Returns the targets of a plan's rows for which an override of the target or one of its rows was added or
    /// removed since the plan was made, each with its newest override. The cluster of those rows may have changed. An
    /// exclusion concerns only its own row, so it is not included.
    pub async fn targets_ruled_since(
        self,
        plan: CloseRunId,
    ) -> Result<BTreeMap<(ItemType, ItemNumber), i64>, StoreError> {
        let query = ruled_targets!(
            "SELECT t.type, t.number, touched.ruling FROM touched JOIN items t ON t.id = touched.target"
        );
        let rows: Vec<(String, i64, i64)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(plan.get()).fetch_all(db).await?);
        rows.into_iter().map(|(item_type, of, ruling)| Ok(((word(&item_type)?, number(of)?), ruling))).collect()
    }

    /// Counts the rows of a plan that are left to close, approved and not, and separately those whose cluster was
    /// ruled about since the plan was made.
    pub async fn rows_left(self, plan: CloseRunId) -> Result<RowsLeft, StoreError> {
        // Without a join, so that a covering index counts the rows. Only the run that applies the plan has results.
        let query = ruled_targets!(
            ", stated AS (SELECT coalesce(max(id), $1) AS run FROM close_runs WHERE plan_id = $1 AND mode = 'apply')
            SELECT approved, CAST(sum(others) AS BIGINT), CAST(sum(of_touched) AS BIGINT), (SELECT max(ruling) FROM touched) FROM (
                SELECT approved, count(*) AS others, 0 AS of_touched FROM close_run_items
                WHERE run_id = (SELECT run FROM stated) AND action = 'close' AND approved IS NOT FALSE AND result IS NULL
                GROUP BY approved
                UNION ALL
                SELECT c.approved, -count(*), count(*) FROM touched CROSS JOIN close_run_items c
                WHERE c.run_id + 0 = (SELECT run FROM stated) AND c.target_item_id = touched.target AND c.action = 'close'
                AND c.approved IS NOT FALSE AND c.result IS NULL GROUP BY c.approved) AS counted
            GROUP BY approved"
        );
        let rows: Vec<(Option<bool>, i64, i64, Option<i64>)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(plan.get()).fetch_all(db).await?);
        let mut left = RowsLeft::default();
        for (approved, others, of_touched, newest_ruling) in rows {
            *if approved == Some(true) { &mut left.approved } else { &mut left.unapproved } += count(others)?;
            left.ruled_since += count(of_touched)?;
            left.newest_ruling = newest_ruling;
        }
        Ok(left)
    }

    /// Returns the approvals in the newest plan of each item that were not applied.
    pub async fn standing_approvals(
        self,
        repo: RepoId,
        item_type: ItemType,
    ) -> Result<BTreeMap<ItemNumber, StandingApproval>, StoreError> {
        let query = "SELECT i.number, t.number, c.approved_by, c.approved_at, c.snapshot
            FROM close_runs p JOIN close_run_items c ON c.run_id = p.id JOIN items i ON i.id = c.item_id
            JOIN items t ON t.id = c.target_item_id
            WHERE p.repo_id = $1 AND p.mode = 'plan' AND i.type = $2 AND c.action = 'close' AND c.approved IS TRUE
            AND p.id = (SELECT max(q.id) FROM close_run_items d JOIN close_runs q ON q.id = d.run_id
                WHERE q.mode = 'plan' AND d.item_id = c.item_id)
            AND NOT EXISTS (SELECT 1 FROM close_run_items a JOIN close_runs r ON r.id = a.run_id
                WHERE r.mode = 'apply' AND r.plan_id = p.id AND a.item_id = c.item_id AND a.result = 'applied')";
        type Row = (i64, i64, Option<String>, Option<i64>, Json<Value>);
        let rows: Vec<Row> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).fetch_all(db).await?
        });
        let read = |(item, target, by, at, snapshot): Row| {
            let word =
                RowApproval { approved: true, by: optional_word(by.as_deref())?, at: moment(at.unwrap_or_default())? };
            Ok((number(item)?, StandingApproval { target: number(target)?, word, snapshot: snapshot.0 }))
        };
        rows.into_iter().map(read).collect()
    }

    /// Asks the run that applies a plan to stop before the next row.
    pub async fn stop_apply(self, plan: CloseRunId, by: Option<&Login>, now: Timestamp) -> Result<(), StoreError> {
        let update = "UPDATE close_runs SET stop_asked_at = $2, stop_asked_by = $3 WHERE id = $1 AND mode = 'plan'";
        on_pool!(self.pool, |db| {
            let query = sqlx::query(update).bind(plan.get()).bind(micros(now));
            query.bind(by.map(Login::as_str)).execute(db).await?;
        });
        Ok(())
    }

    /// Returns when an apply of a plan was last asked to stop, and by whom if known.
    pub async fn stop_of_apply(self, plan: CloseRunId) -> Result<Option<(Timestamp, Option<Login>)>, StoreError> {
        let query = "SELECT stop_asked_at, stop_asked_by FROM close_runs WHERE id = $1 AND stop_asked_at IS NOT NULL";
        let row: Option<(i64, Option<String>)> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(plan.get()).fetch_optional(db).await?);
        row.map(|(at, by)| Ok((moment(at)?, optional_word(by.as_deref())?))).transpose()
    }
}

/// Rows of a plan that are neither excluded nor ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowsLeft {
    pub approved: u64,
    pub unapproved: u64,
    /// Rows that stay open because a person ruled about their cluster since the plan was made.
    pub ruled_since: u64,
    pub newest_ruling: Option<i64>,
}

/// A person's decision about a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowApproval {
    pub approved: bool,
    pub by: Option<Login>,
    pub at: Timestamp,
}

/// An approval that a newer plan may keep.
#[derive(Debug, Clone, PartialEq)]
pub struct StandingApproval {
    /// The item was to be closed as a duplicate of this one.
    pub target: ItemNumber,
    pub word: RowApproval,
    /// Both items at planning time.
    pub snapshot: Value,
}

#[derive(Clone, Copy)]
enum WordOn<'a> {
    Items(ItemType, &'a [ItemNumber]),
    /// Rows without a decision, of one type or of both.
    Undecided(Option<ItemType>),
    Decided(Option<ItemType>),
}

async fn note_word(
    tx: &mut Transaction,
    plan: &CloseRun,
    on: WordOn<'_>,
    approved: Option<bool>,
    by: Option<&Login>,
    now: Timestamp,
) -> Result<usize, StoreError> {
    // A row that only an exclusion keeps open closes as soon as that exclusion is lifted by item number.
    let lifts = approved != Some(false) && matches!(on, WordOn::Items(..));
    let noted: Vec<(i64, i64)> = on_tx!(tx, |db| {
        let mut query = QueryBuilder::new("UPDATE close_run_items SET approved = ");
        query.push_bind(approved).push(", approved_at = ").push_bind(approved.map(|_| micros(now)));
        query.push(", approved_by = ").push_bind(approved.and(by).map(Login::as_str));
        query.push(if lifts {
            ", action = 'close', skip_reason = NULL WHERE (action = 'close' OR skip_reason = 'excluded')"
        } else {
            " WHERE action = 'close'"
        });
        query.push(" AND run_id IN (SELECT id FROM close_runs WHERE id = ");
        query.push_bind(plan.id.get()).push(" OR (mode = 'apply' AND plan_id = ").push_bind(plan.id.get());
        query.push(
            ")) AND NOT EXISTS (SELECT 1 FROM close_run_items a JOIN close_runs r ON r.id = a.run_id \
            WHERE r.mode = 'apply' AND a.item_id = close_run_items.item_id AND a.result IS NOT NULL \
            AND r.plan_id = ",
        );
        query.push_bind(plan.id.get()).push(")");
        match on {
            WordOn::Items(item_type, numbers) => {
                query.push(" AND item_id IN (SELECT id FROM items WHERE repo_id = ").push_bind(plan.repo.id.0);
                query.push(" AND type = ").push_bind(item_type.as_str()).push(" AND number IN (");
                query.push_list(numbers.iter().map(|number| number.get())).push(")");
            }
            WordOn::Undecided(item_type) | WordOn::Decided(item_type) => {
                let decided = if matches!(on, WordOn::Undecided(_)) { "IS NULL" } else { "IS NOT NULL" };
                query.push(" AND approved ").push(decided);
                if let Some(item_type) = item_type {
                    query.push(" AND item_id IN (SELECT id FROM items WHERE repo_id = ").push_bind(plan.repo.id.0);
                    query.push(" AND type = ").push_bind(item_type.as_str()).push(")");
                }
            }
        }
        query.push(" RETURNING run_id, item_id");
        query.build_query_as().fetch_all(db).await?
    });
    let items: Vec<i64> = noted.into_iter().filter(|(run, _)| *run == plan.id.get()).map(|(_, item)| item).collect();
    for batch in items.chunks(NUMBERS_PER_STATEMENT) {
        lift_exclusions(tx, plan, batch, now).await?;
        if approved == Some(false) {
            exclude(tx, plan, batch, by, now).await?;
        }
    }
    Ok(items.len())
}

/// Rules that items must not be closed as duplicates of their targets in a plan.
async fn exclude(
    tx: &mut Transaction,
    plan: &CloseRun,
    items: &[i64],
    by: Option<&Login>,
    now: Timestamp,
) -> Result<(), StoreError> {
    on_tx!(tx, |db| {
        let mut query = QueryBuilder::new(
            "INSERT INTO overrides (repo_id, type, kind, item_number, other_number, created_at, created_by)
            SELECT i.repo_id, i.type, 'excluded', i.number, t.number, ",
        );
        query.push("CAST(").push_bind(micros(now)).push(" AS BIGINT), CAST(").push_bind(by.map(Login::as_str));
        query.push(
            " AS TEXT) FROM close_run_items c JOIN items i ON i.id = c.item_id JOIN items t ON t.id = c.target_item_id
            WHERE c.run_id = ",
        );
        query.push_bind(plan.id.get()).push(" AND c.item_id IN (");
        query.push_list(items.iter().copied());
        query.build().execute(db).await?;
    });
    Ok(())
}

/// Lifts the exclusions of items from the cluster of their targets in a plan.
async fn lift_exclusions(
    tx: &mut Transaction,
    plan: &CloseRun,
    items: &[i64],
    now: Timestamp,
) -> Result<(), StoreError> {
    on_tx!(tx, |db| {
        let mut query = QueryBuilder::new("UPDATE overrides SET removed_at = ");
        query.push_bind(micros(now));
        query.push(
            " WHERE id IN (SELECT o.id FROM close_run_items c JOIN items i ON i.id = c.item_id
                JOIN items t ON t.id = c.target_item_id
                JOIN overrides o ON o.repo_id = i.repo_id AND o.type = i.type AND o.item_number = i.number
                WHERE o.kind = 'excluded' AND o.removed_at IS NULL AND (o.other_number = t.number
                    OR EXISTS (SELECT 1 FROM canonicals k WHERE k.repo_id = o.repo_id AND k.type = o.type
                        AND k.item_number = o.other_number AND k.canonical_number = t.number AND k.representation = ",
        );
        query.push_bind(plan.representation.as_str()).push(")) AND c.run_id = ").push_bind(plan.id.get());
        query.push(" AND c.item_id IN (");
        query.push_list(items.iter().copied()).push(")");
        query.build().execute(db).await?;
    });
    Ok(())
}
