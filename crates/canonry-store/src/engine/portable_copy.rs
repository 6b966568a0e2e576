//! A small copy of a SQLite database that can be kept where others can read it, and the way back.

use canonry_boxed::boxed;
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

    /// Takes over the vectors of another database of the same repositories, such as the one that a portable copy was
    /// made from. Returns their number.
    pub async fn adopt_vectors(self, file: &Path) -> Result<u64, StoreError> {
        let mut connection = sqlite(self.pool)?.acquire().await?;
        sqlx::query("ATTACH DATABASE $1 AS earlier").bind(text_of(file)?).execute(&mut *connection).await?;
        let adopted = adopt(&mut connection).await;
        // The connection goes back to the pool.
        sqlx::query("DETACH DATABASE earlier").execute(&mut *connection).await?;
        adopted
    }
}

async fn adopt(connection: &mut SqliteConnection) -> Result<u64, StoreError> {
    let adopted = sqlx::query(ADOPT_VECTORS).execute(&mut *connection).await?.rows_affected();
    sqlx::query(ADOPT_TOKEN_VECTORS).execute(connection).await?;
    Ok(adopted)
}

fn sqlite(pool: &Pool) -> Result<&SqlitePool, StoreError> {
    match pool {
        Pool::Sqlite(pool) => Ok(pool),
        Pool::Postgres(_) => Err(StoreError::damaged("only a SQLite database can be copied into a file")),
    }
}

fn text_of(file: &Path) -> Result<&str, StoreError> {
    file.to_str().ok_or_else(|| StoreError::damaged("the path of the copy is not UTF-8"))
}
