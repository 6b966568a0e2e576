//! The rows of plans, applies and undos about single items.

use canonry_boxed::boxed;
use canonry_domain::{EarlierClose, ItemNumber, ItemType};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::close::runs::{CloseMode, CloseRunId, CloseRunRow};
use crate::corpus::items::NUMBERS_PER_STATEMENT;
use crate::corpus::repos::RepoId;
use crate::engine::facets::CloseStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{moment, number, optional_moment};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

/// A row about an item in a plan, or in a run that applies or undoes a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemClose {
    pub run: CloseRunId,
    pub mode: CloseMode,
    /// The plan: the run itself, or the plan that the run applies or undoes.
    pub plan: CloseRunId,
    pub created_at: Timestamp,
    pub row: CloseRunRow,
}

#[boxed]
impl CloseStore<'_> {
    /// Returns the rows about an item in the newest plans, applies and undos that have one, newest first.
    pub async fn closes_of_item(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
        limit: u32,
    ) -> Result<Vec<ItemClose>, StoreError> {
        let query =
            "SELECT r.id AS run, r.mode, COALESCE(r.plan_id, r.id) AS plan, r.created_at, i.type, i.number, t.number AS target, c.skip_reason,
                c.confidence, c.approved, c.approved_at, c.approved_by, c.evidence, c.snapshot, c.result, c.objected,
                c.result_reason, c.result_at, c.outbox_key
            FROM items i JOIN close_run_items c ON c.item_id = i.id JOIN close_runs r ON r.id = c.run_id
            LEFT JOIN items t ON t.id = c.target_item_id
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY c.run_id DESC LIMIT $4";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get());
            query.bind(i64::from(limit)).fetch_all(db).await?
        }))
    }

    /// Returns every applied close of these items, in order.
    pub async fn earlier_closes(
        self,
        repo: RepoId,
        item_type: ItemType,
        numbers: &[ItemNumber],
    ) -> Result<Vec<EarlierClose>, StoreError> {
        let mut closes = Vec::new();
        for batch in numbers.chunks(NUMBERS_PER_STATEMENT) {
            let rows: Vec<(i64, i64, i64, bool, Option<i64>)> = on_pool!(self.pool, |db| {
                let mut query = QueryBuilder::new(
                    "SELECT i.number, t.number, c.result_at, c.objected,
                        (SELECT max(u.result_at) FROM close_run_items u JOIN close_runs v ON v.id = u.run_id
                            WHERE v.plan_id = r.plan_id AND v.mode = 'undo' AND u.item_id = c.item_id AND u.result = 'applied')
                    FROM items i JOIN close_run_items c ON c.item_id = i.id JOIN close_runs r ON r.id = c.run_id
                    JOIN items t ON t.id = c.target_item_id
                    WHERE r.mode = 'apply' AND c.result = 'applied' AND i.repo_id = ",
                );
                query.push_bind(repo.0).push(" AND i.type = ").push_bind(item_type.as_str());
                query.push(" AND i.number IN (");
                query.push_list(batch.iter().map(|number| number.get())).push(" ORDER BY c.result_at, r.id, i.number");
                query.build_query_as().fetch_all(db).await?
            });
            for (item, target, closed_at, objected, undone_at) in rows {
                let closed_at = moment(closed_at)?;
                let reversed_at = optional_moment(undone_at)?.or(objected.then_some(closed_at));
                closes.push(EarlierClose { number: number(item)?, target: number(target)?, closed_at, reversed_at });
            }
        }
        Ok(closes)
    }
}

from_row!(ItemClose { run, mode, plan, created_at, row: flatten });
