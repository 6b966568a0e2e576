//! What each triage record led to, and the threshold that decided it.

use canonry_boxed::boxed;
use canonry_domain::{
    ActionReason, Component, CurrentThreshold, ItemNumber, ItemType, ThresholdSource, TriageMode, text_enum,
};
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::DuplicateStore;
use crate::engine::row_values::{micros, points, word};
use crate::engine::rows::{Read, from_row};
use crate::engine::transaction::{StoreError, on_pool, on_tx};
use crate::learning::issue_outcomes::relearn;
use crate::learning::predicted_cluster::freeze_clusters;
use crate::learning::thresholds::log_adjustments;

text_enum! {
    pub enum TriageActionKind: "a triage action" {
        Recorded = "recorded",
        Commented = "commented",
        /// The existing comment was edited to say something else.
        Edited = "edited",
        /// The existing comment was edited to say that it no longer applies, and the label is removed.
        Withdrawn = "withdrawn",
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TriageAction {
    pub triage_id: i64,
    pub mode: TriageMode,
    pub component: Option<Component>,
    pub threshold: CurrentThreshold,
    pub source: ThresholdSource,
    pub action: TriageActionKind,
    pub reason: ActionReason,
    pub comment_key: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StoredTriageAction {
    pub action: TriageAction,
    pub created_at: Timestamp,
}

#[boxed]
impl DuplicateStore<'_> {
    /// Records what a triage record led to, and learns from it in the same transaction; of several actions for one
    /// record the first stays.
    pub async fn record_triage_action(self, action: &TriageAction, now: Timestamp) -> Result<(), StoreError> {
        let insert = "INSERT INTO triage_actions (triage_id, mode, component, threshold, source, action, reason, comment_key, created_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (triage_id) DO NOTHING";
        let about =
            "SELECT i.repo_id, i.id, i.type FROM triage_records d JOIN items i ON i.id = d.item_id WHERE d.id = $1";
        let mut tx = self.pool.begin().await?;
        let about: Option<(i64, i64, String)> =
            on_tx!(&mut tx, |db| sqlx::query_as(about).bind(action.triage_id).fetch_optional(db).await?);
        let Some((repo, item, item_type)) = about else {
            return Err(StoreError::Damaged(format!("the triage record {} is not there", action.triage_id)));
        };
        let repo = RepoId(repo);
        tx.lock_items_of(repo).await?;
        let written = on_tx!(&mut tx, |db| {
            sqlx::query(insert)
                .bind(action.triage_id)
                .bind(action.mode.as_str())
                .bind(action.component.as_ref().map(Component::as_str))
                .bind(points(action.threshold))
                .bind(action.source.as_str())
                .bind(action.action.as_str())
                .bind(action.reason.to_string())
                .bind(action.comment_key.as_deref())
                .bind(micros(now))
                .execute(db)
                .await?
                .rows_affected()
        });
        // The posted comment decides which record the answers of people are about.
        let is_said = written == 1 && action.action != TriageActionKind::Recorded;
        let adjusted = if is_said && word::<ItemType>(&item_type)? == ItemType::Issue {
            // The reactions so far were about another text. Reactions to this text are counted when they are next
            // fetched.
            let forget = "UPDATE triage_comment_reactions SET up = 0, down = 0, mixed = 0 WHERE item_id = $1";
            on_tx!(&mut tx, |db| {
                sqlx::query(forget).bind(item).execute(db).await?;
            });
            freeze_clusters(&mut tx, repo, item).await?;
            relearn(&mut tx, repo, &[item], now).await?
        } else {
            Vec::new()
        };
        tx.commit().await?;
        log_adjustments(&adjusted);
        Ok(())
    }

    /// Returns the actions of an item's records, newest first.
    pub async fn triage_actions_of(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
    ) -> Result<Vec<StoredTriageAction>, StoreError> {
        let query = "SELECT a.triage_id, a.mode, a.component, a.threshold, a.source, a.action, a.reason, a.comment_key, a.created_at
            FROM triage_actions a JOIN triage_records d ON d.id = a.triage_id JOIN items i ON i.id = d.item_id
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 ORDER BY a.triage_id DESC";
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(item_type.as_str()).bind(number.get()).fetch_all(db).await?
        }))
    }

    /// Returns why the latest record of a repository was or was not posted on GitHub.
    pub async fn last_triage_reason(self, repo: RepoId) -> Result<Option<ActionReason>, StoreError> {
        let query = "SELECT a.reason FROM triage_actions a JOIN triage_records d ON d.id = a.triage_id
            JOIN items i ON i.id = d.item_id WHERE i.repo_id = $1 ORDER BY a.triage_id DESC LIMIT 1";
        let row: Option<Read<(ActionReason,)>> =
            on_pool!(self.pool, |db| sqlx::query_as(query).bind(repo.0).fetch_optional(db).await?);
        Ok(row.map(|Read((reason,))| reason))
    }

    /// Returns the latest record that a run made about an item.
    pub async fn triage_record_of_run(
        self,
        repo: RepoId,
        item_type: ItemType,
        number: ItemNumber,
        run_id: &str,
    ) -> Result<Option<i64>, StoreError> {
        let query = "SELECT max(d.id) FROM triage_records d JOIN items i ON i.id = d.item_id
            WHERE i.repo_id = $1 AND i.type = $2 AND i.number = $3 AND d.run_id = $4";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_scalar(query).bind(repo.0).bind(item_type.as_str()).bind(number.get());
            query.bind(run_id).fetch_one(db).await?
        }))
    }
}

from_row!(TriageAction { triage_id, mode, component, threshold, source, action, reason, comment_key });
from_row!(StoredTriageAction { action: flatten, created_at });
