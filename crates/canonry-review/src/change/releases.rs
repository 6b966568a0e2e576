//! Finds the release that contains a merged pull request, commits that name an issue, and reverts.

use canonry_boxed::boxed;
use canonry_domain::review::CommitSha;
use canonry_domain::{ItemNumber, ReleaseVersion};
use jiff::Timestamp;

use crate::change::git::{Git, GitError};

#[boxed]
impl Git {
    /// The commits with which GitHub merged a pull request, the oldest first: a merge commit, or a squashed one whose
    /// subject ends with its number. Only branches of this remote count: another repository has pull requests of its own.
    pub async fn merges_of(&self, pull: ItemNumber, remote: &str) -> Result<Vec<CommitSha>, GitError> {
        let (merge, squash) = (format!("Merge pull request #{pull} from "), format!("(#{pull})"));
        let (remotes, log) = (format!("--remotes={remote}/*"), ["log", "--no-show-signature", "--fixed-strings"]);
        let asked = ["--grep", &merge, "--grep", &squash, "--format=%H %s", &remotes];
        let listed = self.ask("look for a merged pull request", &[&log[..], &asked].concat()).await?;
        // The texts may also be elsewhere in a message; only the subject counts.
        let listed = String::from_utf8_lossy(&listed);
        let is_merge = |subject: &str| subject.starts_with(&merge) || subject.ends_with(&squash);
        let commits = listed.lines().rev().filter_map(|line| line.split_once(' '));
        Ok(commits.filter(|(_, subject)| is_merge(subject)).filter_map(|(commit, _)| commit.parse().ok()).collect())
    }

    /// The oldest tag with a version that contains a commit, else the oldest tag.
    pub async fn first_tag_with(&self, commit: &CommitSha) -> Result<Option<String>, GitError> {
        let tags = ["tag", "--no-column", "--contains", commit.as_str(), "--sort=creatordate"];
        let tags = self.ask("list the releases that contain a commit", &tags).await?;
        let tags = String::from_utf8_lossy(&tags);
        let version = tags.lines().find(|tag| ReleaseVersion::of_tag(tag).is_some());
        Ok(version.or_else(|| tags.lines().next()).map(str::to_owned))
    }

    /// The commits of a branch after a commit that may revert another one, the oldest first.
    pub async fn reverts_after(&self, commit: &CommitSha, branch: &CommitSha) -> Result<Vec<CommitMessage>, GitError> {
        let range = format!("{commit}..{branch}");
        let log = ["log", "--no-show-signature", "--topo-order", "--reverse", "--format=%H %ct %B%x00"];
        let asked = ["--regexp-ignore-case", "--grep=revert", "--grep=reapply", &range, "--"];
        let listed = self.ask("look for reverts", &[&log[..], &asked].concat()).await?;
        Ok(CommitMessage::read_all(&listed))
    }

    /// The commits of a branch since then whose messages may refer to an item, newest first, without those that a merge
    /// brought in. The number may be part of a longer one: the caller reads the messages.
    pub async fn commits_mentioning(
        &self,
        branch: &CommitSha,
        number: ItemNumber,
        since: Timestamp,
    ) -> Result<Vec<CommitMessage>, GitError> {
        let marks = [format!("--grep=#{number}"), format!("--grep=GH-{number}"), format!("--grep=issues/{number}")];
        let since = format!("--since={since}");
        let mut log = vec!["log", "--no-show-signature", "--fixed-strings", "--first-parent", "--format=%H %ct %B%x00"];
        log.extend([since.as_str(), &marks[0], &marks[1], &marks[2], branch.as_str(), "--"]);
        let listed = self.ask("look for commits that fix an issue", &log).await?;
        Ok(CommitMessage::read_all(&listed))
    }
}

/// A commit with its whole message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitMessage {
    pub sha: CommitSha,
    pub committed_at: Timestamp,
    pub message: String,
}

impl CommitMessage {
    fn read_all(listed: &[u8]) -> Vec<Self> {
        String::from_utf8_lossy(listed).split('\0').filter_map(|entry| Self::read(entry.trim_start())).collect()
    }

    fn read(entry: &str) -> Option<Self> {
        let mut parts = entry.splitn(3, ' ');
        let (sha, at, message) = (parts.next()?, parts.next()?, parts.next()?);
        let committed_at = Timestamp::from_second(at.parse().ok()?).ok()?;
        Some(Self { sha: sha.parse().ok()?, committed_at, message: message.to_owned() })
    }
}
