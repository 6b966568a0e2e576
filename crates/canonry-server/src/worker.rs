//! A worker: leases a job, has it handled, and stores how that ended.

use std::sync::Arc;
use std::time::Duration;

use canonry_github::Clock;
use canonry_store::{Job, JobCaps, JobEnd, JobLease, Store, StoreError};
use jiff::SignedDuration;
use tokio::sync::{Notify, watch};

use crate::back_off::back_off;
use crate::handler::{Handled, JobError, JobHandler, Work};

/// How long a job of a worker that was killed waits for another one.
const LEASE: SignedDuration = SignedDuration::from_secs(20);
/// Three renewals may fail before the lease is lost.
const RENEWAL: Duration = Duration::from_secs(5);
/// How often an idle worker looks by itself: for moments that have come, and for jobs of other processes.
const POLL: Duration = Duration::from_secs(1);

/// Does jobs, one at a time. Many may run on one store, in any number of processes.
#[derive(Clone)]
pub struct Worker {
    /// Where jobs are.
    pub store: Store,
    /// What does them.
    pub handler: Arc<dyn JobHandler>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// How many may run at once.
    pub caps: JobCaps,
    /// How often a job is tried before it is given up.
    pub tries: u32,
}

/// How one try at a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It is done, or there was nothing to do.
    Done,
    /// It will be tried again.
    Retried,
    /// It was given up.
    Dead,
    /// Another worker has taken over; nothing was stored.
    LeaseLost,
}

impl Worker {
    /// Does the next job that is due, if there is one. `owner` is a token that no other lease has;
    /// `jitter` (0 to 1) spreads the next try of a job that fails.
    pub async fn work_once(&self, owner: &str, jitter: f64) -> Result<Option<Ended>, StoreError> {
        let now = self.clock.now();
        let Some(job) = self.store.lease_job(owner, self.caps, now, now + LEASE).await? else {
            return Ok(None);
        };
        self.see_through(job, owner, jitter).await.map(Some)
    }

    /// Does jobs until `stop` says so; the job in hand is done first.
    pub(crate) async fn run(self, wake: Arc<Notify>, mut stop: watch::Receiver<bool>) -> u64 {
        let mut ended = 0;
        while !*stop.borrow() {
            let owner = format!("{:032x}", rand::random::<u128>());
            match self.work_once(&owner, rand::random()).await {
                Ok(Some(_)) => {
                    ended += 1;
                    // Where there was one job there may be more, and only one worker was woken.
                    wake.notify_one();
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::error!(%error, "a worker could not reach its jobs; it looks again in a second"),
            }
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                _ = stop.changed() => {}
            }
        }
        ended
    }

    async fn see_through(&self, job: Job, owner: &str, jitter: f64) -> Result<Ended, StoreError> {
        let (id, attempts, key) = (job.id, job.attempts, job.key.clone());
        let lease = JobLease { id, owner };
        let tries = i64::from(self.tries);
        let result = if attempts > tries {
            // Only workers that never reported back get here: it may well be this job that kills them.
            Err(JobError::Hopeless(format!("given up: none of {tries} tries came to an end")))
        } else {
            match self.handle(job, lease).await? {
                Some(result) => result,
                None => {
                    tracing::warn!(job = id.get(), key, "the lease of a job was lost");
                    return Ok(Ended::LeaseLost);
                }
            }
        };
        let now = self.clock.now();
        let (end, ended) = match &result {
            Ok(Handled::Done) => (JobEnd::Done, Ended::Done),
            Ok(Handled::Ignored(reason)) => (JobEnd::Ignored(reason), Ended::Done),
            Err(JobError::Retry(error)) if attempts < tries => {
                (JobEnd::Retry(error, now + back_off(attempts, jitter)), Ended::Retried)
            }
            Err(JobError::Retry(error) | JobError::Hopeless(error)) => (JobEnd::Dead(error), Ended::Dead),
        };
        if !self.store.end_job(lease, end, now).await? {
            return Ok(Ended::LeaseLost);
        }
        match &result {
            Err(error) if ended == Ended::Dead => {
                tracing::error!(job = id.get(), key, attempts, %error, "a job is given up; see `canonry jobs list --state dead`");
            }
            Err(error) => tracing::warn!(job = id.get(), key, attempts, %error, "a job failed and is tried again"),
            Ok(_) => tracing::info!(job = id.get(), key, attempts, "a job is done"),
        }
        Ok(ended)
    }

    /// Runs the handler while the lease is renewed; `None` when the lease is lost. The handler runs as a
    /// task of its own, so that its panic is a failure of the job and not of the worker.
    async fn handle(&self, job: Job, lease: JobLease<'_>) -> Result<Option<Result<Handled, JobError>>, StoreError> {
        let delivery = match &job.delivery_id {
            Some(id) => self.store.delivery(id).await?.zip(self.store.delivery_payload(id).await?),
            None => None,
        };
        let (handler, work) = (Arc::clone(&self.handler), Work { job, delivery });
        let mut task = AbortOnDrop(tokio::spawn(async move { handler.handle(&work).await }));
        let mut renewal = tokio::time::interval_at(tokio::time::Instant::now() + RENEWAL, RENEWAL);
        loop {
            tokio::select! {
                joined = &mut task.0 => {
                    let failed = |error: tokio::task::JoinError| JobError::Retry(format!("the handler ended without an answer ({})", if error.is_panic() { "it panicked" } else { "it was stopped" }));
                    return Ok(Some(joined.unwrap_or_else(|error| Err(failed(error)))));
                }
                _ = renewal.tick() => {
                    match self.store.renew_job(lease, self.clock.now() + LEASE).await {
                        Ok(true) => {}
                        Ok(false) => return Ok(None),
                        Err(error) => tracing::warn!(job = lease.id.get(), %error, "a lease could not be renewed; it is tried again"),
                    }
                }
            }
        }
    }
}

/// A task that does not outlive whoever waits for it: work without a lease must end.
struct AbortOnDrop(tokio::task::JoinHandle<Result<Handled, JobError>>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
