//! A worker: leases a job, has it handled, and stores its result.

use canonry_boxed::boxed;
use std::sync::Arc;

use canonry_clock::{BackOff, Clock};
use canonry_store::{Job, JobCaps, JobEnd, JobLease, JobScope, Store, StoreError};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Notify, watch};

use crate::jobs::job_handler::{JobError, JobHandler, LeasedJob};
use crate::jobs::outage::Outage;
use crate::jobs::owned_task::OwnedTask;

/// Long enough for a short failure of GitHub or a model to pass. With ten tries a job fails after about forty
/// minutes.
const BETWEEN_TRIES: BackOff = BackOff { first: SignedDuration::from_secs(5), longest: SignedDuration::from_mins(30) };
/// How long a job of a killed worker waits for another worker.
const LEASE: SignedDuration = SignedDuration::from_secs(20);
/// Three renewals may fail before the lease is lost.
const RENEWAL: SignedDuration = SignedDuration::from_secs(5);
/// How often an idle worker polls: for jobs that have become due, and for jobs of other processes.
const POLL: SignedDuration = SignedDuration::from_secs(1);
/// How often storing a result is retried while the database is away: for as long as the lease may last.
const END_TRIES: u32 = 20;
/// How long a job waits for a service that does not answer before its tries are counted: as long as GitHub keeps
/// deliveries.
const PATIENCE: SignedDuration = SignedDuration::from_hours(72);
/// The longest that reporting a failed job may take.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_mins(5);
/// The share by which a wait may be longer, so that jobs that wait for the same moment do not all begin at once.
const SPREAD: f64 = 0.1;

/// Runs jobs, one at a time. Many workers may run on one store, in any number of processes.
#[derive(Clone)]
pub struct Worker {
    pub store: Store,
    pub handler: Arc<dyn JobHandler>,
    pub clock: Arc<dyn Clock>,
    pub caps: JobCaps,
    /// How many tries a job gets before it fails.
    pub tries: u32,
    /// Which jobs the worker leases. Syncs sometimes take hours: if some workers lease only webhook jobs, webhooks
    /// never wait for syncs alone.
    pub scope: JobScope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    Done,
    Retried,
    Postponed,
    Dead,
    /// Another worker has taken over; nothing was stored.
    LeaseLost,
}

#[boxed]
impl Worker {
    /// Runs the next job that is due, if there is one. `owner` is a token that no other lease has; `jitter` (0 to 1)
    /// spreads the next try of a job that fails.
    pub async fn work_once(&self, owner: &str, jitter: f64) -> Result<Option<AttemptEnd>, StoreError> {
        let now = self.clock.now();
        let Some(job) = self.store.jobs().lease(owner, self.caps, self.scope, now, now + LEASE).await? else {
            return Ok(None);
        };
        self.see_through(job, owner, jitter).await.map(Some)
    }

    /// Runs jobs until `stop`, and finishes the current job first.
    pub(crate) async fn run(self, wake: Arc<Notify>, mut stop: watch::Receiver<bool>) -> u64 {
        let mut ended = 0;
        let mut outage = Outage::new("a worker's way to its jobs");
        while !*stop.borrow() {
            let owner = format!("{:032x}", rand::random::<u128>());
            match self.work_once(&owner, rand::random()).await {
                Ok(Some(_)) => {
                    outage.over();
                    ended += 1;
                    // There may be more jobs, and only one worker was woken.
                    wake.notify_one();
                    continue;
                }
                Ok(None) => outage.over(),
                Err(error) => outage.failed(&error),
            }
            tokio::select! {
                () = wake.notified() => {}
                () = self.clock.beat(POLL) => {}
                _ = stop.changed() => {}
            }
        }
        ended
    }

    async fn see_through(&self, job: Job, owner: &str, jitter: f64) -> Result<AttemptEnd, StoreError> {
        let (id, attempts, key, created_at) = (job.id, job.attempts, job.key.clone(), job.created_at);
        let lease = JobLease { id, owner };
        let tries = i64::from(self.tries);
        let result = if attempts > tries {
            // Only workers that never reported back get here: this job may be what kills them.
            Err(JobError::Hopeless(format!("failed: none of {tries} tries finished")))
        } else {
            match self.handle(&job, lease).await? {
                LeaseEnd::Answered(result) => result,
                LeaseEnd::NoAnswer(why) => Err(JobError::Retry(format!("the handler ended without an answer ({why})"))),
                LeaseEnd::TooLong => {
                    let minutes = self.handler.longest(&job).as_mins();
                    Err(JobError::Retry(format!("the job reached its limit of {minutes} minutes")))
                }
                LeaseEnd::Lost => {
                    tracing::warn!(job = id.get(), key, "the lease of a job was lost");
                    return Ok(AttemptEnd::LeaseLost);
                }
            }
        };
        let now = self.clock.now();
        let result = result.map_err(|error| waiting(error, now, now.duration_since(created_at), jitter));
        let (end, ended) = match &result {
            Ok(()) => (JobEnd::Done, AttemptEnd::Done),
            Err(JobError::Ignored(reason)) => (JobEnd::Ignored(reason), AttemptEnd::Done),
            Err(JobError::Retry(error)) if attempts < tries => (
                JobEnd::Retry(error, now + BETWEEN_TRIES.pause(u32::try_from(attempts).unwrap_or(1), jitter)),
                AttemptEnd::Retried,
            ),
            Err(JobError::Retry(error) | JobError::Hopeless(error) | JobError::Unavailable(error)) => {
                (JobEnd::Dead(error), AttemptEnd::Dead)
            }
            Err(JobError::Postpone { reason, until }) => (JobEnd::Postponed(reason, *until), AttemptEnd::Postponed),
        };
        // Before the result is stored, so that after a kill the next worker reports it.
        if let JobEnd::Dead(why) = end
            && !self.give_up(&job, why, lease).await?
        {
            return Ok(AttemptEnd::LeaseLost);
        }
        if !self.store_end(lease, end).await? {
            return Ok(AttemptEnd::LeaseLost);
        }
        match &result {
            Ok(()) | Err(JobError::Ignored(_)) => tracing::info!(job = id.get(), key, attempts, "a job is done"),
            Err(JobError::Postpone { reason, until }) => {
                tracing::info!(job = id.get(), key, reason, %until, "a job waits");
            }
            Err(error) if ended == AttemptEnd::Dead => {
                tracing::error!(job = id.get(), key, attempts, %error, "a job failed; see `canonry jobs list --state dead`");
            }
            Err(error) => tracing::warn!(job = id.get(), key, attempts, %error, "a job failed and is tried again"),
        }
        Ok(ended)
    }

