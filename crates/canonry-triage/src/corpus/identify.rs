//! Resolves which repository a name means: GitHub's id decides, and renames are followed.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, RepoName};
use canonry_github::{GitHub, GitHubError};
use canonry_store::{Repo, Store, StoreError};
use jiff::Timestamp;

/// Why a repository could not be identified.
#[derive(Debug, thiserror::Error)]
pub enum IdentifyError {
    #[error(transparent)]
    GitHub(#[from] GitHubError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name now belongs to another repository than the one whose items are stored.
    #[error(
        "{name} on GitHub is not the repository whose items are stored under that name (its id is {found}, not {known}); \
         it was deleted and created again, or renamed: use another database with --db, or the repository's new name"
    )]
    AnotherRepository { name: RepoName, known: i64, found: i64 },
    /// The repository was renamed to a name under which other items are stored.
    #[error(
        "{from} is now called {to}, and the database already has items under that name; export one of the two to another database"
    )]
    NameTaken { from: RepoName, to: RepoName },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentifiedRepo {
    pub github_id: GithubId,
    pub name: RepoName,
    pub has_issues: bool,
    /// Empty if GitHub did not name it.
    pub default_branch: String,
    /// The stored repository, under any name; `None` if it is not stored.
    pub known: Option<Repo>,
}

/// Asks GitHub which repository a name means, and finds it in the store. Writes nothing.
#[boxed]
pub async fn identify(store: &Store, github: &GitHub, asked: &RepoName) -> Result<IdentifiedRepo, IdentifyError> {
    let answer = github.repo(asked).await?;
    let github_id = answer.github_id();
    // GitHub's spelling: the letter case that a person typed must not become the repository's name.
    let name = answer.full_name.parse().unwrap_or_else(|_| asked.clone());
    let by_id = store.repos().by_github_id(github_id).await?;
    let by_name = store.repos().find(asked).await?;
    let known = match (by_id, by_name) {
        (Some(by_id), _) => Some(by_id),
        (None, Some(by_name)) => match by_name.github_id {
            None => Some(by_name),
            Some(other) => {
                return Err(IdentifyError::AnotherRepository {
                    name: asked.clone(),
                    known: other.0,
                    found: github_id.0,
                });
            }
        },
        (None, None) => None,
    };
    let (has_issues, default_branch) = (answer.has_issues.unwrap_or(true), answer.default_branch);
    Ok(IdentifiedRepo { github_id, name, has_issues, default_branch, known })
}

/// Creates or renames the stored repository to match GitHub, and returns it.
pub(crate) async fn remember(
    store: &Store,
    asked: &RepoName,
    identified: &IdentifiedRepo,
    now: Timestamp,
) -> Result<Repo, IdentifyError> {
    let repo = match &identified.known {
        Some(repo) => repo.clone(),
        None => store.repos().ensure(&identified.name, now).await?,
    };
    let noted = store.repos().identify(repo.id, identified.github_id, &identified.name).await?;
    store.repos().set_default_branch(repo.id, &identified.default_branch).await?;
    noted.ok_or_else(|| IdentifyError::NameTaken { from: asked.clone(), to: identified.name.clone() })
}
