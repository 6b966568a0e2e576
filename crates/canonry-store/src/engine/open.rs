//! Opening a store: for writing (which migrates) and for reading (which never does).

use canonry_boxed::boxed;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};

use crate::engine::database_url::DatabaseUrl;
use crate::engine::migrations::{
    NEWEST_SCHEMA, SchemaVersion, migrate_postgres, migrate_sqlite, version_of_postgres, version_of_sqlite,
};
use crate::engine::postgres_limits::set_limits;
use crate::engine::row_values::micros;
use crate::engine::transaction::{Pool, StoreError};
use crate::learning::rule_changes::derive_outdated;

/// All data of Canonry, on SQLite or PostgreSQL.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) pool: Pool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// How many connections may be in use at once. Further callers wait for a free one.
    pub connections: u32,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { connections: 8 }
    }
}

/// Why a store could not be opened. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no database at {url}; create it with `canonry init --db {url}`, or name another one with --db")]
    Absent {
        /// Without its password.
        url: String,
    },
    #[error("the database at {url} cannot be opened: {reason}; check the address and your permissions")]
    Unusable {
        /// Without its password.
        url: String,
        reason: String,
    },
    #[error("{path} is not a SQLite database; nothing was changed; name another file with --db", path = path.display())]
    NotADatabase { path: PathBuf },
    #[error("{path} is another program's database; nothing was changed; name another file with --db", path = path.display())]
    Foreign { path: PathBuf },
    #[error(
        "the PostgreSQL server of {url} has no extension \"vector\"; install pgvector 0.8 or newer there and try again"
    )]
    NoVectors {
        /// Without its password.
        url: String,
    },
    /// The schema is older than this program's, and this command only reads.
    #[error(
        "the database at {url} has schema {found} and this program needs {needed}; run `canonry init --db {url}` to bring it up to date",
        found = found.0, needed = NEWEST_SCHEMA.0
    )]
    OlderSchema {
        /// Without its password.
        url: String,
        found: SchemaVersion,
    },
    #[error(
        "the database at {url} has schema {found}, newer than the {known} that this program knows; nothing was changed; use a newer canonry",
        found = found.0, known = NEWEST_SCHEMA.0
    )]
    NewerSchema {
        /// Without its password.
        url: String,
        found: SchemaVersion,
    },
}

#[boxed]
impl Store {
    /// Opens a store for writing: creates a missing SQLite file and migrates the schema.
    pub async fn open(url: &DatabaseUrl, now: Timestamp) -> Result<Self, OpenError> {
        Self::open_with(url, OpenOptions::default(), now).await
    }

    pub async fn open_with(url: &DatabaseUrl, options: OpenOptions, now: Timestamp) -> Result<Self, OpenError> {
        let (pool, version) = match url {
            DatabaseUrl::Sqlite(path) => {
                create_for_its_user_alone(path);
                let pool = connect_sqlite(url, sqlite_options(path).create_if_missing(true), options).await?;
                // If the file is moved away, a connection that is opened later must not create an empty one in its
                // place.
                pool.set_connect_options(sqlite_options(path));
                let mut connection = pool.acquire().await.map_err(|error| from_sqlx(url, &error))?;
                if is_foreign(&mut connection).await.map_err(|error| from_sqlx(url, &error))? {
                    return Err(OpenError::Foreign { path: path.clone() });
                }
                let version = migrate_sqlite(&mut connection, micros(now)).await;
                (Pool::Sqlite(pool), version.map_err(|error| from_store(url, &error))?)
            }
            DatabaseUrl::Postgres(text) => {
                let pool = connect_postgres(url, text, options).await?;
                let mut connection = pool.acquire().await.map_err(|error| from_sqlx(url, &error))?;
                let version = migrate_postgres(&mut connection, micros(now)).await;
                (Pool::Postgres(pool), version.map_err(|error| from_store(url, &error))?)
            }
        };
        if version > NEWEST_SCHEMA {
            return Err(OpenError::NewerSchema { url: url.to_string(), found: version });
        }
        let store = Self { pool };
        derive_outdated(&store, now).await.map_err(|error| from_store(url, &error))?;
        Ok(store)
    }

    /// Opens an existing, up-to-date store without changing anything.
    pub async fn open_existing(url: &DatabaseUrl) -> Result<Self, OpenError> {
        let (pool, found) = Self::connect_existing(url).await?;
        if found == SchemaVersion(0) {
            return Err(OpenError::Absent { url: url.to_string() });
        }
        if found < NEWEST_SCHEMA {
            return Err(OpenError::OlderSchema { url: url.to_string(), found });
        }
        if found > NEWEST_SCHEMA {
            return Err(OpenError::NewerSchema { url: url.to_string(), found });
        }
        Ok(Self { pool })
    }

