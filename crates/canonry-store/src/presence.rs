//! The database as such: whether it is still there, and how many may write at a time.

use crate::open::Store;
use crate::transaction::{Pool, StoreError};

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
}
