//! Lists plans, newest first, and the rows of one plan page by page, with its progress.

use canonry_boxed::boxed;
use std::collections::BTreeMap;

use canonry_domain::{ItemNumber, ItemType, SkipReason};
use jiff::Timestamp;
use sqlx::QueryBuilder;

use crate::close::runs::{CloseMode, CloseRun, CloseRunId, CloseRunRow, runs};
use crate::corpus::repos::RepoId;
use crate::engine::facets::PlanStore;
use crate::engine::lists::PushList as _;
use crate::engine::row_values::{count, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PlanOrigin {
    #[default]
    Person,
    Grace,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PlanSummary {
    pub run: CloseRun,
    /// The number of rows of each kind, and their results.
    pub totals: PlanTotals,
    pub apply: Option<CloseRun>,
    /// The runs that undo it, oldest first.
    pub undos: Vec<CloseRun>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanTotals {
    pub closes: u64,
    pub skips: BTreeMap<SkipReason, u64>,
    pub approved: u64,
    /// Rows that close and that a person excluded.
    pub excluded: u64,
    /// Rows that would be applied now: they close, nobody excluded them, and they have no result yet.
    pub left: u64,
    pub left_approved: u64,
    pub applied: u64,
    /// Applied rows whose items people reopened at once.
    pub objected: u64,
    /// Rows that a check kept from being applied.
    pub skipped: u64,
    pub failed: u64,
    /// Rows whose items were closed, and reopened by an undo.
    pub undone: u64,
}

impl PlanTotals {
    /// Rows that would be applied now and that nobody decided.
    pub const fn undecided(&self) -> u64 {
        self.left - self.left_approved
    }

    pub fn skips(&self) -> u64 {
        self.skips.values().sum()
    }

    /// Rows that a person excluded, in this plan or before.
    pub fn excluded_ever(&self) -> u64 {
        self.excluded + self.skips.get(&SkipReason::Excluded).copied().unwrap_or_default()
    }

    pub const fn ended(&self) -> u64 {
        self.applied + self.skipped + self.failed
    }

    /// Rows that an undo could reopen.
    pub const fn can_be_undone(&self) -> u64 {
        // Both are counted one after the other, so the second count may be newer.
        self.applied.saturating_sub(self.undone)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum PlanRowFilter {
    #[default]
    All,
    Closes,
    /// Rows that close, without a decision and without a result.
    Undecided,
    Approved,
    /// Rows that a person excluded, in this plan or before.
    Excluded,
    Ended,
    Skips,
    SkippedFor(SkipReason),
}

impl PlanRowFilter {
    /// Returns the SQL condition, without the skip reason of `SkippedFor`.
    const fn condition(self) -> &'static str {
        match self {
            Self::All => "",
            Self::Closes => " AND c.action = 'close'",
            Self::Undecided => " AND c.action = 'close' AND c.approved IS NULL AND c.result IS NULL",
            Self::Approved => " AND c.action = 'close' AND c.approved IS TRUE",
            Self::Excluded => " AND c.approved IS FALSE",
            Self::Ended => " AND c.action = 'close' AND c.result IS NOT NULL",
            Self::Skips | Self::SkippedFor(_) => " AND c.action = 'skip'",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ReviewedRow {
    /// The row, with its result in the run that applies the plan.
    pub row: CloseRunRow,
    pub undone_at: Option<Timestamp>,
}

#[boxed]
impl PlanStore<'_> {
    /// Returns one page of a repository's plans, newest first, older than `before`.
    pub async fn list(
        self,
        repo: RepoId,
        origin: PlanOrigin,
        before: Option<CloseRunId>,
        limit: u32,
    ) -> Result<Vec<PlanSummary>, StoreError> {
        let query = match origin {
            PlanOrigin::Person => runs!(
                "WHERE c.repo_id = $1 AND c.mode = 'plan' AND c.id < $2
                AND NOT EXISTS (SELECT 1 FROM graces g WHERE g.close_run_id = c.id) ORDER BY c.id DESC LIMIT $3"
            ),
            PlanOrigin::Grace => runs!(
                "WHERE c.repo_id = $1 AND c.mode = 'plan' AND c.id < $2
                AND EXISTS (SELECT 1 FROM graces g WHERE g.close_run_id = c.id) ORDER BY c.id DESC LIMIT $3"
            ),
        };
        let before = before.map_or(i64::MAX, CloseRunId::get);
        let plans: Vec<CloseRun> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(before).bind(i64::from(limit)).fetch_all(db).await?
        });
        let mut of_plans = self.runs_of_plans(repo, &plans).await?;
        let mut summaries = Vec::with_capacity(plans.len());
        let mut stated = Vec::with_capacity(plans.len());
        for run in plans {
            let (apply, undos) = of_plans.remove(&run.id).unwrap_or_default();
            stated.push(apply.as_ref().map_or(run.id, |apply| apply.id));
            summaries.push(PlanSummary { run, totals: PlanTotals::default(), apply, undos });
        }
        let undos: Vec<CloseRunId> = summaries.iter().flat_map(|plan| plan.undos.iter().map(|undo| undo.id)).collect();
        let mut totals = self.totals_of(&stated).await?;
        let undone = self.undone_by(&undos).await?;
        for (summary, stated) in summaries.iter_mut().zip(stated) {
            summary.totals = totals.remove(&stated).unwrap_or_default();
            summary.totals.undone = summary.undos.iter().filter_map(|undo| undone.get(&undo.id)).sum();
        }
        Ok(summaries)
    }

    /// Returns one plan of a repository with its results; `None` if the repository has no such plan.
    pub async fn summary(self, repo: RepoId, plan: CloseRunId) -> Result<Option<PlanSummary>, StoreError> {
        let Some(run) = self.get(plan).await?.filter(|run| run.repo.id == repo) else { return Ok(None) };
        let (apply, undos) =
            self.runs_of_plans(repo, std::slice::from_ref(&run)).await?.remove(&plan).unwrap_or_default();
        let stated = apply.as_ref().map_or(plan, |apply| apply.id);
        let mut totals = self.totals_of(&[stated]).await?.remove(&stated).unwrap_or_default();
        let undo_ids: Vec<CloseRunId> = undos.iter().map(|undo| undo.id).collect();
        totals.undone = self.undone_by(&undo_ids).await?.values().sum();
        Ok(Some(PlanSummary { run, totals, apply, undos }))
    }

    /// Returns one page of a plan's rows, grouped by target; `after` is the last row of the previous page.
    pub async fn rows_page(
        self,
        plan: &PlanSummary,
        filter: PlanRowFilter,
        after: Option<(ItemType, ItemNumber)>,
        limit: u32,
    ) -> Result<Vec<ReviewedRow>, StoreError> {
        let after = match after {
            Some((item_type, number)) => self.place_of(plan, item_type, number).await?,
            None => None,
        };
        self.reviewed_rows(plan, filter, after, None, limit).await
    }

    pub async fn row(
        self,
        plan: &PlanSummary,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Option<ReviewedRow>, StoreError> {
        let rows = self.reviewed_rows(plan, PlanRowFilter::All, None, Some((item_type, number)), 1).await?;
        Ok(rows.into_iter().next())
    }

    /// Returns the last row before this one that passes the filter, whether or not this row passes it. A page that
    /// starts after that row starts with this one.
    pub async fn row_before(
        self,
        plan: &PlanSummary,
        filter: PlanRowFilter,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Option<(ItemType, ItemNumber)>, StoreError> {
        let Some((target, item)) = self.place_of(plan, item_type, number).await? else { return Ok(None) };
        let row: Option<(String, i64)> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT i.type, i.number FROM close_run_items c JOIN items i ON i.id = c.item_id WHERE c.run_id = ",
            );
            query.push_bind(plan.stated().get()).push(filter.condition());
            if let PlanRowFilter::SkippedFor(reason) = filter {
                query.push(" AND c.skip_reason = ").push_bind(reason.as_str());
            }
            // As in the page itself: only the first condition uses the index.
            query.push(" AND COALESCE(c.target_item_id, 0) <= ").push_bind(target);
            query.push(" AND (COALESCE(c.target_item_id, 0) < ").push_bind(target);
            query.push(" OR c.item_id < ").push_bind(item).push(")");
            query.push(" ORDER BY COALESCE(c.target_item_id, 0) DESC, c.item_id DESC LIMIT 1");
            query.build_query_as().fetch_optional(db).await?
        });
        row.map(|(item_type, of)| Ok((word(&item_type)?, crate::engine::row_values::number(of)?))).transpose()
    }

    /// Returns the position of a row in the order of its plan.
    async fn place_of(
        self,
        plan: &PlanSummary,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Option<(i64, i64)>, StoreError> {
        let query = "SELECT COALESCE(c.target_item_id, 0), c.item_id FROM items i
            JOIN close_run_items c ON c.run_id = $1 AND c.item_id = i.id
            WHERE i.repo_id = $2 AND i.type = $3 AND i.number = $4";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(plan.stated().get()).bind(plan.run.repo.id.0);
            query.bind(item_type.as_str()).bind(number.get()).fetch_optional(db).await?
        }))
    }

    async fn reviewed_rows(
        self,
        plan: &PlanSummary,
        filter: PlanRowFilter,
        after: Option<(i64, i64)>,
        only: Option<(ItemType, ItemNumber)>,
        limit: u32,
    ) -> Result<Vec<ReviewedRow>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT i.type, i.number, t.number AS target, c.skip_reason, c.confidence, c.approved, c.approved_at,
                    c.approved_by, c.evidence, c.snapshot, c.result, c.objected, c.result_reason, c.result_at, c.outbox_key, ",
            );
            match plan.undos.as_slice() {
                [] => query.push("CAST(NULL AS BIGINT)"),
                undos => {
                    query.push("(SELECT max(u.result_at) FROM close_run_items u WHERE u.run_id IN (");
                    query
                        .push_list(undos.iter().map(|undo| undo.id.get()))
                        .push(" AND u.item_id = c.item_id AND u.result = 'applied')")
                }
            };
            query.push(
                " AS undone_at FROM close_run_items c JOIN items i ON i.id = c.item_id
                LEFT JOIN items t ON t.id = c.target_item_id WHERE c.run_id = ",
            );
            query.push_bind(plan.stated().get());
            query.push(filter.condition());
            if let PlanRowFilter::SkippedFor(reason) = filter {
                query.push(" AND c.skip_reason = ").push_bind(reason.as_str());
            }
            if let Some((target, item)) = after {
                // Only the first condition uses the index.
                query.push(" AND COALESCE(c.target_item_id, 0) >= ").push_bind(target);
                query.push(" AND (COALESCE(c.target_item_id, 0) > ").push_bind(target);
                query.push(" OR c.item_id > ").push_bind(item).push(")");
            }
            if let Some((item_type, number)) = only {
                query.push(" AND i.repo_id = ").push_bind(plan.run.repo.id.0);
                query.push(" AND i.type = ").push_bind(item_type.as_str());
                query.push(" AND i.number = ").push_bind(number.get());
            }
            query.push(" ORDER BY COALESCE(c.target_item_id, 0), c.item_id LIMIT ").push_bind(i64::from(limit));
            query.build_query_as().fetch_all(db).await?
        }))
    }

    async fn runs_of_plans(self, repo: RepoId, plans: &[CloseRun]) -> Result<RunsOfPlans, StoreError> {
        if plans.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows: Vec<CloseRun> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(runs!("WHERE c.mode IN ('apply', 'undo') AND c.repo_id = "));
            query.push_bind(repo.0).push(" AND c.plan_id IN (");
            query.push_list(plans.iter().map(|plan| plan.id.get())).push(" ORDER BY c.id");
            query.build_query_as().fetch_all(db).await?
        });
        let mut of_plans = RunsOfPlans::new();
        for run in rows {
            let Some(plan) = run.plan_id else { continue };
            let (apply, undos) = of_plans.entry(plan).or_default();
            match run.mode {
                CloseMode::Apply => *apply = Some(run),
                CloseMode::Undo => undos.push(run),
                CloseMode::Plan => {}
            }
        }
        Ok(of_plans)
    }

    /// Counts the rows of runs with a covering index.
    async fn totals_of(self, of: &[CloseRunId]) -> Result<BTreeMap<CloseRunId, PlanTotals>, StoreError> {
        if of.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows: Vec<TotalRow> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT run_id, action, skip_reason, approved, result, objected, count(*) AS rows_of_it FROM close_run_items
                WHERE run_id IN (",
            );
            query
                .push_list(of.iter().map(|run| run.get()))
                .push(" GROUP BY run_id, action, skip_reason, approved, result, objected");
            query.build_query_as().fetch_all(db).await?
        });
        let mut totals: BTreeMap<CloseRunId, PlanTotals> = BTreeMap::new();
        for row in rows {
            row.add_to(totals.entry(row.run_id).or_default());
        }
        Ok(totals)
    }

    /// Counts the items that each undo reopened.
    async fn undone_by(self, undos: &[CloseRunId]) -> Result<BTreeMap<CloseRunId, u64>, StoreError> {
        if undos.is_empty() {
            return Ok(BTreeMap::new());
        }
        let rows: Vec<(i64, i64)> = on_pool!(self.pool, |db| {
            let mut query = QueryBuilder::new(
                "SELECT run_id, count(*) FROM close_run_items WHERE action = 'close' AND result = 'applied' AND run_id IN (",
            );
            query.push_list(undos.iter().map(|undo| undo.get())).push(" GROUP BY run_id");
            query.build_query_as().fetch_all(db).await?
        });
        rows.into_iter().map(|(run, rows)| Ok((CloseRunId::new(run), count(rows)?))).collect()
    }
}

