//! Reads and changes issues, and pull requests as issues.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, ItemNumber, RepoName, StateReason};
use jiff::Timestamp;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::labels::{RestLabel, label_list};
use super::{AppSlug, RestUser};
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::pages::{PER_PAGE, Pages};
use crate::http::write::WriteError;

/// An issue, or a pull request that GitHub shows as an issue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestIssue {
    /// The id, which stays the same if the issue is transferred.
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
    pub state_reason: Option<String>,
    /// The author; null once the account is deleted.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub user: Option<RestUser>,
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub assignees: Vec<RestUser>,
    #[serde(default, deserialize_with = "label_list")]
    pub labels: Vec<RestLabel>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub comments: i64,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub updated_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub closed_at: Option<Timestamp>,
    /// Only in the answer about one issue.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub closed_by: Option<RestUser>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub html_url: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub repository_url: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub pull_request: Option<RestPullLink>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub draft: Option<bool>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub locked: bool,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub milestone: Option<RestMilestone>,
    /// The App that wrote it, if any.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub performed_via_github_app: Option<AppSlug>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestPullLink {
    #[serde(deserialize_with = "lenient::moment")]
    pub merged_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestMilestone {
    #[serde(deserialize_with = "lenient::or_default")]
    pub number: i64,
    #[serde(deserialize_with = "lenient::or_default")]
    pub title: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListState {
    Open,
    Closed,
    All,
}

impl ListState {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::All => "all",
        }
    }
}

/// What to list. The order is always by update, oldest first, so that an interrupted listing can continue from the last
/// stored `updated_at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IssueQuery {
    pub state: ListState,
    /// Only items that changed at this time or later.
    pub since: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct IssuePatch {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_reason: Option<StateReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_issue_id: Option<GithubId>,
}

impl IssuePatch {
    /// Closes an issue as a duplicate of another, which GitHub requires by id.
    pub const fn close_as_duplicate_of(target: GithubId) -> Self {
        Self { state: "closed", state_reason: Some(StateReason::Duplicate), duplicate_issue_id: Some(target) }
    }

    /// Closes an item. Pull requests have no reason.
    pub const fn close(reason: Option<StateReason>) -> Self {
        Self { state: "closed", state_reason: reason, duplicate_issue_id: None }
    }

    pub const fn reopen() -> Self {
        Self { state: "open", state_reason: Some(StateReason::Reopened), duplicate_issue_id: None }
    }
}

#[boxed]
impl GitHub {
    /// The repository's issues and pull requests, oldest change first.
    pub fn issues(&self, repo: &RepoName, query: IssueQuery) -> Pages<RestIssue> {
        let since = query.since.map(github_time);
        let mut pairs = vec![("state", query.state.as_str()), ("sort", "updated"), ("direction", "asc"), PER_PAGE];
        pairs.extend(since.as_deref().map(|since| ("since", since)));
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues"], &pairs);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }

    /// One issue or pull request. Fails with [`GitHubError::Moved`] if it is now in another repository (or this
    /// repository has another name: ask for it by id), and with [`GitHubError::Gone`] if it was deleted.
    pub async fn issue(&self, repo: &RepoName, number: ItemNumber) -> Result<RestIssue, GitHubError> {
        self.issue_with_answer(repo, number).await.map(|(issue, _)| issue)
    }

    pub(crate) async fn issue_with_answer(
        &self,
        repo: &RepoName,
        number: ItemNumber,
    ) -> Result<(RestIssue, Value), GitHubError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", &number.to_string()], &[]);
        let what = self.what(&url);
        let answer: Value = self.get_json(&Scope::Repo(repo.clone()), url).await?;
        let issue = RestIssue::deserialize(&answer)
            .map_err(|error| GitHubError::BadAnswer { what: what.clone(), detail: error.to_string() })?;
        // GitHub redirects to the new place of a transferred issue: the answer may belong to another repository.
        let here = format!("/repos/{repo}").to_lowercase();
        let elsewhere = issue.repository_url.as_deref().is_some_and(|place| !place.to_lowercase().ends_with(&here));
        if elsewhere || issue.number != number.get() {
            let place =
                issue.repository_url.as_deref().and_then(|place| place.split_once("/repos/")).map(|(_, repo)| repo);
            let to = format!("{}#{}", place.unwrap_or("another repository"), issue.number);
            return Err(GitHubError::Moved { what, to });
        }
        Ok((issue, answer))
    }

    pub async fn patch_issue(
        &self,
        repo: &RepoName,
        number: ItemNumber,
        patch: IssuePatch,
    ) -> Result<RestIssue, WriteError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", &number.to_string()], &[]);
        let body = serde_json::to_value(patch).expect("invariant: a patch is plain data");
        self.write_json(&Scope::Repo(repo.clone()), Method::PATCH, url, &body).await
    }
}

/// A time in the form of GitHub's `since`: whole seconds, rounded down so that nothing is missed.
pub(crate) fn github_time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::{IssuePatch, RestIssue, github_time};
    use canonry_domain::{GithubId, StateReason};

    #[test]
    fn patches_say_no_more_than_they_mean() {
        let json = |patch: IssuePatch| serde_json::to_string(&patch).expect("plain data");
        insta::assert_snapshot!(json(IssuePatch::close_as_duplicate_of(GithubId(1 << 40))), @r#"{"state":"closed","state_reason":"duplicate","duplicate_issue_id":1099511627776}"#);
        insta::assert_snapshot!(json(IssuePatch::close(Some(StateReason::NotPlanned))), @r#"{"state":"closed","state_reason":"not_planned"}"#);
        insta::assert_snapshot!(json(IssuePatch::close(None)), @r#"{"state":"closed"}"#);
        insta::assert_snapshot!(json(IssuePatch::reopen()), @r#"{"state":"open","state_reason":"reopened"}"#);
    }

    #[test]
    fn an_issue_needs_only_id_and_number() {
        let issue: RestIssue = serde_json::from_str(
            r#"{"id":1,"number":2,"title":null,"user":null,"labels":["a",{"name":"b"},{"name":null},7],"comments":"x","created_at":"soon"}"#,
        )
        .expect("lenient");
        assert_eq!((issue.title.as_str(), issue.user, issue.comments, issue.created_at), ("", None, 0, None));
        assert_eq!(issue.labels.iter().map(|label| label.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn since_is_rounded_down() {
        assert_eq!(github_time("2026-02-01T12:00:00.999Z".parse().expect("valid")), "2026-02-01T12:00:00Z");
    }
}
