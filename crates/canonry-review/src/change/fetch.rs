//! Fetches two commits into a separate folder, without a work tree and without files that nobody reads.

use canonry_boxed::boxed;
use std::path::Path;
use std::time::Duration;

use canonry_domain::review::CommitSha;

use crate::change::git::{Git, GitError};
use crate::change::remote::Remote;

/// The history fetched first for each commit: most pull requests have their merge base within so many commits.
const DEPTH: u32 = 100;

/// The history fetched if the first fetch does not reach the merge base.
const DEEPER: u32 = 5_000;

const TIME: Duration = Duration::from_secs(120);

/// The limit for deepening, and for fetching the head of an earlier review: a review continues without either.
const MORE_TIME: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct FetchedRepository {
    git: Git,
}

#[boxed]
impl FetchedRepository {
    /// Fetches two commits without their files; git fetches a file when it is read. The folder is created unless it
    /// exists from an earlier fetch.
    pub async fn fetch(folder: &Path, remote: &Remote, base: &CommitSha, head: &CommitSha) -> Result<Self, GitError> {
        std::fs::create_dir_all(folder)
            .map_err(|error| GitError::Pipe { what: "make a folder to fetch into", error })?;
        let git = Git::new(folder).opening(remote);
        // Without a template, no hook and no setting of this machine gets into the repository.
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

    pub(crate) async fn deepen(&self, base: &CommitSha, head: &CommitSha) -> Result<(), GitError> {
        self.get("fetch more history", DEEPER, &[base, head], MORE_TIME).await
    }

    pub(crate) async fn get_commit(&self, what: &'static str, sha: &CommitSha) -> Result<(), GitError> {
        self.get(what, 1, &[sha], MORE_TIME).await
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
    /// Fetches objects by id, all in one call. The negotiation is switched off because these objects are not commits.
    pub(crate) async fn get_objects(&self, ids: &[&str]) -> Result<(), GitError> {
        let options =
            ["-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head"];
        let more = ["--no-recurse-submodules", "--filter=blob:none", "origin", "--stdin"];
        let arguments: Vec<&str> = options.into_iter().chain(more).collect();
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.bytes().chain([b'\n'])).collect();
        self.clone().within(TIME).tell("fetch files", &arguments, &ids).await.map(drop)
    }
}
