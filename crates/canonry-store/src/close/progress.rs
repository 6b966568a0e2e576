//! Finds unfinished undos, the plan of a program run, and undone plans.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::close::runs::{CloseRun, CloseRunId};
use crate::corpus::repos::RepoId;
use crate::engine::facets::PlanStore;
use crate::engine::row_values::{micros, storable};
use crate::engine::transaction::{StoreError, on_pool};

#[boxed]
impl PlanStore<'_> {
    /// Returns the unfinished run that undoes a plan.
    pub async fn running_undo(self, plan: CloseRunId) -> Result<Option<CloseRun>, StoreError> {
        let query = "SELECT id FROM close_runs WHERE plan_id = $1 AND mode = 'undo' AND finished_at IS NULL LIMIT 1";
        let found: Option<i64> =
            on_pool!(self.pool, |db| sqlx::query_scalar(query).bind(plan.get()).fetch_optional(db).await?);
        match found {
            Some(id) => self.run(CloseRunId::new(id)).await,
            None => Ok(None),
        }
    }

    /// Returns the plan that a program run made in a repository.
    pub async fn of_run(self, repo: RepoId, run_id: &str) -> Result<Option<CloseRunId>, StoreError> {
        let query =
            "SELECT id FROM close_runs WHERE repo_id = $1 AND mode = 'plan' AND run_id = $2 ORDER BY id LIMIT 1";
        let found: Option<i64> = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.get()).bind(storable(run_id)).fetch_optional(db).await?
        });
        Ok(found.map(CloseRunId::new))
    }

    /// Whether undos have handled every item that a plan closed, and at least one of them after `since`.
    pub async fn was_undone_since(self, plan: CloseRunId, since: Timestamp) -> Result<bool, StoreError> {
        let left = "SELECT count(*) FROM close_run_items a JOIN close_runs r ON r.id = a.run_id
            WHERE r.plan_id = $1 AND r.mode = 'apply' AND a.result = 'applied'
            AND NOT EXISTS (SELECT 1 FROM close_run_items u JOIN close_runs v ON v.id = u.run_id
                WHERE v.plan_id = $1 AND v.mode = 'undo' AND u.item_id = a.item_id AND u.result IS NOT NULL)";
        let lately = "SELECT count(*) FROM close_run_items u JOIN close_runs v ON v.id = u.run_id
            WHERE v.plan_id = $1 AND v.mode = 'undo' AND u.result_at > $2";
        let (left, lately): (i64, i64) = on_pool!(self.pool, |db| (
            sqlx::query_scalar(left).bind(plan.get()).fetch_one(db).await?,
            sqlx::query_scalar(lately).bind(plan.get()).bind(micros(since)).fetch_one(db).await?,
        ));
        Ok(left == 0 && lately > 0)
    }
}
