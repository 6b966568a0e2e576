//! Trying work again that was given up or waits. An order to close or to open again is never revived.

use canonry_store::{CloseRunId, Job, JobFilter, JobId, Store, StoreError};
use jiff::Timestamp;

use crate::jobs::console_jobs::{ClosingDeed, closing_deed};
use crate::jobs::kinds::{APPLY_CLOSE, UNDO_CLOSE};

/// What came of trying a job again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retried {
    Queued,
    /// It is an order, which was for the day it was given: somebody has to give it anew.
    Order,
    LeftAlone,
}

/// What came of trying many jobs again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetriedJobs {
    pub queued: u64,
    pub orders: u64,
}

/// Jobs that are read at once.
const PAGE: u32 = 500;

/// Whether a person ordered it to close or to open items again, with words that hold for that day alone.
pub fn is_order(job: &Job) -> bool {
    matches!(job.kind.as_str(), APPLY_CLOSE | UNDO_CLOSE)
}

/// The plan that an order is about; `None` for other work, and for what another version stored.
pub fn ordered_plan(job: &Job) -> Option<CloseRunId> {
    match closing_deed(job)? {
        ClosingDeed::Apply(order) => Some(order.plan),
        ClosingDeed::Undo(order) => Some(order.plan),
        ClosingDeed::Plan(_) | ClosingDeed::Canonicalize(_) | ClosingDeed::CancelGrace(_) => None,
    }
}

/// Has a job tried again that was given up or waits, unless it is an order.
pub async fn retry_job(store: &Store, job: &Job, now: Timestamp) -> Result<Retried, StoreError> {
    if is_order(job) {
        return Ok(Retried::Order);
    }
    let is_queued = store.jobs().requeue(job.id, now).await?;
    Ok(if is_queued { Retried::Queued } else { Retried::LeftAlone })
}

/// The same for all jobs of a filter that are `wanted`, the oldest first as they came; at most so many at once.
pub async fn retry_jobs(
    store: &Store,
    mut filter: JobFilter,
    wanted: impl Fn(&Job) -> bool,
    most: usize,
    now: Timestamp,
) -> Result<RetriedJobs, StoreError> {
    let (mut work, mut retried): (Vec<JobId>, _) = (Vec::new(), RetriedJobs::default());
    // All are found before the first is queued: one that is leaves the list that is being read.
    while work.len() < most {
        let jobs = store.jobs().list(&filter, PAGE).await?;
        let Some(last) = jobs.last() else { break };
        filter.before = Some(last.id);
        let (orders, others): (Vec<&Job>, Vec<&Job>) =
            jobs.iter().filter(|job| wanted(job)).partition(|job| is_order(job));
        retried.orders += orders.len() as u64;
        work.extend(others.iter().map(|job| job.id));
    }
    work.truncate(most);
    for id in work.into_iter().rev() {
        retried.queued += u64::from(store.jobs().requeue(id, now).await?);
    }
    Ok(retried)
}
