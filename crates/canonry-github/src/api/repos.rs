//! Reads repositories by name and by id.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, RepoName};
use serde::{Deserialize, Serialize};

use super::RestUser;
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestRepo {
    /// The id, which stays the same if the repository is renamed or transferred.
    pub id: i64,
    /// The present `owner/name`.
    pub full_name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub default_branch: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub private: bool,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub archived: bool,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub has_issues: Option<bool>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub owner: Option<RestUser>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub html_url: Option<String>,
}

impl RestRepo {
    pub fn github_id(&self) -> GithubId {
        GithubId(self.id)
    }

    /// The present name, if it is not the name in the request.
    pub fn renamed_from(&self, asked: &RepoName) -> Option<RepoName> {
        let now: RepoName = self.full_name.parse().ok()?;
        (now.key() != asked.key()).then_some(now)
    }
}

#[boxed]
impl GitHub {
    /// A repository by name. A former name works too: see [`RestRepo::renamed_from`].
    pub async fn repo(&self, repo: &RepoName) -> Result<RestRepo, GitHubError> {
        let url = self.url(&["repos", repo.owner(), repo.name()], &[]);
        match self.get_json(&Scope::Repo(repo.clone()), url).await {
            Err(GitHubError::NotFound { .. }) => Err(GitHubError::NotFound { what: format!("repository {repo}") }),
            answer => answer,
        }
    }

    /// A repository by id, whatever its present name is; `known_as` is the last known name, which selects the
    /// installation for the request.
    pub async fn repo_by_id(&self, known_as: &RepoName, id: GithubId) -> Result<RestRepo, GitHubError> {
        let url = self.url(&["repositories", &id.0.to_string()], &[]);
        self.get_json(&Scope::Repo(known_as.clone()), url).await
    }
}