    /// Returns the schema version of a database without changing anything; 0 for an empty database.
    pub async fn schema_version(url: &DatabaseUrl) -> Result<SchemaVersion, OpenError> {
        Self::connect_existing(url).await.map(|(_, found)| found)
    }

    async fn connect_existing(url: &DatabaseUrl) -> Result<(Pool, SchemaVersion), OpenError> {
        Ok(match url {
            DatabaseUrl::Sqlite(path) => {
                if !path.exists() {
                    return Err(OpenError::Absent { url: url.to_string() });
                }
                let pool = connect_sqlite(url, sqlite_options(path), OpenOptions::default()).await?;
                let mut connection = pool.acquire().await.map_err(|error| from_sqlx(url, &error))?;
                let found = version_of_sqlite(&mut connection).await.map_err(|error| from_store(url, &error))?;
                drop(connection);
                (Pool::Sqlite(pool), found)
            }
            DatabaseUrl::Postgres(text) => {
                let pool = connect_postgres(url, text, OpenOptions::default()).await?;
                let mut connection = pool.acquire().await.map_err(|error| from_sqlx(url, &error))?;
                let found = version_of_postgres(&mut connection).await.map_err(|error| from_store(url, &error))?;
                drop(connection);
                (Pool::Postgres(pool), found)
            }
        })
    }

    /// Closes every connection; SQLite merges its write-ahead log into the file.
    pub async fn disconnect(self) {
        match self.pool {
            Pool::Sqlite(pool) => pool.close().await,
            Pool::Postgres(pool) => pool.close().await,
        }
    }
}

/// How long a writer waits for another one. Long enough for a batch of an import on a slow disk.
const BUSY: Duration = Duration::from_secs(30);

pub(crate) fn sqlite_options(path: &std::path::Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        // NORMAL would lose the last transactions at a power failure; Canonry guarantees what it stored.
        .synchronous(SqliteSynchronous::Full)
        // A checkpoint blocks writers, for longer the more pages changed, and many writes change the same pages. 4000
        // handles a quarter more webhooks a second than the default 1000. 16000 handles no more, and each pause is
        // twice as long.
        .pragma("wal_autocheckpoint", "4000")
        .foreign_keys(true)
        .busy_timeout(BUSY)
}

