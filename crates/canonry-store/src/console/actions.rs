//! Records the actions of people in the console, so that it is known later who did what.

use canonry_boxed::boxed;
use canonry_domain::Login;
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::ConsoleStore;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewConsoleAction<'a> {
    /// `None` for a person who signed in with the admin token.
    pub by: Option<&'a Login>,
    pub is_operator: bool,
    pub repo: Option<RepoId>,
    pub action: &'a str,
    pub subject: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleAction {
    /// The key of the row, from which a list continues.
    pub id: i64,
    pub at: Timestamp,
    /// `None` for a person who signed in with the admin token.
    pub by: Option<Login>,
    pub is_operator: bool,
    pub action: String,
    pub subject: String,
}

#[boxed]
impl ConsoleStore<'_> {
    /// Records an action before it is done.
    pub async fn record_action(self, new: &NewConsoleAction<'_>, now: Timestamp) -> Result<(), StoreError> {
        let insert = "INSERT INTO console_actions (at, by_login, operator, repo_id, action, subject)
            VALUES ($1, $2, $3, $4, $5, $6)";
        on_pool!(self.pool, |db| {
            let query = sqlx::query(insert).bind(micros(now)).bind(new.by.map(Login::as_str)).bind(new.is_operator);
            let query = query.bind(new.repo.map(RepoId::get)).bind(storable(new.action)).bind(storable(new.subject));
            query.execute(db).await?;
        });
        Ok(())
    }

    /// Returns the actions about a repository, latest first.
    pub async fn actions(self, repo: RepoId, limit: u32) -> Result<Vec<ConsoleAction>, StoreError> {
        self.action_pages(repo, None, limit).await
    }

    /// Returns one page of the actions about a repository, latest first, older than the one with the key `before`.
    pub async fn action_pages(
        self,
        repo: RepoId,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<ConsoleAction>, StoreError> {
        let query = "SELECT id, at, by_login, operator, action, subject FROM console_actions
            WHERE repo_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(before.unwrap_or(i64::MAX));
            query.bind(i64::from(limit)).fetch_all(db).await?
        }))
    }
}

from_row!(ConsoleAction { id, at, by: "by_login", is_operator: "operator", action, subject });
