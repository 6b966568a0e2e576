//! Finds commits and the differences between them.

use canonry_boxed::boxed;
use canonry_domain::review::CommitSha;

use crate::change::diff::{UnreadableDiff, parse_diff};
use crate::change::file_change::FileChange;
use crate::change::git::{Git, GitError};

#[derive(Debug, thiserror::Error)]
pub enum CommitsError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("find the commit {name:?}; fetch it first, or name another one")]
    Unknown { name: String },
    #[error(transparent)]
    Unreadable(#[from] UnreadableDiff),
}

/// The arguments of every `git diff`; they override any configuration. Git compares up to a thousand files on each side
/// to find renames, its own default; beyond that, it finds only renames without a change.
const DIFF: [&str; 13] = [
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--submodule=short",
    "--ignore-submodules=none",
    "--inter-hunk-context=0",
    "--diff-algorithm=histogram",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "-l1000",
    "-O/dev/null",
];

#[boxed]
impl Git {
    /// Resolves a name such as `main` or `HEAD~2` to a commit.
    pub async fn commit(&self, name: &str) -> Result<CommitSha, CommitsError> {
        let unknown = || CommitsError::Unknown { name: name.chars().take(200).collect() };
        // A name that begins with a dash would be an option.
        if name.is_empty() || name.starts_with('-') || name.contains('\0') {
            return Err(unknown());
        }
        let asked = format!("{name}^{{commit}}");
        match self.ask("find a commit", &["rev-parse", "--verify", "--quiet", "--end-of-options", &asked]).await {
            Ok(answer) => String::from_utf8_lossy(&answer).trim().parse().map_err(|_| unknown()),
            Err(GitError::Refused { said, .. }) if said.is_empty() => Err(unknown()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the repository contains a commit; nothing is fetched.
    pub async fn has_commit(&self, sha: &CommitSha) -> Result<bool, GitError> {
        let object = format!("{sha}^{{commit}}");
        match self.as_it_is().ask("look for a commit", &["cat-file", "-e", &object]).await {
            Ok(_) => Ok(true),
            Err(GitError::Refused { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The merge base of two commits; `None` if they have no common history.
    pub async fn merge_base(&self, one: &CommitSha, other: &CommitSha) -> Result<Option<CommitSha>, GitError> {
        match self.ask("find where the branches part", &["merge-base", one.as_str(), other.as_str()]).await {
            Ok(answer) => Ok(String::from_utf8_lossy(&answer).lines().next().and_then(|line| line.parse().ok())),
            Err(GitError::Refused { said, .. }) if said.is_empty() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn changes(&self, from: &CommitSha, to: &CommitSha) -> Result<Vec<FileChange>, CommitsError> {
        let more = ["-M", "--raw", "-z", "--abbrev=64", "-p", "-U0", from.as_str(), to.as_str(), "--"];
        let arguments: Vec<&str> = DIFF.into_iter().chain(more).collect();
        Ok(parse_diff(&self.without_attributes(to).ask("read what differs", &arguments).await?)?)
    }

    /// The difference as a patch with three lines of context.
    pub async fn patch(&self, from: &CommitSha, to: &CommitSha) -> Result<Vec<u8>, GitError> {
        let more = ["-M", "-p", "-U3", from.as_str(), to.as_str(), "--"];
        let arguments: Vec<&str> = DIFF.into_iter().chain(more).collect();
        self.without_attributes(to).ask("read what differs", &arguments).await
    }

    /// A change must not hide its files by calling them binary in `.gitattributes`: attributes are read from the empty tree.
    fn without_attributes(&self, of: &CommitSha) -> Self {
        let empty_tree = match of.as_str().len() {
            40 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            _ => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
        };
        self.clone().with("GIT_ATTR_SOURCE", empty_tree)
    }
}
