//! Tests that both engines get the same logical schema, and that every migration applies to a filled database.

use std::collections::{BTreeMap, HashSet};

use canonry_domain::review::{HiddenBy, ReviewSubject, ShownAs};
use canonry_domain::{
    AuditClass, CurrentThreshold, FixKind, IssueResolution, ItemNumber, ItemType, Login, OverrideKind, Verdict,
    WriteOrigin, WriteSource,
};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::on_both_engines;
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, PgConnection, SqliteConnection};

use super::{BOOK, MIGRATIONS, NEWEST_SCHEMA, NOTE, migrate_postgres, migrate_sqlite};
use crate::{
    CloseMode, DatabaseUrl, DeliveryFilter, EmbeddingKey, ItemPageFilter, JobFilter, MemoryOutcome, OpenError,
    RepoAccess, RepoId, Representation, ReviewState, Store,
};

/// Rows as each version wrote them, the same text for both engines.
const SAMPLES: &[&str] = &[
    include_str!("../../../migrations/samples/0001_corpus.sql"),
    include_str!("../../../migrations/samples/0002_candidate_sets.sql"),
    include_str!("../../../migrations/samples/0003_sync.sql"),
    include_str!("../../../migrations/samples/0004_outbox.sql"),
    include_str!("../../../migrations/samples/0005_embeddings.sql"),
    include_str!("../../../migrations/samples/0006_intent_cards.sql"),
    include_str!("../../../migrations/samples/0007_duplicates.sql"),
    include_str!("../../../migrations/samples/0008_service.sql"),
    include_str!("../../../migrations/samples/0009_learning.sql"),
    include_str!("../../../migrations/samples/0010_review.sql"),
    include_str!("../../../migrations/samples/0011_on_github.sql"),
    include_str!("../../../migrations/samples/0012_token_vectors.sql"),
    include_str!("../../../migrations/samples/0013_console.sql"),
    include_str!("../../../migrations/samples/0014_purge.sql"),
    include_str!("../../../migrations/samples/0015_used_numbers.sql"),
    include_str!("../../../migrations/samples/0016_write_priority.sql"),
    include_str!("../../../migrations/samples/0017_decisions.sql"),
    include_str!("../../../migrations/samples/0018_item_conditions.sql"),
    include_str!("../../../migrations/samples/0019_boilerplate.sql"),
    include_str!("../../../migrations/samples/0020_issued_markers.sql"),
    include_str!("../../../migrations/samples/0021_judge_proofs.sql"),
    include_str!("../../../migrations/samples/0022_index_changes.sql"),
    include_str!("../../../migrations/samples/0023_write_origins.sql"),
    include_str!("../../../migrations/samples/0024_activity.sql"),
    include_str!("../../../migrations/samples/0025_code_excerpts.sql"),
    include_str!("../../../migrations/samples/0026_fixes.sql"),
    include_str!("../../../migrations/samples/0027_remarks.sql"),
    include_str!("../../../migrations/samples/0028_backtest_readings.sql"),
    include_str!("../../../migrations/samples/0029_changes_as_of.sql"),
];

fn now() -> Timestamp {
    "2026-02-01T00:00:00Z".parse().expect("valid")
}

#[test]
fn every_migration_has_a_sample() {
    assert_eq!(SAMPLES.len(), MIGRATIONS.len());
    for (number, migration) in (1..).zip(MIGRATIONS) {
        assert!(migration.name.starts_with(&format!("{number:04}_")), "{} is not number {number}", migration.name);
    }
}

/// Each migration runs on the data of all earlier versions; then the newest program reads it.
#[tokio::test]
async fn each_migration_applies_to_a_filled_sqlite_database() {
    let database = TestDatabase::sqlite();
    fill(&database).await;
    reads_the_samples(&database).await;
}

#[tokio::test]
async fn each_migration_applies_to_a_filled_postgres_database() {
    let database = TestDatabase::postgres().await;
    fill(&database).await;
    reads_the_samples(&database).await;
}

