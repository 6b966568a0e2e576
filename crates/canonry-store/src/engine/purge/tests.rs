//! Tests that a purge deletes every row of a repository and no other row.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{GithubId, RepoName};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::on_both_engines;
use jiff::{SignedDuration, Timestamp};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use super::{OF_ITEMS, PARTS, PurgePlace, TABLES};
use crate::engine::migrations::tests::fill;
use crate::engine::transaction::{Pool, on_pool};
use crate::{JobCaps, JobEnd, JobLease, JobScope, RepoId, Store};

/// Tables without rows about a single repository, with the reason.
const OTHERS: &[&str] = &[
    // The table of repositories itself.
    "repos",
    "schema_migrations",
    // Only times.
    "content_writes",
    "schedules",
    // Digests that cannot be traced back.
    "issued_markers",
    // Names of models and numbers.
    "calibrations",
    "secrets",
    // The largest number of a plan.
    "used_numbers",
    // People, whatever they view.
    "console_sessions",
];

/// Rows that the samples do not have, because other tests list all samples.
const MORE: &str = "INSERT INTO threshold_state (repo_id, component, state, updated_at)
        VALUES (1, 'sample', '{}', 0), (2, 'sample', '{}', 0);
    INSERT INTO deliveries (id, event, action, repo, number, payload, state, reason, received_at, finished_at)
        VALUES ('sample', 'issues', 'opened', 'quill/note', 1, '', 'done', NULL, 1760000000000000, 1760000000000001);
    INSERT INTO jobs (id, delivery_id, key, repo, kind, payload, state, attempts, run_after, created_at)
        VALUES (2001, 'sample', 'quill/note#1', 'quill/note', 'webhook', 'null', 'done', 1, 0, 0),
            (2002, NULL, 'reactions', NULL, 'reactions', '{}', 'queued', 0, 0, 0);";

fn now() -> Timestamp {
    "2026-02-01T00:00:00Z".parse().expect("valid")
}

fn name(text: &str) -> RepoName {
    text.parse().expect("a name")
}

async fn filled(database: &TestDatabase) -> Store {
    fill(database).await;
    let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
    database.execute(MORE).await;
    store
}

/// A foreign key: columns of a table, and the columns of another table that they refer to.
struct Link {
    table: String,
    columns: String,
    other: String,
    other_columns: String,
}

async fn links(database: &TestDatabase) -> Vec<Link> {
    let rows: Vec<(String, String, String, String)> = match database.engine() {
        Engine::Sqlite => {
            let mut connection = SqliteConnection::connect(database.url()).await.expect("opens");
            let query = "SELECT m.name, group_concat(f.\"from\", ', ' ORDER BY f.seq), f.\"table\", group_concat(f.\"to\", ', ' ORDER BY f.seq)
                FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table' GROUP BY m.name, f.id, f.\"table\"";
            sqlx::query_as(query).fetch_all(&mut connection).await.expect("reads")
        }
        Engine::Postgres => {
            let mut connection = PgConnection::connect(database.url()).await.expect("opens");
            let query = "SELECT c.conrelid::regclass::text,
                    (SELECT string_agg(a.attname, ', ' ORDER BY k.place) FROM unnest(c.conkey) WITH ORDINALITY k (number, place)
                        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.number),
                    c.confrelid::regclass::text,
                    (SELECT string_agg(a.attname, ', ' ORDER BY k.place) FROM unnest(c.confkey) WITH ORDINALITY k (number, place)
                        JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.number)
                FROM pg_constraint c WHERE c.contype = 'f'";
            sqlx::query_as(query).fetch_all(&mut connection).await.expect("reads")
        }
    };
    let link = |(table, columns, other, other_columns)| Link { table, columns, other, other_columns };
    rows.into_iter().map(link).collect()
}

