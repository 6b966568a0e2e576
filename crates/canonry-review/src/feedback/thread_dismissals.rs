//! People's no to a finding in the thread that its comment began.

use canonry_boxed::boxed;
use canonry_domain::review::{Dismissal, DismissalKind, Dismisser, is_protected};
use canonry_domain::{GithubId, ItemNumber, Login, Maintainers};
use canonry_github::GitHub;
use canonry_store::{FindingId, PostedFinding, Repo, RepoId, Store, StoreError};
use jiff::Timestamp;

use crate::feedback::maintainership::{MaintainershipError, is_maintainer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingThread {
    pub repo: RepoId,
    pub number: ItemNumber,
    pub thread: GithubId,
}

#[boxed]
impl FindingThread {
    /// The finding that it is about; `None` when no finding of ours began it.
    pub async fn posted(self, store: &Store) -> Result<Option<PostedFinding>, StoreError> {
        let posted = store.findings().posted_of_comment(self.repo, self.thread).await?;
        Ok(posted.filter(|posted| posted.number == self.number))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingDismissal {
    pub finding: FindingId,
    /// Whether it is silent on this code from now on. A grave one is so only when a maintainer says no.
    pub silences: bool,
}

/// As what a person may say no on a pull request; `None` when they may not, or are no person.
#[boxed]
pub async fn dismisser(
    store: &Store,
    github: Option<&GitHub>,
    repo: &Repo,
    by: &Login,
    author: Option<&Login>,
) -> Result<Option<Dismisser>, MaintainershipError> {
    let maintains = is_maintainer(store, github, repo, by).await?;
    let maintainers: Maintainers = maintains.then_some(by).into_iter().collect();
    Ok(Dismisser::of(by, author, &maintainers))
}

/// Notes that a person told Canonry that the finding of a thread is not useful; `None` when no finding of ours began it.
#[boxed]
pub async fn dismiss_by_mention(
    store: &Store,
    at: FindingThread,
    by: &Login,
    dismisser: Dismisser,
    now: Timestamp,
) -> Result<Option<FindingDismissal>, StoreError> {
    dismiss_in_thread(store, at, DismissalKind::NotUseful, by, dismisser, now).await
}

/// Notes a person's no to the finding of a thread, about the code that the review saw which posted it; `None` when no
/// finding of ours began the thread. The same said again changes nothing.
#[boxed]
pub async fn dismiss_in_thread(
    store: &Store,
    at: FindingThread,
    kind: DismissalKind,
    by: &Login,
    dismisser: Dismisser,
    now: Timestamp,
) -> Result<Option<FindingDismissal>, StoreError> {
    let Some(posted) = at.posted(store).await? else { return Ok(None) };
    if !store.findings().dismiss(posted.finding, Some(posted.run), kind, dismisser, by, now).await? {
        return Ok(None);
    }
    let protected = is_protected(posted.said.severity, posted.said.category);
    let dismissal = Dismissal { kind, by: dismisser, code: posted.said.code.clone(), protected, at: now };
    Ok(Some(FindingDismissal { finding: posted.finding, silences: dismissal.holds(&posted.said) }))
}

/// Takes back that the thread was resolved, as it is open again; `false` when that said nothing, or no finding of ours
/// began it.
#[boxed]
pub async fn reopen_thread(store: &Store, at: FindingThread, now: Timestamp) -> Result<bool, StoreError> {
    match at.posted(store).await? {
        Some(posted) => {
            store
                .findings()
                .withdraw_dismissal(posted.finding, Some(posted.run), DismissalKind::Resolved, None, now)
                .await
        }
        None => Ok(false),
    }
}

/// Takes back a person's "won't fix" in the thread, as they deleted it; `false` when there was none, or no finding of
/// ours began it.
#[boxed]
pub async fn withdraw_wont_fix(
    store: &Store,
    at: FindingThread,
    by: &Login,
    now: Timestamp,
) -> Result<bool, StoreError> {
    match at.posted(store).await? {
        Some(posted) => {
            store
                .findings()
                .withdraw_dismissal(posted.finding, Some(posted.run), DismissalKind::WontFix, Some(by), now)
                .await
        }
        None => Ok(false),
    }
}
