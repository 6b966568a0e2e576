//! Stores jobs until they are done or have failed, lists them, and requeues them.

use canonry_boxed::boxed;
use canonry_domain::RepoName;
use jiff::Timestamp;
use serde_json::Value;
use sqlx::QueryBuilder;

use crate::engine::facets::JobStore;
use crate::engine::ids::store_id;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::{StoreRow, from_row, unreadable};
use crate::engine::transaction::{StoreError, Transaction, on_pool, on_tx};
use crate::jobs::kind::{JobKind, StoredJobKind};

store_id! {
    /// The store's own key of a job; jobs with the same queue key run in this order.
    JobId
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Waiting for its turn or for its next attempt.
    Queued,
    /// A worker runs it, or was killed while it ran it.
    Running,
    Done,
    Dead,
}

impl JobState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Dead => "dead",
        }
    }

    pub const fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

impl std::str::FromStr for JobState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Queued, Self::Running, Self::Done, Self::Dead];
        all.into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no state of a job; use queued, running, done or dead"))
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewJob<'a> {
    /// What the job is about. Jobs with the same key run one at a time, in order.
    pub key: &'a str,
    pub repo: Option<&'a RepoName>,
    pub kind: JobKind,
    pub payload: &'a Value,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: JobId,
    pub delivery_id: Option<String>,
    pub key: String,
    /// The repository whose cap the job counts toward, in lower case.
    pub repo: Option<RepoName>,
    pub kind: StoredJobKind,
    pub payload: Value,
    pub state: JobState,
    /// How often it was started since it was last queued.
    pub attempts: i64,
    /// The earliest time it may start.
    pub run_after: Timestamp,
    pub lease_until: Option<Timestamp>,
    /// Why the last attempt failed, what the job waits for, or why a done job did nothing or stopped early.
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

/// Selects jobs; `None` means any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    pub state: Option<JobState>,
    pub repo: Option<RepoName>,
    pub delivery: Option<String>,
    pub kind: Option<String>,
    /// Only jobs that were stored before this one.
    pub before: Option<JobId>,
}

macro_rules! job_columns {
    () => {
        "id, delivery_id, key, repo, kind, payload, state, attempts, run_after, lease_until, error, created_at, finished_at"
    };
}

pub(crate) use job_columns;

macro_rules! jobs {
    ($rest:literal) => {
        concat!("SELECT ", job_columns!(), " FROM jobs ", $rest)
    };
}

