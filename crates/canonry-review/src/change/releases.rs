//! Finds the release that contains a merged pull request, and commits that name an issue.

use canonry_boxed::boxed;
use canonry_domain::ItemNumber;
use canonry_domain::review::CommitSha;
use jiff::Timestamp;

use crate::change::git::{Git, GitError};

#[boxed]
impl Git {
    /// The oldest tag that contains the commit with which GitHub merged a pull request: a merge commit, or a squashed
    /// one whose subject ends with its number. `None` if there is no such commit or no tag since.
    pub async fn release_of(&self, pull: ItemNumber) -> Result<Option<String>, GitError> {
        let (merge, squash) = (format!("Merge pull request #{pull} from "), format!("(#{pull})"));
        let log = ["log", "--no-show-signature", "--fixed-strings", "--grep", &merge, "--grep", &squash];
        let listed =
            self.ask("look for a merged pull request", &[&log[..], &["--format=%H %s", "--all"]].concat()).await?;
        // The texts may also be elsewhere in a message; only the subject counts.
        let listed = String::from_utf8_lossy(&listed);
        let is_merge = |subject: &str| subject.starts_with(&merge) || subject.ends_with(&squash);
        let commits = listed.lines().rev().filter_map(|line| line.split_once(' '));
        for (commit, _) in commits.filter(|(_, subject)| is_merge(subject)) {
            if let Some(tag) = self.first_tag_with(commit).await? {
                return Ok(Some(tag));
            }
        }
        Ok(None)
    }

    /// The oldest tag that contains a commit.
    pub async fn first_tag_with(&self, commit: &str) -> Result<Option<String>, GitError> {
        let tags = ["tag", "--no-column", "--contains", commit, "--sort=creatordate"];
        let tags = self.ask("list the releases that contain a commit", &tags).await?;
        Ok(String::from_utf8_lossy(&tags).lines().next().map(str::to_owned))
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
        let listed = String::from_utf8_lossy(&listed);
        Ok(listed.split('\0').filter_map(|entry| CommitMessage::read(entry.trim_start())).collect())
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
    fn read(entry: &str) -> Option<Self> {
        let mut parts = entry.splitn(3, ' ');
        let (sha, at, message) = (parts.next()?, parts.next()?, parts.next()?);
        let committed_at = Timestamp::from_second(at.parse().ok()?).ok()?;
        Some(Self { sha: sha.parse().ok()?, committed_at, message: message.to_owned() })
    }
}
