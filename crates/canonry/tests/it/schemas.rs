//! Databases of older and newer programs: readers never migrate, and no command changes a newer one.

use canonry_store::{NEWEST_SCHEMA, Store};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::on_both_engines;
use sqlx::{Connection as _, PgConnection, SqliteConnection};

use crate::place::{ITEMS, Place, Ran};

fn canonry(place: &Place, database: &TestDatabase, arguments: &[&str]) -> Ran {
    Ran::of(place.command(arguments).env("CANONRY_DATABASE_URL", database.url()).output().expect("the program starts"))
}

async fn execute(database: &TestDatabase, statement: &'static str) {
    match database.engine() {
        Engine::Sqlite => {
            let mut connection = SqliteConnection::connect(database.url()).await.expect("it is there");
            sqlx::raw_sql(statement).execute(&mut connection).await.expect("it takes the statement");
            connection.close().await.expect("it closes");
        }
        Engine::Postgres => {
            let mut connection = PgConnection::connect(database.url()).await.expect("it is there");
            sqlx::raw_sql(statement).execute(&mut connection).await.expect("it takes the statement");
            connection.close().await.expect("it closes");
        }
    }
}

async fn version(database: &TestDatabase) -> i64 {
    let url = database.url().parse().expect("valid");
    Store::schema_version(&url).await.expect("it answers").0
}

const READERS: [&[&str]; 3] = [
    &["show", "--repo", "octo/cat", "--number", "1"],
    &["export", "--repo", "octo/cat"],
    &["maintainers", "list", "--repo", "octo/cat"],
];

/// The table of migrations after the first one.
const BOOK: &str =
    "CREATE TABLE schema_migrations (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL);
    INSERT INTO schema_migrations (version, name, applied_at) VALUES (1, '0001_corpus', 0)";

on_both_engines! {
    async fn readers_of_an_older_schema_say_what_to_run_and_change_nothing(database: TestDatabase) {
        database.emptied().await;
        let place = Place::new();
        // A database as written by a program that knew only the first migration.
        let first = match database.engine() {
            Engine::Sqlite => {
                let path = database.folder().expect("SQLite has a folder").join("canonry.db");
                std::fs::write(path, "").expect("the folder takes files");
                include_str!("../../../canonry-store/migrations/sqlite/0001_corpus.sql")
            }
            Engine::Postgres => include_str!("../../../canonry-store/migrations/postgres/0001_corpus.sql"),
        };
        execute(&database, BOOK).await;
        execute(&database, first).await;
        let needed = NEWEST_SCHEMA.0;
        for arguments in READERS {
            let ran = canonry(&place, &database, arguments);
            let message = ran.failed();
            assert!(message.contains(&format!(" has schema 1 and this program needs {needed}; run `canonry init --db ")), "{message}");
            assert_eq!(version(&database).await, 1, "{arguments:?}");
        }
        let doctor = canonry(&place, &database, &["doctor", "--json"]);
        assert_eq!((doctor.exit, version(&database).await), (Some(1), 1), "{doctor:?}");

        let init = canonry(&place, &database, &["init", "--json"]).succeeded().json();
        assert_eq!((&init["action"], &init["schema"]), (&"migrated".into(), &serde_json::json!({"before": 1, "after": needed})));
        assert!(canonry(&place, &database, READERS[0]).failed().contains(" is not in the database, which is empty"));
    }

    async fn a_newer_schema_is_left_alone_by_everybody(database: TestDatabase) {
        let place = Place::new();
        place.write("items.jsonl", ITEMS);
        canonry(&place, &database, &["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
        execute(&database, "INSERT INTO schema_migrations (version, name, applied_at) VALUES (99, 'from_the_future', 0)").await;
        let writers: [&[&str]; 3] = [
            &["init"],
            &["import", "--repo", "octo/dog", "items.jsonl"],
            &["maintainers", "set", "--repo", "octo/cat", "mona"],
        ];
        for arguments in READERS.iter().chain(&writers) {
            let ran = canonry(&place, &database, arguments);
            let message = ran.failed();
            let expected = format!(" has schema 99, newer than the {} that this program knows; nothing was changed; use a newer canonry", NEWEST_SCHEMA.0);
            assert!(message.ends_with(&expected), "{arguments:?}: {message}");
        }
        execute(&database, "DELETE FROM schema_migrations WHERE version = 99").await;
        let ran = canonry(&place, &database, &["export", "--repo", "octo/dog"]);
        assert!(ran.failed().contains("which has octo/cat;"), "{ran:?}");
    }

    async fn an_empty_database_is_made_by_init_alone(database: TestDatabase) {
        database.emptied().await;
        let place = Place::new();
        for arguments in READERS {
            let ran = canonry(&place, &database, arguments);
            assert!(ran.failed().starts_with("there is no database at "), "{ran:?}");
        }
        canonry(&place, &database, &["init"]).succeeded();
        assert!(canonry(&place, &database, READERS[0]).failed().contains(" is not in the database, which is empty"));
    }
}

#[tokio::test]
async fn another_programs_database_is_refused() {
    let place = Place::new();
    let database = TestDatabase::sqlite();
    let path = database.folder().expect("SQLite has a folder").join("canonry.db");
    std::fs::write(&path, "").expect("the folder takes files");
    execute(&database, "CREATE TABLE notes (a TEXT); INSERT INTO notes VALUES ('mine')").await;
    let before = std::fs::read(&path).expect("it is there");
    for arguments in [&["init"][..], &["import", "--repo", "octo/cat", "items.jsonl"]] {
        let message = canonry(&place, &database, arguments).failed().to_owned();
        assert!(
            message.ends_with("is another program's database; nothing was changed; name another file with --db"),
            "{message}"
        );
    }
    assert_eq!(std::fs::read(&path).expect("it is there"), before);
}