/// The samples set their keys, which PostgreSQL's sequences do not count: the next row would get a key that is taken.
const COUNT_ON: &str = "DO $$ DECLARE key RECORD; BEGIN
    FOR key IN SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = current_schema() AND is_identity = 'YES' LOOP
        EXECUTE format('SELECT setval(pg_get_serial_sequence(%L, %L), coalesce(max(%I), 0) + 1, FALSE) FROM %I',
            key.table_name, key.column_name, key.column_name, key.table_name);
    END LOOP; END $$";

/// Applies every migration, each followed by its sample rows.
pub(crate) async fn fill(database: &TestDatabase) {
    database.emptied().await;
    match database.engine() {
        Engine::Sqlite => {
            let path = database.url().trim_start_matches("sqlite:").to_owned();
            let options = SqliteConnectOptions::new().filename(path).create_if_missing(true).foreign_keys(true);
            let mut connection = SqliteConnection::connect_with(&options).await.expect("opens");
            sqlx::query(BOOK).execute(&mut connection).await.expect("the book");
            for (version, (migration, sample)) in (1_i64..).zip(MIGRATIONS.iter().zip(SAMPLES)) {
                sqlx::raw_sql(migration.sqlite).execute(&mut connection).await.expect(migration.name);
                let note = sqlx::query(NOTE).bind(version).bind(migration.name).bind(0_i64);
                note.execute(&mut connection).await.expect("noted");
                sqlx::raw_sql(*sample).execute(&mut connection).await.expect(migration.name);
            }
            assert_eq!(migrate_sqlite(&mut connection, 0).await.expect("nothing to do"), NEWEST_SCHEMA);
            connection.close().await.expect("closes");
        }
        Engine::Postgres => {
            let mut connection = PgConnection::connect(database.url()).await.expect("opens");
            sqlx::query(BOOK).execute(&mut connection).await.expect("the book");
            for (version, (migration, sample)) in (1_i64..).zip(MIGRATIONS.iter().zip(SAMPLES)) {
                sqlx::raw_sql(migration.postgres).execute(&mut connection).await.expect(migration.name);
                let note = sqlx::query(NOTE).bind(version).bind(migration.name).bind(0_i64);
                note.execute(&mut connection).await.expect("noted");
                sqlx::raw_sql(*sample).execute(&mut connection).await.expect(migration.name);
            }
            sqlx::raw_sql(COUNT_ON).execute(&mut connection).await.expect("counted on");
            assert_eq!(migrate_postgres(&mut connection, 0).await.expect("nothing to do"), NEWEST_SCHEMA);
            connection.close().await.expect("closes");
        }
    }
}

async fn reads_the_samples(database: &TestDatabase) {
    let url: DatabaseUrl = database.url().parse().expect("valid");
    let store = Store::open_existing(&url).await.expect("opens");
    let repo = store.repos().find(&"tide/POOL".parse().expect("valid")).await.expect("reads").expect("known");
    let issue = "issue".parse().expect("valid");
    let number = "1".parse().expect("valid");
    let item = store.corpus().item(repo.id, issue, number).await.expect("reads").expect("known");
    assert_eq!(
        (item.title.as_str(), item.content_version.get(), item.labels.as_slice()),
        ("Sync stops", 2, &["bug".to_owned()][..])
    );
    let sets = store.duplicates().candidate_sets(repo.id, issue, number).await.expect("reads");
    assert_eq!((sets.len(), sets[0].members[0].score), (2, 0.9132));
    let cards = store.corpus().intent_cards(repo.id, issue, number).await.expect("reads");
    let told: Vec<_> =
        cards.iter().map(|card| (card.maker.extractor.as_str(), card.outcome.status(), card.fresh)).collect();
    assert_eq!(told, [("local", "ready", true), ("openai", "failed", false)]);
    assert_eq!(store.learning().outcome_events(repo.id, number).await.expect("reads").len(), 1);
    let (key, numbers) = (EmbeddingKey::raw("local"), [number]);
    let entries = store.corpus().index_entries(repo.id, issue, &numbers, Some(&key)).await.expect("reads");
    assert_eq!(entries[0].vector.as_ref().map(Vec::len), Some(2));
    let tokens = store.corpus().token_vectors(repo.id, &key, issue, &numbers).await.expect("reads");
    assert_eq!((tokens[&number].width(), tokens[&number].len()), (32, 1));
    reads_the_origins_of_writes(&store, repo.id).await;
    reads_the_duplicates(&store, repo.id).await;
    reads_the_service(&store).await;
    reads_what_was_learned(&store, repo.id).await;
    reads_the_reviews(&store, repo.id).await;
    reads_the_console(&store, repo.id).await;
    assert!(store.corpus().sync_progress(repo.id).await.expect("reads").watermark.is_some());
    store.disconnect().await;
    learns_from_what_earlier_versions_left(&url, repo.id).await;
}