    async fn handle(&self, job: &Job, lease: JobLease<'_>) -> Result<LeaseEnd<Result<(), JobError>>, StoreError> {
        let delivery = match &job.delivery_id {
            Some(id) => self.store.deliveries().get(id).await?.zip(self.store.deliveries().payload(id).await?),
            None => None,
        };
        let longest = self.handler.longest(job);
        let (handler, leased) = (Arc::clone(&self.handler), LeasedJob { job: job.clone(), delivery });
        let task = OwnedTask::begin(async move { handler.handle(&leased).await });
        self.leased(task, lease, longest).await
    }

    /// Reports a failed job to the person who waits for it; `false` if the lease is lost.
    async fn give_up(&self, job: &Job, why: &str, lease: JobLease<'_>) -> Result<bool, StoreError> {
        let (handler, job, why) = (Arc::clone(&self.handler), job.clone(), why.to_owned());
        let task = OwnedTask::begin(async move { handler.on_dead(&job, &why).await });
        let untold = match self.leased(task, lease, TOLD_WITHIN).await? {
            LeaseEnd::Answered(()) => return Ok(true),
            LeaseEnd::Lost => return Ok(false),
            LeaseEnd::NoAnswer(why) => why,
            LeaseEnd::TooLong => "it took too long",
        };
        tracing::warn!(job = lease.id.get(), why = untold, "the failure of a job could not be reported");
        Ok(true)
    }

    /// Waits for a task and renews the lease meanwhile. It is a separate task, so that its panic fails the job and
    /// not the worker.
    async fn leased<T: Send + 'static>(
        &self,
        mut task: OwnedTask<T>,
        lease: JobLease<'_>,
        longest: SignedDuration,
    ) -> Result<LeaseEnd<T>, StoreError> {
        let begun = self.clock.now();
        loop {
            tokio::select! {
                answer = task.answer() => return Ok(answer.map_or_else(LeaseEnd::NoAnswer, LeaseEnd::Answered)),
                () = self.clock.beat(RENEWAL) => {
                    if self.clock.now().duration_since(begun) >= longest {
                        return Ok(LeaseEnd::TooLong);
                    }
                    match self.store.jobs().renew(lease, self.clock.now() + LEASE).await {
                        Ok(true) => {}
                        Ok(false) => return Ok(LeaseEnd::Lost),
                        Err(error) => tracing::warn!(job = lease.id.get(), %error, "a lease could not be renewed; retrying"),
                    }
                }
            }
        }
    }

    /// Stores the result of a try. Retries, so that finished work is not repeated because the database was away for a
    /// moment.
    async fn store_end(&self, lease: JobLease<'_>, end: JobEnd<'_>) -> Result<bool, StoreError> {
        let mut tries = 1;
        loop {
            match self.store.jobs().end(lease, end, self.clock.now()).await {
                Err(error) if tries < END_TRIES => {
                    tracing::warn!(job = lease.id.get(), %error, "the result of a job could not be stored; retrying");
                }
                stored => return stored,
            }
            tries += 1;
            self.clock.beat(POLL).await;
        }
    }
}

enum LeaseEnd<T> {
    Answered(T),
    NoAnswer(&'static str),
    TooLong,
    Lost,
}

/// Applies the age of a job to its error. A job that needs a service that does not answer waits for it, and its tries
/// count only after days.
fn waiting(error: JobError, now: Timestamp, age: SignedDuration, jitter: f64) -> JobError {
    match error {
        JobError::Unavailable(reason) if age < PATIENCE => {
            JobError::Postpone { reason, until: now + BETWEEN_TRIES.outage_pause(age, jitter) }
        }
        JobError::Unavailable(reason) => JobError::Retry(reason),
        JobError::Postpone { reason, until } => {
            let wait = until.duration_since(now).max(SignedDuration::ZERO);
            let spread = wait.mul_f64(SPREAD * jitter.clamp(0.0, 1.0));
            JobError::Postpone { reason, until: until.saturating_add(spread).unwrap_or(until) }
        }
        error => error,
    }
}