async fn tables(store: &Store) -> BTreeSet<String> {
    let names: Vec<String> = match &store.pool {
        Pool::Sqlite(db) => {
            let query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
            sqlx::query_scalar(query).fetch_all(db).await.expect("reads")
        }
        Pool::Postgres(db) => {
            let query = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'";
            sqlx::query_scalar(query).fetch_all(db).await.expect("reads")
        }
    };
    names.into_iter().collect()
}

/// Returns the condition for rows of a table that belong to a repository by any path of foreign keys; `None` if no
/// path exists.
fn belongs(links: &[Link], table: &str, repo: i64) -> Option<String> {
    let ways: Vec<String> = links
        .iter()
        .filter(|link| link.table == table && link.other != table)
        .filter_map(|link| {
            if link.other == "repos" {
                return Some(format!("{} = {repo}", link.columns));
            }
            let condition = belongs(links, &link.other, repo)?;
            Some(format!("({}) IN (SELECT {} FROM {} WHERE {condition})", link.columns, link.other_columns, link.other))
        })
        .collect();
    (!ways.is_empty()).then(|| format!("({})", ways.join(" OR ")))
}

async fn counted(store: &Store, table: &str, condition: &str) -> i64 {
    let query = AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE {condition}"));
    on_pool!(&store.pool, |db| sqlx::query_scalar(query).fetch_one(db).await.expect("counts"))
}

/// Counts the rows of every table, and the repository's rows in every table that refers to it.
async fn all_rows(store: &Store, links: &[Link], repo: (i64, &str)) -> (BTreeMap<String, i64>, BTreeMap<String, i64>) {
    let (mut all, mut of_repo) = (BTreeMap::new(), BTreeMap::new());
    for table in tables(store).await {
        all.insert(table.clone(), counted(store, &table, "TRUE").await);
        let condition = match table.as_str() {
            "jobs" | "deliveries" => Some(format!("repo = '{}'", repo.1)),
            _ => belongs(links, &table, repo.0),
        };
        if let Some(condition) = condition {
            of_repo.insert(table.clone(), counted(store, &table, &condition).await);
        }
    }
    (all, of_repo)
}

async fn key_of(store: &Store, repo: &RepoName) -> Option<RepoId> {
    store.repos().find(repo).await.expect("reads").map(|repo| repo.id)
}

/// Purges as if the process were killed after every few steps.
async fn purge(store: &Store, repo: &RepoName, most: u32, steps_until_killed: usize) {
    for _ in 0..500 {
        let mut place = PurgePlace::default();
        for _ in 0..steps_until_killed {
            match store.maintenance().purge_some(repo, key_of(store, repo).await, place, most).await.expect("deletes") {
                Some(next) => place = next,
                None => return,
            }
        }
    }
    panic!("it never ends");
}

