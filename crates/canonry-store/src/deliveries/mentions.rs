//! Stores the commands of people in comments, and their results.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, ItemNumber, Login, text_enum};
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::DeliveryStore;
use crate::engine::row_values::{micros, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

text_enum! {
    /// The kind of comment: comments of a conversation and of a review have separate ids.
    pub enum MentionPlace: "a place of a mention" {
        Issue = "issue",
        Review = "review",
    }
}

text_enum! {
    pub enum MentionOutcome: "an outcome of a mention" {
        Done = "done",
        /// The person may not use the command, or the command makes no sense there.
        Refused = "refused",
        NotUnderstood = "not_understood",
        /// The command failed; the person was informed.
        Failed = "failed",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    pub place: MentionPlace,
    pub comment: GithubId,
    pub number: ItemNumber,
    pub by: Login,
    /// The text of the command; `None` if it is unknown.
    pub command: Option<String>,
    pub outcome: MentionOutcome,
    pub at: Timestamp,
}

#[boxed]
impl DeliveryStore<'_> {
    /// Records the result of a mention; `false` if the comment is already recorded, and then the first record stays.
    pub async fn record_mention(self, repo: RepoId, mention: &Mention) -> Result<bool, StoreError> {
        let insert = "INSERT INTO mentions (repo_id, place, comment_id, number, by_login, command, outcome, at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
        let recorded = on_pool!(self.pool, |db| {
            let query = sqlx::query(insert).bind(repo.0).bind(mention.place.as_str()).bind(mention.comment.0);
            let query = query.bind(mention.number.get()).bind(mention.by.as_str()).bind(mention.command.as_deref());
            query.bind(mention.outcome.as_str()).bind(micros(mention.at)).execute(db).await?.rows_affected()
        });
        Ok(recorded > 0)
    }

    /// Returns the recorded result of the mention in a comment.
    pub async fn mention_in(
        self,
        repo: RepoId,
        place: MentionPlace,
        comment: GithubId,
    ) -> Result<Option<Mention>, StoreError> {
        let query = "SELECT place, comment_id, number, by_login, command, outcome, at FROM mentions
            WHERE repo_id = $1 AND place = $2 AND comment_id = $3";
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(place.as_str()).bind(comment.0).fetch_optional(db).await?
        }))
    }

    /// Whether a later comment of the same kind, anywhere in the repository, used this command with success. GitHub's
    /// comment ids increase, so the order of delivery does not matter.
    pub async fn has_later_mention(
        self,
        repo: RepoId,
        place: MentionPlace,
        comment: GithubId,
        command: &str,
    ) -> Result<bool, StoreError> {
        let query = "SELECT count(*) FROM mentions
            WHERE repo_id = $1 AND place = $2 AND comment_id > $3 AND command = $4 AND outcome = 'done'";
        let later: i64 = on_pool!(self.pool, |db| {
            let query = sqlx::query_scalar(query).bind(repo.0).bind(place.as_str()).bind(comment.0);
            query.bind(command).fetch_one(db).await?
        });
        Ok(later > 0)
    }

    /// Returns the people who used commands in a repository since then, once per command.
    pub async fn mentioners_since(self, repo: RepoId, since: Timestamp) -> Result<Vec<Login>, StoreError> {
        let query = "SELECT by_login FROM mentions WHERE repo_id = $1 AND at >= $2";
        let logins: Vec<String> = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(micros(since)).fetch_all(db).await?
        });
        logins.iter().map(|login| word(login)).collect()
    }

    /// Returns the commands of a person on an item since then, oldest first.
    pub async fn mentions_by(
        self,
        repo: RepoId,
        number: ItemNumber,
        by: &Login,
        since: Timestamp,
    ) -> Result<Vec<Mention>, StoreError> {
        let query = "SELECT place, comment_id, number, by_login, command, outcome, at FROM mentions
            WHERE repo_id = $1 AND number = $2 AND at >= $3 ORDER BY id";
        let rows: Vec<Mention> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(number.get()).bind(micros(since)).fetch_all(db).await?
        });
        // Compared here, because the database engines ignore case only for ASCII.
        Ok(rows.into_iter().filter(|mention| mention.by == *by).collect())
    }
}

from_row!(Mention { place, comment: "comment_id", number, by: "by_login", command, outcome, at });
