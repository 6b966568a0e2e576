//! The repository of a command: the named one, or the only possible one.

use std::path::Path;

use anyhow::{Result, bail};
use canonry_domain::RepoName;
use canonry_store::{CloseRunId, Repo, Store};

use crate::output::exit::WrongUsage;
use crate::output::tables::counted;
use crate::session::local_clone::LocalClone;

const NAME_IT: &str = "name the repository with --repo OWNER/NAME, or run this in a clone of it";

/// The option that names the repository.
#[derive(Debug, clap::Args)]
pub(crate) struct RepoOption {
    /// The repository [default: that of the clone in this folder, or the only one in the database]
    #[arg(id = "repo", long, value_name = "OWNER/NAME")]
    name: Option<RepoName>,
}

impl RepoOption {
    /// Finds the repository in the store; the error lists the stored repositories.
    pub(crate) async fn find(&self, store: &Store) -> Result<Repo> {
        match &self.name {
            Some(name) => find_named(store, name).await,
            None => find_meant(store).await,
        }
    }

    /// Returns the name of a repository that a service is asked about: the named one, or that of the clone in this
    /// folder.
    pub(crate) async fn name_to_ask(&self) -> Result<RepoName> {
        let named = match &self.name {
            Some(name) => Some(name.clone()),
            None => names_on_github().await.into_iter().next(),
        };
        named.ok_or_else(|| WrongUsage(NAME_IT.to_owned()).into())
    }

    /// Returns the name of a repository that may not be in the store yet, for commands that fetch it from GitHub.
    pub(crate) async fn name_to_fetch(&self, store: &Store) -> Result<RepoName> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let known = store.repos().list().await?;
        let of_clone = names_on_github().await;
        if let Some(repo) = among(&known, &of_clone) {
            return Ok(repo.name.clone());
        }
        match (of_clone.into_iter().next(), known.as_slice()) {
            (Some(name), _) => Ok(name),
            (None, [only]) => Ok(only.name.clone()),
            (None, []) => bail!(WrongUsage(NAME_IT.to_owned())),
            (None, known) => bail!(WrongUsage(say_which(known))),
        }
    }
}

/// Finds the repository of this name in the store; the error lists the stored repositories.
pub(crate) async fn find_named(store: &Store, name: &RepoName) -> Result<Repo> {
    if let Some(repo) = store.repos().find(name).await? {
        return Ok(repo);
    }
    match store.repos().list().await?.as_slice() {
        [] => bail!("{name} is not in the database, which is empty; import it with `canonry sync` or `canonry import`"),
        known => bail!(
            "{name} is not in the database, which has {}; import it with `canonry sync` or `canonry import`",
            listed(known)
        ),
    }
}

/// Finds the repository if none is named: that of the clone in the current folder, or outside of clones the only
/// stored one.
async fn find_meant(store: &Store) -> Result<Repo> {
    let known = store.repos().list().await?;
    if known.is_empty() {
        bail!("the database has no repository yet; import one with `canonry sync --repo OWNER/NAME`");
    }
    if let Some(repo) = among(&known, &names_of_clone().await) {
        return Ok(repo.clone());
    }
    match (known.as_slice(), names_on_github().await.first()) {
        ([only], None) => Ok(only.clone()),
        // Never the other repository: commands would answer about, or close, what nobody meant.
        ([Repo { name: only, .. }], Some(clone)) => bail!(WrongUsage(format!(
            "this is a clone of {clone}, and the database has only {only}; run `canonry sync` here, say --repo {only}, or, \
             if {clone} was renamed, `git remote set-url origin URL`"
        ))),
        (known, _) => bail!(WrongUsage(say_which(known))),
    }
}

fn among<'a>(known: &'a [Repo], names: &[RepoName]) -> Option<&'a Repo> {
    names.iter().find_map(|name| known.iter().find(|repo| repo.name.key() == name.key()))
}

/// Returns the names under which the clone in the current folder may be stored; none outside a clone.
async fn names_of_clone() -> Vec<RepoName> {
    match LocalClone::find(Path::new(".")).await {
        Ok(clone) => clone.names().await,
        Err(_) => Vec::new(),
    }
}

async fn names_on_github() -> Vec<RepoName> {
    match LocalClone::find(Path::new(".")).await {
        Ok(clone) => clone.names_on_github().await,
        Err(_) => Vec::new(),
    }
}

fn say_which(known: &[Repo]) -> String {
    let example = known.first().map(|repo| repo.name.to_string()).unwrap_or_default();
    format!(
        "the database has {} ({}); say which with --repo, for example --repo {example}",
        counted(known.len() as u64, "repository"),
        listed(known)
    )
}

/// The option that names the repository of a plan, which knows its own.
#[derive(Debug, clap::Args)]
pub(crate) struct RunRepoOption {
    /// The repository [default: the plan's own]
    #[arg(id = "repo", long, value_name = "OWNER/NAME")]
    name: Option<RepoName>,
}

impl RunRepoOption {
    /// Finds the named repository, or the repository of the plan; the error names what is missing.
    pub(crate) async fn find(&self, store: &Store, run: CloseRunId) -> Result<Repo> {
        if let Some(name) = &self.name {
            return find_named(store, name).await;
        }
        match store.plans().run(run).await? {
            Some(run) => Ok(run.repo),
            None => bail!("there is no plan {run}; make one with `canonry plan-close`"),
        }
    }
}

/// How many names an error lists at most: more names do not help to find a misspelling.
const NAMED: usize = 8;

/// Lists the first names of the known repositories and how many more there are.
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
