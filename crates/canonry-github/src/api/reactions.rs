//! Reactions, which GitHub tells by no webhook: they have to be asked for.

use canonry_domain::{GithubId, ItemNumber, RepoName};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::RestUser;
use crate::auth::Scope;
use crate::client::GitHub;
use crate::lenient;
use crate::pages::{PER_PAGE, Pages};

/// A reaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestReaction {
    /// Its id.
    pub id: i64,
    /// `+1`, `-1`, `laugh`, `confused`, `heart`, `hooray`, `rocket`, `eyes`.
    pub content: String,
    /// Who reacted; null once the account is deleted.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub user: Option<RestUser>,
    /// When.
    #[serde(default, deserialize_with = "lenient::moment")]
    pub created_at: Option<Timestamp>,
}

/// What was reacted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReactionSubject {
    /// An issue or a pull request.
    Item(ItemNumber),
    /// A comment on one.
    Comment(GithubId),
    /// A comment on a line of a diff.
    ReviewComment(GithubId),
}

impl GitHub {
    /// All reactions to something, as they are now: removed ones are gone.
    pub fn reactions(&self, repo: &RepoName, subject: ReactionSubject) -> Pages<RestReaction> {
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
        Pages::new(self, Scope::Repo(repo.clone()), self.url(&segments, &[PER_PAGE]))
    }
}
