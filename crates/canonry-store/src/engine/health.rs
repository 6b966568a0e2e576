//! The database as such: whether it is still there, whether it can be written, and how many may write at a time.

use canonry_boxed::boxed;
use jiff::Timestamp;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::engine::open::Store;
use crate::engine::row_values::micros;
use crate::engine::transaction::{Pool, StoreError, on_tx};

#[boxed]
impl Store {
    /// How many transactions may write at a time: SQLite lets one, and the others wait.
    pub fn writers(&self) -> usize {
        match &self.pool {
            Pool::Sqlite(_) => 1,
            Pool::Postgres(pool) => pool.options().get_max_connections().max(1) as usize,
        }
    }

    /// Asks the database for an answer. A SQLite file that was removed goes on answering whoever has it
    /// open, and keeps nothing: it counts as gone.
    pub async fn ping(&self) -> Result<(), StoreError> {
        match &self.pool {
            Pool::Postgres(pool) => {
                sqlx::query("SELECT 1").execute(pool).await?;
            }
            Pool::Sqlite(pool) => {
                let query = "SELECT file FROM pragma_database_list WHERE name = 'main'";
                let file: String = sqlx::query_scalar(query).fetch_one(pool).await?;
                if !std::path::Path::new(&file).exists() {
                    return Err(StoreError::Database(sqlx::Error::Io(std::io::ErrorKind::NotFound.into())));
                }
            }
        }
        Ok(())
    }

    /// Writes one row and waits until it is on the disk: a database that is full or read-only fails here as it would for
    /// a webhook.
    ///
    /// SQLite answers from what a connection remembers of the file, so the file is opened once more: one that was
    /// overwritten, or may only be read by now, is found.
    pub async fn check_writable(&self, now: Timestamp) -> Result<(), StoreError> {
        self.ping().await?;
        if let Pool::Sqlite(pool) = &self.pool {
            let mut fresh = pool.connect_options().as_ref().clone().connect().await?;
            sqlx::query("SELECT count(*) FROM sqlite_master").execute(&mut fresh).await?;
            sqlx::query("BEGIN IMMEDIATE").execute(&mut fresh).await?;
            sqlx::query("ROLLBACK").execute(&mut fresh).await?;
            fresh.close().await?;
        }
        // A schedule's row without a schedule: nothing else is written as often, and nothing reads it.
        let write = "INSERT INTO schedules (name, last_fired_at) VALUES ('write_check', $1)
            ON CONFLICT (name) DO UPDATE SET last_fired_at = excluded.last_fired_at";
        let mut tx = self.pool.begin().await?;
        on_tx!(&mut tx, |db| {
            sqlx::query(write).bind(micros(now)).execute(db).await?;
        });
        tx.commit().await
    }

    /// Writes a row and takes it back: tells whether this account may write, and changes nothing.
    pub async fn try_to_write(&self) -> Result<(), StoreError> {
        let mut tx = self.pool.begin().await?;
        // No repository can have this name.
        let insert = "INSERT INTO repos (name, name_key, created_at) VALUES ('?', '?', 0)";
        crate::engine::transaction::on_tx!(&mut tx, |db| {
            sqlx::query(insert).execute(db).await?;
        });
        tx.rollback().await
    }
}