/// Every write has an origin, whatever key an earlier version wrote, and what the key named is stored beside it.
async fn reads_the_origins_of_writes(store: &Store, repo: RepoId) {
    let head = Some("0123456789abcdef0123456789abcdef01234567");
    let expected = [
        ("triage:1:issue:1:2", WriteOrigin::TriageComment, Some(ItemType::Issue), Some(2), None),
        ("triage-edit:1:issue:1:31", WriteOrigin::TriageEdit, Some(ItemType::Issue), Some(31), None),
        ("triage-label:1:pr:1:31", WriteOrigin::TriageLabel, Some(ItemType::Pr), Some(31), None),
        ("triage-unlabel:1:issue:1:31", WriteOrigin::TriageUnlabel, Some(ItemType::Issue), Some(31), None),
        ("triage-grace:1:issue:1:5", WriteOrigin::GraceCancelled, Some(ItemType::Issue), Some(5), None),
        ("triage-ruled:1:issue:1:6", WriteOrigin::RulingEdit, Some(ItemType::Issue), Some(6), None),
        ("triage-ruled-label:1:issue:1:6", WriteOrigin::RulingUnlabel, Some(ItemType::Issue), Some(6), None),
        ("close:4:issue:1", WriteOrigin::Close, Some(ItemType::Issue), Some(4), None),
        ("label:4:issue:1", WriteOrigin::CloseLabel, Some(ItemType::Issue), Some(4), None),
        ("undo:4:pr:1", WriteOrigin::UndoComment, Some(ItemType::Pr), Some(4), None),
        ("unlabel:4:issue:1", WriteOrigin::UndoUnlabel, Some(ItemType::Issue), Some(4), None),
        ("reopen:4:issue:1", WriteOrigin::Reopen, Some(ItemType::Issue), Some(4), None),
        ("reopen:4:issue:1:2", WriteOrigin::Reopen, Some(ItemType::Issue), Some(4), None),
        ("backlink:1:issue:1", WriteOrigin::BackLink, Some(ItemType::Issue), None, None),
        ("backlink:1:issue:1:9:0a1b2c3d4e5f6071", WriteOrigin::BackLink, Some(ItemType::Issue), None, None),
        ("repoint:9:issue:1:0a1b2c3d4e5f6071", WriteOrigin::Repoint, Some(ItemType::Issue), Some(9), None),
        ("review/9#1/post/3-0", WriteOrigin::ReviewPost, None, Some(3), None),
        ("review/9#1/summary/3-0", WriteOrigin::ReviewSummary, None, Some(3), None),
        (
            "review/9#1/summary/not-0123456789abcdef0123456789abcdef01234567-job_5-0",
            WriteOrigin::ReviewSummary,
            None,
            None,
            head,
        ),
        ("review/9#1/summary-edit/3-1", WriteOrigin::ReviewSummaryEdit, None, Some(3), None),
        ("review/9#1/check/3-0", WriteOrigin::ReviewCheck, None, Some(3), None),
        (
            "review/9#1/check/begin-0123456789abcdef0123456789abcdef01234567-0",
            WriteOrigin::ReviewCheck,
            None,
            None,
            head,
        ),
        (
            "review/9#1/check/not-0123456789abcdef0123456789abcdef01234567-job_5-0",
            WriteOrigin::ReviewCheck,
            None,
            None,
            head,
        ),
        (
            "review/9#1/check/left-0123456789abcdef0123456789abcdef01234567-0",
            WriteOrigin::ReviewCheckLeft,
            None,
            None,
            head,
        ),
        ("review/9#1/resolve/3-8000", WriteOrigin::ReviewResolve, None, Some(3), None),
        ("review/9#1/settle/3-8000", WriteOrigin::ReviewSettle, None, Some(3), None),
        ("mention/9#1/issue/7000000005", WriteOrigin::MentionAnswer, None, Some(7000000005), None),
        ("mention/9#1/dismissal/7000000005", WriteOrigin::DismissalAnswer, None, Some(7000000005), None),
        ("mention/9#1/grace/5", WriteOrigin::RulingAnswer, None, Some(5), None),
        ("brake/9#1/3", WriteOrigin::BreakerNotice, None, Some(3), None),
    ];
    let entries = store.outbox().of_item(repo, ItemNumber::new(1).expect("positive")).await.expect("reads");
    for (key, origin, item_type, record, commit) in expected {
        let entry = entries.iter().find(|entry| entry.key == key).expect(key);
        let commit = commit.map(str::to_owned);
        assert_eq!(entry.source, WriteSource { origin, item_type, record, commit }, "{key}");
    }
    let is_of_samples = |key: &str| key.starts_with("sample/");
    assert!(entries.iter().all(|one| (one.source.origin == WriteOrigin::Other) == is_of_samples(&one.key)));
    let all = entries.iter().map(|entry| entry.source.origin);
    assert_eq!(all.collect::<HashSet<_>>().len(), WriteOrigin::ALL.len());
}

