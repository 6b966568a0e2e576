//! Runs the git program: argument vectors, no hooks, no helpers, a time limit.

use canonry_boxed::boxed;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use canonry_models::{ProgramError, run_program};
use tokio::process::Command;

use crate::change::remote::Remote;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("run git: {0}; install it, or put it on the PATH")]
    Absent(std::io::Error),
    #[error("{what}: git says {said:?}")]
    Refused {
        what: &'static str,
        /// The last line that git printed; empty if it printed nothing.
        said: String,
    },
    #[error("{what}: git took longer than {} s", limit.as_secs())]
    TooLong { what: &'static str, limit: Duration },
    #[error("{what}: git answers with more than {} MiB", limit / 1024 / 1024)]
    TooMuch { what: &'static str, limit: usize },
    /// The clone is a partial clone without the files that are needed.
    #[error("{what}: this clone is a partial one and lacks some files; `git diff BASE...HEAD` there fetches them")]
    NotHere { what: &'static str },
    #[error("{what}: {error}")]
    Pipe { what: &'static str, error: std::io::Error },
}

/// Settings for each call. A repository's configuration may name programs to run: these settings disable all of them.
/// They also keep it from marking files as binary by size, and from making git wait for a file that never ends.
const SETTINGS: [&str; 14] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.askPass=",
    "core.attributesFile=/dev/null",
    "core.bigFileThreshold=512m",
    "core.quotePath=false",
    "core.pager=cat",
    "core.alternateRefsCommand=true",
    "credential.helper=",
    "diff.suppressBlankEmpty=false",
    "protocol.ext.allow=never",
    "submodule.recurse=false",
    "maintenance.auto=false",
    "gc.auto=0",
];

/// Variables that would override the folder or our settings. A caller that runs as a git hook has some of them set.
const NOT_INHERITED: [&str; 20] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
    "GIT_ATTR_SOURCE",
    "GIT_SHALLOW_FILE",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "GIT_DEFAULT_HASH",
    "GIT_GRAFT_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
];

/// Applies unless the repository is opened for fetching. In a user's partial clone git would fetch missing objects by
/// itself, with programs that the clone's configuration names: old versions of git obey only the protocol list, newer
/// versions obey both variables. A replaced object does not have the content that its id stands for.
const ALONE: [(&str, &str); 3] =
    [("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none"), ("GIT_NO_REPLACE_OBJECTS", "1")];

/// The time limit of one call: a diff of a large change takes seconds.
const TIME: Duration = Duration::from_secs(120);

const MOST: usize = 512 * 1024 * 1024;

/// A repository that git reads. Its work tree is never touched.
#[derive(Debug, Clone)]
pub struct Git {
    folder: PathBuf,
    time: Duration,
    most: usize,
    fetches: bool,
    environment: Vec<(String, String)>,
}

#[boxed]
impl Git {
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), time: TIME, most: MOST, fetches: false, environment: Vec::new() }
    }

    /// Sets the time limit of each call.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the limit of one answer in bytes.
    #[must_use]
    pub fn reading(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Uses another index than the clone's own, such as a copy of it: some git commands rewrite the index.
    #[must_use]
    pub fn with_index(self, index: &Path) -> Self {
        let index = index.to_string_lossy().into_owned();
        self.with("GIT_INDEX_FILE", &index)
    }

    /// Lets git fetch from and push to a remote.
    #[must_use]
    pub fn opening(self, remote: &Remote) -> Self {
        let may_fetch = Self { fetches: true, ..self.with("GIT_NO_LAZY_FETCH", "0") };
        remote.environment().into_iter().fold(may_fetch, |git, (name, value)| git.with(name, &value))
    }

    pub(crate) fn fetches(&self) -> bool {
        self.fetches
    }

    /// Fetches nothing: git answers from the objects that are in the repository.
    pub(crate) fn as_it_is(&self) -> Self {
        self.clone().with("GIT_NO_LAZY_FETCH", "1")
    }

    /// Sets an environment variable for git.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Switches off all configured filters: git would run them to read a file of the work tree.
    pub async fn without_filters(&self) -> Result<Self, GitError> {
        let listed = self.ask("read the filters", &["config", "--name-only", "-z", "--get-regexp", r"^filter\."]).await;
        let names = match listed {
            Ok(names) => String::from_utf8_lossy(&names).into_owned(),
            // Git prints nothing if no filter is configured.
            Err(GitError::Refused { said, .. }) if said.is_empty() => return Ok(self.clone()),
            Err(error) => return Err(error),
        };
        let drivers: BTreeSet<&str> = names.split('\0').filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
        let off = [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")];
        let settings = drivers.iter().flat_map(|driver| off.map(|(key, value)| (format!("{driver}.{key}"), value)));
        let (mut git, mut count) = (self.clone(), 0);
        for (name, value) in settings {
            git = git.with(&format!("GIT_CONFIG_KEY_{count}"), &name).with(&format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        Ok(git.with("GIT_CONFIG_COUNT", &count.to_string()))
    }

    /// Runs git. `what` is the purpose, read after "failed to".
    pub async fn ask<S: AsRef<OsStr>>(&self, what: &'static str, arguments: &[S]) -> Result<Vec<u8>, GitError> {
        self.tell(what, arguments, &[]).await
    }

    /// Runs git with standard input.
    pub async fn tell<S: AsRef<OsStr>>(
        &self,
        what: &'static str,
        arguments: &[S],
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        let ended = run_program(&mut self.command(arguments), input, self.time, self.most).await;
        let ended = ended.map_err(|error| match error {
            ProgramError::Absent(error) => GitError::Absent(error),
            ProgramError::TooLong => GitError::TooLong { what, limit: self.time },
            ProgramError::TooMuch => GitError::TooMuch { what, limit: self.most },
            ProgramError::Pipe(error) => GitError::Pipe { what, error },
        })?;
        if ended.status.success() {
            return Ok(ended.out);
        }
        let said = ended.telling_line();
        // "could not fetch <id> from promisor remote": git prints this however fetching was prevented.
        let is_missing = !self.fetches && said.ends_with("from promisor remote");
        Err(if is_missing { GitError::NotHere { what } } else { GitError::Refused { what, said } })
    }

    fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.folder).args(["--no-pager", "--literal-pathspecs"]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        for variable in NOT_INHERITED {
            command.env_remove(variable);
        }
        command.args(arguments).env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
        command.envs(ALONE);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}
