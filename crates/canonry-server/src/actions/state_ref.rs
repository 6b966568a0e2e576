//! A git ref that holds a few files and is replaced as a whole, by one writer at a time.
//!
//! Each version is a commit without a parent, so that the repository does not grow: only what changed is sent, and git
//! removes earlier versions in time. A push names the version that it replaces. If another run was faster, GitHub
//! refuses the push.

use canonry_boxed::boxed;
use std::path::Path;
use std::time::Duration;

use canonry_review::{Git, GitError, Remote};

const TIME: Duration = Duration::from_secs(300);

/// A file of the state and its content.
pub(crate) type StateEntry = (String, Vec<u8>);

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("failed to {0}; check that the token may write contents")]
    Git(#[from] GitError),
    #[error("git answered with something unexpected while it read the state: {0:?}")]
    Unexpected(String),
    #[error("the state is in use by run {run} until {until}; start this run again later")]
    Busy { run: String, until: jiff::Timestamp },
}

/// What git says where the same request fails each time: wrong rights, no such repository, or a rule against the push.
/// GitHub also says "pre-receive hook declined" when it is only busy.
const REFUSALS: [&str; 7] = [
    "returned error: 401",
    "returned error: 403",
    "returned error: 404",
    "Authentication failed",
    "does not appear to be a git repository",
    "protected branch hook declined",
    "repository rule violations",
];

impl StateError {
    /// Whether a retry is of no use.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Git(GitError::Refused { said, .. }) if REFUSALS.iter().any(|one| said.contains(one)))
    }
}

/// A version of the state: the id of its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateVersion(String);

impl StateVersion {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone)]
pub struct StateRef {
    git: Git,
    name: String,
}

#[boxed]
impl StateRef {
    /// Opens a ref of a remote repository; `folder` is an empty folder for this run.
    pub async fn open(folder: &Path, remote: &Remote, name: &str) -> Result<Self, StateError> {
        std::fs::create_dir_all(folder)
            .map_err(|error| GitError::Pipe { what: "make a folder for the state", error })?;
        let git = [("NAME", "canonry"), ("EMAIL", "canonry@localhost")].iter().fold(
            Git::new(folder).opening(remote).within(TIME),
            |git, (name, value)| {
                git.with(&format!("GIT_AUTHOR_{name}"), value).with(&format!("GIT_COMMITTER_{name}"), value)
            },
        );
        git.ask("make a repository for the state", &["init", "--bare", "--quiet", "--template="]).await?;
        git.ask("configure the state's repository", &["config", "remote.origin.url", remote.url()]).await?;
        // Speed matters more than size: the files are written once and sent as differences.
        git.ask("configure the state's repository", &["config", "core.compression", "1"]).await?;
        Ok(Self { git, name: name.to_owned() })
    }

    /// Fetches the newest version; `None` if the ref does not exist.
    pub(crate) async fn fetch(&self) -> Result<Option<StateVersion>, StateError> {
        let Some(tip) = self.tip().await? else { return Ok(None) };
        let fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "origin", &tip.0];
        match self.git.ask("fetch the state", &fetch).await {
            Ok(_) => Ok(Some(tip)),
            // Another run replaced it in this moment.
            Err(error) if self.tip().await?.as_ref() == Some(&tip) => Err(error.into()),
            Err(_) => {
                Err(GitError::Refused { what: "fetch the state", said: "it changes too often".to_owned() }.into())
            }
        }
    }

    /// The names of the files in a version.
    pub(crate) async fn names(&self, version: &StateVersion) -> Result<Vec<String>, StateError> {
        let listed = self.git.ask("list the state", &["ls-tree", "-z", "--name-only", &version.0]).await?;
        let names = String::from_utf8(listed).map_err(|error| StateError::Unexpected(error.to_string()))?;
        Ok(names.split_terminator('\0').map(str::to_owned).collect())
    }

    pub(crate) async fn read(&self, version: &StateVersion, name: &str) -> Result<Vec<u8>, StateError> {
        let object = format!("{}:{name}", version.0);
        Ok(self.git.ask("read the state", &["cat-file", "blob", &object]).await?)
    }

    /// Replaces a version by these files and by the named files of that version. `None` if another run was faster.
    pub(crate) async fn replace(
        &self,
        version: Option<&StateVersion>,
        kept: &[String],
        files: &[StateEntry],
    ) -> Result<Option<StateVersion>, StateError> {
        let mut tree = Vec::new();
        for (name, bytes) in files {
            let id = self.git.tell("write the state", &["hash-object", "-w", "--stdin"], bytes).await?;
            tree.extend(format!("100644 blob {}\t{name}\0", one_line(&id)?).into_bytes());
        }
        if let Some(version) = version {
            let listed = self.git.ask("list the state", &["ls-tree", "-z", &version.0]).await?;
            for entry in String::from_utf8_lossy(&listed).split_terminator('\0') {
                let name = entry.split_once('\t').map(|(_, name)| name);
                if name.is_some_and(|name| kept.iter().any(|kept| kept == name)) {
                    tree.extend(format!("{entry}\0").into_bytes());
                }
            }
        }
        let tree = one_line(&self.git.tell("write the state", &["mktree", "-z"], &tree).await?)?;
        let commit = ["commit-tree", &tree, "-m", "State of Canonry"];
        let commit = one_line(&self.git.ask("write the state", &commit).await?)?;
        let expected = version.map_or("", StateVersion::as_str);
        let lease = format!("--force-with-lease={}:{expected}", self.name);
        let what = format!("{commit}:{}", self.name);
        match self.git.ask("push the state", &["push", "--quiet", &lease, "origin", &what]).await {
            Ok(_) => Ok(Some(StateVersion(commit))),
            Err(error) => match self.tip().await? {
                // The push arrived although its answer did not.
                Some(tip) if tip.0 == commit => Ok(Some(tip)),
                tip if tip.as_ref() == version => Err(error.into()),
                _ => Ok(None),
            },
        }
    }

    async fn tip(&self) -> Result<Option<StateVersion>, StateError> {
        let listed = self.git.ask("find the state", &["ls-remote", "origin", &self.name]).await?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let tip = listed.lines().find_map(|line| line.split_once('\t').filter(|(_, name)| *name == self.name));
        Ok(tip.map(|(id, _)| StateVersion(id.to_owned())))
    }
}

fn one_line(bytes: &[u8]) -> Result<String, StateError> {
    let text = String::from_utf8_lossy(bytes).trim().to_owned();
    let is_id = text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_id { Ok(text) } else { Err(StateError::Unexpected(text.chars().take(80).collect())) }
}
