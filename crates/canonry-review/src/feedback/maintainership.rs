//! Decides whether a person maintains a repository now.

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

/// Whether a person maintains a repository: by the list that was set by hand, if there is one, otherwise by their
/// current permission on GitHub. A bot is never a maintainer. Without a list and without GitHub, nobody is.
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
    // A list that was read from GitHub may be weeks old; a person who was removed since must not decide any more.
    let set = store.repos().maintainers(repo.id).await?.filter(|list| list.source == MaintainerSource::Set);
    match (set, github) {
        (Some(list), _) => Ok(list.logins.iter().collect::<Maintainers>().contains(login)),
        (None, Some(github)) => Ok(github.permission(&repo.name, login).await?.is_maintainer()),
        (None, None) => Ok(false),
    }
}
