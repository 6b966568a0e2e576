//! Checks a write of a review one last time before it is sent.

use canonry_domain::review::ReviewSubject;
use canonry_domain::{ItemNumber, WriteKind};
use canonry_github::outbox::{Act, Recheck, RecheckError, Ruling};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{BrakeKind, OutboxEntry, RepoAccess, RepoId, Store, StoreError, StoredReview};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;

use super::keys::WriteSubject;

/// The refusal of a write whose review is not the latest, or whose commit is not the head any more.
pub const SUPERSEDED: &str = "superseded";
/// The refusal of a write whose pull request is closed or merged.
pub const CLOSED: &str = "closed";

/// Longer than a caller waits: the caller gets the reason instead of waiting again and again.
const WAIT: SignedDuration = SignedDuration::from_mins(1);

/// Asks GitHub about a pull request right before a write of a review: only the latest review of the present head is
/// written, only while the pull request is open, and not while Canonry is paused. A write that does not belong to a
/// review waits for the component that has its own check for it.
#[derive(Debug, Clone)]
pub struct PublicationRecheck {
    pub store: Store,
    pub github: GitHub,
}

impl PublicationRecheck {
    async fn rule(&self, entry: &OutboxEntry) -> Result<Ruling, RecheckError> {
        let wait =
            |reason: String| Ruling::Wait { until: self.github.now() + self.github.longest_wait() + WAIT, reason };
        let Some(subject) = WriteSubject::of(entry) else {
            return Ok(wait(format!("another write must be sent first: {}", entry.key)));
        };
        if self.store.close().brake_in_force(entry.repo.id, BrakeKind::Pause).await?.is_some() {
            return Ok(wait("paused".to_owned()));
        }
        let refusal = self.refusal(entry, &subject).await?;
        Ok(refusal.map_or(Ruling::Proceed, |reason| Ruling::Refuse { reason: reason.to_owned() }))
    }

    async fn refusal(&self, entry: &OutboxEntry, subject: &WriteSubject) -> Result<Option<&'static str>, RecheckError> {
        if self.store.repos().access(entry.repo.id).await? != RepoAccess::Active {
            return Ok(Some("no_access"));
        }
        let pull = match self.github.pull(&entry.repo.name, entry.number).await {
            Ok(pull) => pull,
            Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => return Ok(Some("gone")),
            Err(error) => return Err(error.into()),
        };
        let is_present = match subject {
            WriteSubject::Left => true,
            WriteSubject::Head(head) => *head == pull.head.sha,
            WriteSubject::Run(run) => latest_review(&self.store, entry.repo.id, entry.number)
                .await?
                .is_some_and(|latest| latest.id == *run && latest.head.as_str() == pull.head.sha),
        };
        if !is_present {
            return Ok(Some(SUPERSEDED));
        }
        // A check run belongs to its commit, and must not look unfinished for ever.
        Ok((pull.state != "open" && entry.kind != WriteKind::CheckRun).then_some(CLOSED))
    }
}

impl Recheck for PublicationRecheck {
    fn recheck<'a>(&'a self, entry: &'a OutboxEntry, _: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        Box::pin(self.rule(entry))
    }
}

pub(super) async fn latest_review(
    store: &Store,
    repo: RepoId,
    number: ItemNumber,
) -> Result<Option<StoredReview>, StoreError> {
    Ok(store.review().list(repo, Some(&ReviewSubject::Pull(number)), 1).await?.into_iter().next())
}
