//! The lease that lets only one process at a time close or reopen items in a repository.

use std::time::Duration;

use canonry_github::{GitHub, WaitReason, is_process_gone, process_mark};
use canonry_store::{RepoId, Store, StoreError};
use jiff::SignedDuration;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How long other processes wait for the lease of a process that was killed.
const LEASE: SignedDuration = SignedDuration::from_secs(60);
/// A third of the lease: two renewals may fail before it expires.
const RENEWAL: Duration = Duration::from_secs(20);
/// How often a waiting process tries again.
const POLL: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("another process is closing or reopening items in this repository ({0}); try again when it has finished")]
    Busy(String),
}

/// The right to close and reopen items in a repository.
///
/// Waiting for GitHub may take longer than the lease, so a task renews it meanwhile. That task uses the runtime's own
/// time: with a clock that advances whenever a task sleeps on it, the task would loop without end. A process that was
/// suspended for longer than the lease notices before its next write, since every write checks
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
    /// Takes the lease. Waits for its current owner for as long as the client is allowed to wait. `owner` is a
    /// description of this process; no other process may use the same.
    pub(crate) async fn take(store: &Store, github: &GitHub, repo: RepoId, owner: String) -> Result<Self, LeaseError> {
        store.maintenance().correct_future_times(|| github.now()).await?;
        let owner = format!("{owner} {}", process_mark());
        wait_for(store, github, repo, &owner).await?;
        let renewal = tokio::spawn(renew(store.clone(), github.clone(), repo, owner.clone()));
        Ok(Self { store: store.clone(), github: github.clone(), repo, owner, renewal })
    }

    /// Renews the lease; `false` means that another process has it now.
    pub(crate) async fn is_held(&self) -> Result<bool, StoreError> {
        take_once(&self.store, &self.github, self.repo, &self.owner).await
    }

    /// Renews the lease, or waits for it again.
    pub(crate) async fn hold(&self) -> Result<(), LeaseError> {
        wait_for(&self.store, &self.github, self.repo, &self.owner).await
    }

    /// Releases the lease. If that fails, it expires within a minute.
    pub(crate) async fn release(self) {
        self.renewal.abort();
        if let Err(error) = self.store.close().release_lease(self.repo, &self.owner).await {
            tracing::warn!(%error, "the lease for closing could not be released");
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
        // A killed process has no work in progress except what the outbox checks for.
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

/// The description of the lease's owner, without its process mark.
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
            // The process that works under the lease notices this before its next write.
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "the lease for closing could not be renewed"),
        }
    }
}
