//! Holds the lease on one head of a change while its review runs.

use std::time::Duration;

use canonry_store::{ClaimOutcome, ReviewClaim, ReviewId, ReviewRun, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::run::request::ReviewRequest;

/// How long after a process's last heartbeat no other process may take over its run: short, so that a stopped review
/// does not block the next one for long.
const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// How often a run renews its lease: three times within a lease, so that one lost heartbeat does not lose the run.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// The caller's clock.
pub type TimeSource<'a> = &'a (dyn Fn() -> Timestamp + Send + Sync);

pub(crate) struct HeldRun<'a> {
    store: &'a Store,
    owner: &'a str,
    clock: TimeSource<'a>,
    pub(crate) run: ReviewRun,
}

pub(crate) enum RunClaim<'a> {
    Held(HeldRun<'a>),
    Completed(ReviewId),
    Busy { until: Timestamp },
    Outdated { by: ReviewId },
}

pub(crate) async fn claim_run<'a>(
    store: &'a Store,
    request: &ReviewRequest<'a>,
    clock: TimeSource<'a>,
) -> Result<RunClaim<'a>, StoreError> {
    let now = clock();
    let asked = ReviewClaim {
        repo: request.repo,
        subject: request.subject,
        base: request.base,
        base_branch: request.base_branch,
        head: request.head,
        requested: request.requested,
        full: request.full,
        asked_at: request.asked_at,
        owner: request.owner,
        until: now + LEASE,
    };
    Ok(match store.review().claim(&asked, now).await? {
        ClaimOutcome::Run(run) => RunClaim::Held(HeldRun { store, owner: request.owner, clock, run }),
        ClaimOutcome::Completed(review) => RunClaim::Completed(review),
        ClaimOutcome::Busy { until, .. } => RunClaim::Busy { until },
        ClaimOutcome::Outdated { by } => RunClaim::Outdated { by },
    })
}

impl HeldRun<'_> {
    /// Renews the lease. Returns whether the run still belongs to this process; otherwise the run must end without
    /// writing.
    pub(crate) async fn is_current(&self) -> Result<bool, StoreError> {
        self.store.review().renew_claim(self.run.id, self.owner, (self.clock)() + LEASE).await
    }

    /// Renews the lease for as long as it takes, and returns only when the run was lost.
    pub(crate) async fn until_lost(&self) {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            match self.is_current().await {
                Ok(true) => {}
                Ok(false) => return,
                // The next heartbeat may succeed; if none does, the lease ends by itself.
                Err(error) => tracing::warn!(%error, "the lease of a running review could not be renewed"),
            }
        }
    }

    /// Marks the run as failed, so that it never looks like a review without findings.
    pub(crate) async fn fail(&self, why: &str) {
        match self.store.review().fail(self.run.id, self.owner, why, (self.clock)()).await {
            Ok(true) => {}
            Ok(false) => tracing::info!(why, "another process had already taken over a failed review"),
            Err(error) => tracing::warn!(%error, why, "a review failed, and that could not be stored"),
        }
    }
}
