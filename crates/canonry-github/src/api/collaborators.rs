//! Reads the permissions of accounts in a repository.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, Login, RepoName};
use serde::Deserialize;

use super::RestUser;
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::pages::{PER_PAGE, Pages};

/// What an account may do in a repository, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permission {
    None,
    Read,
    Triage,
    Write,
    Maintain,
    Admin,
}

impl Permission {
    pub fn is_maintainer(self) -> bool {
        self >= Self::Write
    }

    /// GitHub's names for permissions and built-in roles; for a custom role GitHub also returns the permission it is
    /// based on.
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "none" => Self::None,
            "read" | "pull" => Self::Read,
            "triage" => Self::Triage,
            "write" | "push" => Self::Write,
            "maintain" => Self::Maintain,
            "admin" => Self::Admin,
            _ => return None,
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Granted {
    #[serde(deserialize_with = "lenient::or_default")]
    triage: bool,
    #[serde(deserialize_with = "lenient::or_default")]
    push: bool,
    #[serde(deserialize_with = "lenient::or_default")]
    maintain: bool,
    #[serde(deserialize_with = "lenient::or_default")]
    admin: bool,
}

#[derive(Debug, Deserialize)]
struct Collaborator {
    #[serde(flatten)]
    user: RestUser,
    #[serde(default, deserialize_with = "lenient::or_default")]
    permissions: Granted,
    #[serde(default, deserialize_with = "lenient::or_default")]
    role_name: String,
}

impl Collaborator {
    fn permission(&self) -> Permission {
        let granted = match &self.permissions {
            Granted { admin: true, .. } => Permission::Admin,
            Granted { maintain: true, .. } => Permission::Maintain,
            Granted { push: true, .. } => Permission::Write,
            Granted { triage: true, .. } => Permission::Triage,
            _ => Permission::Read,
        };
        granted.max(Permission::from_word(&self.role_name).unwrap_or(Permission::None))
    }
}

#[derive(Debug, Deserialize)]
struct PermissionAnswer {
    #[serde(default, deserialize_with = "lenient::or_default")]
    permission: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    role_name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    user: Option<RestUser>,
}

#[boxed]
impl GitHub {
    /// The collaborators with push permission or more, sorted. Bots are left out: no App is a maintainer.
    pub async fn maintainers(&self, repo: &RepoName) -> Result<Vec<Login>, GitHubError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "collaborators"], &[("affiliation", "all"), PER_PAGE]);
        let pages: Pages<Collaborator> = Pages::new(self, Scope::Repo(repo.clone()), url);
        let all = pages.all().await.map_err(|error| match error {
            // GitHub shows the list only to accounts that may push; others get 403, or 404 on private repositories.
            GitHubError::Forbidden { message, .. } => {
                GitHubError::CollaboratorsHidden { repo: repo.to_string(), message }
            }
            GitHubError::NotFound { .. } => {
                GitHubError::CollaboratorsHidden { repo: repo.to_string(), message: "Not Found".to_owned() }
            }
            error => error,
        })?;
        let mut logins: Vec<Login> = all
            .iter()
            .filter(|collaborator| collaborator.permission().is_maintainer() && !collaborator.user.is_bot())
            .filter_map(|collaborator| collaborator.user.to_login())
            .collect();
        logins.sort();
        logins.dedup();
        Ok(logins)
    }

    pub async fn permission(&self, repo: &RepoName, login: &Login) -> Result<Permission, GitHubError> {
        Ok(self.permission_answer(repo, login).await?.map_or(Permission::None, |answer| answer.permission()))
    }

    /// The permission of the account with this id, which has, or had, this login. A login can be released and taken by
    /// another account, which is then not the one meant.
    pub async fn permission_of_account(
        &self,
        repo: &RepoName,
        login: &Login,
        id: GithubId,
    ) -> Result<Permission, GitHubError> {
        let answer = self.permission_answer(repo, login).await?;
        let meant = answer.filter(|answer| answer.user.as_ref().is_some_and(|user| user.id == id.0));
        Ok(meant.map_or(Permission::None, |answer| answer.permission()))
    }

    /// `None` if GitHub does not show the repository or the account.
    async fn permission_answer(&self, repo: &RepoName, login: &Login) -> Result<Option<PermissionAnswer>, GitHubError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "collaborators", login.as_str(), "permission"], &[]);
        match self.get_json(&Scope::Repo(repo.clone()), url).await {
            Ok(answer) => Ok(Some(answer)),
            Err(GitHubError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl PermissionAnswer {
    fn permission(&self) -> Permission {
        let word = |word: &str| Permission::from_word(word).unwrap_or(Permission::None);
        // The old field merges maintain into write and triage into read; the role is exact.
        word(&self.permission).max(word(&self.role_name))
    }
}

#[cfg(test)]
mod tests {
    use super::{Collaborator, Permission};

    #[test]
    fn the_strongest_word_counts() {
        let table = [
            (r#"{"login":"a","permissions":{"pull":true,"push":true}}"#, Permission::Write),
            (r#"{"login":"a","permissions":{"pull":true,"triage":true,"push":false}}"#, Permission::Triage),
            (r#"{"login":"a","role_name":"maintain"}"#, Permission::Maintain),
            (r#"{"login":"a","role_name":"release captain","permissions":{"push":true}}"#, Permission::Write),
            (r#"{"login":"a","permissions":null}"#, Permission::Read),
        ];
        for (json, expected) in table {
            let collaborator: Collaborator = serde_json::from_str(json).expect("lenient");
            assert_eq!(collaborator.permission(), expected, "{json}");
        }
    }
}
