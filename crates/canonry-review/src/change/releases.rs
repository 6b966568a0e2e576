//! Finds the release that contains a merged pull request.

use canonry_boxed::boxed;
use canonry_domain::ItemNumber;

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
            let tags = ["tag", "--no-column", "--contains", commit, "--sort=creatordate"];
            let tags = self.ask("list the releases that contain a commit", &tags).await?;
            if let Some(tag) = String::from_utf8_lossy(&tags).lines().next() {
                return Ok(Some(tag.to_owned()));
            }
        }
        Ok(None)
    }
}
