//! What the clone in the current folder knows about a repository: merges, releases and reverts.

use std::path::Path;

use canonry_domain::review::CommitSha;
use canonry_domain::{ChangeText, ItemNumber, RepoName, changes_in_place};
use canonry_review::{CommitMessage, Git};
use jiff::Timestamp;

use crate::session::local_clone::LocalClone;

/// The branches of the remote that is the repository.
pub(crate) struct RemoteHistory {
    git: Git,
    remote: String,
    /// The newest known commit of the default branch.
    default_branch: CommitSha,
}

impl RemoteHistory {
    /// The history of a repository; `None` if the clone in this folder is of another one, or there is none.
    pub(crate) async fn of(repo: &RepoName, default_branch: Option<&str>) -> Option<Self> {
        let clone = LocalClone::find(Path::new(".")).await.ok()?;
        let remotes = clone.remotes_on_github().await;
        let (remote, _) = remotes.into_iter().find(|(_, name)| name.key() == repo.key())?;
        // A local branch of the same name may have commits that nobody else has, and a fork has its own.
        let branches = default_branch.into_iter().chain(["HEAD", "main", "master"]);
        for branch in branches.map(|branch| format!("refs/remotes/{remote}/{branch}")) {
            if let Ok(default_branch) = clone.git().commit(&branch).await {
                return Some(Self { git: clone.git().clone(), remote, default_branch });
            }
        }
        None
    }

    /// The commits of the default branch since then that may name an issue, newest first.
    pub(crate) async fn commits_mentioning(&self, issue: ItemNumber, since: Timestamp) -> Vec<CommitMessage> {
        self.git.commits_mentioning(&self.default_branch, issue, since).await.unwrap_or_default()
    }

    /// The commits with which a pull request was merged, the oldest first.
    pub(crate) async fn merges_of(&self, pull: ItemNumber) -> Vec<CommitSha> {
        self.git.merges_of(pull, &self.remote).await.unwrap_or_default()
    }

    /// The first release that contains one of these commits.
    pub(crate) async fn release_with(&self, commits: &[CommitSha]) -> Option<String> {
        for commit in commits {
            if let Some(tag) = self.git.first_tag_with(commit).await.ok().flatten() {
                return Some(tag);
            }
        }
        None
    }

    /// Whether later commits of the default branch reverted a change that this commit made, and none put it back.
    pub(crate) async fn is_reverted(&self, repo: &RepoName, commit: &CommitSha, change: ChangeText) -> bool {
        let later = self.git.reverts_after(commit, &self.default_branch).await.unwrap_or_default();
        let later = later.iter().map(|later| ChangeText::of_commit(repo, later.sha.as_str(), &later.message));
        let changes: Vec<ChangeText> = std::iter::once(change).chain(later).collect();
        !changes_in_place(&changes)[0]
    }
}
