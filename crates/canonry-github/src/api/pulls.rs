//! Reads pull requests and the files they change.

use canonry_boxed::boxed;
use canonry_domain::{ItemNumber, RepoName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::issues::{ListState, RestMilestone};
use super::labels::{RestLabel, label_list};
use super::{RestRepo, RestUser};
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::pages::{PER_PAGE, Pages};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestPull {
    /// The id as a pull request, which differs from its id as an issue.
    pub id: i64,
    pub number: i64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub title: String,
    /// Null if empty.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub body: Option<String>,
    /// `open` or `closed`.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub state: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub draft: bool,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub merged_at: Option<Timestamp>,
    /// The author; null once the account is deleted.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub user: Option<RestUser>,
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub assignees: Vec<RestUser>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub milestone: Option<RestMilestone>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub locked: bool,
    #[serde(default, deserialize_with = "label_list")]
    pub labels: Vec<RestLabel>,
    /// Only in the answer about one pull request.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub comments: Option<i64>,
    /// The comments on its diff; only in the answer about one pull request.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub review_comments: Option<i64>,
    /// The commit of the base branch with its change, once it is merged; before that, a trial merge.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub merge_commit_sha: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub base: RestBranch,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub head: RestBranch,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub updated_at: Option<Timestamp>,
    /// Closed or merged.
    #[serde(default, deserialize_with = "lenient::moment")]
    pub closed_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub html_url: Option<String>,
}

/// One end of a pull request: its base or its head.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestBranch {
    #[serde(rename = "ref", deserialize_with = "lenient::or_default")]
    pub branch: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub sha: String,
    /// Null once a fork is deleted.
    #[serde(deserialize_with = "lenient::or_default")]
    pub repo: Option<RestRepo>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestPullFile {
    /// The path after the change.
    pub filename: String,
    /// `added`, `removed`, `modified`, `renamed`, `copied`, `changed`, `unchanged`.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub status: String,
    /// The path before a rename.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub previous_filename: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub additions: i64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub deletions: i64,
    /// The diff; absent for binary and very large files.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub patch: Option<String>,
}

#[boxed]
impl GitHub {
    /// The repository's pull requests, newest change first. This list has no `since`: a caller that wants only recent
    /// ones stops reading.
    pub fn pulls(&self, repo: &RepoName, state: ListState) -> Pages<RestPull> {
        let pairs = [("state", state.as_str()), ("sort", "updated"), ("direction", "desc"), PER_PAGE];
        let url = self.url(&["repos", repo.owner(), repo.name(), "pulls"], &pairs);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }

    /// One page of all pull requests, the newest number first. The first page is 1; a page after the last is empty.
    pub async fn newest_pulls(&self, repo: &RepoName, page: usize) -> Result<Vec<RestPull>, GitHubError> {
        let page = page.to_string();
        let pairs = [("state", "all"), ("sort", "created"), ("direction", "desc"), PER_PAGE, ("page", page.as_str())];
        let url = self.url(&["repos", repo.owner(), repo.name(), "pulls"], &pairs);
        self.get_json(&Scope::Repo(repo.clone()), url).await
    }

    pub async fn pull(&self, repo: &RepoName, number: ItemNumber) -> Result<RestPull, GitHubError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "pulls", &number.to_string()], &[]);
        self.get_json(&Scope::Repo(repo.clone()), url).await
    }

    /// The files that a pull request changes; GitHub lists at most 3,000.
    pub fn pull_files(&self, repo: &RepoName, number: ItemNumber) -> Pages<RestPullFile> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "pulls", &number.to_string(), "files"], &[PER_PAGE]);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }
}
