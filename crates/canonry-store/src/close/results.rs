//! Records the results of rows of close runs, once each, together with their effect on the item.

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
    /// The item was closed, or reopened by an undo.
    Applied {
        /// Whether people reopened the item before its close was confirmed; always `false` for an undo.
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

/// The result of a row, to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloseResult<'a> {
    pub outcome: CloseOutcome,
    pub reason: Option<&'a str>,
    pub outbox_key: Option<&'a str>,
}

/// The ruling that an undo adds: the item is not a duplicate of the target it was closed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotDuplicate<'a> {
    pub note: Option<&'a str>,
    pub by: Option<&'a Login>,
}

/// One close that Canonry applied, whatever happened later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedClose {
    pub number: ItemNumber,
    pub target: ItemNumber,
    pub plan_id: CloseRunId,
    pub apply_run_id: CloseRunId,
    /// A person's decision about the row at that time.
    pub approved: Option<bool>,
    pub applied_at: Timestamp,
    /// Whether people reopened the item before its close was confirmed.
    pub objected: bool,
    pub undone_at: Option<Timestamp>,
}

impl AppliedClose {
    /// When the close was reversed, by an undo or by people who reopened the item at once.
    pub fn reversed_at(&self) -> Option<Timestamp> {
        self.undone_at.or(self.objected.then_some(self.applied_at))
    }
}

#[boxed]
impl PlanStore<'_> {
    /// Records the result of a row of an apply run, and closes the stored item if GitHub closed it.
    ///
    /// `false` if nothing was written: the row already has a result, which stays, or it does not exist.
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
            // GitHub's close time is not known here, and another time would look like a second close to a sync. The
            // update time is not known either: with the old one, any record that was read between our comment and the
            // close would look like a reopening. A person may also have reopened the item before this is stored.
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

    /// Records the result of a row of an undo run, reopens the stored item if GitHub reopened it, and adds the ruling
    /// if there is one.
    ///
    /// `false` if nothing was written: the row already has a result, which stays, or it does not exist.
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

    /// Returns every close of one item type that Canonry applied in a repository, in order.
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

    /// Counts the items that were closed without a person's approval since then.
    pub async fn closes_since(self, repo: RepoId, since: Timestamp) -> Result<u64, StoreError> {
        let query = "SELECT count(*) FROM close_runs r JOIN close_run_items c ON c.run_id = r.id
            WHERE r.repo_id = $1 AND r.mode = 'apply' AND c.result = 'applied' AND c.approved IS NOT TRUE AND c.result_at >= $2";
        let count: i64 = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(micros(since)).fetch_one(db).await?
        });
        u64::try_from(count).map_err(StoreError::damaged)
    }

    /// Returns a row that has no result yet.
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
    /// Adds Canonry's own action to the outcome events, so that it is recorded without a webhook.
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

    /// Writes the result and returns whether a person approved the row; `None` if another process was faster.
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
