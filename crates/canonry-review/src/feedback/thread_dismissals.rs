//! Records dismissals of a finding in the thread of its comment.

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
    /// The finding of the thread; `None` if no finding of ours started it.
    pub async fn posted(self, store: &Store) -> Result<Option<PostedFinding>, StoreError> {
        let posted = store.findings().posted_of_comment(self.repo, self.thread).await?;
        Ok(posted.filter(|posted| posted.number == self.number))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindingDismissal {
    pub finding: FindingId,
    /// Whether the finding is hidden on this code from now on. A protected finding is hidden only if a maintainer
    /// dismisses it.
    pub silences: bool,
}

/// In which role a person may dismiss findings on a pull request; `None` if they may not, or if the account is a bot.
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

/// Records that a person mentioned Canonry to dismiss the finding of a thread; `None` if no finding of ours started the
/// thread.
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

/// Records a person's dismissal of the finding of a thread, for the code that the posting review saw; `None` if no
/// finding of ours started the thread. A repeated dismissal changes nothing.
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

/// Withdraws the dismissal by resolving, because the thread is open again; `false` if there was none, or if no finding
/// of ours started the thread.
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

/// Withdraws a person's "won't fix" in the thread, because they deleted it; `false` if there was none, or if no finding
/// of ours started the thread.
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