/// Creates an empty file that only its user can read, if there is none: it will contain texts of private
/// repositories. SQLite gives the log and index files beside it the same permissions. An error is ignored here,
/// because SQLite reports it better.
fn create_for_its_user_alone(path: &std::path::Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

/// Whether a SQLite file has tables, but none of Canonry's.
async fn is_foreign(connection: &mut sqlx::SqliteConnection) -> Result<bool, sqlx::Error> {
    let query = "SELECT count(*) > 0 AND count(*) FILTER (WHERE name = 'schema_migrations') = 0
        FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    sqlx::query_scalar(query).fetch_one(connection).await
}

async fn connect_sqlite(
    url: &DatabaseUrl,
    file: SqliteConnectOptions,
    options: OpenOptions,
) -> Result<sqlx::SqlitePool, OpenError> {
    SqlitePoolOptions::new()
        .max_connections(options.connections.max(1))
        .acquire_timeout(BUSY)
        // A SQLite file cannot close a connection.
        .test_before_acquire(false)
        .before_acquire(|connection, _| Box::pin(std::future::ready(Ok(is_reusable(connection)))))
        .connect_with(file)
        .await
        .map_err(|error| from_sqlx(url, &error))
}

/// Whether a returned connection can be reused. On a full disk or an I/O error SQLite rolls back by itself; then the
/// driver's rollback fails and the driver still counts the ended transaction, so every later one fails.
fn is_reusable(connection: &sqlx::SqliteConnection) -> bool {
    !connection.is_in_transaction()
}

async fn connect_postgres(url: &DatabaseUrl, text: &str, options: OpenOptions) -> Result<sqlx::PgPool, OpenError> {
    let server: PgConnectOptions = text.parse().map_err(|error: sqlx::Error| from_sqlx(url, &error))?;
    PgPoolOptions::new()
        .max_connections(options.connections.max(1))
        .acquire_timeout(Duration::from_secs(10))
        .after_connect(|connection, _| Box::pin(set_limits(connection)))
        .connect_with(server.application_name("canonry"))
        .await
        .map_err(|error| from_sqlx(url, &error))
}

/// SQLite's error code for a file that is not a database.
const SQLITE_NOTADB: &str = "26";
/// PostgreSQL's error code for a database that does not exist.
const INVALID_CATALOG_NAME: &str = "3D000";

/// PostgreSQL's error codes for an extension that is not installed on the server, before and since version 16.
const UNDEFINED_FILE: &str = "58P01";
const FEATURE_NOT_SUPPORTED: &str = "0A000";

fn from_sqlx(url: &DatabaseUrl, error: &sqlx::Error) -> OpenError {
    let code = error.as_database_error().and_then(|error| error.code().map(|code| code.into_owned()));
    match (url, code.as_deref()) {
        (DatabaseUrl::Sqlite(path), Some(SQLITE_NOTADB)) => OpenError::NotADatabase { path: path.clone() },
        (DatabaseUrl::Postgres(_), Some(INVALID_CATALOG_NAME)) => OpenError::Unusable {
            url: url.to_string(),
            reason: "the server has no database of that name, create it with createdb".to_owned(),
        },
        (DatabaseUrl::Postgres(_), Some(UNDEFINED_FILE | FEATURE_NOT_SUPPORTED)) => {
            OpenError::NoVectors { url: url.to_string() }
        }
        _ => unusable(url, error),
    }
}

fn from_store(url: &DatabaseUrl, error: &StoreError) -> OpenError {
    match error {
        StoreError::Database(error) => from_sqlx(url, error),
        StoreError::Damaged(_) | StoreError::UnknownItem { .. } => unusable(url, error),
    }
}

fn unusable(url: &DatabaseUrl, error: &dyn std::fmt::Display) -> OpenError {
    OpenError::Unusable { url: url.to_string(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use canonry_testkit::database::TestDatabase;
    use canonry_testkit::on_both_engines;
    use jiff::Timestamp;

    use super::{OpenOptions, Store};
    use crate::engine::transaction::{on_pool, on_tx};

    #[tokio::test]
    async fn a_connection_whose_transaction_the_engine_ended_is_replaced() {
        let database = TestDatabase::sqlite();
        let url = database.url().parse().expect("a URL");
        let store = Store::open_with(&url, OpenOptions { connections: 1 }, Timestamp::UNIX_EPOCH).await.expect("opens");
        // On a full disk or an I/O error SQLite rolls back the whole transaction at once, as this trigger does.
        let full = "CREATE TRIGGER full_disk BEFORE INSERT ON secrets
            BEGIN SELECT RAISE(ROLLBACK, 'database or disk is full'); END";
        database.execute(full).await;
        let write = async || {
            let mut tx = store.pool.begin().await?;
            on_tx!(&mut tx, |db| {
                sqlx::query("INSERT INTO secrets (name, value, created_at) VALUES ('a', '', 0)").execute(db).await?;
            });
            tx.commit().await
        };
        for _ in 0..3 {
            let full = write().await.expect_err("there is no space").to_string();
            assert!(full.contains("database or disk is full"), "{full}");
        }
        database.execute("DROP TRIGGER full_disk").await;
        write().await.expect("there is space again");
        store.check_writable(Timestamp::UNIX_EPOCH).await.expect("and it can be told");
    }

    on_both_engines! {
        async fn all_that_open_a_new_database_at_once_open_it(database: TestDatabase) {
            let url: crate::DatabaseUrl = database.url().parse().expect("a URL");
            database.emptied().await;
            let options = OpenOptions { connections: 1 };
            let opened = (0..6).map(|_| {
                let url = url.clone();
                tokio::spawn(async move { Store::open_with(&url, options, Timestamp::UNIX_EPOCH).await.map(drop) })
            });
            for opened in opened.collect::<Vec<_>>() {
                opened.await.expect("it ends").expect("it opens");
            }
        }

        async fn a_store_has_the_connections_it_was_opened_with(database: TestDatabase) {
            let url = database.url().parse().expect("a URL");
            let store = Store::open_with(&url, OpenOptions { connections: 12 }, Timestamp::UNIX_EPOCH).await.expect("opens");
            on_pool!(&store.pool, |pool| {
                let mut held = Vec::new();
                for _ in 0..12 {
                    held.push(pool.acquire().await.expect("one more"));
                }
                assert!(pool.try_acquire().is_none());
                assert_eq!(pool.size(), 12);
            });
        }
    }
}
