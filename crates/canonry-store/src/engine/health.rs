//! Checks that the database is reachable and writable, and says how many transactions can write at a time.

use canonry_boxed::boxed;
use jiff::Timestamp;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::engine::open::Store;
use crate::engine::row_values::micros;
use crate::engine::transaction::{Pool, StoreError, on_tx};

#[boxed]
impl Store {
    /// How many transactions can write at a time. SQLite allows one; the others wait.
    pub fn writers(&self) -> usize {
        match &self.pool {
            Pool::Sqlite(_) => 1,
            Pool::Postgres(pool) => pool.options().get_max_connections().max(1) as usize,
        }
    }

    /// Checks that the database answers. A deleted SQLite file still answers a process that has it open but stores
    /// nothing: it counts as missing.
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

    /// Writes one row and waits until it is on the disk: a full or read-only database fails here as it would for a
    /// webhook.
    ///
    /// SQLite may answer from a connection's cache, so the file is opened again: this detects a file that was
    /// overwritten or is now read-only.
    pub async fn check_writable(&self, now: Timestamp) -> Result<(), StoreError> {
        self.ping().await?;
        if let Pool::Sqlite(pool) = &self.pool {
            let mut fresh = pool.connect_options().as_ref().clone().connect().await?;
            sqlx::query("SELECT count(*) FROM sqlite_master").execute(&mut fresh).await?;
            sqlx::query("BEGIN IMMEDIATE").execute(&mut fresh).await?;
            sqlx::query("ROLLBACK").execute(&mut fresh).await?;
            fresh.close().await?;
        }
        // A schedule row without a schedule: no other row is written as often, and nothing reads it.
        let write = "INSERT INTO schedules (name, last_fired_at) VALUES ('write_check', $1)
            ON CONFLICT (name) DO UPDATE SET last_fired_at = excluded.last_fired_at";
        let mut tx = self.pool.begin().await?;
        on_tx!(&mut tx, |db| {
            sqlx::query(write).bind(micros(now)).execute(db).await?;
        });
        tx.commit().await
    }

    /// Writes a row and rolls it back: checks whether this account may write, and changes nothing.
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
