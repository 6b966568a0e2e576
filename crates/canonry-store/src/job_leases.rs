//! Who works on which job: one worker per key, never more than the caps, and only who holds the lease ends it.

use jiff::Timestamp;

use crate::jobs::{Job, JobId, read_job};
use crate::open::Store;
use crate::row_values::{micros, storable};
use crate::transaction::{StoreError, Transaction, on_pool, on_tx};

/// How many jobs run at once, all processes of a store together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobCaps {
    /// Of one repository.
    pub per_repo: u32,
    /// In all.
    pub in_all: u32,
}

/// The right to work on one job, until it ends or another worker takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLease<'a> {
    /// The job.
    pub id: JobId,
    /// A token that no other lease has.
    pub owner: &'a str,
}

/// How a try at a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobEnd<'a> {
    /// It is done, and so is its delivery.
    Done,
    /// There was nothing to do, for this reason, which its delivery shows.
    Ignored(&'a str),
    /// It failed with this error and is tried again from that moment on; later jobs of its key wait for it.
    Retry(&'a str, Timestamp),
    /// It is given up with this error, and so is its delivery.
    Dead(&'a str),
}

/// Any number that nothing else on the server uses as an advisory lock. Caps and keys are counted over
/// rows that other workers are about to change, which no lock of rows covers: leasing goes one after
/// the other instead, for the length of one statement.
const LEASE_LOCK: i64 = 0x0043_414e_4f4e_4a4f;

/// The oldest job that may run at $1, with at most $2 of a repository and $3 in all. The two counts do not depend on
/// the row that is looked at, so that a long queue behind a full repository is walked without counting anew.
const FIND: &str = "SELECT j.id FROM jobs j WHERE j.state IN ('queued', 'running')
        AND ((j.state = 'queued' AND j.run_after <= $1) OR (j.state = 'running' AND j.lease_until <= $1))
        AND (SELECT count(*) FROM jobs r WHERE r.state = 'running' AND r.lease_until > $1) < $3
        AND (j.repo IS NULL OR j.repo NOT IN (SELECT r.repo FROM jobs r
            WHERE r.state = 'running' AND r.lease_until > $1 AND r.repo IS NOT NULL GROUP BY r.repo HAVING count(*) >= $2))
        AND NOT EXISTS (SELECT 1 FROM jobs e WHERE e.key = j.key AND e.state IN ('queued', 'running')
            AND (e.id < j.id OR (e.id > j.id AND e.state = 'running' AND e.lease_until > $1)))
    ORDER BY j.id LIMIT 1";

impl Store {
    /// Takes the oldest job that may run now, so that nobody else does until `until`: one whose moment
    /// has come, or whose worker let its lease run out, with no earlier unfinished job and no running
    /// one of its key, within the caps.
    pub async fn lease_job(
        &self,
        owner: &str,
        caps: JobCaps,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Option<Job>, StoreError> {
        let take = "UPDATE jobs SET state = 'running', attempts = attempts + 1, lease_owner = $2, lease_until = $3
            WHERE id = $1";
        // Looked at without the write lock first: most looks of many workers find nothing, and would keep writers waiting.
        let seen: Option<i64> = on_pool!(&self.pool, |db| {
            let find = sqlx::query_scalar(FIND).bind(micros(now)).bind(i64::from(caps.per_repo));
            find.bind(i64::from(caps.in_all)).fetch_optional(db).await?
        });
        if seen.is_none() {
            return Ok(None);
        }
        let mut tx = self.pool.begin().await?;
        if let Transaction::Postgres(transaction) = &mut tx {
            sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LEASE_LOCK).execute(&mut **transaction).await?;
        }
        let found: Option<i64> = on_tx!(&mut tx, |db| {
            let find = sqlx::query_scalar(FIND).bind(micros(now));
            let found =
                find.bind(i64::from(caps.per_repo)).bind(i64::from(caps.in_all)).fetch_optional(&mut *db).await?;
            if let Some(id) = found {
                sqlx::query(take).bind(id).bind(owner).bind(micros(until)).execute(db).await?;
            }
            found
        });
        let Some(id) = found else {
            tx.rollback().await?;
            return Ok(None);
        };
        let job = read_job(&mut tx, JobId(id)).await?;
        tx.commit().await?;
        Ok(Some(job))
    }

    /// Keeps a lease for longer; `false` says that another worker has taken over.
    pub async fn renew_job(&self, lease: JobLease<'_>, until: Timestamp) -> Result<bool, StoreError> {
        let renew = "UPDATE jobs SET lease_until = $3 WHERE id = $1 AND lease_owner = $2 AND state = 'running'";
        let changed = on_pool!(&self.pool, |db| {
            let renew = sqlx::query(renew).bind(lease.id.0).bind(lease.owner).bind(micros(until));
            renew.execute(db).await?.rows_affected()
        });
        Ok(changed == 1)
    }

    /// Ends a try, together with the job's delivery; `false` says that another worker has taken over
    /// and nothing was stored.
    pub async fn end_job(&self, lease: JobLease<'_>, end: JobEnd<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let finish = "UPDATE jobs SET state = $3, error = $4, run_after = COALESCE($5, run_after), finished_at = $6,
                lease_owner = NULL, lease_until = NULL
            WHERE id = $1 AND lease_owner = $2 AND state = 'running'";
        let tell = "UPDATE deliveries SET state = $2, reason = $3, finished_at = $4
            WHERE id = (SELECT delivery_id FROM jobs WHERE id = $1)";
        let (state, error, run_after, delivery) = match end {
            JobEnd::Done => ("done", None, None, Some(("done", None))),
            JobEnd::Ignored(reason) => ("done", None, None, Some(("ignored", Some(storable(reason))))),
            JobEnd::Retry(error, at) => ("queued", Some(storable(error)), Some(micros(at)), None),
            JobEnd::Dead(error) => ("dead", Some(storable(error)), None, Some(("dead", Some(storable(error))))),
        };
        let finished = delivery.is_some().then(|| micros(now));
        let mut tx = self.pool.begin().await?;
        let changed = on_tx!(&mut tx, |db| {
            let finish = sqlx::query(finish).bind(lease.id.0).bind(lease.owner).bind(state).bind(error);
            let changed = finish.bind(run_after).bind(finished).execute(&mut *db).await?.rows_affected();
            if let (1, Some((state, reason))) = (changed, delivery) {
                sqlx::query(tell).bind(lease.id.0).bind(state).bind(reason).bind(finished).execute(db).await?;
            }
            changed
        });
        tx.commit().await?;
        Ok(changed == 1)
    }
}