async fn reads_the_duplicates(store: &Store, repo: RepoId) {
    let issue = ItemType::Issue;
    let number = |number| ItemNumber::new(number).expect("valid");
    let sets = store.duplicates().candidate_sets(repo, issue, number(1)).await.expect("reads");
    assert_eq!((sets[0].pairs.as_slice(), sets[1].pairs.len()), (&[(number(1), number(3), 0.9)][..], 0));
    let decisions = store.judge().decisions_of(repo, issue, number(3)).await.expect("reads");
    assert_eq!((decisions.len(), decisions[0].superseded_at, decisions[1].candidates.len()), (2, None, 1));
    let edges = store.judge().accepted_edges(repo, issue, Representation::Raw).await.expect("reads");
    assert_eq!((edges.len(), edges[0].target, edges[0].confidence.get()), (1, number(1), 0.96));
    let rulings = store.duplicates().overrides(repo, None).await.expect("reads");
    let kinds: Vec<OverrideKind> = rulings.iter().map(|ruled| ruled.kind).collect();
    assert_eq!(kinds, [OverrideKind::Canonical, OverrideKind::Excluded]);
    assert_eq!(store.duplicates().canonicals(repo, issue, Representation::Raw).await.expect("reads").len(), 2);
    let closes = store.plans().applied_closes(repo, issue).await.expect("reads");
    assert_eq!((closes.len(), closes[0].approved, closes[0].undone_at), (1, Some(true), None));
    let plan = store.plans().run(closes[0].plan_id).await.expect("reads").expect("known");
    assert_eq!((plan.mode, store.plans().rows(plan.id).await.expect("reads").len()), (CloseMode::Plan, 1));
    assert_eq!(store.close().lease(repo).await.expect("reads").expect("taken").owner, "run-4");
    let told = store.duplicates().triage_records_of(repo, issue, number(3)).await.expect("reads");
    assert_eq!((told[0].record.target, told[0].record.candidates.len()), (Some(number(1)), 1));
    let told = store.duplicates().triage_records_of(repo, issue, number(1)).await.expect("reads");
    let fix = told[0].record.fix.as_ref().expect("a fix");
    assert_eq!(
        (fix.kind, fix.report, fix.fix, fix.release.as_deref()),
        (FixKind::Fixed, number(3), number(2), Some("v1.4"))
    );
    assert_eq!(store.repos().default_branch(repo).await.expect("reads").as_deref(), Some("main"));
    let audit = store.judge().latest_audit(repo).await.expect("reads").expect("known");
    assert_eq!(store.judge().audit_items(audit.id).await.expect("reads")[0].class, AuditClass::Fp);
    assert_eq!(store.models().calls_of_run("run-5").await.expect("reads").len(), 2);
}

