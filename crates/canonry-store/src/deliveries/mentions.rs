//! What people asked Canonry for in comments, and what came of it.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, ItemNumber, Login, text_enum};
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::DeliveryStore;
use crate::engine::row_values::{micros, word};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

text_enum! {
    /// Where a comment stands: those of a conversation and those of a review have ids of their own.
    pub enum MentionPlace: "a place of a mention" {
        Issue = "issue",
        Review = "review",
    }
}

text_enum! {
    pub enum MentionOutcome: "an outcome of a mention" {
        Done = "done",
        /// The person may not ask for it, or it makes no sense there.
        Refused = "refused",
        NotUnderstood = "not_understood",
        /// It was tried and did not work; the person was told.
        Failed = "failed",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    pub place: MentionPlace,
    pub comment: GithubId,
    pub number: ItemNumber,
    pub by: Login,
    /// The command's words; `None` when nobody knows what was asked for.
    pub command: Option<String>,
    pub outcome: MentionOutcome,
    /// When it was handled.
    pub at: Timestamp,
}

#[boxed]
impl DeliveryStore<'_> {
    /// Notes what came of a mention; `false` says that this comment is known, and what was noted first stays.
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

    /// What came of the mention in a comment, if it was handled.
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

    /// Whether a later comment of the same kind, anywhere in the repository, asked for a command and got it. GitHub
    /// counts such comments up, so that it does not matter when they were delivered.
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

    /// Who asked for something in a repository since then, once for each time.
    pub async fn mentioners_since(self, repo: RepoId, since: Timestamp) -> Result<Vec<Login>, StoreError> {
        let query = "SELECT by_login FROM mentions WHERE repo_id = $1 AND at >= $2";
        let logins: Vec<String> = on_pool!(self.pool, |db| {
            sqlx::query_scalar(query).bind(repo.0).bind(micros(since)).fetch_all(db).await?
        });
        logins.iter().map(|login| word(login)).collect()
    }

    /// What a person asked for on an item since then, the oldest first.
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
        // Letter case of logins is GitHub's matter, and the engines fold only ASCII alike.
        Ok(rows.into_iter().filter(|mention| mention.by == *by).collect())
    }
}

from_row!(Mention { place, comment: "comment_id", number, by: "by_login", command, outcome, at });