#[boxed]
impl JobStore<'_> {
    pub async fn get(self, id: JobId) -> Result<Option<Job>, StoreError> {
        let query = jobs!("WHERE id = $1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query).bind(id.0).fetch_optional(db).await?))
    }

    /// Returns jobs, latest first.
    pub async fn list(self, filter: &JobFilter, limit: u32) -> Result<Vec<Job>, StoreError> {
        Ok(on_pool!(self.pool, |db| {
            // Contains only the conditions that the filter sets: a condition that may be null prevents the use of any
            // index. Of two indexes the one with fewer rows should be used. SQLite does not know which: few jobs are
            // unfinished, and nearly all are webhook jobs. `kind || ''` keeps a condition from using an index.
            let not_done = filter.state.is_some_and(|state| state != JobState::Done);
            let by_kind = !not_done && filter.kind.as_deref().is_some_and(|kind| kind != "webhook");
            let mut query = QueryBuilder::new(jobs!("WHERE TRUE"));
            if let Some(state) = filter.state {
                // SQLite uses an index of some states only for a condition that is spelt like the index's own.
                let spelt = match state {
                    JobState::Queued => " AND state IN ('queued', 'running') AND state || '' = 'queued'",
                    JobState::Running => " AND state IN ('queued', 'running') AND state || '' = 'running'",
                    JobState::Dead => " AND state = 'dead'",
                    JobState::Done => " AND state = 'done'",
                };
                query.push(spelt);
            }
            if let Some(repo) = &filter.repo {
                query
                    .push(if by_kind || not_done { " AND repo || '' = " } else { " AND repo = " })
                    .push_bind(repo.key());
            }
            if let Some(delivery) = &filter.delivery {
                query.push(" AND delivery_id = ").push_bind(storable(delivery));
            }
            if let Some(kind) = &filter.kind {
                query.push(if by_kind { " AND kind = " } else { " AND kind || '' = " }).push_bind(storable(kind));
            }
            if let Some(before) = filter.before {
                query.push(" AND id < ").push_bind(before.0);
            }
            // `id + 0` sorts the few unfinished jobs, instead of reading all jobs in the order of their ids.
            let is_unfinished = matches!(filter.state, Some(JobState::Queued | JobState::Running));
            query.push(if is_unfinished { " ORDER BY id + 0 DESC" } else { " ORDER BY id DESC" });
            query.push(" LIMIT ").push_bind(i64::from(limit)).build_query_as().fetch_all(db).await?
        }))
    }

    /// Returns the latest job of a key and kind, in any state.
    pub async fn last_of(self, key: &str, kind: JobKind) -> Result<Option<Job>, StoreError> {
        let query = jobs!("WHERE key = $1 AND kind = $2 ORDER BY id DESC LIMIT 1");
        Ok(on_pool!(self.pool, |db| sqlx::query_as(query)
            .bind(storable(key))
            .bind(kind.as_str())
            .fetch_optional(db)
            .await?))
    }

    /// Queues a failed job again, or makes a waiting job due now; its delivery is queued with it. `false` if the job
    /// is running, done or unknown; then nothing changes.
    pub async fn requeue(self, id: JobId, now: Timestamp) -> Result<bool, StoreError> {
        let requeue = "UPDATE jobs SET state = 'queued', attempts = 0, run_after = $2, error = NULL, finished_at = NULL
            WHERE id = $1 AND state IN ('queued', 'dead')";
        let reopen = "UPDATE deliveries SET state = 'queued', reason = NULL, finished_at = NULL
            WHERE id = (SELECT delivery_id FROM jobs WHERE id = $1 AND state IN ('queued', 'dead'))";
        let mut tx = self.pool.begin().await?;
        // Update the delivery first, as a replay does: in another order the two could deadlock.
        let changed = on_tx!(&mut tx, |db| {
            sqlx::query(reopen).bind(id.0).execute(&mut *db).await?;
            sqlx::query(requeue).bind(id.0).bind(micros(now)).execute(db).await?.rows_affected()
        });
        if changed == 1 {
            tx.notify_workers().await?;
            tx.commit().await?;
        } else {
            tx.rollback().await?;
        }
        Ok(changed == 1)
    }

    /// Returns the queued and running jobs of a key and kind, latest first.
    pub async fn unfinished_of_key(self, key: &str, kind: JobKind) -> Result<Vec<Job>, StoreError> {
        let query = concat!(
            "SELECT ",
            job_columns!(),
            " FROM jobs WHERE key = $1 AND kind = $2 AND state IN ('queued', 'running') ORDER BY id DESC"
        );
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(storable(key)).bind(kind.as_str()).fetch_all(db).await?
        }))
    }

    /// Returns the jobs of a key and kind that were queued after `after`, in any state, latest first.
    pub async fn of_key_after(self, key: &str, kind: JobKind, after: JobId) -> Result<Vec<Job>, StoreError> {
        let query =
            concat!("SELECT ", job_columns!(), " FROM jobs WHERE key = $1 AND kind = $2 AND id > $3 ORDER BY id DESC");
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(storable(key)).bind(kind.as_str()).bind(after.get()).fetch_all(db).await?
        }))
    }

    /// Returns the latest jobs of a key and kind, in any state, latest first.
    pub async fn of_key(self, key: &str, kind: JobKind, limit: u32) -> Result<Vec<Job>, StoreError> {
        let query =
            concat!("SELECT ", job_columns!(), " FROM jobs WHERE key = $1 AND kind = $2 ORDER BY id DESC LIMIT $3");
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(storable(key)).bind(kind.as_str());
            query.bind(i64::from(limit)).fetch_all(db).await?
        }))
    }
}

/// Stores a job inside the transaction that stores its reason, and notifies the workers.
pub(crate) async fn insert_job(
    tx: &mut Transaction,
    new: &NewJob<'_>,
    delivery: Option<&str>,
    run_after: Timestamp,
    now: Timestamp,
) -> Result<JobId, StoreError> {
    let insert = "INSERT INTO jobs (delivery_id, key, repo, kind, payload, state, attempts, run_after, created_at)
        VALUES ($1, $2, $3, $4, $5, 'queued', 0, $6, $7) RETURNING id";
    let id = on_tx!(&mut *tx, |db| {
        let insert =
            sqlx::query_scalar(insert).bind(delivery).bind(storable(new.key)).bind(new.repo.map(RepoName::key));
        let insert = insert.bind(new.kind.as_str()).bind(new.payload.to_string()).bind(micros(run_after));
        insert.bind(micros(now)).fetch_one(db).await?
    });
    tx.notify_workers().await?;
    Ok(JobId(id))
}

from_row! {
    Job {
        id, delivery_id, key, repo, kind: (read_kind), payload: (read_payload), state, attempts, run_after, lease_until, error,
        created_at, finished_at,
    }
}

/// The payload column is text on both engines, unlike other JSON columns.
fn read_payload(row: &impl StoreRow) -> Result<Value, sqlx::Error> {
    serde_json::from_str(&row.column::<String>("payload")?).map_err(|error| unreadable("payload", error))
}

fn read_kind(row: &impl StoreRow) -> Result<StoredJobKind, sqlx::Error> {
    Ok(row.column::<String>("kind")?.into())
}
