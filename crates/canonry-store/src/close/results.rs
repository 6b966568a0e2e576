//! What became of the rows of close runs: written once, together with what it means for the item.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, ItemType, Login, OverrideKind, ThresholdAdjusted, whole_micros};
use jiff::Timestamp;
use sqlx::types::Json;

use crate::close::runs::{CloseMode, CloseRunId};
use crate::corpus::index_changes::{IndexChange, note_index_change};
use crate::corpus::repos::RepoId;
use crate::duplicates::overrides::{NewOverride, add_override};
use crate::engine::facets::PlanStore;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::{from_row, unreadable};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::learning::outcome_events::add_events;
use crate::learning::own_closes::{OwnAct, SAME_CLOSE, own_events};
use crate::learning::thresholds::log_adjustments;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseOutcome {
    /// It was done: the item was closed, or opened again by an undo.
    Applied {
        /// Whether people had opened the item again by the time its close was seen to have worked; never so of an undo.
        objected: bool,
    },
    Skipped,
    Failed,
}

impl CloseOutcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied { .. } => "applied",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn stored(text: &str, objected: bool) -> Result<Self, sqlx::Error> {
        match text {
            "applied" => Ok(Self::Applied { objected }),
            "skipped" => Ok(Self::Skipped),
            "failed" => Ok(Self::Failed),
            other => Err(unreadable("result", format!("{other:?} is no result of a close"))),
        }
    }
}

/// What became of a row, to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseResult<'a> {
    pub outcome: CloseOutcome,
    pub reason: Option<&'a str>,
    pub outbox_key: Option<&'a str>,
}

/// The ruling that an undo leaves: the item is no duplicate of what it was closed onto.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotDuplicate<'a> {
    pub note: Option<&'a str>,
    pub by: Option<&'a Login>,
}

/// One close that Canonry carried out, whatever came of it later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedClose {
    pub number: ItemNumber,
    pub target: ItemNumber,
    pub plan_id: CloseRunId,
    pub apply_run_id: CloseRunId,
    /// A person's word on the row at that time.
    pub approved: Option<bool>,
    pub applied_at: Timestamp,
    /// Whether people had opened it again by the time the close was seen to have worked.
    pub objected: bool,
    pub undone_at: Option<Timestamp>,
}

impl AppliedClose {
    /// When the close was taken back, by an undo or by people who opened the item again at once.
    pub fn taken_back_at(&self) -> Option<Timestamp> {
        self.undone_at.or(self.objected.then_some(self.applied_at))
    }
}

