//! Two commits fetched into a folder of their own: no work tree, no files but those that are asked for.

use canonry_boxed::boxed;
use std::path::Path;
use std::time::Duration;

use canonry_domain::review::CommitSha;

use crate::change::git::{Git, GitError};
use crate::change::remote::Remote;

/// How many commits of each line of work come first: most pull requests part from their base within so many.
const DEPTH: u32 = 100;

/// How many come when those do not reach the commit from which the two part.
const DEEPER: u32 = 5_000;

const TIME: Duration = Duration::from_secs(120);

/// What deepening may take, and looking for the head of an earlier review: a review goes on without.
const MORE_TIME: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct FetchedRepository {
    git: Git,
}

#[boxed]
impl FetchedRepository {
    /// Fetches two commits, without the files in them; git fetches those when they are read. The folder is made, or is
    /// one that was fetched into before.
    pub async fn fetch(folder: &Path, remote: &Remote, base: &CommitSha, head: &CommitSha) -> Result<Self, GitError> {
        std::fs::create_dir_all(folder)
            .map_err(|error| GitError::Pipe { what: "make a folder to fetch into", error })?;
        let git = Git::new(folder).opening(remote);
        // Without a template no hook and no setting of this machine comes in.
        let ids = if head.as_str().len() == 64 { "--object-format=sha256" } else { "--object-format=sha1" };
        git.ask("make a repository to fetch into", &["init", "--bare", "--quiet", "--template=", ids]).await?;
        for (name, value) in [
            ("remote.origin.url", remote.url()),
            ("remote.origin.promisor", "true"),
            ("remote.origin.partialclonefilter", "blob:none"),
            ("transfer.fsckObjects", "false"),
        ] {
            git.ask("configure a repository to fetch into", &["config", name, value]).await?;
        }
        let fetched = Self { git };
        fetched.get("fetch the commits", DEPTH, &[base, head], TIME).await?;
        Ok(fetched)
    }

    pub fn git(&self) -> &Git {
        &self.git
    }

    /// Fetches more of the history of two commits.
    pub(crate) async fn deepen(&self, base: &CommitSha, head: &CommitSha) -> Result<(), GitError> {
        self.get("fetch more history", DEEPER, &[base, head], MORE_TIME).await
    }

    pub(crate) async fn get_commit(&self, sha: &CommitSha) -> Result<(), GitError> {
        self.get("fetch the commit that was reviewed last", 1, &[sha], MORE_TIME).await
    }

    async fn get(&self, what: &'static str, depth: u32, shas: &[&CommitSha], time: Duration) -> Result<(), GitError> {
        let depth = format!("--depth={depth}");
        let options = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
        let arguments = options.into_iter().chain(["--filter=blob:none", &depth, "origin"]);
        let arguments: Vec<&str> = arguments.chain(shas.iter().map(|sha| sha.as_str())).collect();
        self.git.clone().within(time).ask(what, &arguments).await.map(drop)
    }
}

impl Git {
    /// Fetches objects by their ids, all in one go. Nothing of the history is told to the other side: it is not about commits.
    pub(crate) async fn get_objects(&self, ids: &[&str]) -> Result<(), GitError> {
        let options =
            ["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        let more = ["--no-recurse-submodules", "--filter=blob:none", "origin", "--stdin"];
        let arguments: Vec<&str> = options.into_iter().chain(more).collect();
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.bytes().chain([b'\n'])).collect();
        self.clone().within(TIME).tell("fetch files", &arguments, &ids).await.map(drop)
    }
}
