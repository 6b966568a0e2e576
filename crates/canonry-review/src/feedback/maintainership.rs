//! Whether somebody maintains a repository, as it is known now.

use canonry_boxed::boxed;
use canonry_domain::{Login, Maintainers};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{MaintainerSource, Repo, Store, StoreError};

#[derive(Debug, thiserror::Error)]
pub enum MaintainershipError {
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether somebody maintains a repository: by the list that a person set, if there is one, else by what GitHub lets them
/// do there now. No bot does; and where there is neither list nor GitHub, nobody is known to.
#[boxed]
pub async fn is_maintainer(
    store: &Store,
    github: Option<&GitHub>,
    repo: &Repo,
    login: &Login,
) -> Result<bool, MaintainershipError> {
    if login.is_bot() {
        return Ok(false);
    }
    // A list that GitHub gave may be of weeks ago; who was asked to leave since must not rule any more.
    let set = store.repos().maintainers(repo.id).await?.filter(|list| list.source == MaintainerSource::Set);
    match (set, github) {
        (Some(list), _) => Ok(list.logins.iter().collect::<Maintainers>().contains(login)),
        (None, Some(github)) => Ok(github.permission(&repo.name, login).await?.is_maintainer()),
        (None, None) => Ok(false),
    }
}
