//! Brakes that pause Canonry in a repository: a person's pause, or the breaker.

use canonry_boxed::boxed;
use canonry_domain::{Login, text_enum};
use jiff::Timestamp;

use crate::corpus::repos::RepoId;
use crate::engine::facets::CloseStore;
use crate::engine::row_values::{micros, storable};
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

text_enum! {
    pub enum BrakeKind: "a kind of brake" {
        Pause = "pause",
        /// Too many people objected to closes: nothing is closed without a person's approval.
        Breaker = "breaker",
    }
}

/// A brake that was set; in force until it is lifted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brake {
    /// The key of its row, for notices that are posted once per brake.
    pub id: i64,
    pub kind: BrakeKind,
    /// Who set it; `None` for Canonry itself or the command line.
    pub set_by: Option<Login>,
    pub why: String,
    pub set_at: Timestamp,
    /// Who lifted it; `None` while it is in force, or for the command line.
    pub lifted_by: Option<Login>,
    pub lifted_at: Option<Timestamp>,
}

#[boxed]
impl CloseStore<'_> {
    /// Sets a brake; `false` if it is already in force, and then the first record stays.
    pub async fn set_brake(
        self,
        repo: RepoId,
        kind: BrakeKind,
        by: Option<&Login>,
        why: &str,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let insert = "INSERT INTO brakes (repo_id, kind, set_by, why, set_at) VALUES ($1, $2, $3, $4, $5)
            ON CONFLICT DO NOTHING";
        let set = on_pool!(self.pool, |db| {
            let query = sqlx::query(insert).bind(repo.0).bind(kind.as_str()).bind(by.map(Login::as_str));
            query.bind(storable(why)).bind(micros(now)).execute(db).await?.rows_affected()
        });
        Ok(set > 0)
    }

    /// Lifts a brake; `by` is `None` for a person who works on the database itself. `false` if it was not in force.
    pub async fn lift_brake(
        self,
        repo: RepoId,
        kind: BrakeKind,
        by: Option<&Login>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let lift = "UPDATE brakes SET lifted_by = $3, lifted_at = $4
            WHERE repo_id = $1 AND kind = $2 AND lifted_at IS NULL";
        let lifted = on_pool!(self.pool, |db| {
            let query = sqlx::query(lift).bind(repo.0).bind(kind.as_str()).bind(by.map(Login::as_str));
            query.bind(micros(now)).execute(db).await?.rows_affected()
        });
        Ok(lifted > 0)
    }

    /// Lifts every brake, as `resume` does; `false` if none was in force.
    pub async fn lift_brakes(self, repo: RepoId, by: Option<&Login>, now: Timestamp) -> Result<bool, StoreError> {
        let mut lifted = false;
        for &kind in BrakeKind::ALL {
            lifted |= self.lift_brake(repo, kind, by, now).await?;
        }
        Ok(lifted)
    }

    pub async fn brake_in_force(self, repo: RepoId, kind: BrakeKind) -> Result<Option<Brake>, StoreError> {
        let query = "SELECT id, kind, set_by, why, set_at, lifted_by, lifted_at FROM brakes
            WHERE repo_id = $1 AND kind = $2 AND lifted_at IS NULL";
        Ok(on_pool!(self.pool, |db| {
            sqlx::query_as(query).bind(repo.0).bind(kind.as_str()).fetch_optional(db).await?
        }))
    }

    /// Returns all brakes that were ever set, newest first.
    pub async fn brakes(self, repo: RepoId) -> Result<Vec<Brake>, StoreError> {
        self.brake_pages(repo, None, u32::MAX).await
    }

    /// Returns one page of the brakes that were ever set, newest first, older than the one with the key `before`.
    pub async fn brake_pages(self, repo: RepoId, before: Option<i64>, limit: u32) -> Result<Vec<Brake>, StoreError> {
        let query = "SELECT id, kind, set_by, why, set_at, lifted_by, lifted_at FROM brakes
            WHERE repo_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
        Ok(on_pool!(self.pool, |db| {
            let query = sqlx::query_as(query).bind(repo.0).bind(before.unwrap_or(i64::MAX));
            query.bind(i64::from(limit)).fetch_all(db).await?
        }))
    }
}

from_row!(Brake { id, kind, set_by, why, set_at, lifted_by, lifted_at });
