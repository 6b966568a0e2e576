//! Reads and writes comments on issues and pull requests.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, ItemNumber, RepoName};
use jiff::Timestamp;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::issues::github_time;
use super::{AppSlug, RestUser};
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::pages::{PER_PAGE, Pages};
use crate::http::write::WriteError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestComment {
    pub id: i64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub body: String,
    /// The author; null once the account is deleted.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub user: Option<RestUser>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub updated_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub html_url: Option<String>,
    /// The App that wrote it, if any.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub performed_via_github_app: Option<AppSlug>,
}

#[boxed]
impl GitHub {
    /// An item's comments, oldest first; with `since`, only those that changed at that time or later.
    pub fn comments(&self, repo: &RepoName, number: ItemNumber, since: Option<Timestamp>) -> Pages<RestComment> {
        let since = since.map(github_time);
        let mut pairs = vec![PER_PAGE];
        pairs.extend(since.as_deref().map(|since| ("since", since)));
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", &number.to_string(), "comments"], &pairs);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }

    pub async fn create_comment(
        &self,
        repo: &RepoName,
        number: ItemNumber,
        body: &str,
    ) -> Result<RestComment, WriteError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", &number.to_string(), "comments"], &[]);
        self.write_json(&Scope::Repo(repo.clone()), Method::POST, url, &json!({ "body": body })).await
    }

    pub async fn edit_comment(&self, repo: &RepoName, id: GithubId, body: &str) -> Result<RestComment, WriteError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", "comments", &id.0.to_string()], &[]);
        self.write_json(&Scope::Repo(repo.clone()), Method::PATCH, url, &json!({ "body": body })).await
    }

    pub async fn delete_comment(&self, repo: &RepoName, id: GithubId) -> Result<(), WriteError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", "comments", &id.0.to_string()], &[]);
        self.write(&Scope::Repo(repo.clone()), Method::DELETE, url, None).await.map(drop)
    }
}
