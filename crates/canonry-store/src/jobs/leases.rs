//! Leases jobs to workers: one job per key at a time, never more than the caps, and only the owner of a lease can end
//! it.

use canonry_boxed::boxed;
use jiff::Timestamp;

use crate::engine::facets::JobStore;
use crate::engine::row_values::{micros, storable};
use crate::engine::transaction::{Pool, StoreError, Transaction, on_pool, on_tx};
use crate::jobs::queue::{Job, JobId, job_columns};

/// How many jobs run at once in all processes that share a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobCaps {
    /// The cap for one repository. If it is more than 1, one place is reserved for jobs that deliveries caused.
    pub per_repo: u32,
    pub in_all: u32,
}

/// Which jobs a worker leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobScope {
    /// Any job: first those that deliveries caused, then those of schedules and people.
    All,
    /// Only jobs that deliveries caused. Such a worker leaves long jobs to others, so it is free when a webhook
    /// arrives.
    Caused,
}

/// The right to work on one job, until the job ends or another worker takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLease<'a> {
    pub id: JobId,
    pub owner: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd<'a> {
    Done,
    /// There was nothing to do. The job and its delivery show this reason.
    Ignored(&'a str),
    /// The attempt failed with this error. The job is retried at that time; later jobs of its key wait for it.
    Retry(&'a str, Timestamp),
    /// The job cannot run yet, for this reason. It waits until that time, and this attempt does not count.
    Postponed(&'a str, Timestamp),
    /// The job and its delivery failed with this error.
    Dead(&'a str),
}

/// Caps and keys are counted over rows that other workers are about to change. Row locks do not cover that, so
/// leasing runs one worker at a time, for the length of one statement. The number is any that nothing else on the
/// server uses as an advisory lock.
///
/// Without statistics PostgreSQL assumes that few jobs are queued, and sorts all of them for each lease: 37 ms with
/// 10,000 in the queue. Without sorting it must walk the index of unfinished jobs: 0.2 ms.
const BEFORE_LEASING: &str = "SET LOCAL enable_sort = off; SELECT pg_advisory_xact_lock(18930628033399375)";

/// Selects the first job that may run at $1, with at most $2 running jobs of a repository and $3 in all: the oldest
/// that a delivery caused or, if $4, the oldest other one. The last place of a repository is reserved for jobs that
/// deliveries caused: reviews and syncs take long, and webhooks must not wait for them. The index of unfinished jobs
/// begins with whether there is a delivery, so a walk along it has the right order and can stop at the first match.
///
/// Only the last condition reads other rows for each row: one index entry. Rows that may not run are skipped, 10,000
/// of them in 4 ms.
macro_rules! next_job {
    () => {
        "SELECT j.id FROM jobs j WHERE j.state IN ('queued', 'running')
            AND ((j.state = 'queued' AND j.run_after <= $1) OR (j.state = 'running' AND j.lease_until <= $1))
            AND (SELECT count(*) FROM jobs r WHERE r.state = 'running' AND r.lease_until > $1) < $3
            AND (j.repo IS NULL OR j.repo NOT IN (SELECT r.repo FROM jobs r
                WHERE r.state = 'running' AND r.lease_until > $1 AND r.repo IS NOT NULL GROUP BY r.repo HAVING count(*) >= $2))
            AND (j.delivery_id IS NOT NULL OR j.repo IS NULL OR j.repo NOT IN (SELECT r.repo FROM jobs r
                WHERE r.state = 'running' AND r.lease_until > $1 AND r.repo IS NOT NULL AND r.delivery_id IS NULL
                GROUP BY r.repo HAVING count(*) + 1 >= $2))
            AND j.key NOT IN (SELECT r.key FROM jobs r WHERE r.state = 'running' AND r.lease_until > $1)
            AND (j.delivery_id IS NULL) <= $4
            AND j.id = (SELECT min(e.id) FROM jobs e WHERE e.key = j.key AND e.state IN ('queued', 'running'))
        ORDER BY (j.delivery_id IS NULL), j.id LIMIT 1"
    };
}

#[boxed]
impl JobStore<'_> {
    /// Leases the next job until `until`: the oldest that is due, or whose lease has expired, if its key has no
    /// earlier unfinished job and no running job, within the caps. Jobs that deliveries caused come first.
    pub async fn lease(
        self,
        owner: &str,
        caps: JobCaps,
        scope: JobScope,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Job>, StoreError> {
        // On SQLite check without the write lock first: with many workers most checks find nothing, and would make
        // writers wait.
        if let Pool::Sqlite(pool) = self.pool {
            let find = sqlx::query_scalar::<_, i64>(next_job!()).bind(micros(now)).bind(i64::from(caps.per_repo));
            let find = find.bind(i64::from(caps.in_all)).bind(scope == JobScope::All);
            if find.fetch_optional(pool).await?.is_none() {
                return Ok(None);
            }
        }
        let take = concat!(
            "UPDATE jobs SET state = 'running', attempts = attempts + 1, begun_at = $1, lease_owner = $5, lease_until = $6 WHERE id = (",
            next_job!(),
            ") RETURNING ",
            job_columns!()
        );
        let mut tx = self.pool.begin().await?;
        if let Transaction::Postgres(transaction) = &mut tx {
            sqlx::raw_sql(BEFORE_LEASING).execute(&mut **transaction).await?;
        }
        let taken: Option<Job> = on_tx!(&mut tx, |db| {
            let take = sqlx::query_as(take).bind(micros(now)).bind(i64::from(caps.per_repo));
            let take = take.bind(i64::from(caps.in_all)).bind(scope == JobScope::All).bind(owner);
            take.bind(micros(until)).fetch_optional(db).await?
        });
        tx.commit().await?;
        Ok(taken)
    }

    /// Extends a lease; `false` if another worker has taken over.
    pub async fn renew(self, lease: JobLease<'_>, until: Timestamp) -> Result<bool, StoreError> {
        let renew = "UPDATE jobs SET lease_until = $3 WHERE id = $1 AND lease_owner = $2 AND state = 'running'";
        let changed = on_pool!(self.pool, |db| {
            let renew = sqlx::query(renew).bind(lease.id.0).bind(lease.owner).bind(micros(until));
            renew.execute(db).await?.rows_affected()
        });
        Ok(changed == 1)
    }

    /// Ends an attempt, and the job's delivery with it; `false` if another worker has taken over and nothing was
    /// stored.
    pub async fn end(self, lease: JobLease<'_>, end: JobEnd<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let finish = "UPDATE jobs SET state = $3, error = $4, run_after = COALESCE($5, run_after), finished_at = $6,
                attempts = attempts - $7, lease_owner = NULL, lease_until = NULL
            WHERE id = $1 AND lease_owner = $2 AND state = 'running'";
        let tell = "UPDATE deliveries SET state = $2, reason = $3, finished_at = $4
            WHERE id = (SELECT delivery_id FROM jobs WHERE id = $1)";
        let (state, error, run_after, delivery) = match end {
            JobEnd::Done => ("done", None, None, Some(("done", None))),
            JobEnd::Ignored(reason) => {
                ("done", Some(storable(reason)), None, Some(("ignored", Some(storable(reason)))))
            }
            JobEnd::Retry(error, at) | JobEnd::Postponed(error, at) => {
                ("queued", Some(storable(error)), Some(micros(at)), None)
            }
            JobEnd::Dead(error) => ("dead", Some(storable(error)), None, Some(("dead", Some(storable(error))))),
        };
        let finished = delivery.is_some().then(|| micros(now));
        let not_counted = i64::from(matches!(end, JobEnd::Postponed(..)));
        let mut tx = self.pool.begin().await?;
        let changed = on_tx!(&mut tx, |db| {
            let finish = sqlx::query(finish).bind(lease.id.0).bind(lease.owner).bind(state).bind(error);
            let finish = finish.bind(run_after).bind(finished).bind(not_counted);
            let changed = finish.execute(&mut *db).await?.rows_affected();
            if let (1, Some((state, reason))) = (changed, delivery) {
                sqlx::query(tell).bind(lease.id.0).bind(state).bind(reason).bind(finished).execute(db).await?;
            }
            changed
        });
        tx.commit().await?;
        Ok(changed == 1)
    }
}
