//! `maintainers refresh`: asks GitHub who may push.

use canonry_domain::RepoName;
use canonry_github::GitHub;
use canonry_store::{MaintainerList, MaintainerSource, Store};

use crate::identify::{identify, remember};
use crate::sync::SyncError;

/// Replaces the list of maintainers by the collaborators with push or more. When GitHub does not
/// answer, the list stays as it was.
pub async fn refresh_maintainers(
    store: &Store,
    github: &GitHub,
    asked: &RepoName,
) -> Result<MaintainerList, SyncError> {
    let identified = identify(store, github, asked).await?;
    let logins = github.maintainers(&identified.name).await?;
    let repo = remember(store, asked, &identified, github.now()).await?;
    Ok(store.set_maintainers(repo.id, MaintainerSource::Github, &logins, github.now()).await?)
}
