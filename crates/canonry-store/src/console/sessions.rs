//! The sessions of people who are signed in to the console.

use canonry_boxed::boxed;
use canonry_domain::{GithubId, Login};
use jiff::{SignedDuration, Timestamp};

use crate::engine::facets::ConsoleStore;
use crate::engine::row_values::micros;
use crate::engine::rows::from_row;
use crate::engine::transaction::{StoreError, on_pool};

/// How long an unused session lasts: a working day, so that a forgotten browser is signed out overnight.
const UNSEEN: SignedDuration = SignedDuration::from_hours(12);
/// How long a session lasts at most: a person who lost the GitHub account is signed out after a week, whatever the
/// browser does.
const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);
/// How old the recorded time of last use may be before it is updated: a page makes many requests, and each write
/// takes SQLite's only lock.
const SEEN_ANEW: SignedDuration = SignedDuration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleSession {
    /// GitHub's id of the account; `None` for a person who signed in with the admin token.
    pub github_id: Option<GithubId>,
    /// The account's name at sign-in.
    pub login: Option<Login>,
    pub is_operator: bool,
    pub made_at: Timestamp,
    pub seen_at: Timestamp,
    pub ends_at: Timestamp,
}

#[derive(Debug, Clone, Copy)]
pub enum SessionOwner<'a> {
    /// A person who entered the admin token. The seal binds the session to that token: with a new token the session
    /// ends.
    Operator {
        /// Only the token together with the browser's secret can produce it.
        seal: [u8; 32],
    },
    Account(GithubId, &'a Login),
}

#[boxed]
impl ConsoleStore<'_> {
    /// Begins a session; `id_hash` is the SHA-256 of the browser's secret.
    pub async fn begin_session(
        self,
        id_hash: &[u8; 32],
        whose: SessionOwner<'_>,
        now: Timestamp,
    ) -> Result<ConsoleSession, StoreError> {
        let insert = "INSERT INTO console_sessions (id, github_id, login, operator, seal, made_at, seen_at, ends_at)
            VALUES ($1, $2, $3, $4, $5, $6, $6, $7)";
        let (github_id, login, seal) = match whose {
            SessionOwner::Operator { seal } => (None, None, Some(digits(&seal))),
            SessionOwner::Account(id, login) => (Some(id), Some(login), None),
        };
        let is_operator = seal.is_some();
        let ends_at = now.saturating_add(LONGEST).map_err(StoreError::damaged)?;
        on_pool!(self.pool, |db| {
            let query = sqlx::query(insert).bind(digits(id_hash)).bind(github_id.map(|id| id.0));
            let query = query.bind(login.map(Login::as_str)).bind(is_operator).bind(&seal);
            query.bind(micros(now)).bind(micros(ends_at)).execute(db).await?;
        });
        let login = login.cloned();
        Ok(ConsoleSession { github_id, login, is_operator, made_at: now, seen_at: now, ends_at })
    }

    /// Returns the session with this hash and records its use; `None` if it does not exist or has ended. `seal` is
    /// the seal that an operator's session has with the current admin token.
    pub async fn session(
        self,
        id_hash: &[u8; 32],
        seal: &[u8; 32],
        now: Timestamp,
    ) -> Result<Option<ConsoleSession>, StoreError> {
        let select = "SELECT github_id, login, operator, made_at, seen_at, ends_at FROM console_sessions
            WHERE id = $1 AND ends_at > $2 AND seen_at > $3
                AND (seal IS NULL OR seal = $4)";
        let (key, unseen) = (digits(id_hash), micros(now.saturating_sub(UNSEEN).map_err(StoreError::damaged)?));
        let row: Option<ConsoleSession> = on_pool!(self.pool, |db| {
            sqlx::query_as(select)
                .bind(&key)
                .bind(micros(now))
                .bind(unseen)
                .bind(digits(seal))
                .fetch_optional(db)
                .await?
        });
        let Some(mut session) = row else { return Ok(None) };
        if now.duration_since(session.seen_at) >= SEEN_ANEW {
            let touch = "UPDATE console_sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $2";
            on_pool!(self.pool, |db| {
                sqlx::query(touch).bind(&key).bind(micros(now)).execute(db).await?;
            });
            session.seen_at = now;
        }
        Ok(Some(session))
    }

    /// Ends a session; `false` if it did not exist.
    pub async fn end_session(self, id_hash: &[u8; 32]) -> Result<bool, StoreError> {
        let delete = "DELETE FROM console_sessions WHERE id = $1";
        let ended =
            on_pool!(self.pool, |db| sqlx::query(delete).bind(digits(id_hash)).execute(db).await?.rows_affected());
        Ok(ended > 0)
    }
}

fn digits(hash: &[u8; 32]) -> String {
    canonry_domain::hex_digits(hash)
}

from_row!(ConsoleSession { github_id, login, is_operator: "operator", made_at, seen_at, ends_at });
