//! The repository whose reviews a command is about.

use std::path::Path;

use anyhow::Result;
use canonry_domain::RepoName;
use canonry_store::{Repo, Store};

use crate::session::known_repo::RepoOption;
use crate::session::local_clone::LocalClone;

/// The option that names the repository of reviews, which need not be named in a clone of it.
#[derive(Debug, clap::Args)]
pub(crate) struct ReviewedRepoOption {
    /// The repository [default: that of the clone in the current folder]
    #[arg(id = "repo", long, value_name = "OWNER/NAME")]
    name: Option<RepoName>,
}

impl ReviewedRepoOption {
    /// The repository in the store, or a sentence that says what is missing.
    pub(crate) async fn find(&self, store: &Store) -> Result<Repo> {
        let name = match &self.name {
            Some(name) => name.clone(),
            None => {
                let clone = LocalClone::find(Path::new("."))
                    .await
                    .map_err(|error| error.context("no repository is named; name it with --repo OWNER/NAME"))?;
                clone.repo_name().await
            }
        };
        RepoOption { name }.find(store).await
    }
}
