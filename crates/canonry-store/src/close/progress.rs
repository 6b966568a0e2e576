//! What of closing is under way or was done lately: runs that have not ended, and the jobs behind them.

use jiff::Timestamp;

use crate::close::runs::{CloseRun, CloseRunId};
use crate::corpus::repos::RepoId;
use crate::engine::open::Store;
use crate::engine::row_values::{micros, storable};
use crate::engine::transaction::{StoreError, on_pool};
use crate::jobs::queue::{Job, JobId, JobRow, job_columns};

impl Store {
    /// The run that undoes a plan and has not ended, if there is one.
    pub async fn undo_under_way(&self, plan: CloseRunId) -> Result<Option<CloseRun>, StoreError> {
        let query = "SELECT id FROM close_runs WHERE plan_id = $1 AND mode = 'undo' AND finished_at IS NULL LIMIT 1";
        let found: Option<i64> =
            on_pool!(&self.pool, |db| sqlx::query_scalar(query).bind(plan.get()).fetch_optional(db).await?);
        match found {
            Some(id) => self.close_run(CloseRunId::new(id)).await,
            None => Ok(None),
        }
    }

    /// The plan that a program run has made in a repository, if it has.
    pub async fn plan_of_run(&self, repo: RepoId, run_id: &str) -> Result<Option<CloseRunId>, StoreError> {
        let query =
            "SELECT id FROM close_runs WHERE repo_id = $1 AND mode = 'plan' AND run_id = $2 ORDER BY id LIMIT 1";
        let found: Option<i64> = on_pool!(&self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.get()).bind(storable(run_id)).fetch_optional(db).await?
        });
        Ok(found.map(CloseRunId::new))
    }

    /// Whether everything that was closed for a plan has been dealt with by undoing it, some of it after that moment.
    pub async fn was_undone_since(&self, plan: CloseRunId, since: Timestamp) -> Result<bool, StoreError> {
        let left = "SELECT count(*) FROM close_run_items a JOIN close_runs r ON r.id = a.run_id
            WHERE r.plan_id = $1 AND r.mode = 'apply' AND a.result = 'applied'
            AND NOT EXISTS (SELECT 1 FROM close_run_items u JOIN close_runs v ON v.id = u.run_id
                WHERE v.plan_id = $1 AND v.mode = 'undo' AND u.item_id = a.item_id AND u.result IS NOT NULL)";
        let lately = "SELECT count(*) FROM close_run_items u JOIN close_runs v ON v.id = u.run_id
            WHERE v.plan_id = $1 AND v.mode = 'undo' AND u.result_at > $2";
        let (left, lately): (i64, i64) = on_pool!(&self.pool, |db| (
            sqlx::query_scalar(left).bind(plan.get()).fetch_one(db).await?,
            sqlx::query_scalar(lately).bind(plan.get()).bind(micros(since)).fetch_one(db).await?,
        ));
        Ok(left == 0 && lately > 0)
    }

    /// The jobs of a key and kind that wait or run, the latest first.
    pub async fn unfinished_jobs_of_key(&self, key: &str, kind: &str) -> Result<Vec<Job>, StoreError> {
        let query = concat!(
            "SELECT ",
            job_columns!(),
            " FROM jobs WHERE key = $1 AND kind = $2 AND state IN ('queued', 'running') ORDER BY id DESC"
        );
        let rows: Vec<JobRow> =
            on_pool!(&self.pool, |db| { sqlx::query_as(query).bind(storable(key)).bind(kind).fetch_all(db).await? });
        rows.into_iter().map(JobRow::read).collect()
    }

    /// The jobs of a key and kind that were queued after one, whatever has become of them, the latest first.
    pub async fn jobs_of_key_after(&self, key: &str, kind: &str, after: JobId) -> Result<Vec<Job>, StoreError> {
        let query =
            concat!("SELECT ", job_columns!(), " FROM jobs WHERE key = $1 AND kind = $2 AND id > $3 ORDER BY id DESC");
        let rows: Vec<JobRow> = on_pool!(&self.pool, |db| {
            sqlx::query_as(query).bind(storable(key)).bind(kind).bind(after.get()).fetch_all(db).await?
        });
        rows.into_iter().map(JobRow::read).collect()
    }

    /// The latest jobs of a key and kind, whatever has become of them, the latest first.
    pub async fn jobs_of_key(&self, key: &str, kind: &str, limit: u32) -> Result<Vec<Job>, StoreError> {
        let query =
            concat!("SELECT ", job_columns!(), " FROM jobs WHERE key = $1 AND kind = $2 ORDER BY id DESC LIMIT $3");
        let rows: Vec<JobRow> = on_pool!(&self.pool, |db| {
            let query = sqlx::query_as(query).bind(storable(key)).bind(kind);
            query.bind(i64::from(limit)).fetch_all(db).await?
        });
        rows.into_iter().map(JobRow::read).collect()
    }
}
