//! Runs jobs and sends writes until nothing is due any more.

use std::sync::Arc;

use canonry_clock::Clock;
use canonry_store::{JobCaps, JobScope, OutboxScope, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::github_writes::publisher::Publish;
use crate::jobs::job_handler::JobHandler;
use crate::jobs::scheduler::{Scheduler, Schedules};
use crate::jobs::worker::{AttemptEnd, Worker};

/// How long a run waits for a job or write that becomes due soon, since it last did anything: long enough for a send in
/// doubt, which is looked for twice within about a minute.
const PATIENCE: SignedDuration = SignedDuration::from_secs(100);
const POLL: SignedDuration = SignedDuration::from_secs(1);
/// One job at a time; the second place is for the webhook that a sync makes wait.
const CAPS: JobCaps = JobCaps { per_repo: 2, in_all: 2 };

/// Works off a queue, once.
#[derive(Clone)]
pub(crate) struct Drain {
    pub(crate) store: Store,
    pub(crate) handler: Arc<dyn JobHandler>,
    /// Sends the writes that handlers put into the outbox; without it nothing is sent.
    pub(crate) publisher: Option<Arc<dyn Publish>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) schedules: Schedules,
    /// How many tries a job gets before it fails.
    pub(crate) tries: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainSummary {
    /// Finished tries of jobs.
    pub jobs: u64,
    /// Jobs that failed for good.
    pub failed: u64,
    /// Writes that were sent, refused or postponed.
    pub writes: u64,
    /// Whether the time was over before everything that was due was done.
    pub is_cut_short: bool,
}

impl Drain {
    /// Queues what the schedules want, then works off the queue.
    pub(crate) async fn run(&self, until: Timestamp) -> Result<DrainSummary, StoreError> {
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        Scheduler { store, clock, schedules: self.schedules }.tick_early().await?;
        self.work_off(until).await
    }

    /// Runs jobs and sends writes until nothing is due soon, or until `until`.
    pub(crate) async fn work_off(&self, until: Timestamp) -> Result<DrainSummary, StoreError> {
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        let handler = Arc::clone(&self.handler);
        let worker = Worker { store, handler, clock, caps: CAPS, tries: self.tries, scope: JobScope::All };
        let mut summary = DrainSummary::default();
        let mut worked_at = self.clock.now();
        loop {
            if self.clock.now() >= until {
                return Ok(DrainSummary { is_cut_short: true, ..summary });
            }
            let owner = format!("{:032x}", rand::random::<u128>());
            if let Some(ended) = worker.work_once(&owner, rand::random()).await? {
                summary.jobs += 1;
                summary.failed += u64::from(ended == AttemptEnd::Dead);
                worked_at = self.clock.now();
                continue;
            }
            if self.publish_one().await {
                summary.writes += 1;
                worked_at = self.clock.now();
                continue;
            }
            let now = self.clock.now();
            let next = [self.store.jobs().next_due().await?, self.next_write().await?].into_iter().flatten().min();
            let patience = worked_at + PATIENCE;
            match next.filter(|next| *next <= patience && now < patience) {
                Some(next) => self.clock.sleep_until(next.max(now + POLL)).await,
                None => return Ok(summary),
            }
        }
    }

    async fn next_write(&self) -> Result<Option<Timestamp>, StoreError> {
        match self.publisher {
            Some(_) => self.store.outbox().next_moment(OutboxScope::Unattended).await,
            None => Ok(None),
        }
    }

    /// Whether a write was due. A write that fails stays in the outbox for the next run.
    async fn publish_one(&self) -> bool {
        let Some(publisher) = &self.publisher else { return false };
        publisher.publish_one().await.unwrap_or_else(|error| {
            tracing::warn!(%error, "a write could not be sent; the next run tries again");
            false
        })
    }
}

impl std::ops::Add for DrainSummary {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            jobs: self.jobs + other.jobs,
            failed: self.failed + other.failed,
            writes: self.writes + other.writes,
            is_cut_short: self.is_cut_short || other.is_cut_short,
        }
    }
}
