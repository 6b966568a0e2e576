//! Reads the events of an item, in order.

use canonry_domain::{ItemNumber, RepoName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{RestLabel, RestUser};
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::pages::{PER_PAGE, Pages};

/// One event of a timeline. The kinds have little in common; all other fields are in `other`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestTimelineEvent {
    /// Commits have none.
    #[serde(deserialize_with = "lenient::or_default")]
    pub id: Option<i64>,
    /// `closed`, `reopened`, `labeled`, `marked_as_duplicate`, `cross-referenced`, `commented`, …
    #[serde(deserialize_with = "lenient::or_default")]
    pub event: String,
    #[serde(deserialize_with = "lenient::or_default")]
    pub actor: Option<RestUser>,
    #[serde(deserialize_with = "lenient::moment")]
    pub created_at: Option<Timestamp>,
    /// Only on `closed`.
    #[serde(deserialize_with = "lenient::or_default")]
    pub state_reason: Option<String>,
    /// Only on `labeled` and `unlabeled`.
    #[serde(deserialize_with = "lenient::or_default")]
    pub label: Option<RestLabel>,
    /// Only on `commented`.
    #[serde(deserialize_with = "lenient::or_default")]
    pub body: Option<String>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl GitHub {
    /// An item's timeline, oldest first.
    pub fn timeline(&self, repo: &RepoName, number: ItemNumber) -> Pages<RestTimelineEvent> {
        let number = number.to_string();
        let url = self.url(&["repos", repo.owner(), repo.name(), "issues", &number, "timeline"], &[PER_PAGE]);
        Pages::new(self, Scope::Repo(repo.clone()), url)
    }
}
