//! The repository that a command is about.

use anyhow::{Result, bail};
use canonry_domain::RepoName;
use canonry_store::{Repo, Store};

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
        if let Some(repo) = store.repo(&self.name).await? {
            return Ok(repo);
        }
        let known = store.repos().await?;
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

/// More names than this do not help to find a misspelling.
const NAMED: usize = 8;

fn listed(known: &[Repo]) -> String {
    let mut names: Vec<String> = known.iter().take(NAMED).map(|repo| repo.name.to_string()).collect();
    if known.len() > NAMED {
        names.push(format!("{} more", known.len() - NAMED));
    }
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.join(""),
    }
}
