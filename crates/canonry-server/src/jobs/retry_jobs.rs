//! Retries jobs that failed or wait. An order to close or reopen is never retried.

use canonry_boxed::boxed;
use canonry_store::{Job, JobFilter, JobId, JobKind, Store, StoreError};
use jiff::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOutcome {
    Queued,
    /// The job is an order, which was meant for the day it was given. A person has to give it again.
    Order,
    LeftAlone,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryCounts {
    pub queued: u64,
    pub orders: u64,
}

const PAGE: u32 = 500;

/// Whether the job is a person's order to close or reopen items. Such an order is valid only on the day it was given.
pub fn is_close_order(job: &Job) -> bool {
    matches!(job.kind.known(), Some(JobKind::ApplyClose | JobKind::UndoClose))
}

/// Retries a job that failed or waits, unless it is an order.
#[boxed]
pub async fn retry_job(store: &Store, job: &Job, now: Timestamp) -> Result<RetryOutcome, StoreError> {
    if is_close_order(job) {
        return Ok(RetryOutcome::Order);
    }
    let is_queued = store.jobs().requeue(job.id, now).await?;
    Ok(if is_queued { RetryOutcome::Queued } else { RetryOutcome::LeftAlone })
}

/// Retries the `wanted` jobs of a filter in the order in which they came; with more than `most`, the oldest ones.
pub async fn retry_jobs(
    store: &Store,
    mut filter: JobFilter,
    wanted: impl Fn(&Job) -> bool,
    most: usize,
    now: Timestamp,
) -> Result<RetryCounts, StoreError> {
    let (mut work, mut retried): (Vec<JobId>, _) = (Vec::new(), RetryCounts::default());
    // Finds all jobs before queueing the first: a queued job leaves the list that is being read.
    loop {
        let jobs = store.jobs().list(&filter, PAGE).await?;
        let Some(last) = jobs.last() else { break };
        filter.before = Some(last.id);
        let (orders, others): (Vec<&Job>, Vec<&Job>) =
            jobs.iter().filter(|job| wanted(job)).partition(|job| is_close_order(job));
        retried.orders += orders.len() as u64;
        work.extend(others.iter().map(|job| job.id));
    }
    for id in work.into_iter().rev().take(most) {
        retried.queued += u64::from(store.jobs().requeue(id, now).await?);
    }
    Ok(retried)
}