/// The run that applies each plan, and the runs that undo it.
type RunsOfPlans = BTreeMap<CloseRunId, (Option<CloseRun>, Vec<CloseRun>)>;

impl PlanSummary {
    /// The run whose rows show the plan's state: both runs have the decisions of people, only the apply run has
    /// results.
    fn stated(&self) -> CloseRunId {
        self.apply.as_ref().map_or(self.run.id, |apply| apply.id)
    }
}

from_row!(ReviewedRow { row: flatten, undone_at });

struct TotalRow {
    run_id: CloseRunId,
    action: String,
    skip_reason: Option<SkipReason>,
    approved: Option<bool>,
    result: Option<String>,
    objected: bool,
    rows_of_it: u64,
}

from_row!(TotalRow { run_id, action, skip_reason, approved, result, objected, rows_of_it });

impl TotalRow {
    fn add_to(&self, totals: &mut PlanTotals) {
        let rows = self.rows_of_it;
        if let Some(reason) = self.skip_reason.filter(|_| self.action == "skip") {
            *totals.skips.entry(reason).or_default() += rows;
            return;
        }
        totals.closes += rows;
        match self.approved {
            Some(true) => totals.approved += rows,
            Some(false) => totals.excluded += rows,
            None => {}
        }
        match self.result.as_deref() {
            Some("applied") => {
                totals.applied += rows;
                totals.objected += if self.objected { rows } else { 0 };
            }
            Some("skipped") => totals.skipped += rows,
            Some(_) => totals.failed += rows,
            None if self.approved != Some(false) => {
                totals.left += rows;
                totals.left_approved += if self.approved == Some(true) { rows } else { 0 };
            }
            None => {}
        }
    }
}
