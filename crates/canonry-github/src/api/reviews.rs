//! Reads and writes reviews of pull requests and comments on their diffs.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, ItemNumber, RepoName};
use jiff::Timestamp;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;

use super::RestUser;
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::pages::{PER_PAGE, Pages};
use crate::http::write::WriteError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestReview {
    pub id: i64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub body: Option<String>,
    /// `approved`, `changes_requested`, `commented`, `dismissed`, `pending`; upper case in answers.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub state: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub user: Option<RestUser>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub commit_id: Option<String>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub submitted_at: Option<Timestamp>,
}

impl RestReview {
    /// Whether it is a draft, which only its author sees.
    pub fn is_pending(&self) -> bool {
        self.state.eq_ignore_ascii_case("pending")
    }
}

/// A comment on a line of a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestReviewComment {
    pub id: i64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub body: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub user: Option<RestUser>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub path: String,
    /// The present line in the file; null once the code is outdated.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub line: Option<i64>,
    /// The first of several lines; null if there is one line, or once the code is outdated.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub start_line: Option<i64>,
    /// The line when the comment was written.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub original_line: Option<i64>,
    /// `line` or `file`.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub subject_type: Option<String>,
    /// `LEFT` or `RIGHT`.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub side: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub commit_id: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub original_commit_id: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub in_reply_to_id: Option<i64>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub pull_request_review_id: Option<i64>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub created_at: Option<Timestamp>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub updated_at: Option<Timestamp>,
    /// The comment's page.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub html_url: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub reactions: ReactionCounts,
}

/// How many reactions a comment has, whoever reacted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReactionCounts {
    #[serde(rename = "+1", deserialize_with = "lenient::or_default")]
    pub plus_one: u32,
    #[serde(rename = "-1", deserialize_with = "lenient::or_default")]
    pub minus_one: u32,
}

/// A comment on a line of the new side of a diff, to be sent with its review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewReviewComment<'a> {
    pub path: &'a str,
    /// The last line of its range.
    pub line: u32,
    /// The first line, if the range has several lines.
    pub start_line: Option<u32>,
    pub body: &'a str,
}

impl NewReviewComment<'_> {
    fn to_json(self) -> Value {
        let mut comment = json!({ "path": self.path, "line": self.line, "side": "RIGHT", "body": self.body });
        if let Some(start) = self.start_line.filter(|start| *start < self.line) {
            comment["start_line"] = json!(start);
            comment["start_side"] = json!("RIGHT");
        }
        comment
    }
}

#[boxed]
impl GitHub {
    /// A pull request's reviews, oldest first; our own drafts are included.
    pub fn reviews(&self, repo: &RepoName, number: ItemNumber) -> Pages<RestReview> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "pulls", &number.to_string(), "reviews"], &[PER_PAGE]);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }

    pub async fn review(&self, repo: &RepoName, number: ItemNumber, id: GithubId) -> Result<RestReview, GitHubError> {
        self.get_json(&Scope::Repo(repo.clone()), self.review_url(repo, number, id, &[])).await
    }

    /// The comments of one review. GitHub returns no line numbers here.
    pub fn comments_of_review(&self, repo: &RepoName, number: ItemNumber, id: GithubId) -> Pages<RestReviewComment> {
        let mut url = self.review_url(repo, number, id, &["comments"]);
        url.query_pairs_mut().extend_pairs([PER_PAGE]);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }

    /// All comments on a pull request's diff, oldest first; comments of drafts are not included.
    pub fn review_comments(&self, repo: &RepoName, number: ItemNumber) -> Pages<RestReviewComment> {
        let url =
            self.url(&["repos", repo.owner(), repo.name(), "pulls", &number.to_string(), "comments"], &[PER_PAGE]);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }

    pub async fn review_comment(&self, repo: &RepoName, id: GithubId) -> Result<RestReviewComment, GitHubError> {
        self.get_json(&Scope::Repo(repo.clone()), self.review_comment_url(repo, id)).await
    }

    /// Creates a draft review: nobody else sees it before it is submitted.
    pub async fn create_draft_review(
        &self,
        repo: &RepoName,
        number: ItemNumber,
        commit: &str,
        body: &str,
        comments: &[NewReviewComment<'_>],
    ) -> Result<RestReview, WriteError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "pulls", &number.to_string(), "reviews"], &[]);
        let comments: Vec<Value> = comments.iter().map(|comment| comment.to_json()).collect();
        let review = json!({ "commit_id": commit, "body": body, "comments": comments });
        self.write_json(&Scope::Repo(repo.clone()), Method::POST, url, &review).await
    }

    /// Submits a draft as a comment, which neither approves nor blocks.
    pub async fn submit_review(
        &self,
        repo: &RepoName,
        number: ItemNumber,
        id: GithubId,
        body: &str,
    ) -> Result<RestReview, WriteError> {
        let url = self.review_url(repo, number, id, &["events"]);
        let event = json!({ "event": "COMMENT", "body": body });
        self.write_json(&Scope::Repo(repo.clone()), Method::POST, url, &event).await
    }

    /// Deletes a draft. GitHub does not delete submitted reviews.
    pub async fn delete_draft_review(
        &self,
        repo: &RepoName,
        number: ItemNumber,
        id: GithubId,
    ) -> Result<(), WriteError> {
        let url = self.review_url(repo, number, id, &[]);
        self.write(&Scope::Repo(repo.clone()), Method::DELETE, url, None).await.map(drop)
    }

    /// Replies in a conversation on a diff; `to` is its first comment.
    pub async fn reply_to_review_comment(
        &self,
        repo: &RepoName,
        number: ItemNumber,
        to: GithubId,
        body: &str,
    ) -> Result<RestReviewComment, WriteError> {
        let (number, to) = (number.to_string(), to.0.to_string());
        let url = self.url(&["repos", repo.owner(), repo.name(), "pulls", &number, "comments", &to, "replies"], &[]);
        self.write_json(&Scope::Repo(repo.clone()), Method::POST, url, &json!({ "body": body })).await
    }

    pub async fn edit_review_comment(
        &self,
        repo: &RepoName,
        id: GithubId,
        body: &str,
    ) -> Result<RestReviewComment, WriteError> {
        let url = self.review_comment_url(repo, id);
        self.write_json(&Scope::Repo(repo.clone()), Method::PATCH, url, &json!({ "body": body })).await
    }

    pub async fn delete_review_comment(&self, repo: &RepoName, id: GithubId) -> Result<(), WriteError> {
        let url = self.review_comment_url(repo, id);
        self.write(&Scope::Repo(repo.clone()), Method::DELETE, url, None).await.map(drop)
    }

    fn review_url(&self, repo: &RepoName, number: ItemNumber, id: GithubId, below: &[&str]) -> Url {
        let (number, id) = (number.to_string(), id.0.to_string());
        let mut segments = vec!["repos", repo.owner(), repo.name(), "pulls", &number, "reviews", &id];
        segments.extend_from_slice(below);
        self.url(&segments, &[])
    }

    fn review_comment_url(&self, repo: &RepoName, id: GithubId) -> Url {
        self.url(&["repos", repo.owner(), repo.name(), "pulls", "comments", &id.0.to_string()], &[])
    }
}