on_both_engines! {
    async fn every_table_forgets_the_repository_and_keeps_the_other(database: TestDatabase) {
        let store = filled(&database).await;
        let links = links(&database).await;
        let (before, of_one) = all_rows(&store, &links, (1, "tide/pool")).await;
        let (_, of_other) = all_rows(&store, &links, (2, "quill/note")).await;

        let known: BTreeSet<&str> = TABLES.iter().map(|(table, _)| *table).collect();
        let in_schema: BTreeSet<&str> = of_one.keys().map(String::as_str).collect();
        assert_eq!(known, in_schema, "the purge and the schema differ in which tables tell of a repository");
        let told: BTreeSet<&str> = known.iter().copied().chain(OTHERS.iter().copied()).collect();
        let there: BTreeSet<&str> = before.keys().map(String::as_str).collect();
        assert_eq!(told, there, "a table is neither a repository's nor known to be nobody's");
        for (table, rows) in of_one.iter().chain(&of_other) {
            assert!(*rows > 0, "{table} has no sample of each repository");
        }
        // A person sees the same numbers before the purge.
        let counts = store.maintenance().rows_about(&name("Tide/POOL")).await.expect("counts");
        let counts: BTreeMap<String, i64> = counts.into_iter().map(|(table, rows)| (table.to_owned(), i64::try_from(rows).expect("few"))).collect();
        assert_eq!(counts, of_one);

        purge(&store, &name("Tide/POOL"), 1, 60).await;

        let (after, left) = all_rows(&store, &links, (1, "tide/pool")).await;
        assert!(left.values().all(|rows| *rows == 0), "{left:?}");
        let (_, kept) = all_rows(&store, &links, (2, "quill/note")).await;
        assert_eq!(kept, of_other);
        assert_eq!(store.repos().find(&name("tide/pool")).await.expect("reads"), None);
        for (table, rows) in &before {
            let gone = match table.as_str() {
                "repos" => 1,
                _ => of_one.get(table).copied().unwrap_or_default(),
            };
            assert_eq!(after[table], rows - gone, "{table}");
        }
        // A second purge finds nothing to do, and the repository comes back as a new one.
        purge(&store, &name("tide/pool"), 1, 9).await;
        let anew = store.repos().ensure(&name("tide/pool"), now()).await.expect("stored");
        assert_eq!(anew.github_id, None);
        assert!(store.maintenance().rows_about(&anew.name).await.expect("counts").iter().all(|(_, rows)| *rows == 0));
    }

    async fn another_repository_that_gets_the_name_meanwhile_is_kept(database: TestDatabase) {
        let store = filled(&database).await;
        let old = name("tide/pool");
        let repo = store.repos().find(&old).await.expect("reads").expect("is known");
        let mut place = store.maintenance().purge_some(&old, Some(repo.id), PurgePlace::default(), 2).await.expect("deletes");
        let id = repo.github_id.unwrap_or(GithubId(77_777));
        let renamed = store.repos().identify(repo.id, id, &name("tide/renamed")).await.expect("noted");
        assert!(renamed.is_some());
        let namesake = store.repos().ensure(&old, now()).await.expect("stored");
        while let Some(at) = place {
            place = store.maintenance().purge_some(&old, Some(repo.id), at, 50).await.expect("deletes");
        }
        assert_eq!(store.repos().find(&name("tide/renamed")).await.expect("reads"), None);
        assert_eq!(store.repos().find(&old).await.expect("reads"), Some(namesake));
    }

    async fn a_purge_that_is_killed_again_and_again_ends_the_same(database: TestDatabase) {
        let store = filled(&database).await;
        let links = links(&database).await;
        // Each run gets one step further than the last; every repeated step finds nothing.
        for steps in 1..200 {
            let mut place = Some(PurgePlace::default());
            for _ in 0..steps {
                let Some(at) = place else { break };
                place = store.maintenance().purge_some(&name("tide/pool"), key_of(&store, &name("tide/pool")).await, at, 2).await.expect("deletes");
            }
            if place.is_none() {
                let (_, left) = all_rows(&store, &links, (1, "tide/pool")).await;
                assert!(left.values().all(|rows| *rows == 0), "{left:?}");
                assert!(steps >= PARTS.len(), "{steps} steps");
                return;
            }
        }
        panic!("it never ended");
    }

    async fn no_transaction_deletes_much_more_than_it_was_told_to(database: TestDatabase) {
        let store = filled(&database).await;
        // Sixty items that were all compared with, judged against and commented about the first one.
        database.execute("INSERT INTO items (id, repo_id, type, number, title, body, state, merged, draft, labels, comments, review_comments, content_hash, content_version)
                WITH RECURSIVE n (i) AS (SELECT 3001 UNION ALL SELECT i + 1 FROM n WHERE i < 3060)
                SELECT i, 1, 'issue', i, 'again', '', 'open', FALSE, FALSE, '[]', 0, 0, 'h', 1 FROM n;
            INSERT INTO candidate_sets (id, item_id, representation, status, content_version, model, created_at)
                SELECT id, id, 'raw', 'fresh', 1, 'local', 0 FROM items WHERE id > 3000;
            INSERT INTO candidate_set_members (set_id, rank, item_id, score, parts) SELECT id, 1, 1, 0.9, '{}' FROM items WHERE id > 3000;
            INSERT INTO judge_decisions (id, repo_id, item_id, target_item_id, representation, candidate_set_id, origin, status, structure, provider, model,
                    prompt_version, config_hash, input_hash, source_version, candidates, created_at, run_id)
                SELECT id, 1, id, 1, 'raw', id, 'batch', 'rejected', '{}', 'local', 'm', 1, 'c', 'i', 1, '[]', 0, 'r' FROM items WHERE id > 3000;
            INSERT INTO triage_records (id, repo_id, item_id, verdict, target_item_id, is_duplicate, reason, reasoning, effective_source, provider, model,
                    prompt_version, config_hash, content_version, embed_model, created_at, run_id)
                SELECT id, 1, id, 'duplicate', 1, TRUE, 'duplicate', '', 'raw', 'local', 'm', 1, 'c', 1, 'e', 0, 'r' FROM items WHERE id > 3000;
            INSERT INTO triage_candidates (triage_id, rank, item_id, score, parts, state, judged) SELECT id, 1, 1, 0.9, '{}', 'open', TRUE FROM items WHERE id > 3000").await;
        let rows = async || {
            let mut rows = 0;
            for table in tables(&store).await {
                rows += counted(&store, &table, "TRUE").await;
            }
            rows
        };
        let mut place = PurgePlace::default();
        let mut left = rows().await;
        let mut largest = 0;
        for _ in 0..200 {
            let Some(next) = store.maintenance().purge_some(&name("tide/pool"), key_of(&store, &name("tide/pool")).await, place, 5).await.expect("deletes") else { break };
            place = next;
            let now = rows().await;
            largest = largest.max(left - now);
            left = now;
        }
        assert_eq!(store.repos().find(&name("tide/pool")).await.expect("reads"), None);
        // Five items with five rows each; more than three hundred rows refer to the first item alone.
        assert!((25..=60).contains(&largest), "{largest} rows in one transaction");
    }

    async fn what_is_in_hand_is_taken_away_from_its_worker(database: TestDatabase) {
        let store = filled(&database).await;
        let caps = JobCaps { per_repo: 4, in_all: 9 };
        let until = now() + SignedDuration::from_secs(20);
        let job = store.jobs().lease("worker", caps, JobScope::All, now(), until).await.expect("leases").expect("one waits");
        assert_eq!(job.repo, Some(name("tide/pool")));
        purge(&store, &name("tide/pool"), 100, 60).await;
        let lease = JobLease { id: job.id, owner: "worker" };
        assert!(!store.jobs().renew(lease, until).await.expect("asks"), "its worker stops");
        assert!(!store.jobs().end(lease, JobEnd::Done, now()).await.expect("asks"));
    }

    async fn a_name_without_a_repository_may_have_webhooks(database: TestDatabase) {
        let store = filled(&database).await;
        database.execute("INSERT INTO deliveries (id, event, repo, payload, state, received_at) VALUES ('former', 'star', 'tide/former', '', 'ignored', 0)").await;
        let former = name("tide/former");
        let rows = async || store.maintenance().rows_about(&former).await.expect("counts").into_iter().map(|(_, rows)| rows).sum::<u64>();
        assert_eq!(rows().await, 1);
        purge(&store, &former, 10, 60).await;
        assert_eq!(rows().await, 0);
        assert!(store.repos().find(&name("tide/pool")).await.expect("reads").is_some());
    }

    async fn vectors_of_one_model_go_alone(database: TestDatabase) {
        let store = filled(&database).await;
        let repo = store.repos().find(&name("quill/note")).await.expect("reads").expect("known").id;
        let mut after = Some(0);
        while let Some(place) = after {
            after = store.maintenance().purge_vectors(repo, "former", place, 1).await.expect("deletes");
        }
        let kept = async |model: &str| {
            let condition = format!("item_id > 2000 AND model = '{model}'");
            (counted(&store, "embeddings", &condition).await, counted(&store, "token_vectors", &condition).await)
        };
        assert_eq!((kept("former").await, kept("local").await), ((0, 0), (1, 1)));
        assert_eq!(counted(&store, "embeddings", "item_id < 2000").await, 1, "another repository's");
    }
}

/// Deleting a row searches for rows that refer to it. Without an index it walks a whole table for every row, and a
/// purge of a hundred thousand items never ends. Repositories are few.
#[tokio::test]
async fn every_foreign_key_leads_an_index() {
    /// A table, whether the index is partial, its SQL, and its columns.
    type Index = (String, bool, Option<String>, Option<String>);
    let database = TestDatabase::sqlite();
    let store = filled(&database).await;
    let Pool::Sqlite(db) = &store.pool else { panic!("it is SQLite") };
    let query = "SELECT m.name, l.partial, i.sql,
            (SELECT group_concat(c.name, ', ' ORDER BY c.seqno) FROM pragma_index_info(l.name) c)
        FROM sqlite_master m, pragma_index_list(m.name) l LEFT JOIN sqlite_master i ON i.name = l.name WHERE m.type = 'table'";
    let mut indexes: Vec<Index> = sqlx::query_as(query).fetch_all(db).await.expect("reads");
    // A key of one integer is the rowid itself, for which no index is listed.
    let own: Vec<(String, String)> = sqlx::query_as(
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table' AND p.pk = 1",
    )
    .fetch_all(db)
    .await
    .expect("reads");
    indexes.extend(own.into_iter().map(|(table, column)| (table, false, None, Some(column))));
    for link in links(&database).await.iter().filter(|link| link.other != "repos") {
        let present = format!("WHERE {} IS NOT NULL", link.columns);
        let leads = indexes.iter().any(|(table, partial, sql, columns)| {
            *table == link.table
                && columns.as_deref().is_some_and(|columns| {
                    columns == link.columns || columns.starts_with(&format!("{}, ", link.columns))
                })
                && (!partial || sql.as_deref().is_some_and(|sql| sql.ends_with(&present)))
        });
        assert!(leads, "no index finds the rows of {} by {}", link.table, link.columns);
    }
    for table in OF_ITEMS {
        assert!(TABLES.iter().any(|(known, _)| known == table), "{table}");
    }
}

/// The tables from which the program itself deletes rows, as in the operations guide; all other rows stay until a
/// purge.
#[test]
fn only_these_tables_lose_rows_by_themselves() {
    let mut tables = BTreeSet::new();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = std::fs::read_dir(folder).expect("the sources").flatten().filter(|entry| entry.path().is_dir());
    let entries = folders.flat_map(|folder| std::fs::read_dir(folder.path()).expect("a folder of sources").flatten());
    for entry in entries.filter(|entry| entry.path().is_file()) {
        let text = std::fs::read_to_string(entry.path()).expect("a source");
        let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let named = program.split("DELETE FROM ").skip(1).map(|rest| {
            rest.chars().take_while(|letter| letter.is_ascii_lowercase() || *letter == '_').collect::<String>()
        });
        tables.extend(named.filter(|_| entry.file_name() != "purge.rs"));
    }
    let told = [
        // Deleted because of age.
        "console_actions",
        "console_sessions",
        "content_writes",
        "deliveries",
        "jobs",
        // Of what left its repository, in a database of GitHub Actions.
        "findings",
        "intent_cards",
        "remarks",
        "review_runs",
        // Recomputed from other rows, or released.
        "canonicals",
        "close_leases",
        "embeddings",
        "secrets",
        "threshold_state",
        "token_vectors",
    ];
    assert_eq!(tables, told.map(str::to_owned).into());
}
