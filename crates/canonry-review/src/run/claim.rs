//! The right to review one head of a change, held while the review runs.

use std::time::Duration;

use canonry_store::{ClaimOutcome, ReviewClaim, ReviewId, ReviewRun, Store, StoreError};
use jiff::{SignedDuration, Timestamp};

use crate::run::request::ReviewRequest;

/// How long nobody else may take a run over after its process was last heard of: short, so that a review that somebody
/// stopped does not keep them waiting.
const LEASE: SignedDuration = SignedDuration::from_secs(60);

/// How often a run says that it is there; three times within a lease, so that one lost word does not lose the run.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// The time, as the caller tells it.
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
    /// Whether the run is still this process's; it is held for longer then. Otherwise it must end without writing.
    pub(crate) async fn is_current(&self) -> Result<bool, StoreError> {
        self.store.review().renew_claim(self.run.id, self.owner, (self.clock)() + LEASE).await
    }

    /// Holds the run for as long as it takes, and ends only when it was lost.
    pub(crate) async fn until_lost(&self) {
        loop {
            tokio::time::sleep(HEARTBEAT).await;
            match self.is_current().await {
                Ok(true) => {}
                Ok(false) => return,
                // The next word may get through; if none does, the lease ends by itself.
                Err(error) => tracing::warn!(%error, "a running review could not be held for longer"),
            }
        }
    }

    /// Marks the run as failed, so that it never looks like a review without findings.
    pub(crate) async fn fail(&self, why: &str) {
        match self.store.review().fail(self.run.id, self.owner, why, (self.clock)()).await {
            Ok(true) => {}
            Ok(false) => tracing::info!(why, "a review that failed was not ours any more"),
            Err(error) => tracing::warn!(%error, why, "a review failed, and that could not be stored"),
        }
    }
}
