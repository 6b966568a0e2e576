//! One process at a time closes or reopens in a repository.

use std::time::Duration;

use canonry_github::{GitHub, WaitReason, is_process_gone, process_mark};
use canonry_store::{RepoId, Store, StoreError};
use jiff::SignedDuration;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How long the lease of a process that was killed keeps others waiting.
const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// A third of the lease: two renewals may fail before it ends.
const RENEWAL: Duration = Duration::from_secs(20);
/// How often a process that waits asks again.
const POLL: SignedDuration = SignedDuration::from_secs(1);

/// Why a process may not close or reopen now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("another process is closing or reopening items in this repository ({0}); try again when it has finished")]
    Busy(String),
}

/// The right to close and reopen in a repository.
///
/// Waiting for GitHub may take longer than the lease, so a task renews it meanwhile. That task waits by
/// the runtime's own time: by a clock that moves when somebody sleeps on it, it would never stand still.
/// A process that was held up for longer finds out before its next write, since every write asks for
/// [`CloseLeaseGuard::is_held`] first.
#[derive(Debug)]
pub(crate) struct CloseLeaseGuard {
    store: Store,
    github: GitHub,
    repo: RepoId,
    owner: String,
    renewal: JoinHandle<()>,
}

impl CloseLeaseGuard {
    /// Takes the lease, waiting for whoever has it as long as the client is allowed to wait. `owner`
    /// says who we are, in words, and no other process may say the same.
    pub(crate) async fn take(store: &Store, github: &GitHub, repo: RepoId, owner: String) -> Result<Self, LeaseError> {
        store.maintenance().correct_future_times(|| github.now()).await?;
        let owner = format!("{owner} {}", process_mark());
        wait_for(store, github, repo, &owner).await?;
        let renewal = tokio::spawn(renew(store.clone(), github.clone(), repo, owner.clone()));
        Ok(Self { store: store.clone(), github: github.clone(), repo, owner, renewal })
    }

    /// Renews the lease; `false` says that another process has it now.
    pub(crate) async fn is_held(&self) -> Result<bool, StoreError> {
        take_once(&self.store, &self.github, self.repo, &self.owner).await
    }

    /// Renews the lease, or waits for it again.
    pub(crate) async fn hold(&self) -> Result<(), LeaseError> {
        wait_for(&self.store, &self.github, self.repo, &self.owner).await
    }

    /// Gives the lease back. When that fails, it ends by itself within the minute.
    pub(crate) async fn release(self) {
        self.renewal.abort();
        if let Err(error) = self.store.close().release_lease(self.repo, &self.owner).await {
            tracing::warn!(%error, "the lease for closing could not be given back");
        }
    }
}

impl Drop for CloseLeaseGuard {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

async fn take_once(store: &Store, github: &GitHub, repo: RepoId, owner: &str) -> Result<bool, StoreError> {
    let now = github.now();
    store.close().take_lease(repo, owner, now, now + LEASE).await
}

async fn wait_for(store: &Store, github: &GitHub, repo: RepoId, owner: &str) -> Result<(), LeaseError> {
    let give_up = github.now() + github.longest_wait();
    let mut is_told = false;
    while !take_once(store, github, repo, owner).await? {
        let now = github.now();
        let lease = store.close().lease(repo).await?;
        // Nothing of a process that was killed is under way but what the outbox looks for.
        if let Some(killed) = lease.as_ref().filter(|lease| is_process_gone(&lease.owner)) {
            store.close().release_lease(repo, &killed.owner).await?;
            continue;
        }
        if now >= give_up {
            return Err(LeaseError::Busy(
                lease.map_or_else(|| "it has just ended".to_owned(), |lease| words(&lease.owner)),
            ));
        }
        if let Some(lease) = lease.filter(|_| !is_told) {
            is_told = true;
            github.tell_wait(WaitReason::CloseLease, lease.until);
        }
        github.sleep_until(now + POLL).await;
    }
    Ok(())
}

/// Who has the lease, without the mark of their process.
fn words(owner: &str) -> String {
    owner.split(" process/").next().unwrap_or_default().to_owned()
}

async fn renew(store: Store, github: GitHub, repo: RepoId, owner: String) {
    let mut ticks = tokio::time::interval(RENEWAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match take_once(&store, &github, repo, &owner).await {
            Ok(true) => {}
            // Whoever works under the lease sees it before the next write.
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "the lease for closing could not be renewed"),
        }
    }
}
