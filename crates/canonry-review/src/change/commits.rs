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

    /// The parents of a commit, also where the history ends before them.
    pub async fn parents(&self, sha: &CommitSha) -> Result<Vec<CommitSha>, GitError> {
        let commit = self.ask("read a commit", &["cat-file", "commit", sha.as_str()]).await?;
        let commit = String::from_utf8_lossy(&commit);
        let header = commit.lines().take_while(|line| !line.is_empty());
        Ok(header.filter_map(|line| line.strip_prefix("parent ")?.parse().ok()).collect())
    }

    /// The commits of `head` that `base` does not have, newest first, each with its parents as far as they are here.
    pub async fn commits_between(
        &self,
        base: &CommitSha,
        head: &CommitSha,
        most: usize,
    ) -> Result<Vec<(CommitSha, Vec<CommitSha>)>, GitError> {
        let (span, most) = (format!("{base}..{head}"), format!("--max-count={most}"));
        let listed = self.ask("list the commits of the change", &["rev-list", "--parents", &most, &span, "--"]).await?;
        let listed = String::from_utf8_lossy(&listed);
        let commits = listed.lines().filter_map(|line| {
            let mut ids = line.split(' ').map(str::parse::<CommitSha>);
            Some((ids.next()?.ok()?, ids.filter_map(Result::ok).collect()))
        });
        Ok(commits.collect())
    }

    /// The messages of the commits of `head` that `base` does not have, oldest first, at most the newest `most`.
    pub async fn messages_between(
        &self,
        base: &CommitSha,
        head: &CommitSha,
        most: usize,
    ) -> Result<Vec<String>, GitError> {
        let (span, most) = (format!("{base}..{head}"), format!("--max-count={most}"));
        let options = ["log", "-z", "--no-merges", "--no-show-signature", "--format=%B", &most, &span, "--"];
        let listed = self.ask("read the messages of the change", &options).await?;
        let listed = String::from_utf8_lossy(&listed);
        let mut messages: Vec<String> =
            listed.split('\0').map(|message| message.trim().to_owned()).filter(|message| !message.is_empty()).collect();
        messages.reverse();
        Ok(messages)
    }

    /// Whether a commit has no files.
    pub(crate) async fn is_empty(&self, sha: &CommitSha) -> bool {
        let asked = self.ask("look at a commit", &["ls-tree", "--name-only", sha.as_str()]).await;
        asked.is_ok_and(|answer| answer.is_empty())
    }

    /// Whether parts of the history are missing here.
    pub async fn is_shallow(&self) -> bool {
        let asked = self.ask("look at the history", &["rev-parse", "--is-shallow-repository"]).await;
        asked.is_ok_and(|answer| answer.starts_with(b"true"))
    }

    /// Makes a commit of a tree. It is on no branch, and the same tree and parent make the same commit.
    pub async fn commit_tree(&self, tree: &str, parent: Option<&CommitSha>) -> Result<CommitSha, CommitsError> {
        let unknown = || CommitsError::Unknown { name: tree.chars().take(200).collect() };
        let mut arguments = vec!["commit-tree", "--no-gpg-sign", "-m", "canonry", tree];
        arguments.extend(parent.into_iter().flat_map(|parent| ["-p", parent.as_str()]));
        let made_by = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"]
            .into_iter()
            .fold(self.clone(), |git, name| git.with(name, "canonry"));
        let made_by = ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]
            .into_iter()
            .fold(made_by, |git, name| git.with(name, "canonry@localhost"));
        let made_by =
            ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].into_iter().fold(made_by, |git, name| git.with(name, "@0 +0000"));
        let made = made_by.ask("make a commit", &arguments).await?;
        String::from_utf8_lossy(&made).trim().parse().map_err(|_| unknown())
    }

    /// Makes a commit without files: what comes before the first commit.
    pub async fn empty_commit(&self) -> Result<CommitSha, CommitsError> {
        let tree = self.tell("make an empty tree", &["mktree"], &[]).await.map_err(CommitsError::Git)?;
        self.commit_tree(String::from_utf8_lossy(&tree).trim(), None).await
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
        self.clone().with("GIT_ATTR_SOURCE", empty_tree(of))
    }
}

/// The id of the tree without files, in a repository with ids like this one.
pub(crate) fn empty_tree(like: &CommitSha) -> &'static str {
    match like.as_str().len() {
        40 => "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        _ => "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
    }
}
