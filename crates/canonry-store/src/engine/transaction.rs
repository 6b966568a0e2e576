//! Pools, transactions and macros that run the same SQL on both engines.

use canonry_domain::{ItemNumber, ItemType};
use sqlx::{PgPool, Postgres, Sqlite, SqlitePool};

/// A database failure.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The engine returned an error or could not be reached.
    #[error("the database failed: {0}")]
    Database(#[source] sqlx::Error),
    /// A row contains something that this program never writes.
    #[error("the database contains a row that cannot be read: {0}")]
    Damaged(String),
    /// A write refers to an item that is not stored; nothing was written.
    #[error("there is no {} #{number} in the database; run `canonry sync` or `canonry import` first", item_type.in_words())]
    UnknownItem { item_type: ItemType, number: ItemNumber },
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::ColumnDecode { source, .. } => Self::Damaged(source.to_string()),
            other => Self::Database(other),
        }
    }
}

impl StoreError {
    /// For a stored value that this program does not know.
    pub(crate) fn damaged(error: impl std::fmt::Display) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// The connections of one engine.
#[derive(Debug, Clone)]
pub(crate) enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

pub(crate) enum Transaction {
    Sqlite(sqlx::Transaction<'static, Sqlite>),
    Postgres(sqlx::Transaction<'static, Postgres>),
}

/// Runs the same code on the pool of either engine: `on_pool!(pool, |db| query.fetch_all(db))`.
macro_rules! on_pool {
    ($pool:expr, |$db:ident| $body:expr) => {
        match $pool {
            $crate::engine::transaction::Pool::Sqlite($db) => $body,
            $crate::engine::transaction::Pool::Postgres($db) => $body,
        }
    };
}

/// The same for a transaction; `$db` is a `&mut` connection.
macro_rules! on_tx {
    ($tx:expr, |$db:ident| $body:expr) => {
        match $tx {
            $crate::engine::transaction::Transaction::Sqlite(transaction) => {
                let $db = &mut **transaction;
                $body
            }
            $crate::engine::transaction::Transaction::Postgres(transaction) => {
                let $db = &mut **transaction;
                $body
            }
        }
    };
}

pub(crate) use {on_pool, on_tx};

impl Pool {
    /// Begins a transaction that writes. SQLite takes its write lock immediately: a later upgrade fails at once if
    /// another writer came first, whatever the busy timeout is.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        Ok(match self {
            Self::Sqlite(pool) => Transaction::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => Transaction::Postgres(begun(pool.clone(), "BEGIN").await?),
        })
    }

    /// Begins a transaction that only reads, with a snapshot of the database at its first query.
    pub(crate) async fn begin_reading(&self) -> Result<Transaction, StoreError> {
        Ok(match self {
            Self::Sqlite(pool) => Transaction::Sqlite(pool.begin().await?),
            Self::Postgres(pool) => {
                Transaction::Postgres(begun(pool.clone(), "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
            }
        })
    }
}

/// Begins in a separate task. A caller that stops waiting between the statement and its answer (a cancelled request,
/// a draining worker) would return a connection that is in a transaction without anybody knowing: sqlx counts the
/// transaction only after it has read the answer. The next user's statements would never be committed.
async fn begun(pool: PgPool, statement: &'static str) -> Result<sqlx::Transaction<'static, Postgres>, StoreError> {
    let begun = tokio::spawn(async move { pool.begin_with(statement).await }).await;
    Ok(begun.map_err(|_| sqlx::Error::WorkerCrashed)??)
}

impl Transaction {
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(transaction) => transaction.commit().await?,
            Self::Postgres(transaction) => transaction.commit().await?,
        }
        Ok(())
    }

    pub(crate) async fn rollback(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(transaction) => transaction.rollback().await?,
            Self::Postgres(transaction) => transaction.rollback().await?,
        }
        Ok(())
    }

    /// Makes writers of one repository run one at a time, so that what a writer read is still true when it writes.
    /// SQLite has one writer at a time anyway. Other transactions may still insert rows that refer to the repository,
    /// which a plain FOR UPDATE would block.
    pub(crate) async fn lock_items_of(&mut self, repo: crate::RepoId) -> Result<(), StoreError> {
        if let Self::Postgres(transaction) = self {
            sqlx::query("SELECT id FROM repos WHERE id = $1 FOR NO KEY UPDATE")
                .bind(repo.0)
                .execute(&mut **transaction)
                .await?;
        }
        Ok(())
    }

    /// Wakes the workers of all processes when this transaction is committed. On SQLite there is one process, which
    /// wakes its own.
    pub(crate) async fn notify_workers(&mut self) -> Result<(), StoreError> {
        if let Self::Postgres(transaction) = self {
            sqlx::query("SELECT pg_notify($1, '')").bind(JOBS_CHANNEL).execute(&mut **transaction).await?;
        }
        Ok(())
    }
}

/// The PostgreSQL channel for notifications about queued jobs.
pub(crate) const JOBS_CHANNEL: &str = "canonry_jobs";
