//! Defines the parts of webhooks that Canonry reads. Essential fields are required; all others may be missing, null or
//! of a form that does not exist yet.

use serde::{Deserialize, Serialize};

use crate::api::lenient;
use crate::api::{AppSlug, RestComment, RestIssue, RestLabel, RestPull, RestReview, RestReviewComment, RestUser};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IssuesEvent {
    pub issue: RestIssue,
    /// The added or removed label.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub label: Option<RestLabel>,
    /// The assigned or unassigned person.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub assignee: Option<RestUser>,
    /// The values before an edit.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: IssueChanges,
}

/// The values before an edit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IssueChanges {
    #[serde(deserialize_with = "lenient::or_default")]
    pub title: Option<TextBefore>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub body: Option<TextBefore>,
    /// The issue in its new repository, if it was transferred.
    #[serde(deserialize_with = "lenient::or_default")]
    pub new_issue: Option<RestIssue>,
    /// The former base of a pull request, if it was retargeted.
    #[serde(deserialize_with = "lenient::or_default")]
    pub base: Option<BaseBefore>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BaseBefore {
    #[serde(rename = "ref", deserialize_with = "lenient::or_default")]
    pub branch: TextBefore,
    #[serde(deserialize_with = "lenient::or_default")]
    pub sha: TextBefore,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextBefore {
    #[serde(deserialize_with = "lenient::or_default")]
    pub from: String,
}

/// An event of a comment on an issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IssueCommentEvent {
    pub issue: RestIssue,
    pub comment: RestComment,
    /// The values before an edit.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: IssueChanges,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestEvent {
    pub pull_request: RestPull,
    /// The added or removed label.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub label: Option<RestLabel>,
    /// The person whose review was requested.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub requested_reviewer: Option<RestUser>,
    /// The head before a push.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub before: Option<String>,
    /// The head after a push.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub after: Option<String>,
    /// The values before an edit.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: IssueChanges,
}

/// A review was submitted, edited or dismissed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestReviewEvent {
    pub pull_request: RestPull,
    pub review: RestReview,
}

/// An event of a comment on a diff.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestReviewCommentEvent {
    pub pull_request: RestPull,
    pub comment: RestReviewComment,
    /// The values before an edit.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: IssueChanges,
}

/// A conversation on a diff was resolved or reopened.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestReviewThreadEvent {
    pub pull_request: RestPull,
    pub thread: ReviewThread,
}

/// A conversation on a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewThread {
    /// The id in the GraphQL API; there is no other.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub node_id: String,
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub comments: Vec<RestReviewComment>,
}

/// Commits were pushed to a branch, or a branch or tag was created or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PushEvent {
    /// `refs/heads/…` or `refs/tags/…`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit before the push; zeros if the branch is new.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub before: String,
    /// The commit after the push; zeros if the branch was deleted.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub after: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub deleted: bool,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub forced: bool,
}

/// The App was installed, removed, suspended, or got other permissions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstallationEvent {
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub repositories: Vec<InstalledRepo>,
}

/// Repositories were added to or removed from an installation.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstallationRepositoriesEvent {
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub repositories_added: Vec<InstalledRepo>,
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub repositories_removed: Vec<InstalledRepo>,
}

/// A repository in events about installations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledRepo {
    pub id: i64,
    /// `owner/name`.
    pub full_name: String,
}

/// A repository was renamed, transferred, archived, deleted …; the event itself contains the repository.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RepositoryEvent {
    /// The values before the change, by changed field.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: serde_json::Map<String, serde_json::Value>,
}

impl RepositoryEvent {
    /// The name before a rename, without the owner.
    pub fn name_before(&self) -> Option<&str> {
        self.changes.get("repository")?["name"]["from"].as_str()
    }

    /// The owner before a transfer.
    pub fn owner_before(&self) -> Option<&str> {
        let from = &self.changes.get("owner")?["from"];
        from["user"]["login"].as_str().or_else(|| from["organization"]["login"].as_str())
    }
}

/// A label was created, edited or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LabelEvent {
    pub label: RestLabel,
    /// The values before an edit.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: Edited,
}

/// The values before an edit of a label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Edited {
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: Option<TextBefore>,
}

/// An event of a check run or a check suite.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckEvent {
    #[serde(alias = "check_run", alias = "check_suite")]
    pub check: CheckRun,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    pub id: i64,
    /// Check runs only.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub app: Option<AppSlug>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub head_sha: String,
    /// The key that the creator set; check runs only.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub external_id: Option<String>,
    /// `queued`, `in_progress`, `completed`, …
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub status: Option<String>,
    /// `success`, `failure`, `neutral`, …
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub conclusion: Option<String>,
    /// The pull requests it belongs to; empty for forks.
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub pull_requests: Vec<PullLink>,
}

/// A pull request in events about checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullLink {
    pub number: i64,
    /// The target of the pull request. Checks also list pull requests of forks, which have their own numbers.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub base: Option<PullLinkBase>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullLinkBase {
    pub repo: LinkedRepo,
}

/// A repository in events about checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedRepo {
    pub id: i64,
}

/// GitHub tests a new webhook.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PingEvent {
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub zen: String,
}