async fn reads_the_service(store: &Store) {
    let deliveries = store.deliveries().list(&DeliveryFilter::default(), 10).await.expect("reads");
    let told: Vec<_> = deliveries.iter().map(|delivery| (delivery.event.as_str(), delivery.state.as_str())).collect();
    assert_eq!(told, [("star", "ignored"), ("issues", "dead"), ("issues", "queued")]);
    let payload = store.deliveries().payload(&deliveries[2].id).await.expect("reads").expect("known");
    assert!(payload.contains("a\\u0000b"), "{payload}");
    let jobs = store.jobs().list(&JobFilter::default(), 10).await.expect("reads");
    let told: Vec<_> = jobs.iter().map(|job| (job.kind.as_str(), job.state.as_str(), job.attempts)).collect();
    assert_eq!(told, [("sync", "queued", 0), ("webhook", "dead", 8), ("webhook", "running", 1)]);
}

async fn reads_the_reviews(store: &Store, repo: RepoId) {
    let pull = ReviewSubject::Pull(ItemNumber::new(2).expect("valid"));
    let runs = store.review().runs(repo, None, 10).await.expect("reads");
    let told: Vec<_> = runs.iter().map(|run| (run.subject.to_string(), run.state, run.attempts)).collect();
    let (branch, subject) = ("branch/topic".to_owned(), pull.to_string());
    assert_eq!(
        told,
        [
            (branch, ReviewState::Failed, 1),
            (subject.clone(), ReviewState::Running, 2),
            (subject, ReviewState::Completed, 1)
        ]
    );
    let reviews = store.review().list(repo, Some(&pull), 10).await.expect("reads");
    assert_eq!((reviews.len(), reviews[0].notes.len(), reviews[0].cost_usd), (1, 1, 0.02));
    let sightings = store.review().sightings(reviews[0].id).await.expect("reads");
    let told: Vec<_> = sightings.iter().map(|one| (one.shown, one.hidden_by.as_ref(), one.confidence.get())).collect();
    let by = HiddenBy::Pattern("glob:*eval*".to_owned());
    assert_eq!(told, [(ShownAs::Inline, None, 80), (ShownAs::Suppressed, Some(&by), 45)]);
    let ledger = store.review().ledger(repo, &pull).await.expect("reads");
    assert_eq!((ledger.len(), ledger[0].earlier.dismissals.len(), ledger[0].said_inline), (2, 1, true));
    assert_eq!(store.findings().dismissals_of(ledger[0].id).await.expect("reads").len(), 2);
    let patterns = store.findings().pattern_feedback(repo).await.expect("reads");
    assert_eq!((patterns.len(), patterns[0].feedback.thumbs_down, patterns[0].protected), (1, 1, true));
    let memories = store.findings().memories(repo, true, "local", 10).await.expect("reads");
    assert_eq!((memories.len(), memories[0].outcome, memories[0].vector.len()), (1, MemoryOutcome::Dismissed, 2));
    assert_eq!(store.review().statistics(repo, None).await.expect("reads").findings, 2);
    assert_eq!(store.findings().global_patterns(10).await.expect("reads")[0].dismissed, 1);
}

async fn reads_the_console(store: &Store, repo: RepoId) {
    let hash = |digits: &str| {
        let byte = |place: usize| u8::from_str_radix(&digits[place * 2..place * 2 + 2], 16).expect("two digits");
        std::array::from_fn::<u8, 32, _>(byte)
    };
    let kept = hash("8d70d691c822d55638b6e7fd54cd94170c87d19eb1f628b757506ede5688d297");
    let soon = Timestamp::from_microsecond(1_760_000_000_000_002).expect("in range");
    let seal = hash("b1946ac92492d2347c6235b4d2611184b1946ac92492d2347c6235b4d2611184");
    let session = store.console().session(&kept, &seal, soon).await.expect("reads").expect("it lasts");
    assert_eq!((session.is_operator, session.login), (true, None));
    let ended = hash("50868f20258bbc9cce0da2719e8654c108733dd2f663b8737c574ec0ead93eb3");
    assert_eq!(store.console().session(&ended, &seal, now()).await.expect("reads"), None);
    let actions = store.console().actions(repo, 9).await.expect("reads");
    let told: Vec<_> = actions.iter().map(|one| (one.action.as_str(), one.by.as_ref().map(Login::as_str))).collect();
    assert_eq!(told, [("pause", Some("mona"))]);
    // A record of an earlier version now has its repository, like a new one.
    for (verdict, expected) in [(Verdict::Duplicate, 3), (Verdict::NotDuplicate, 1)] {
        let filter = ItemPageFilter { verdict: Some(verdict), ..ItemPageFilter::default() };
        let page = store.console().item_pages(repo, filter, None, 9).await.expect("reads");
        assert_eq!(page.lines.iter().map(|line| line.number.get()).collect::<Vec<_>>(), [expected], "{verdict:?}");
    }
}

