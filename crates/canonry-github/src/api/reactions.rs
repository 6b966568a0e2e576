//! Reads and writes reactions; GitHub sends no webhook for them.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, ItemNumber, RepoName};
use jiff::Timestamp;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

use super::RestUser;
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::pages::{PER_PAGE, Pages};
use crate::http::write::WriteError;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestReaction {
    pub id: i64,
    /// `+1`, `-1`, `laugh`, `confused`, `heart`, `hooray`, `rocket`, `eyes`.
    pub content: String,
    /// Null once the account is deleted.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub user: Option<RestUser>,
    #[serde(default, deserialize_with = "lenient::moment")]
    pub created_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionSubject {
    Item(ItemNumber),
    Comment(GithubId),
    ReviewComment(GithubId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReactionContent {
    PlusOne,
    MinusOne,
    Laugh,
    Confused,
    Heart,
    Hooray,
    Rocket,
    Eyes,
}

impl ReactionContent {
    /// GitHub's name for it, as in [`RestReaction::content`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PlusOne => "+1",
            Self::MinusOne => "-1",
            Self::Laugh => "laugh",
            Self::Confused => "confused",
            Self::Heart => "heart",
            Self::Hooray => "hooray",
            Self::Rocket => "rocket",
            Self::Eyes => "eyes",
        }
    }
}

#[boxed]
impl GitHub {
    /// All present reactions; removed ones are not included.
    pub fn reactions(&self, repo: &RepoName, subject: ReactionSubject) -> Pages<RestReaction> {
        Pages::new(self, Scope::Repo(repo.clone()), self.reactions_url(repo, subject, &[PER_PAGE]))
    }

    /// Adds a reaction. Adding it twice gives one reaction.
    pub async fn create_reaction(
        &self,
        repo: &RepoName,
        subject: ReactionSubject,
        content: ReactionContent,
    ) -> Result<RestReaction, WriteError> {
        let url = self.reactions_url(repo, subject, &[]);
        self.write_json(&Scope::Repo(repo.clone()), Method::POST, url, &json!({ "content": content.as_str() })).await
    }

    fn reactions_url(&self, repo: &RepoName, subject: ReactionSubject, query: &[(&str, &str)]) -> Url {
        let id = match subject {
            ReactionSubject::Item(number) => number.to_string(),
            ReactionSubject::Comment(id) | ReactionSubject::ReviewComment(id) => id.0.to_string(),
        };
        let mut segments = vec!["repos", repo.owner(), repo.name()];
        segments.extend_from_slice(match subject {
            ReactionSubject::Item(_) => &["issues"],
            ReactionSubject::Comment(_) => &["issues", "comments"],
            ReactionSubject::ReviewComment(_) => &["pulls", "comments"],
        });
        segments.extend([id.as_str(), "reactions"]);
        self.url(&segments, query)
    }
}
