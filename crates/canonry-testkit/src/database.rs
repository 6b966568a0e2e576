//! Fresh databases on both engines, and the macro that runs one test on each.

use canonry_boxed::boxed;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};
use tempfile::TempDir;

use crate::proxy::Proxy;

/// The variable with the URL of the PostgreSQL server on which tests create their databases; `cargo xtask test` sets
/// it.
pub const POSTGRES_URL_VARIABLE: &str = "CANONRY_TEST_POSTGRES_URL";

/// The variable with the name of an empty database on that server that has the newest schema. If it is set, other
/// databases are copied from it: creating the schema takes PostgreSQL a quarter of a second, copying it a fifth of
/// that.
pub const POSTGRES_TEMPLATE_VARIABLE: &str = "CANONRY_TEST_POSTGRES_TEMPLATE";

/// How long the removal of a database may take: a server that hangs must not make a finished test hang too.
const REMOVAL_LIMIT: Duration = Duration::from_secs(10);

/// The two storage engines that all tests cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The embedded engine: one file.
    Sqlite,
    Postgres,
}

/// A database for one test, removed when dropped. It contains no rows. Only tests about schemas depend on whether it
/// already has a schema; they [empty](Self::emptied) it.
#[derive(Debug)]
pub struct TestDatabase {
    url: String,
    place: Place,
}

/// Where the database is, which decides how it is removed.
#[derive(Debug)]
enum Place {
    Folder(TempDir),
    Server { server: String, name: String },
}

#[boxed]
impl TestDatabase {
    /// A SQLite file, not yet created, in its own temporary folder.
    ///
    /// # Panics
    ///
    /// If no temporary folder can be made, or its path is not UTF-8.
    #[must_use]
    pub fn sqlite() -> Self {
        let folder = tempfile::Builder::new()
            .prefix("canonry-test-")
            .tempdir()
            .expect("a temporary folder for a SQLite database");
        let path = folder.path().join("canonry.db");
        let path = path.to_str().expect("a temporary folder with a UTF-8 path");
        Self { url: format!("sqlite:{path}"), place: Place::Folder(folder) }
    }

    /// A new database on the server that [`POSTGRES_URL_VARIABLE`] names.
    ///
    /// # Panics
    ///
    /// If the variable is missing or the server does not create the database: a missing engine is a failed test,
    /// never a skipped one.
    pub async fn postgres() -> Self {
        let server = std::env::var(POSTGRES_URL_VARIABLE).unwrap_or_else(|_| {
            panic!(
                "{POSTGRES_URL_VARIABLE} is not set: run the tests with `cargo xtask test`, \
                 which starts PostgreSQL and sets it"
            )
        });
        let template = std::env::var(POSTGRES_TEMPLATE_VARIABLE).ok();
        let name = create_database(&server, template.as_deref())
            .await
            .unwrap_or_else(|error| panic!("no test database on {POSTGRES_URL_VARIABLE}: {error}"));
        Self { url: with_database(&server, &name), place: Place::Server { server, name } }
    }

    /// Removes the schema, if there is one.
    ///
    /// # Panics
    ///
    /// If the server fails.
    pub async fn emptied(&self) {
        if self.engine() == Engine::Postgres {
            self.execute("drop schema public cascade; create schema public").await;
        }
    }

    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A proxy to this database, and the database's URL through it.
    ///
    /// # Panics
    ///
    /// If the database is a file, or its server is not on a TCP port of 127.0.0.1.
    pub async fn proxied(&self) -> (Proxy, String) {
        let authority = self.url.split_once("://").and_then(|(_, rest)| rest.split('/').next());
        let address = authority.and_then(|authority| authority.rsplit('@').next()).unwrap_or_default();
        let server: SocketAddr =
            address.parse().unwrap_or_else(|_| panic!("{address} is no address to put a proxy before"));
        let proxy = Proxy::to(server).await;
        let url = self.url.replacen(address, &proxy.address().to_string(), 1);
        (proxy, url)
    }

    /// Closes every connection to this database on its server, as a restart does. Does nothing for a file.
    ///
    /// # Panics
    ///
    /// If the server fails.
    pub async fn end_connections(&self) {
        let Place::Server { server, name } = &self.place else {
            return;
        };
        let mut connection = PgConnection::connect(server).await.expect("the server answers");
        sqlx::query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1")
            .bind(name)
            .execute(&mut connection)
            .await
            .expect("the server ends connections");
        connection.close().await.expect("closes");
    }

