//! The numbered migrations from an empty database to the newest schema.

#[cfg(test)]
pub(crate) mod tests;

use std::time::Duration;

use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::engine::postgres_limits::lift_limits;
use crate::engine::transaction::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaVersion(pub i64);

struct Migration {
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! migration {
    ($name:literal) => {
        Migration {
            name: $name,
            sqlite: include_str!(concat!("../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../migrations/postgres/", $name, ".sql")),
        }
    };
}

/// In order: the first one leads to version 1. New ones are only appended.
const MIGRATIONS: &[Migration] = &[
    migration!("0001_corpus"),
    migration!("0002_candidate_sets"),
    migration!("0003_sync"),
    migration!("0004_outbox"),
    migration!("0005_embeddings"),
    migration!("0006_intent_cards"),
    migration!("0007_duplicates"),
    migration!("0008_service"),
    migration!("0009_learning"),
    migration!("0010_review"),
    migration!("0011_on_github"),
    migration!("0012_token_vectors"),
    migration!("0013_console"),
    migration!("0014_purge"),
    migration!("0015_used_numbers"),
    migration!("0016_write_priority"),
    migration!("0017_decisions"),
    migration!("0018_item_conditions"),
    migration!("0019_boilerplate"),
    migration!("0020_issued_markers"),
    migration!("0021_judge_proofs"),
    migration!("0022_index_changes"),
    migration!("0023_write_origins"),
    migration!("0024_activity"),
    migration!("0025_code_excerpts"),
    migration!("0026_fixes"),
    migration!("0027_remarks"),
    migration!("0028_backtest_readings"),
    migration!("0029_changes_as_of"),
];

/// The schema that this program reads and writes.
pub const NEWEST_SCHEMA: SchemaVersion = SchemaVersion(MIGRATIONS.len() as i64);

const BOOK: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at BIGINT NOT NULL
)";
const NOTE: &str = "INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, $3)";

/// Any number that nothing else on the server uses as an advisory lock.
pub(crate) const MIGRATION_LOCK: i64 = 0x0043_414e_4f4e_5259;

/// Migrates a SQLite database to the newest schema, if needed. The write lock of the single transaction is also the
/// migration lock.
pub(crate) async fn migrate_sqlite(connection: &mut SqliteConnection, now: i64) -> Result<SchemaVersion, StoreError> {
    // Checked before the first write, so that a newer database is not changed at all.
    let before = version_of_sqlite(connection).await?;
    if before >= NEWEST_SCHEMA {
        return Ok(before);
    }
    use_write_ahead_log(connection).await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(BOOK).execute(&mut *transaction).await?;
    // Another process may have migrated while this one waited for the lock.
    let before = version_of_sqlite(&mut transaction).await?;
    for (version, migration) in pending(before) {
        sqlx::raw_sql(migration.sqlite).execute(&mut *transaction).await?;
        sqlx::query(NOTE).bind(version).bind(migration.name).bind(now).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(before.max(NEWEST_SCHEMA))
}

/// Stored in the file, so later connections need not set it; it cannot be set inside a transaction. Of several
/// connections that set it at once SQLite refuses all but one without waiting, whatever the busy timeout: each could wait
/// for the other.
async fn use_write_ahead_log(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let mut attempts = 1;
    loop {
        match sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *connection).await {
            Err(error) if is_locked(&error) && attempts < ATTEMPTS => tokio::time::sleep(PAUSE).await,
            set => return Ok(set.map(drop)?),
        }
        attempts += 1;
    }
}

/// Together as long as a writer waits for another one.
const ATTEMPTS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

/// SQLITE_BUSY, in the lowest byte of each of its kinds.
fn is_locked(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

/// Migrates a PostgreSQL database; an advisory lock makes several starting replicas run one at a time.
pub(crate) async fn migrate_postgres(connection: &mut PgConnection, now: i64) -> Result<SchemaVersion, StoreError> {
    let before = version_of_postgres(connection).await?;
    if before >= NEWEST_SCHEMA {
        return Ok(before);
    }
    let mut transaction = connection.begin().await?;
    lift_limits(&mut transaction).await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(MIGRATION_LOCK).execute(&mut *transaction).await?;
    sqlx::query(BOOK).execute(&mut *transaction).await?;
    let before = version_of_postgres(&mut transaction).await?;
    for (version, migration) in pending(before) {
        sqlx::raw_sql(migration.postgres).execute(&mut *transaction).await?;
        sqlx::query(NOTE).bind(version).bind(migration.name).bind(now).execute(&mut *transaction).await?;
    }
    transaction.commit().await?;
    Ok(before.max(NEWEST_SCHEMA))
}

fn pending(before: SchemaVersion) -> impl Iterator<Item = (i64, &'static Migration)> {
    (1..).zip(MIGRATIONS).filter(move |(version, _)| *version > before.0)
}

/// Returns the version of a database; 0 without a table of migrations.
pub(crate) async fn version_of_sqlite(connection: &mut SqliteConnection) -> Result<SchemaVersion, StoreError> {
    let booked: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'")
            .fetch_one(&mut *connection)
            .await?;
    if booked == 0 {
        return Ok(SchemaVersion(0));
    }
    let newest =
        sqlx::query_scalar("SELECT COALESCE(max(version), 0) FROM schema_migrations").fetch_one(connection).await?;
    Ok(SchemaVersion(newest))
}

pub(crate) async fn version_of_postgres(connection: &mut PgConnection) -> Result<SchemaVersion, StoreError> {
    let booked: bool =
        sqlx::query_scalar("SELECT to_regclass('schema_migrations') IS NOT NULL").fetch_one(&mut *connection).await?;
    if !booked {
        return Ok(SchemaVersion(0));
    }
    let newest =
        sqlx::query_scalar("SELECT COALESCE(max(version), 0) FROM schema_migrations").fetch_one(connection).await?;
    Ok(SchemaVersion(newest))
}
