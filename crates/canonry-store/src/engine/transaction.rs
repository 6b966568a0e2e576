//! One set of SQL texts for both engines: pools, transactions, and the macros that choose.

use canonry_domain::{ItemNumber, ItemType};
use sqlx::{PgPool, Postgres, Sqlite, SqlitePool};

/// A failure of the database while the store was used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The engine said no, or could not be reached.
    #[error("the database failed: {0}")]
    Database(#[source] sqlx::Error),
    /// A row holds something that this program never writes.
    #[error("the database holds a row that cannot be read: {0}")]
    Damaged(String),
    /// Something was to be written about an item that is not stored; nothing was written.
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
    /// For a stored word that is not one of ours.
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

/// Runs the same code on the pool of whichever engine it is: `on_pool!(pool, |db| query.fetch_all(db))`.
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
    /// Begins a transaction that writes. SQLite takes its write lock at once: one that is upgraded
    /// later fails at once when another writer came first, whatever the busy timeout says.
    pub(crate) async fn begin(&self) -> Result<Transaction, StoreError> {
        Ok(match self {
            Self::Sqlite(pool) => Transaction::Sqlite(pool.begin_with("BEGIN IMMEDIATE").await?),
            Self::Postgres(pool) => Transaction::Postgres(begun(pool.clone(), "BEGIN").await?),
        })
    }

    /// Begins a transaction that only reads, and sees the database as it was at its first question.
    pub(crate) async fn begin_reading(&self) -> Result<Transaction, StoreError> {
        Ok(match self {
            Self::Sqlite(pool) => Transaction::Sqlite(pool.begin().await?),
            Self::Postgres(pool) => {
                Transaction::Postgres(begun(pool.clone(), "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?)
            }
        })
    }
}

/// Begins in a task of its own. Whoever stops waiting between the statement and its answer (a request that was
/// cancelled, a worker that drains) would give a connection back that nobody knows to be in a transaction: sqlx counts
/// it only once the answer is read. The next user's statements would never be committed.
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

    /// Makes writers of one repository queue up, so that what one read is still true when it writes.
    /// SQLite has one writer at a time anyway. Rows that refer to the repository may be inserted meanwhile, which a
    /// plain FOR UPDATE would hold up.
    pub(crate) async fn lock_items_of(&mut self, repo: crate::RepoId) -> Result<(), StoreError> {
        if let Self::Postgres(transaction) = self {
            sqlx::query("SELECT id FROM repos WHERE id = $1 FOR NO KEY UPDATE")
                .bind(repo.0)
                .execute(&mut **transaction)
                .await?;
        }
        Ok(())
    }

    /// Wakes the workers of all processes once this transaction is committed. On SQLite there is one process, which
    /// wakes its own.
    pub(crate) async fn notify_workers(&mut self) -> Result<(), StoreError> {
        if let Self::Postgres(transaction) = self {
            sqlx::query("SELECT pg_notify($1, '')").bind(JOBS_CHANNEL).execute(&mut **transaction).await?;
        }
        Ok(())
    }
}

/// Where PostgreSQL tells that jobs wait.
pub(crate) const JOBS_CHANNEL: &str = "canonry_jobs";