async fn reads_what_was_learned(store: &Store, repo: RepoId) {
    let number = |number| ItemNumber::new(number).expect("valid");
    let events = store.learning().outcome_events(repo, number(3)).await.expect("reads");
    let told: Vec<_> = events.iter().map(|event| (event.delivery_id.as_str(), event.by.as_str())).collect();
    assert_eq!(
        told,
        [
            ("apply:2#3", "approved"),
            ("a2d3162e-cc78-11e3-81ab-4c9367dc0958", "maintainer"),
            ("b2d3162e-cc78-11e3-81ab-4c9367dc0958", "maintainer")
        ]
    );
    let outcome = store.learning().issue_outcome(repo, number(3)).await.expect("reads").expect("known");
    assert_eq!(outcome.outcome.outcome, IssueResolution::Duplicate { of: Some(number(1)) });
    assert_eq!(store.learning().threshold_settings(repo).await.expect("reads").configured.get(), 90);
    let moves = store.learning().threshold_adjustments(repo, 9).await.expect("reads");
    assert_eq!((moves.len(), moves[1].adjusted.new_threshold), (2, CurrentThreshold::Silent));
    let actions = store.duplicates().triage_actions_of(repo, ItemType::Issue, number(3)).await.expect("reads");
    assert_eq!(actions[0].action.comment_key.as_deref(), Some("triage:1:issue:3:1"));
    assert_eq!(
        store.repos().settings(repo).await.expect("reads").expect("fetched").text.as_deref(),
        Some("triage: {mode: suggest}")
    );
    let other = store.repos().find(&"quill/note".parse().expect("valid")).await.expect("reads").expect("known");
    assert_eq!(store.repos().access(other.id).await.expect("reads"), RepoAccess::Suspended);
}

/// Opening for writing derives the outcomes of an event log from before outcomes were stored.
async fn learns_from_what_earlier_versions_left(url: &DatabaseUrl, repo: RepoId) {
    let number = |number| ItemNumber::new(number).expect("valid");
    let store = Store::open(url, now()).await.expect("opens");
    assert!(
        store.learning().issue_outcome(repo, number(1)).await.expect("reads").is_some(),
        "a log without an outcome"
    );
    let stored = store.learning().thresholds(repo).await.expect("reads");
    assert_eq!(
        (stored.repository.counts.confirmed, &stored),
        (1, &store.learning().recomputed_thresholds(repo).await.expect("reads"))
    );
    store.disconnect().await;
}

/// A table's columns with type family and nullability, its keys and its references.
type Schema = BTreeMap<String, Vec<String>>;

#[tokio::test]
async fn both_engines_have_the_same_logical_schema() {
    let (sqlite, postgres) = (TestDatabase::sqlite(), TestDatabase::postgres().await);
    for database in [&sqlite, &postgres] {
        database.emptied().await;
        Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens").disconnect().await;
    }
    let one = sqlite_schema(&sqlite).await;
    let other = postgres_schema(&postgres).await;
    assert!(one.len() >= 9, "{one:#?}");
    assert_eq!(one, other);
}

