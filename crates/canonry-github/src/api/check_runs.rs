//! Reads and writes check runs of a commit. Only Apps may write them.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, RepoName};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::AppSlug;
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::pages::{PER_PAGE, Pages};
use crate::http::write::WriteError;

/// The name of our check. People use it in their branch rules, so it never changes.
pub const CHECK_NAME: &str = "Canonry";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestCheckRun {
    pub id: i64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub name: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub head_sha: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub external_id: Option<String>,
    /// `queued`, `in_progress`, `completed`, …
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub status: String,
    /// `success`, `failure`, `neutral`, `action_required`, …; null until it is completed.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub conclusion: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub details_url: Option<String>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub output: RestCheckOutput,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub app: Option<AppSlug>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestCheckOutput {
    #[serde(deserialize_with = "lenient::or_default")]
    pub title: Option<String>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub summary: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckRunWrite {
    pub head: String,
    pub external_id: String,
    pub state: CheckState,
    pub title: String,
    /// The text on its page, at most 65,535 characters.
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details_url: Option<String>,
}

/// The state of a review, as a check run shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    InProgress,
    Success,
    Neutral,
    Failure,
    ActionRequired,
}

impl CheckState {
    const fn status(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            _ => "completed",
        }
    }

    /// GitHub's name for the conclusion, once there is one.
    const fn conclusion(self) -> Option<&'static str> {
        match self {
            Self::InProgress => None,
            Self::Success => Some("success"),
            Self::Neutral => Some("neutral"),
            Self::Failure => Some("failure"),
            Self::ActionRequired => Some("action_required"),
        }
    }
}

impl CheckRunWrite {
    /// Whether a check run already has this content. GitHub sets its own details page if none was given.
    pub fn is_shown_by(&self, run: &RestCheckRun) -> bool {
        let says = |said: &Option<String>, wanted: &str| said.as_deref().unwrap_or_default().trim() == wanted.trim();
        run.status == self.state.status()
            && run.conclusion.as_deref() == self.state.conclusion()
            && says(&run.output.title, &self.title)
            && says(&run.output.summary, &self.summary)
            && self.details_url.as_ref().is_none_or(|url| run.details_url.as_ref() == Some(url))
    }

    fn to_json(&self) -> Value {
        let mut run = json!({
            "name": CHECK_NAME,
            "external_id": self.external_id,
            "status": self.state.status(),
            "output": { "title": self.title, "summary": self.summary },
        });
        if let Some(conclusion) = self.state.conclusion() {
            run["conclusion"] = json!(conclusion);
        }
        if let Some(url) = &self.details_url {
            run["details_url"] = json!(url);
        }
        run
    }
}

#[boxed]
impl GitHub {
    /// A commit's check runs with our name, earlier ones included.
    pub fn check_runs(&self, repo: &RepoName, sha: &str) -> Pages<RestCheckRun> {
        let pairs = [("check_name", CHECK_NAME), ("filter", "all"), PER_PAGE];
        let url = self.url(&["repos", repo.owner(), repo.name(), "commits", sha, "check-runs"], &pairs);
        Pages::below(self, Scope::Repo(repo.clone()), url, "check_runs")
    }

    pub async fn create_check_run(&self, repo: &RepoName, run: &CheckRunWrite) -> Result<RestCheckRun, WriteError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "check-runs"], &[]);
        let mut body = run.to_json();
        body["head_sha"] = json!(run.head);
        self.write_json(&Scope::Repo(repo.clone()), Method::POST, url, &body).await
    }

    pub async fn update_check_run(
        &self,
        repo: &RepoName,
        id: GithubId,
        run: &CheckRunWrite,
    ) -> Result<RestCheckRun, WriteError> {
        let url = self.url(&["repos", repo.owner(), repo.name(), "check-runs", &id.0.to_string()], &[]);
        self.write_json(&Scope::Repo(repo.clone()), Method::PATCH, url, &run.to_json()).await
    }
}
