//! A small copy of a SQLite database that can be kept where others can read it, and its vectors in a file of their own.

use canonry_boxed::boxed;
use std::fs::OpenOptions;
use std::path::Path;

use sqlx::sqlite::SqliteJournalMode;
use sqlx::{Connection as _, SqliteConnection, SqlitePool};

use crate::engine::facets::MaintenanceStore;
use crate::engine::open::sqlite_options;
use crate::engine::transaction::{Pool, StoreError};

/// What the copy leaves out: vectors can be computed again, and secrets and sessions are nobody else's business. Bodies
/// of finished webhooks are needed only to replay them.
const LEFT_OUT: [&str; 5] = [
    "DELETE FROM token_vectors",
    "DELETE FROM embeddings",
    "DELETE FROM secrets",
    "DELETE FROM console_sessions",
    "UPDATE deliveries SET payload = '', emptied = TRUE WHERE state IN ('done', 'ignored') AND emptied = FALSE",
];

const WRITE_VECTORS: [&str; 2] = [
    "CREATE TABLE vectors.embeddings AS SELECT * FROM main.embeddings",
    "CREATE TABLE vectors.token_vectors AS SELECT * FROM main.token_vectors",
];

/// Vectors of items that are still stored. A vector of another text does not count, because its hash differs.
const ADOPT_VECTORS: &str =
    "INSERT INTO embeddings (item_id, representation, model, dim, vector, embedded_hash, embedded_at, outdated)
        SELECT item_id, representation, model, dim, vector, embedded_hash, embedded_at, outdated FROM earlier.embeddings
        WHERE item_id IN (SELECT id FROM items) ON CONFLICT DO NOTHING";
const ADOPT_TOKEN_VECTORS: &str = "INSERT INTO token_vectors (item_id, representation, model, embedded_hash, vectors)
        SELECT v.item_id, v.representation, v.model, v.embedded_hash, v.vectors FROM earlier.token_vectors v
        JOIN embeddings e ON e.item_id = v.item_id AND e.representation = v.representation AND e.model = v.model
            AND e.embedded_hash = v.embedded_hash
        WHERE true ON CONFLICT DO NOTHING";

#[boxed]
impl MaintenanceStore<'_> {
    /// Writes a compact copy without vectors, secrets and finished webhooks to a new file.
    pub async fn write_portable_copy(self, file: &Path) -> Result<(), StoreError> {
        sqlx::query("VACUUM INTO $1").bind(text_of(file)?).execute(sqlite(self.pool)?).await?;
        // Without foreign keys: the vectors are deleted as a whole, and nothing else refers to them.
        let options = sqlite_options(file).foreign_keys(false).journal_mode(SqliteJournalMode::Delete);
        let mut copy = SqliteConnection::connect_with(&options).await?;
        for statement in LEFT_OUT {
            sqlx::query(statement).execute(&mut copy).await?;
        }
        sqlx::query("VACUUM").execute(&mut copy).await?;
        Ok(copy.close().await?)
    }

    /// Writes the vectors, and no text, to a new file. They are what a portable copy lacks.
    pub async fn write_vectors(self, file: &Path) -> Result<(), StoreError> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(file).map_err(|error| StoreError::Database(error.into()))?;
        let mut connection = sqlite(self.pool)?.acquire().await?;
        sqlx::query("ATTACH DATABASE $1 AS vectors").bind(text_of(file)?).execute(&mut *connection).await?;
        let written = copy_vectors(&mut connection).await;
        // The connection goes back to the pool.
        sqlx::query("DETACH DATABASE vectors").execute(&mut *connection).await?;
        written
    }

    /// Takes over the vectors of another file of the same repositories. Returns their number.
    pub async fn adopt_vectors(self, file: &Path) -> Result<u64, StoreError> {
        let mut connection = sqlite(self.pool)?.acquire().await?;
        sqlx::query("ATTACH DATABASE $1 AS earlier").bind(text_of(file)?).execute(&mut *connection).await?;
        let adopted = adopt(&mut connection).await;
        // The connection goes back to the pool.
        sqlx::query("DETACH DATABASE earlier").execute(&mut *connection).await?;
        adopted
    }
}

async fn copy_vectors(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    for statement in WRITE_VECTORS {
        sqlx::query(statement).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn adopt(connection: &mut SqliteConnection) -> Result<u64, StoreError> {
    let adopted = sqlx::query(ADOPT_VECTORS).execute(&mut *connection).await?.rows_affected();
    sqlx::query(ADOPT_TOKEN_VECTORS).execute(connection).await?;
    Ok(adopted)
}

pub(crate) fn sqlite(pool: &Pool) -> Result<&SqlitePool, StoreError> {
    match pool {
        Pool::Sqlite(pool) => Ok(pool),
        Pool::Postgres(_) => Err(StoreError::damaged("only a SQLite database can be copied into a file")),
    }
}

fn text_of(file: &Path) -> Result<&str, StoreError> {
    file.to_str().ok_or_else(|| StoreError::damaged("the path of the copy is not UTF-8"))
}
