//! Trying work again that was given up or waits. An order to close or to open again is never revived.

use canonry_boxed::boxed;
use canonry_store::{Job, JobFilter, JobId, JobKind, Store, StoreError};
use jiff::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOutcome {
    Queued,
    /// It is an order, which was for the day it was given: somebody has to give it anew.
    Order,
    LeftAlone,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetryCounts {
    pub queued: u64,
    pub orders: u64,
}

const PAGE: u32 = 500;

/// Whether a person ordered it to close or to reopen items, with words that hold for that day alone.
pub fn is_close_order(job: &Job) -> bool {
    matches!(job.kind.known(), Some(JobKind::ApplyClose | JobKind::UndoClose))
}

/// Has a job tried again that was given up or waits, unless it is an order.
#[boxed]
pub async fn retry_job(store: &Store, job: &Job, now: Timestamp) -> Result<RetryOutcome, StoreError> {
    if is_close_order(job) {
        return Ok(RetryOutcome::Order);
    }
    let is_queued = store.jobs().requeue(job.id, now).await?;
    Ok(if is_queued { RetryOutcome::Queued } else { RetryOutcome::LeftAlone })
}

/// The same for all jobs of a filter that are `wanted`, the oldest first as they came; at most so many at once.
pub async fn retry_jobs(
    store: &Store,
    mut filter: JobFilter,
    wanted: impl Fn(&Job) -> bool,
    most: usize,
    now: Timestamp,
) -> Result<RetryCounts, StoreError> {
    let (mut work, mut retried): (Vec<JobId>, _) = (Vec::new(), RetryCounts::default());
    // All are found before the first is queued: one that is leaves the list that is being read.
    while work.len() < most {
        let jobs = store.jobs().list(&filter, PAGE).await?;
        let Some(last) = jobs.last() else { break };
        filter.before = Some(last.id);
        let (orders, others): (Vec<&Job>, Vec<&Job>) =
            jobs.iter().filter(|job| wanted(job)).partition(|job| is_close_order(job));
        retried.orders += orders.len() as u64;
        work.extend(others.iter().map(|job| job.id));
    }
    work.truncate(most);
    for id in work.into_iter().rev() {
        retried.queued += u64::from(store.jobs().requeue(id, now).await?);
    }
    Ok(retried)
}
