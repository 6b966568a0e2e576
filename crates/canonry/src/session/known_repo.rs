//! The repository that a command is about.

use anyhow::{Result, bail};
use canonry_domain::RepoName;
use canonry_store::{CloseRunId, Repo, Store};

/// The option that names the repository.
#[derive(Debug, clap::Args)]
pub(crate) struct RepoOption {
    /// The repository
    #[arg(id = "repo", long, value_name = "OWNER/NAME")]
    pub(crate) name: RepoName,
}

impl RepoOption {
    /// The repository in the store, or a sentence that names the known ones.
    pub(crate) async fn find(&self, store: &Store) -> Result<Repo> {
        if let Some(repo) = store.repos().find(&self.name).await? {
            return Ok(repo);
        }
        let known = store.repos().list().await?;
        if known.is_empty() {
            bail!(
                "the database holds no repository yet, so not {} either; bring its items in with `canonry import` or `canonry sync`",
                self.name
            );
        }
        bail!(
            "the repository {} is not in the database, which knows {}; bring its items in with `canonry import` or `canonry sync`",
            self.name,
            listed(&known)
        )
    }
}

/// The option that names the repository of a run, which need not be named: the run knows it.
#[derive(Debug, clap::Args)]
pub(crate) struct RunRepoOption {
    /// The repository [default: the run's own]
    #[arg(id = "repo", long, value_name = "OWNER/NAME")]
    name: Option<RepoName>,
}

impl RunRepoOption {
    /// The repository in the store, or a sentence that says what is missing.
    pub(crate) async fn find(&self, store: &Store, run: CloseRunId) -> Result<Repo> {
        if let Some(name) = &self.name {
            return RepoOption { name: name.clone() }.find(store).await;
        }
        match store.plans().run(run).await? {
            Some(run) => Ok(run.repo),
            None => bail!("there is no run {run}; make a plan with `canonry plan-close --repo OWNER/NAME`"),
        }
    }
}

/// More names than this do not help to find a misspelling.
const NAMED: usize = 8;

/// Some of the known names, in words.
pub(crate) fn listed(known: &[Repo]) -> String {
    let mut names: Vec<String> = known.iter().take(NAMED).map(|repo| repo.name.to_string()).collect();
    if known.len() > NAMED {
        names.push(format!("{} more", known.len() - NAMED));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.join(""),
    }
}
