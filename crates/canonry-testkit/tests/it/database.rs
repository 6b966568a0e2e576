//! Temporary databases are empty, isolated, and removed afterwards.

use std::str::FromStr;

use canonry_testkit::database::{Engine, POSTGRES_URL_VARIABLE, TestDatabase};
use canonry_testkit::on_both_engines;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

on_both_engines! {
    /// Two databases at once must not see each other's tables.
    async fn each_database_is_empty_and_apart(database: TestDatabase) {
        let other = match database.engine() {
            Engine::Sqlite => TestDatabase::sqlite(),
            Engine::Postgres => TestDatabase::postgres().await,
        };
        assert_ne!(database.url(), other.url());
        for url in [database.url(), other.url()] {
            match database.engine() {
                Engine::Sqlite => {
                    sqlx::raw_sql("create table mine (a int); insert into mine values (1)")
                        .execute(&mut sqlite(url).await)
                        .await
                        .expect("an empty database takes the table");
                }
                Engine::Postgres => {
                    let mut connection = PgConnection::connect(url).await.expect("it answers");
                    sqlx::raw_sql("create table mine (a int); insert into mine values (1)")
                        .execute(&mut connection)
                        .await
                        .expect("an empty database takes the table");
                }
            }
        }
    }

    async fn the_url_names_the_engine(database: TestDatabase) {
        let scheme = match database.engine() {
            Engine::Sqlite => "sqlite:",
            Engine::Postgres => "postgres",
        };
        assert!(database.url().starts_with(scheme), "{}", database.url());
        assert_eq!(database.folder().is_some(), database.engine() == Engine::Sqlite);
    }
}

#[test]
fn a_sqlite_folder_is_removed() {
    let database = TestDatabase::sqlite();
    let folder = database.folder().expect("SQLite has a folder").to_owned();
    assert!(folder.is_dir());
    drop(database);
    assert!(!folder.exists(), "{} is still there", folder.display());
}

#[tokio::test]
async fn a_postgres_database_is_removed_even_while_connected() {
    let database = TestDatabase::postgres().await;
    let mut leaked = PgConnection::connect(database.url()).await.expect("the new database answers");
    let name: String = sqlx::query_scalar("select current_database()::text")
        .fetch_one(&mut leaked)
        .await
        .expect("a database has a name");
    assert!(database.url().contains(&name));
    drop(database);

    let server = std::env::var(POSTGRES_URL_VARIABLE).expect("set, or there was no database");
    let mut connection = PgConnection::connect(&server).await.expect("it answers");
    let left: i64 = sqlx::query_scalar("select count(*) from pg_database where datname = $1")
        .bind(&name)
        .fetch_one(&mut connection)
        .await
        .expect("the catalogue answers");
    assert_eq!(left, 0, "{name} is still there");
}

#[tokio::test]
async fn the_server_has_vectors() {
    let database = TestDatabase::postgres().await;
    database.emptied().await;
    let mut connection = PgConnection::connect(database.url()).await.expect("the new database answers");
    sqlx::raw_sql("create extension vector")
        .execute(&mut connection)
        .await
        .expect("pgvector is part of the test server");
    let distance: f64 = sqlx::query_scalar("select '[1,0]'::vector <=> '[0,1]'::vector")
        .fetch_one(&mut connection)
        .await
        .expect("vectors have a distance");
    assert!((distance - 1.0).abs() < 1e-6, "{distance}");
}

async fn sqlite(url: &str) -> SqliteConnection {
    SqliteConnectOptions::from_str(url)
        .expect("a SQLite URL")
        .create_if_missing(true)
        .connect()
        .await
        .expect("the file can be created")
}

#[tokio::test]
async fn a_proxy_cuts_connections_off_and_lets_new_ones_through() {
    let database = TestDatabase::postgres().await;
    let (proxy, url) = database.proxied().await;
    let answers = async |connection: &mut PgConnection| sqlx::query("select 1").execute(connection).await.is_ok();
    let mut first = PgConnection::connect(&url).await.expect("it answers");
    assert!(answers(&mut first).await);
    proxy.cut();
    assert!(!answers(&mut first).await, "it was cut off");
    assert!(PgConnection::connect(&url).await.is_err(), "nobody gets through");
    proxy.restore();
    let mut second = PgConnection::connect(&url).await.expect("it answers again");
    assert!(answers(&mut second).await);
    database.end_connections().await;
    assert!(!answers(&mut second).await, "the server has ended it");
}
