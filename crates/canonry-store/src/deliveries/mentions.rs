//! What people asked Canonry for in comments, and what came of it.

use canonry_domain::{GithubId, ItemNumber, Login};
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::DeliveryStore;
use crate::engine::row_values::{micros, moment, number, word};
use crate::engine::transaction::{StoreError, on_pool};

/// Where a comment stands: those of a conversation and those of a review have ids of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MentionPlace {
    Issue,
    Review,
}

impl MentionPlace {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Review => "review",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MentionOutcome {
    Done,
    /// The person may not ask for it, or it makes no sense there.
    Refused,
    NotUnderstood,
    /// It was tried and did not work; the person was told.
    Failed,
}

impl MentionOutcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::NotUnderstood => "not_understood",
            Self::Failed => "failed",
        }
    }
}

impl std::str::FromStr for MentionPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let places = [Self::Issue, Self::Review];
        places.into_iter().find(|place| place.as_str() == text).ok_or_else(|| format!("{text:?} is no place"))
    }
}

impl std::str::FromStr for MentionOutcome {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let outcomes = [Self::Done, Self::Refused, Self::NotUnderstood, Self::Failed];
        let found = outcomes.into_iter().find(|outcome| outcome.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is no outcome of a mention"))
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
        let row: Option<Row> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(place.as_str()).bind(comment.0).fetch_optional(db).await?
        });
        row.map(Row::read).transpose()
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
        let rows: Vec<Row> = on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(number.get()).bind(micros(since)).fetch_all(db).await?
        });
        let all: Result<Vec<Mention>, StoreError> = rows.into_iter().map(Row::read).collect();
        // Letter case of logins is GitHub's matter, and the engines fold only ASCII alike.
        Ok(all?.into_iter().filter(|mention| mention.by == *by).collect())
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    place: String,
    comment_id: i64,
    number: i64,
    by_login: String,
    command: Option<String>,
    outcome: String,
    at: i64,
}

impl Row {
    fn read(self) -> Result<Mention, StoreError> {
        Ok(Mention {
            place: word(&self.place)?,
            comment: GithubId(self.comment_id),
            number: number(self.number)?,
            by: word(&self.by_login)?,
            command: self.command,
            outcome: word(&self.outcome)?,
            at: moment(self.at)?,
        })
    }
}