    /// Runs SQL directly on the database, to make it behave as no healthy database does.
    ///
    /// # Panics
    ///
    /// If the engine rejects it.
    pub async fn execute(&self, sql: &str) {
        let sql = AssertSqlSafe(sql.to_owned());
        match self.place {
            Place::Folder(_) => {
                let mut connection = SqliteConnection::connect(&self.url).await.expect("the file opens");
                sqlx::raw_sql(sql).execute(&mut connection).await.expect("SQLite takes it");
                connection.close().await.expect("closes");
            }
            Place::Server { .. } => {
                let mut connection = PgConnection::connect(&self.url).await.expect("the server answers");
                sqlx::raw_sql(sql).execute(&mut connection).await.expect("PostgreSQL takes it");
                connection.close().await.expect("closes");
            }
        }
    }

    #[must_use]
    pub fn engine(&self) -> Engine {
        match self.place {
            Place::Folder(_) => Engine::Sqlite,
            Place::Server { .. } => Engine::Postgres,
        }
    }

    /// The folder with the SQLite file and its companion files; `None` on PostgreSQL.
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(folder) => Some(folder.path()),
            Place::Server { .. } => None,
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Place::Server { server, name } = &self.place else {
            return;
        };
        let (server, name) = (server.clone(), name.clone());
        // A runtime cannot be entered from within another one, and the test's runtime may already be shutting down. A
        // thread with its own runtime works in every case. After a failure the database stays on the server, which
        // `cargo xtask test` deletes as a whole.
        let _ = thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
                return;
            };
            let _ =
                runtime.block_on(async { tokio::time::timeout(REMOVAL_LIMIT, drop_database(&server, &name)).await });
        })
        .join();
    }
}

async fn create_database(server: &str, template: Option<&str>) -> Result<String, sqlx::Error> {
    let mut connection = PgConnection::connect(server).await?;
    // The server makes the name unique, so that test processes need not know about each other.
    let name: String = sqlx::query_scalar("select 'canonry_test_' || replace(gen_random_uuid()::text, '-', '')")
        .fetch_one(&mut connection)
        .await?;
    let template = template.unwrap_or("template1");
    let statement = format!(r#"create database "{name}" template "{template}""#);
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
    connection.close().await?;
    Ok(name)
}

async fn drop_database(server: &str, name: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(server).await?;
    // With force, because leaked pools or killed processes of the test may still be connected.
    let statement = format!(r#"drop database if exists "{name}" with (force)"#);
    sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
    connection.close().await
}

/// The server's URL with another database; user, host and parameters stay.
fn with_database(server: &str, name: &str) -> String {
    let (location, parameters) = match server.split_once('?') {
        Some((location, parameters)) => (location, Some(parameters)),
        None => (server, None),
    };
    let authority = location.find("://").map_or(0, |at| at + "://".len());
    let end = location[authority..].find('/').map_or(location.len(), |at| authority + at);
    let mut url = format!("{}/{name}", &location[..end]);
    if let Some(parameters) = parameters {
        url.push('?');
        url.push_str(parameters);
    }
    url
}

/// Writes a test once and runs it on SQLite and on PostgreSQL.
///
/// Each function gets a fresh [`TestDatabase`](crate::database::TestDatabase) and becomes two
/// tests, `NAME::sqlite` and `NAME::postgres`, on a multi-threaded runtime. The crate that uses
/// the macro needs `tokio` among its dependencies.
///
/// ```
/// use canonry_testkit::database::TestDatabase;
/// use canonry_testkit::on_both_engines;
///
/// on_both_engines! {
///     async fn has_an_address(database: TestDatabase) {
///         assert!(database.url().contains(':'));
///     }
/// }
/// ```
#[macro_export]
macro_rules! on_both_engines {
    ($(
        $(#[$attribute:meta])*
        async fn $name:ident($database:ident: $type:ty) $body:block
    )+) => {$(
        // A function and a module may share a name. The body stays in the scope in which it was written.
        $(#[$attribute])*
        async fn $name($database: $type) $body

        mod $name {
            #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$name($crate::database::TestDatabase::sqlite()).await;
            }

            #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$name($crate::database::TestDatabase::postgres().await).await;
            }
        }
    )+};
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn only_the_database_of_a_url_is_replaced() {
        for (server, expected) in [
            ("postgres://u@h:5/postgres", "postgres://u@h:5/new"),
            ("postgres://u:p@h/", "postgres://u:p@h/new"),
            ("postgres://h", "postgres://h/new"),
            ("postgres://h/a?sslmode=disable&options=-c%20a=/b", "postgres://h/new?sslmode=disable&options=-c%20a=/b"),
            ("postgres://h?host=/run/pg", "postgres://h/new?host=/run/pg"),
        ] {
            assert_eq!(with_database(server, "new"), expected);
        }
    }
}