/// The type family of a column, with a name that both engines share.
fn family(declared: &str, column: &str) -> &'static str {
    match declared.to_ascii_lowercase().as_str() {
        "bigint" | "integer" => "integer",
        "boolean" => "boolean",
        "double precision" => "real",
        // PostgreSQL has its own type for vectors.
        "blob" | "bytea" | "user-defined" => "bytes",
        "jsonb" => "text",
        "text" => "text",
        other => panic!("{column} has the unknown type {other}"),
    }
}

async fn sqlite_schema(database: &TestDatabase) -> Schema {
    let mut connection = SqliteConnection::connect(database.url()).await.expect("opens");
    let columns =
        "SELECT m.name, p.name, p.type, p.\"notnull\" OR p.pk > 0 FROM sqlite_master m, pragma_table_info(m.name) p
        WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
    let keys = "SELECT m.name, (SELECT group_concat(name, ',') FROM (SELECT name FROM pragma_index_info(l.name) ORDER BY seqno)),
        l.partial FROM sqlite_master m, pragma_index_list(m.name) l
        WHERE m.type = 'table' AND l.\"unique\" = 1 AND l.origin <> 'pk'";
    let references =
        "SELECT m.name, f.\"from\", f.\"table\", f.on_delete FROM sqlite_master m, pragma_foreign_key_list(m.name) f
        WHERE m.type = 'table'";
    let columns: Vec<(String, String, String, bool)> =
        sqlx::query_as(columns).fetch_all(&mut connection).await.expect("columns");
    let keys: Vec<(String, String, bool)> = sqlx::query_as(keys).fetch_all(&mut connection).await.expect("keys");
    let references: Vec<(String, String, String, String)> =
        sqlx::query_as(references).fetch_all(&mut connection).await.expect("references");
    schema(columns, keys, references)
}

async fn postgres_schema(database: &TestDatabase) -> Schema {
    let mut connection = PgConnection::connect(database.url()).await.expect("opens");
    let columns = "SELECT table_name::text, column_name::text, data_type::text, is_nullable = 'NO'
        FROM information_schema.columns WHERE table_schema = 'public'";
    let keys = "SELECT t.relname::text, (SELECT string_agg(a.attname, ',' ORDER BY k.place)
            FROM unnest(i.indkey) WITH ORDINALITY k (column_number, place)
            JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.column_number), i.indpred IS NOT NULL
        FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
        WHERE n.nspname = 'public' AND i.indisunique AND NOT i.indisprimary";
    let references = "SELECT c.conrelid::regclass::text, a.attname::text, c.confrelid::regclass::text,
            CASE c.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL' WHEN 'r' THEN 'RESTRICT' ELSE 'NO ACTION' END
        FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey) WHERE c.contype = 'f'";
    let columns: Vec<(String, String, String, bool)> =
        sqlx::query_as(columns).fetch_all(&mut connection).await.expect("columns");
    let keys: Vec<(String, String, bool)> = sqlx::query_as(keys).fetch_all(&mut connection).await.expect("keys");
    let references: Vec<(String, String, String, String)> =
        sqlx::query_as(references).fetch_all(&mut connection).await.expect("references");
    schema(columns, keys, references)
}

fn schema(
    columns: Vec<(String, String, String, bool)>,
    keys: Vec<(String, String, bool)>,
    references: Vec<(String, String, String, String)>,
) -> Schema {
    let mut schema = Schema::new();
    for (table, column, declared, required) in columns {
        let family = family(&declared, &format!("{table}.{column}"));
        let required = if required { " required" } else { "" };
        schema.entry(table).or_default().push(format!("{column}: {family}{required}"));
    }
    for (table, columns, partial) in keys {
        let partial = if partial { " (partial)" } else { "" };
        schema.entry(table).or_default().push(format!("unique {columns}{partial}"));
    }
    for (table, column, other, on_delete) in references {
        schema.entry(table).or_default().push(format!("{column} refers to {other}, on delete {on_delete}"));
    }
    schema.values_mut().for_each(|facts| facts.sort());
    schema
}

