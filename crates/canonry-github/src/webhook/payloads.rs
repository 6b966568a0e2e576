//! The parts of webhooks that Canonry reads. What an event cannot do without is required; all else
//! may be missing, null or of a shape that does not exist yet.

use serde::{Deserialize, Serialize};

use crate::api::lenient;
use crate::api::{AppSlug, RestComment, RestIssue, RestLabel, RestPull, RestReview, RestReviewComment, RestUser};

/// Something happened to an issue.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IssuesEvent {
    pub issue: RestIssue,
    /// The label, when one was added or removed.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub label: Option<RestLabel>,
    /// The person, when one was assigned or unassigned.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub assignee: Option<RestUser>,
    /// What was there before.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: IssueChanges,
}

/// What an edit replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IssueChanges {
    /// The title before, when it was edited.
    #[serde(deserialize_with = "lenient::or_default")]
    pub title: Option<TextBefore>,
    /// The body before, when it was edited.
    #[serde(deserialize_with = "lenient::or_default")]
    pub body: Option<TextBefore>,
    /// The issue in its new repository, when it was transferred.
    #[serde(deserialize_with = "lenient::or_default")]
    pub new_issue: Option<RestIssue>,
    /// The branch a pull request wanted to go to before, when it was retargeted.
    #[serde(deserialize_with = "lenient::or_default")]
    pub base: Option<BaseBefore>,
}

/// The base of a pull request before it was retargeted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BaseBefore {
    #[serde(rename = "ref", deserialize_with = "lenient::or_default")]
    pub branch: TextBefore,
    #[serde(deserialize_with = "lenient::or_default")]
    pub sha: TextBefore,
}

/// A text before an edit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TextBefore {
    #[serde(deserialize_with = "lenient::or_default")]
    pub from: String,
}

/// Something happened to a comment on an issue or a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct IssueCommentEvent {
    pub issue: RestIssue,
    pub comment: RestComment,
    /// What was there before.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: IssueChanges,
}

/// Something happened to a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestEvent {
    pub pull_request: RestPull,
    /// The label, when one was added or removed.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub label: Option<RestLabel>,
    /// Who was asked for a review, when somebody was.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub requested_reviewer: Option<RestUser>,
    /// The head before, when commits were pushed.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub before: Option<String>,
    /// The head after, when commits were pushed.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub after: Option<String>,
    /// What was there before.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: IssueChanges,
}

/// A review was submitted, edited or dismissed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestReviewEvent {
    pub pull_request: RestPull,
    pub review: RestReview,
}

/// Something happened to a comment on a diff.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestReviewCommentEvent {
    pub pull_request: RestPull,
    pub comment: RestReviewComment,
    /// What was there before.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: IssueChanges,
}

/// A conversation on a diff was resolved, or opened again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PullRequestReviewThreadEvent {
    pub pull_request: RestPull,
    pub thread: ReviewThread,
}

/// A conversation on a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewThread {
    /// Its id in the GraphQL API; it has no other.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub node_id: String,
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub comments: Vec<RestReviewComment>,
}

/// Commits arrived on a branch, or a branch or tag came or went.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PushEvent {
    /// `refs/heads/…` or `refs/tags/…`.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit before; zeros when the branch is new.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub before: String,
    /// The commit after; zeros when the branch is gone.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub after: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub deleted: bool,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub forced: bool,
}

/// The App was installed, removed, suspended, or given other permissions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstallationEvent {
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub repositories: Vec<InstalledRepo>,
}

/// The App got or lost repositories.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InstallationRepositoriesEvent {
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub repositories_added: Vec<InstalledRepo>,
    #[serde(default, deserialize_with = "lenient::fitting")]
    pub repositories_removed: Vec<InstalledRepo>,
}

/// A repository as installations name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledRepo {
    pub id: i64,
    /// `owner/name`.
    pub full_name: String,
}

/// A repository was renamed, moved, archived, deleted …; it stands in the event itself.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct RepositoryEvent {
    /// What was there before, by what changed.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: serde_json::Map<String, serde_json::Value>,
}

impl RepositoryEvent {
    /// The name before a renaming, without the owner.
    pub fn name_before(&self) -> Option<&str> {
        self.changes.get("repository")?["name"]["from"].as_str()
    }

    /// The owner before a move.
    pub fn owner_before(&self) -> Option<&str> {
        let from = &self.changes.get("owner")?["from"];
        from["user"]["login"].as_str().or_else(|| from["organization"]["login"].as_str())
    }
}

/// A label was made, edited or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LabelEvent {
    pub label: RestLabel,
    /// What was there before.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub changes: Edited,
}

/// What an edit of a label replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Edited {
    /// The name before.
    #[serde(deserialize_with = "lenient::or_default")]
    pub name: Option<TextBefore>,
}

/// Something happened to a check run or a check suite.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckEvent {
    #[serde(alias = "check_run", alias = "check_suite")]
    pub check: CheckRun,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRun {
    pub id: i64,
    /// What it is called; runs only.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub app: Option<AppSlug>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub head_sha: String,
    /// The key its maker gave it; runs only.
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

/// A pull request as checks name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullLink {
    pub number: i64,
    /// What it is to be merged into. Checks also name pull requests of forks, which number theirs on their own.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub base: Option<PullLinkBase>,
}

/// What a pull request that a check names is to be merged into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullLinkBase {
    pub repo: LinkedRepo,
}

/// A repository as checks name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedRepo {
    pub id: i64,
}

/// GitHub tries a new webhook out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PingEvent {
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub zen: String,
}
