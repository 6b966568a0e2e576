//! Reads and resolves conversations on a diff, which only GraphQL provides.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, ItemNumber, Login, RepoName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::RestUser;
use crate::api::lenient;
use crate::auth::credentials::Scope;
use crate::http::client::GitHub;
use crate::http::error::GitHubError;
use crate::http::write::WriteError;

/// `fullDatabaseId`, because ids of comments no longer fit the 32 bits of `databaseId`.
const THREADS: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 100, after: $after) {
        nodes {
          id
          isResolved
          comments(first: 100) {
            nodes { fullDatabaseId body author { __typename login } }
            pageInfo { hasNextPage endCursor }
          }
        }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}";

const RESOLVE: &str = "mutation($thread: ID!) {
  resolveReviewThread(input: { threadId: $thread }) { thread { id isResolved } }
}";

/// No pull request has more: a hundred thousand conversations.
const MOST_PAGES: usize = 1_000;

/// A conversation on a diff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestReviewThread {
    pub id: String,
    pub is_resolved: bool,
    /// The first hundred comments, oldest first.
    pub comments: Vec<ThreadComment>,
    /// Whether there are comments that are not listed: beyond the hundredth, or in a form that cannot be read.
    pub more_comments: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadComment {
    pub id: GithubId,
    /// The author's login as in REST; `None` once the account is deleted.
    pub author: Option<Login>,
    pub is_bot: bool,
    pub body: String,
}

#[boxed]
impl GitHub {
    pub async fn review_threads(
        &self,
        repo: &RepoName,
        number: ItemNumber,
    ) -> Result<Vec<RestReviewThread>, GitHubError> {
        let (mut threads, mut after) = (Vec::new(), None::<String>);
        for _ in 0..MOST_PAGES {
            let variables =
                json!({ "owner": repo.owner(), "name": repo.name(), "number": number.get(), "after": after });
            let data = self.graphql_read(&Scope::Repo(repo.clone()), THREADS, &variables).await?;
            let page = &data["repository"]["pullRequest"]["reviewThreads"];
            let page = Connection::<ThreadNode>::deserialize(page).map_err(|error| bad(&error.to_string()))?;
            threads.extend(page.nodes.into_iter().filter_map(Node::known).map(ThreadNode::read));
            match page.page_info {
                PageInfo { has_next_page: true, end_cursor: Some(next) } if after.as_ref() != Some(&next) => {
                    after = Some(next);
                }
                PageInfo { has_next_page: true, .. } => return Err(bad("its pages repeat")),
                PageInfo { .. } => return Ok(threads),
            }
        }
        Err(bad("it has no last page"))
    }

    /// Resolves a conversation. Repeating is harmless.
    pub async fn resolve_thread(&self, repo: &RepoName, thread: &str) -> Result<(), WriteError> {
        let variables = json!({ "thread": thread });
        let data = self.graphql_write(&Scope::Repo(repo.clone()), RESOLVE, &variables).await?;
        match data["resolveReviewThread"]["thread"]["isResolved"] {
            Value::Bool(true) => Ok(()),
            _ => Err(WriteError::Ambiguous { detail: "the answer does not say that it is resolved".to_owned() }),
        }
    }
}

fn bad(detail: &str) -> GitHubError {
    GitHubError::BadAnswer { what: "the conversations".to_owned(), detail: detail.to_owned() }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "T: serde::de::DeserializeOwned")]
struct Connection<T> {
    #[serde(deserialize_with = "lenient::fitting")]
    nodes: Vec<Node<T>>,
    #[serde(default, deserialize_with = "lenient::or_default")]
    page_info: PageInfo,
}

/// A node that cannot be read still counts: it may be a person's comment.
#[derive(Deserialize)]
#[serde(untagged, bound = "T: serde::de::DeserializeOwned")]
enum Node<T> {
    Known(T),
    Unknown(serde::de::IgnoredAny),
}

impl<T> Node<T> {
    fn known(self) -> Option<T> {
        match self {
            Self::Known(node) => Some(node),
            Self::Unknown(_) => None,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PageInfo {
    has_next_page: bool,
    end_cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ThreadNode {
    id: String,
    is_resolved: bool,
    comments: Connection<CommentNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CommentNode {
    #[serde(deserialize_with = "lenient::big_number")]
    full_database_id: i64,
    #[serde(default, deserialize_with = "lenient::or_default")]
    body: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    author: Option<Actor>,
}

#[derive(Deserialize)]
struct Actor {
    #[serde(rename = "__typename", default)]
    kind: String,
    login: String,
}

impl ThreadNode {
    fn read(self) -> RestReviewThread {
        let said = self.comments.nodes.len();
        let comments: Vec<ThreadComment> =
            self.comments.nodes.into_iter().filter_map(Node::known).map(CommentNode::read).collect();
        let more_comments = self.comments.page_info.has_next_page || comments.len() < said;
        RestReviewThread { id: self.id, is_resolved: self.is_resolved, comments, more_comments }
    }
}

impl CommentNode {
    fn read(self) -> ThreadComment {
        let user = self.author.map(Actor::into_rest);
        ThreadComment {
            id: GithubId(self.full_database_id),
            author: user.as_ref().and_then(RestUser::to_login),
            is_bot: user.as_ref().is_some_and(RestUser::is_bot),
            body: self.body,
        }
    }
}

impl Actor {
    /// GraphQL returns only the slug of an App; REST returns `slug[bot]`.
    fn into_rest(self) -> RestUser {
        let bare_bot = self.kind == "Bot" && !self.login.ends_with("[bot]");
        let login = if bare_bot { format!("{}[bot]", self.login) } else { self.login };
        RestUser { login, account_type: self.kind, ..RestUser::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::ThreadNode;
    use serde_json::json;

    #[test]
    fn what_cannot_be_read_was_said_all_the_same() {
        let ours =
            json!({ "fullDatabaseId": "7", "body": "Hm.", "author": { "__typename": "Bot", "login": "canonry" } });
        for strange in [json!(null), json!({ "fullDatabaseId": null, "body": "No!" }), json!("No!")] {
            let node = json!({ "id": "PRRT_1", "isResolved": false, "comments": { "nodes": [ours, strange] } });
            let thread = serde_json::from_value::<ThreadNode>(node).expect("reads").read();
            assert_eq!((thread.comments.len(), thread.more_comments), (1, true), "{strange}");
            assert_eq!((thread.comments[0].body.as_str(), thread.comments[0].is_bot), ("Hm.", true));
        }
    }
}