on_both_engines! {
    async fn processes_that_start_at_once_migrate_once(database: TestDatabase) {
        database.emptied().await;
        let url: DatabaseUrl = database.url().parse().expect("valid");
        let starts = (0..6).map(|_| { let url = url.clone(); tokio::spawn(async move { Store::open(&url, now()).await.map(|_| ()) }) });
        let starts: Vec<_> = starts.collect();
        for start in starts {
            start.await.expect("runs").expect("opens");
        }
        assert_eq!(Store::schema_version(&url).await.expect("reads"), NEWEST_SCHEMA);
    }
}

on_both_engines! {
    async fn a_newer_schema_is_left_alone(database: TestDatabase) {
        let url: DatabaseUrl = database.url().parse().expect("valid");
        let store = Store::open(&url, now()).await.expect("opens");
        crate::engine::transaction::on_pool!(&store.pool, |db| {
            sqlx::query(NOTE).bind(NEWEST_SCHEMA.0 + 1).bind("from the future").bind(0_i64).execute(db).await.expect("noted");
        });
        store.disconnect().await;
        for opened in [Store::open(&url, now()).await, Store::open_existing(&url).await] {
            let error = opened.expect_err("refused");
            assert!(matches!(error, OpenError::NewerSchema { .. }), "{error}");
            assert!(error.to_string().contains("use a newer canonry"), "{error}");
        }
        assert_eq!(Store::schema_version(&url).await.expect("reads").0, NEWEST_SCHEMA.0 + 1);
    }
}

on_both_engines! {
    async fn reading_never_migrates(database: TestDatabase) {
        database.emptied().await;
        let url: DatabaseUrl = database.url().parse().expect("valid");
        let error = Store::open_existing(&url).await.expect_err("nothing there");
        assert!(matches!(error, OpenError::Absent { .. }), "{error}");
        assert!(url.file().is_none_or(|path| !path.exists()), "a file was created by looking");

        let store = Store::open(&url, now()).await.expect("opens");
        crate::engine::transaction::on_pool!(&store.pool, |db| {
            sqlx::query("DELETE FROM schema_migrations WHERE version = $1").bind(NEWEST_SCHEMA.0).execute(db).await.expect("forgotten");
        });
        store.disconnect().await;
        let error = Store::open_existing(&url).await.expect_err("older");
        assert!(matches!(error, OpenError::OlderSchema { .. }), "{error}");
        assert!(error.to_string().contains("run `canonry init"), "{error}");
        assert_eq!(Store::schema_version(&url).await.expect("reads").0, NEWEST_SCHEMA.0 - 1);
    }
}

#[tokio::test]
async fn what_is_no_database_is_left_alone() {
    let folder = TestDatabase::sqlite();
    let path = std::path::PathBuf::from(folder.url().trim_start_matches("sqlite:"));
    std::fs::write(
        &path,
        "this is a letter to my aunt, and certainly longer than a SQLite header would be at its shortest",
    )
    .expect("written");
    let error = Store::open(&DatabaseUrl::Sqlite(path.clone()), now()).await.expect_err("no database");
    assert!(matches!(error, OpenError::NotADatabase { .. }), "{error}");
    assert!(std::fs::read_to_string(&path).expect("still there").starts_with("this is a letter"));

    let foreign = path.with_file_name("foreign.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&foreign).create_if_missing(true);
    let mut connection = SqliteConnection::connect_with(&options).await.expect("opens");
    sqlx::raw_sql("CREATE TABLE recipes (id INTEGER)").execute(&mut connection).await.expect("created");
    connection.close().await.expect("closes");
    let before = std::fs::read(&foreign).expect("reads");
    let error = Store::open(&DatabaseUrl::Sqlite(foreign.clone()), now()).await.expect_err("another program's");
    assert!(matches!(error, OpenError::Foreign { .. }), "{error}");
    assert_eq!(std::fs::read(&foreign).expect("reads"), before);

    // A server that hangs up at once: a port without a listener is retried for ten seconds.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mute = format!("postgres://nobody@{}/none", listener.local_addr().expect("bound"));
    std::thread::spawn(move || listener.incoming().for_each(drop));
    for url in ["sqlite:/no/such/folder/x.db", &mute] {
        let error = Store::open(&url.parse().expect("valid"), now()).await.expect_err("unusable");
        assert!(matches!(error, OpenError::Unusable { .. }), "{url}: {error}");
    }
}