#[boxed]
impl PlanStore<'_> {
    /// Notes what became of a row of a run that applies a plan, and closes the stored item where GitHub did.
    ///
    /// `false` says that nothing was written: the row has a result already, which stays, or there is no such row.
    pub async fn record_close_result(
        self,
        run: CloseRunId,
        item_type: ItemType,
        number: ItemNumber,
        result: CloseResult<'_>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(row) = self.open_row(run, CloseMode::Apply, item_type, number).await? else { return Ok(false) };
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(row.repo).await?;
        let Some(approved) = row.end(&mut tx, result, now).await? else { return Ok(false) };
        if result.outcome == (CloseOutcome::Applied { objected: false }) {
            // GitHub's time of closing is not known here, and another one would look like a second closing to a sync.
            // Neither is that of the last change: with the former one, whatever was read between our comment and the close
            // would look like a reopening. And a person may have opened it again before this is stored.
            let close = "UPDATE items SET state = 'closed', state_reason = CASE type WHEN 'issue' THEN 'duplicate' END,
                closed_at = NULL, duplicate_of = $2, updated_at = NULL, last_synced_at = $3 WHERE id = $1
                AND NOT EXISTS (SELECT 1 FROM outcome_events e WHERE e.item_id = $1 AND e.kind = 'reopened'
                    AND e.by_whom <> 'canonry' AND e.occurred_at >= $4)";
            on_tx!(&mut tx, |db| {
                let close = sqlx::query(close).bind(row.item).bind(row.target.get()).bind(micros(now));
                close.bind(micros(now - SAME_CLOSE)).execute(db).await?;
            });
        }
        let act = match result.outcome {
            CloseOutcome::Applied { objected } => Some(OwnAct::Closed { onto: row.target, approved, objected }),
            CloseOutcome::Skipped | CloseOutcome::Failed => None,
        };
        let adjusted = row.record_own_act(&mut tx, item_type, number, act, now).await?;
        note_index_change(&mut tx, row.repo, IndexChange::Items(&[(item_type, number)])).await?;
        tx.commit().await?;
        log_adjustments(&adjusted);
        Ok(true)
    }

    /// Notes what became of a row of a run that undoes a plan, opens the stored item where GitHub did, and adds the
    /// ruling if there is one.
    ///
    /// `false` says that nothing was written: the row has a result already, which stays, or there is no such row.
    pub async fn record_undo_result(
        self,
        run: CloseRunId,
        item_type: ItemType,
        number: ItemNumber,
        result: CloseResult<'_>,
        ruling: Option<NotDuplicate<'_>>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Some(row) = self.open_row(run, CloseMode::Undo, item_type, number).await? else { return Ok(false) };
        let mut tx = self.pool.begin().await?;
        tx.lock_items_of(row.repo).await?;
        if row.end(&mut tx, result, now).await?.is_none() {
            return Ok(false);
        }
        if matches!(result.outcome, CloseOutcome::Applied { .. }) {
            let open = "UPDATE items SET state = 'open', state_reason = CASE type WHEN 'issue' THEN 'reopened' END,
                closed_at = NULL, duplicate_of = NULL, updated_at = NULL, last_synced_at = $2 WHERE id = $1";
            on_tx!(&mut tx, |db| {
                sqlx::query(open).bind(row.item).bind(micros(now)).execute(db).await?;
            });
        }
        if let Some(NotDuplicate { note, by }) = ruling {
            let other = Some(row.target);
            let new = NewOverride { item_type, kind: OverrideKind::NotDuplicate, item: number, other, note, by };
            add_override(&mut tx, row.repo, new, now).await?;
        }
        let act = matches!(result.outcome, CloseOutcome::Applied { .. }).then_some(OwnAct::Undone);
        let adjusted = row.record_own_act(&mut tx, item_type, number, act, now).await?;
        note_index_change(&mut tx, row.repo, IndexChange::Items(&[(item_type, number)])).await?;
        tx.commit().await?;
        log_adjustments(&adjusted);
        Ok(true)
    }

    /// Every close of one type that Canonry carried out in a repository, in their order.
    pub async fn applied_closes(self, repo: RepoId, item_type: ItemType) -> Result<Vec<AppliedClose>, StoreError> {
        let query = "SELECT i.number, t.number AS target, r.plan_id, r.id AS apply_run_id, c.approved, c.result_at, c.objected,
                (SELECT max(u.result_at) FROM close_run_items u JOIN close_runs v ON v.id = u.run_id
                    WHERE v.plan_id = r.plan_id AND v.mode = 'undo' AND u.item_id = c.item_id AND u.result = 'applied') AS undone_at
            FROM close_runs r JOIN close_run_items c ON c.run_id = r.id JOIN items i ON i.id = c.item_id
            JOIN items t ON t.id = c.target_item_id
            WHERE r.repo_id = $1 AND r.mode = 'apply' AND i.type = $2 AND c.result = 'applied'
            ORDER BY c.result_at, r.id, i.number";
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).fetch_all(db).await?
        }))
    }

    /// How many items were closed since then without a person's approval.
    pub async fn closes_since(self, repo: RepoId, since: Timestamp) -> Result<u64, StoreError> {
        let query = "SELECT count(*) FROM close_runs r JOIN close_run_items c ON c.run_id = r.id
            WHERE r.repo_id = $1 AND r.mode = 'apply' AND c.result = 'applied' AND c.approved IS NOT TRUE AND c.result_at >= $2";
        let count: i64 = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(micros(since)).fetch_one(db).await?
        });
        u64::try_from(count).map_err(StoreError::damaged)
    }

    /// A row that something can become of.
    async fn open_row(
        self,
        run: CloseRunId,
        mode: CloseMode,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Option<OpenRow>, StoreError> {
        let query = "SELECT r.repo_id, c.item_id, t.number FROM close_runs r
            JOIN items i ON i.repo_id = r.repo_id AND i.type = $3 AND i.number = $4
            JOIN close_run_items c ON c.run_id = r.id AND c.item_id = i.id JOIN items t ON t.id = c.target_item_id
            WHERE r.id = $1 AND r.mode = $2 AND c.action = 'close' AND c.result IS NULL";
        let row: Option<(i64, i64, i64)> = on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(run.get()).bind(mode.as_str()).bind(item_type.as_str());
            query.bind(number.get()).fetch_optional(db).await?
        });
        let Some((repo, item, target)) = row else { return Ok(None) };
        Ok(Some(OpenRow { run, repo: RepoId(repo), item, target: crate::engine::row_values::number(target)? }))
    }
}

struct OpenRow {
    run: CloseRunId,
    repo: RepoId,
    item: i64,
    target: ItemNumber,
}

impl OpenRow {
    /// Adds what Canonry did to the log of outcome events, so that it is there without any webhook.
    async fn record_own_act(
        &self,
        tx: &mut Transaction,
        item_type: ItemType,
        number: ItemNumber,
        act: Option<OwnAct>,
        now: Timestamp,
    ) -> Result<Vec<ThresholdAdjusted>, StoreError> {
        let (Some(act), ItemType::Issue) = (act, item_type) else { return Ok(Vec::new()) };
        let labels = "SELECT labels FROM items WHERE id = $1";
        let Json(labels): Json<Vec<String>> =
            on_tx!(&mut *tx, |db| sqlx::query_scalar(labels).bind(self.item).fetch_one(db).await?);
        let events = own_events(self.run, number, act, &labels, whole_micros(now));
        Ok(add_events(tx, self.repo, &events, now).await?.adjusted)
    }

    /// Writes the result, and tells whether a person approved the row; `None` when somebody else was faster.
    async fn end(
        &self,
        tx: &mut Transaction,
        result: CloseResult<'_>,
        now: Timestamp,
    ) -> Result<Option<bool>, StoreError> {
        let update =
            "UPDATE close_run_items SET result = $3, objected = $4, result_reason = $5, outbox_key = $6, result_at = $7
            WHERE run_id = $1 AND item_id = $2 AND result IS NULL RETURNING approved IS TRUE";
        let approved = on_tx!(tx, |db| {
            sqlx::query_scalar(update)
                .bind(self.run.get())
                .bind(self.item)
                .bind(result.outcome.as_str())
                .bind(result.outcome == (CloseOutcome::Applied { objected: true }))
                .bind(result.reason.map(storable))
                .bind(result.outbox_key)
                .bind(micros(now))
                .fetch_optional(db)
                .await?
        });
        Ok(approved)
    }
}

from_row! {
    AppliedClose {
        number, target, plan_id, apply_run_id, approved, applied_at: "result_at", objected, undone_at,
    }
}
