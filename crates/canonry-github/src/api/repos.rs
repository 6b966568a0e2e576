//! Repositories, by name and by id.

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
    /// Its id, which stays when it is renamed or moved.
    pub id: i64,
    /// `owner/name` as of now.
    pub full_name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub default_branch: String,
    /// Whether only some can see it.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub private: bool,
    /// Whether it is read-only.
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

    /// The name it has now, when that is not the name it was asked by.
    pub fn renamed_from(&self, asked: &RepoName) -> Option<RepoName> {
        let now: RepoName = self.full_name.parse().ok()?;
        (now.key() != asked.key()).then_some(now)
    }
}

#[boxed]
impl GitHub {
    /// A repository by name. A former name finds it too: see [`RestRepo::renamed_from`].
    pub async fn repo(&self, repo: &RepoName) -> Result<RestRepo, GitHubError> {
        let url = self.url(&["repos", repo.owner(), repo.name()], &[]);
        match self.get_json(&Scope::Repo(repo.clone()), url).await {
            Err(GitHubError::NotFound { .. }) => Err(GitHubError::NotFound { what: format!("repository {repo}") }),
            answer => answer,
        }
    }

    /// A repository by id, whatever it is called now; `known_as` is the last name we knew, which says
    /// whose installation asks.
    pub async fn repo_by_id(&self, known_as: &RepoName, id: GithubId) -> Result<RestRepo, GitHubError> {
        let url = self.url(&["repositories", &id.0.to_string()], &[]);
        self.get_json(&Scope::Repo(known_as.clone()), url).await
    }
}
