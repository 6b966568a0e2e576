//! From texts to vectors to neighbours, with scripted models and with the local model, on both engines.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use canonry_domain::{
    ItemNumber, ItemRecord, ItemState, ItemType, PullChanges, Similarity, parse_import_value, parse_moment,
};
use canonry_github::ManualClock;
use canonry_models::{ApiKey, Embedder, LocalEmbedder, Provider, RemoteEmbedder, RemoteSettings};
use canonry_retrieval::{RetrievalMode, read_snapshot};
use canonry_store::{CandidateSet, EmbeddingKey, NewEmbedding, Repo, Representation, SetStatus, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::{Fault, ModelServer, vectors_with_cosines};
use canonry_testkit::on_both_engines;
use canonry_testkit::samples::TIDEPOOL;
use canonry_triage::{
    CandidateOptions, CandidatesReport, EmbedFailure, EmbedOptions, EmbedReport, EmbedSource, NeighbourQuery,
    Neighbourhood, SearchFor, SearchOptions, candidates, embed, search,
};
use jiff::{SignedDuration, Timestamp};

const KEY: &str = "sk-nobody-may-read-this";
const CHANGED: EmbedOptions =
    EmbedOptions { source: EmbedSource::Raw, item_type: None, state: None, only_changed: true };
const ALL: EmbedOptions = EmbedOptions { only_changed: false, ..CHANGED };
const DENSE: NeighbourQuery =
    NeighbourQuery { mode: RetrievalMode::Dense, k: 4, min_score: Similarity::ZERO, state: None };

fn now() -> Timestamp {
    parse_moment("2026-02-01").expect("a valid time")
}

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("a valid number")
}

fn score(score: f64) -> Similarity {
    Similarity::new(score).expect("a valid score")
}

fn settings(server: &ModelServer, model: &str) -> RemoteSettings {
    let (base_url, key) = (server.base_url(), Some(ApiKey::new(KEY)));
    RemoteSettings { base_url, key, model: model.to_owned(), ..RemoteSettings::new(Provider::OpenAi) }
}

fn embedder(server: &ModelServer, model: &str) -> RemoteEmbedder {
    RemoteEmbedder::with_clock(settings(server, model), Arc::new(ManualClock::new(now()))).expect("usable settings")
}

fn key(embedder: &dyn Embedder) -> EmbeddingKey {
    EmbeddingKey { representation: Representation::Raw, model: embedder.model_id().to_owned() }
}

fn issue(of: i64, title: &str, body: &str) -> ItemRecord {
    let record = ItemRecord::new(ItemType::Issue, number(of), title);
    ItemRecord { body: Some(body.to_owned()), state: Some(ItemState::Open), ..record }
}

async fn corpus(database: &TestDatabase, records: Vec<ItemRecord>) -> (Store, Repo) {
    let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
    let repo = store.repos().ensure(&"tide/pool".parse().expect("valid"), now()).await.expect("created");
    store.corpus().upsert_items(&repo, records, now()).await.expect("taken in");
    (store, repo)
}

/// Issues with names from the sea, numbered from 1.
async fn issues(database: &TestDatabase, titles: &[&str]) -> (Store, Repo) {
    corpus(database, (1..).zip(titles).map(|(of, title)| issue(of, title, "")).collect()).await
}

async fn try_embed(
    store: &Store,
    repo: &Repo,
    embedder: &dyn Embedder,
    options: EmbedOptions,
) -> Result<EmbedReport, Box<EmbedFailure>> {
    embed(store, embedder, repo, options, now(), &mut |_| ()).await
}

async fn embedded(store: &Store, repo: &Repo, embedder: &dyn Embedder, options: EmbedOptions) -> u64 {
    try_embed(store, repo, embedder, options).await.expect("embeds").embedded
}

async fn neighbourhood(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    embedder: &dyn Embedder,
    snapshots: Option<&Path>,
) -> Neighbourhood {
    let calibration = embedder.calibration().clone();
    Neighbourhood::load(store, repo, item_type, key(embedder), calibration, snapshots).await.expect("loads")
}

async fn issue_candidates(
    store: &Store,
    repo: &Repo,
    embedder: &dyn Embedder,
    wanted: NeighbourQuery,
) -> CandidatesReport {
    let near = neighbourhood(store, repo, ItemType::Issue, embedder, None).await;
    let options = CandidateOptions { wanted, source_state: Some(ItemState::Open), joining: None };
    candidates(store, repo, &near, None, &options, now(), &mut |_, _| ()).await.expect("compares")
}

/// The members of an item's set with their scores.
fn members(report: &CandidatesReport, of: i64) -> Vec<(i64, f64)> {
    let set = report.sets.iter().find(|set| set.number == number(of)).expect("a set of that item");
    set.members.iter().map(|hit| (hit.number.get(), hit.score.get())).collect()
}

async fn sets(store: &Store, repo: &Repo, of: i64) -> Vec<CandidateSet> {
    store.duplicates().candidate_sets(repo.id, ItemType::Issue, number(of)).await.expect("reads")
}

async fn vectors_of(store: &Store, repo: &Repo) -> u64 {
    let models = store.corpus().embedding_models(repo.id, Representation::Raw).await.expect("reads");
    models.into_iter().map(|(_, count)| count).sum()
}

on_both_engines! {
    async fn only_what_changed_is_embedded(database: TestDatabase) {
        let (store, repo) = issues(&database, &["kelp", "crab", "squid"]).await;
        let server = ModelServer::start().await;
        let first = embedder(&server, "m1");
        assert_eq!(embedded(&store, &repo, &first, CHANGED).await, 3);
        assert_eq!(embedded(&store, &repo, &first, CHANGED).await, 0);
        assert_eq!(server.embedded_texts(), ["kelp", "crab", "squid"]);

        server.forget_requests();
        let labelled = ItemRecord { labels: Some(vec!["bug".to_owned()]), ..issue(3, "squid", "") };
        store.corpus().upsert_items(&repo, vec![issue(2, "crab", "walks sideways"), labelled], now()).await.expect("taken in");
        assert_eq!(embedded(&store, &repo, &first, CHANGED).await, 1);
        assert_eq!(server.embedded_texts(), ["crab\n\nwalks sideways"]);

        // Another model has embedded nothing yet, and without the option everything is embedded again.
        let second = embedder(&server, "m2");
        assert_eq!(embedded(&store, &repo, &second, CHANGED).await, 3);
        assert_eq!(embedded(&store, &repo, &first, ALL).await, 3);
        let closed = EmbedOptions { state: Some(ItemState::Closed), ..ALL };
        assert_eq!(embedded(&store, &repo, &first, closed).await, 0);
        store.disconnect().await;
    }

    async fn two_models_never_mix_their_scores(database: TestDatabase) {
        let (store, repo) = issues(&database, &["kelp", "crab", "squid"]).await;
        let server = ModelServer::start().await;
        let (first, second) = (embedder(&server, "m1"), embedder(&server, "m2"));
        let (kelp, [crab]) = vectors_with_cosines([0.95]);
        server.vector_for("kelp", kelp.clone());
        server.vector_for("crab", crab.clone());
        embedded(&store, &repo, &first, ALL).await;
        // The other model gives other vectors, and knows an item that the first does not.
        server.vector_for("crab", vec![0.0, 0.0, 1.0]);
        server.vector_for("squid", crab);
        server.vector_for("whale", kelp);
        store.corpus().upsert_items(&repo, vec![issue(4, "whale", "")], now()).await.expect("taken in");
        embedded(&store, &repo, &second, ALL).await;

        let wanted = NeighbourQuery { min_score: score(0.75), ..DENSE };
        let by_first = issue_candidates(&store, &repo, &first, wanted).await;
        assert_eq!(members(&by_first, 1), [(2, 0.95)]);
        assert_eq!((by_first.sets.len(), by_first.skipped_missing_embedding), (3, 1));
        let by_second = issue_candidates(&store, &repo, &second, wanted).await;
        assert_eq!(members(&by_second, 1), [(4, 1.0), (3, 0.95)]);
        let [newer, older] = &sets(&store, &repo, 1).await[..] else { panic!("two sets") };
        assert_eq!((newer.model.as_str(), newer.status), ("openai:m2", SetStatus::Fresh));
        assert_eq!((older.model.as_str(), older.status), ("openai:m1", SetStatus::Stale));
        store.disconnect().await;
    }

    async fn neighbours_are_of_the_same_type_and_in_the_wanted_state(database: TestDatabase) {
        let (store, repo) = issues(&database, &["kelp", "crab", "squid", "whale", "shrimp"]).await;
        let closed = ItemRecord { state: Some(ItemState::Closed), ..issue(4, "whale", "") };
        let pull = ItemRecord { state: Some(ItemState::Open), ..ItemRecord::new(ItemType::Pr, number(9), "kelp too") };
        store.corpus().upsert_items(&repo, vec![closed, pull], now()).await.expect("taken in");
        let server = ModelServer::start().await;
        let model = embedder(&server, "m1");
        let (kelp, [crab, squid, whale]) = vectors_with_cosines([0.95, 0.749, 0.9]);
        for (title, vector) in [("kelp", kelp), ("crab", crab), ("squid", squid), ("whale", whale)] {
            server.vector_for(title, vector);
        }
        embedded(&store, &repo, &model, ALL).await;

        let wanted = NeighbourQuery { min_score: score(0.75), state: Some(ItemState::Open), ..DENSE };
        let report = issue_candidates(&store, &repo, &model, wanted).await;
        assert_eq!(report.discovered, 4, "closed items are no sources");
        assert_eq!(members(&report, 1), [(2, 0.95)]);
        assert_eq!(members(&report, 5), []);
        let stored = sets(&store, &repo, 5).await;
        assert_eq!((stored.len(), stored[0].status, stored[0].members.len()), (1, SetStatus::Fresh, 0));

        let report = issue_candidates(&store, &repo, &model, NeighbourQuery { state: None, ..wanted }).await;
        assert_eq!(members(&report, 1), [(2, 0.95), (4, 0.9)]);
        let report = issue_candidates(&store, &repo, &model, NeighbourQuery { state: Some(ItemState::Closed), ..wanted }).await;
        assert_eq!(members(&report, 1), [(4, 0.9)]);
        let report = issue_candidates(&store, &repo, &model, NeighbourQuery { k: 2, ..DENSE }).await;
        assert_eq!(members(&report, 1), [(2, 0.95), (4, 0.9)]);
        let report = issue_candidates(&store, &repo, &model, DENSE).await;
        assert_eq!(members(&report, 1), [(2, 0.95), (4, 0.9), (3, 0.749), (5, 0.0)]);

        let statuses: Vec<SetStatus> = sets(&store, &repo, 1).await.iter().map(|set| set.status).collect();
        let stale = SetStatus::Stale;
        assert_eq!(statuses, [SetStatus::Fresh, stale, stale, stale, stale]);
        let newest = &sets(&store, &repo, 1).await[0].members[0];
        assert_eq!((newest.number, newest.score, newest.parts["dense"]), (number(2), 0.95, 0.95));
        assert!(newest.parts.contains_key("lexical") && newest.parts.contains_key("evidence"), "{newest:?}");

        store.corpus().upsert_items(&repo, vec![issue(1, "kelp forest", "")], now()).await.expect("taken in");
        assert!(sets(&store, &repo, 1).await.iter().all(|set| set.status == SetStatus::Stale));
        let report = issue_candidates(&store, &repo, &model, DENSE).await;
        assert_eq!((report.skipped_missing_embedding, report.sets.len()), (1, 3));
        assert!(members(&report, 2).iter().all(|(other, _)| *other != 1), "the vector of an old text is compared");
        store.disconnect().await;
    }

    async fn a_failing_batch_leaves_nothing_behind_and_a_rerun_goes_on(database: TestDatabase) {
        let records = (1..=300).map(|of| issue(of, &format!("wave number {of}."), "")).collect();
        let (store, repo) = corpus(&database, records).await;
        let server = ModelServer::start().await;
        let hasty = || embedder(&server, "m1");
        let told = |failure: Box<EmbedFailure>| {
            let message = failure.to_string();
            assert!(message.contains("with openai") && !format!("{message} {failure:?}").contains(KEY), "{message}");
            (failure.so_far.embedded, failure.numbers.iter().map(|number| number.get()).collect::<Vec<_>>(), message)
        };
        // The first 256 are a separate batch and stay.
        let rest: Vec<i64> = (257..=300).collect();
        let faults = [
            (Fault::UnevenDimension, vec![300], "255 dimensions"),
            (Fault::NullComponent, vec![300], "not a finite number"),
            (Fault::NanComponent, rest.clone(), "cannot be read"),
            (Fault::FewerVectors, rest.clone(), "43 vectors came back for 44 texts"),
            (Fault::TruncatedJson, rest.clone(), "cannot be read"),
            (Fault::Drop, rest.clone(), "failed, tried 5 times"),
            (Fault::status(500), rest.clone(), "status 500"),
            (Fault::status(401), rest.clone(), "[key]"),
        ];
        let mut before = 256;
        for (fault, numbers, words) in faults {
            server.clear_faults();
            server.fault_when("wave number 280.", fault.clone());
            let (so_far, failed, message) = told(try_embed(&store, &repo, &hasty(), CHANGED).await.expect_err("fails"));
            assert_eq!((so_far, failed), (before, numbers), "{fault:?}: {message}");
            assert!(message.contains(words), "{fault:?}: {message}");
            assert_eq!(vectors_of(&store, &repo).await, 256, "{fault:?}");
            before = 0;
        }
        server.clear_faults();
        server.fault_when("wave", Fault::Hang);
        let impatient = RemoteSettings { attempts: 1, timeout: Duration::from_millis(100), ..settings(&server, "m1") };
        let impatient = RemoteEmbedder::with_clock(impatient, Arc::new(ManualClock::new(now()))).expect("usable");
        let (_, _, message) = told(try_embed(&store, &repo, &impatient, CHANGED).await.expect_err("silence"));
        assert!(message.contains("no answer within"), "{message}");

        // A service that refuses every text stops the run; a single refused text is left out and reported.
        server.clear_faults();
        server.fault_when("wave", Fault::status(400));
        let (so_far, _, message) = told(try_embed(&store, &repo, &hasty(), CHANGED).await.expect_err("refuses all"));
        assert_eq!(so_far, 0, "{message}");
        server.clear_faults();
        server.fault_when("wave number 280.", Fault::status(400));
        let report = try_embed(&store, &repo, &hasty(), CHANGED).await.expect("the others are embedded");
        assert_eq!((report.embedded, report.refused.len(), report.refused[0].0), (43, 1, number(280)), "{report:?}");
        assert!(report.refused[0].1.contains("status 400"), "{report:?}");

        server.clear_faults();
        server.forget_requests();
        server.fault_once(Fault::status(429).retry_after(30));
        server.fault_once(Fault::status(503));
        assert_eq!(embedded(&store, &repo, &hasty(), CHANGED).await, 1);
        assert_eq!(server.requests().len(), 3);
        assert_eq!(vectors_of(&store, &repo).await, 300);
        store.disconnect().await;
    }

    async fn vectors_of_another_length_do_not_creep_in(database: TestDatabase) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, repo) = issues(&database, &["kelp", "crab"]).await;
        let server = ModelServer::start().await;
        let (kelp, [crab]) = vectors_with_cosines([0.8]);
        server.vector_for("kelp", kelp);
        server.vector_for("crab", crab);
        let load = async |model: &RemoteEmbedder| {
            let near = neighbourhood(&store, &repo, ItemType::Issue, model, Some(folder.path())).await;
            let entry = near.entry(number(1)).await.expect("reads").expect("there");
            let asked = Neighbourhood::query_of(&entry);
            let hits = near.neighbours(&asked, entry.vector.as_deref(), DENSE, &|_| true).await.expect("compares");
            hits.iter().map(|hit| (hit.number.get(), hit.score.get())).collect::<Vec<_>>()
        };
        let model = embedder(&server, "m1");
        embedded(&store, &repo, &model, ALL).await;
        assert_eq!(load(&model).await, [(2, 0.8)]);

        // The same name, but the server has replaced the model.
        server.fault_when("", Fault::Dimension(8));
        store.corpus().upsert_items(&repo, vec![issue(2, "crab", "new text")], now()).await.expect("taken in");
        let model = embedder(&server, "m1");
        let failure = try_embed(&store, &repo, &model, CHANGED).await.expect_err("refused").to_string();
        assert!(failure.contains("issue #2 with openai:m1: its vector has 8 numbers, the stored ones have 256"), "{failure}");
        let near = neighbourhood(&store, &repo, ItemType::Issue, &model, None).await;
        let searched = search(&store, &repo, &model, &[near], &SearchFor::Text("kelp".to_owned()), &search_options()).await;
        let refused = searched.expect_err("vectors of different lengths").to_string();
        assert!(refused.contains("8 numbers") && refused.contains("256"), "{refused}");

        let later = now() + SignedDuration::from_hours(1);
        embed(&store, &model, &repo, ALL, later, &mut |_| ()).await.expect("everything is replaced");
        assert_eq!(load(&model).await, [(2, 0.8)]);
        store.disconnect().await;
    }

    async fn an_equally_long_diff_is_indexed_anew(database: TestDatabase) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, repo) = issues(&database, &["kelp"]).await;
        let pull = |at: i64, word: &str| ItemRecord {
            changes: Some(PullChanges { files: vec![format!("src/{word}.rs")], diff: format!("+let {word} = 1;\n") }),
            ..ItemRecord::new(ItemType::Pr, number(at), "Work on the reef")
        };
        store.corpus().upsert_items(&repo, vec![pull(11, "urchin"), pull(12, "limpet")], now()).await.expect("taken in");
        let server = ModelServer::start().await;
        let model = embedder(&server, "m1");
        server.vector_for("", vec![1.0, 0.0]);
        embedded(&store, &repo, &model, ALL).await;
        let hits = async |snapshots: Option<&Path>| {
            let near = neighbourhood(&store, &repo, ItemType::Pr, &model, snapshots).await;
            let entry = near.entry(number(11)).await.expect("reads").expect("there");
            let wanted = NeighbourQuery { mode: RetrievalMode::Hybrid, ..DENSE };
            let asked = Neighbourhood::query_of(&entry);
            near.neighbours(&asked, entry.vector.as_deref(), wanted, &|_| true).await.expect("compares")
        };
        let before = hits(Some(folder.path())).await;
        assert_eq!(before, hits(None).await);
        store.corpus().upsert_items(&repo, vec![pull(12, "urchin")], now()).await.expect("taken in");
        let after = hits(Some(folder.path())).await;
        assert_eq!(after, hits(None).await, "as if it were built today");
        assert_ne!(before, after, "it changes the same lines now");
        store.disconnect().await;
    }

    async fn an_index_on_disk_is_used_brought_up_to_date_and_rebuilt_when_damaged(database: TestDatabase) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (store, repo) = issues(&database, &["kelp forest", "crab walk", "squid ink"]).await;
        let server = ModelServer::start().await;
        let model = embedder(&server, "m1");
        let (kelp, [crab, squid]) = vectors_with_cosines([0.9, 0.8]);
        server.vector_for("kelp", kelp);
        server.vector_for("crab", crab.clone());
        server.vector_for("squid", squid);
        embedded(&store, &repo, &model, ALL).await;
        let load = async || neighbourhood(&store, &repo, ItemType::Issue, &model, Some(folder.path())).await;
        let nearest = async || {
            let near = load().await;
            let entry = near.entry(number(1)).await.expect("reads").expect("there");
            let asked = Neighbourhood::query_of(&entry);
            let hits = near.neighbours(&asked, entry.vector.as_deref(), DENSE, &|_| true).await.expect("compares");
            hits.iter().map(|hit| hit.number.get()).collect::<Vec<_>>()
        };
        let found = async |words: &str| {
            let options = SearchOptions { mode: RetrievalMode::Lexical, ..search_options() };
            let asked = SearchFor::Text(words.to_owned());
            let hits = search(&store, &repo, &model, &[load().await], &asked, &options).await.expect("searches");
            hits.iter().map(|hit| hit.number.get()).collect::<Vec<_>>()
        };
        let file = folder.path().join("tide_pool-issue-raw-openai_m1.index");
        let bytes = || std::fs::read(&file).expect("the index is on disk");
        assert_eq!((nearest().await, found("ink").await), (vec![2, 3], vec![3]));
        let first = bytes();
        let untouched = std::fs::metadata(&file).and_then(|file| file.modified()).expect("a time");
        assert_eq!(nearest().await, [2, 3]);
        assert_eq!(std::fs::metadata(&file).and_then(|file| file.modified()).expect("a time"), untouched, "written again");

        for damaged in [&first[..first.len() / 2], &b"no index"[..], &[]] {
            std::fs::write(&file, damaged).expect("written");
            assert_eq!((nearest().await, found("ink").await), (vec![2, 3], vec![3]));
            assert_eq!(read_snapshot(&file, ItemType::Issue, "openai:m1").expect("whole again").len(), 3);
        }

        store.corpus().upsert_items(&repo, vec![issue(3, "squid tentacles", "")], now()).await.expect("taken in");
        embedded(&store, &repo, &model, CHANGED).await;
        assert_eq!((found("tentacles").await, found("ink").await), (vec![3], vec![]));

        // New vectors of the same texts.
        server.vector_for("squid", crab);
        server.vector_for("crab", vec![0.0, 0.0, 0.0, 1.0]);
        let later = now() + SignedDuration::from_hours(1);
        embed(&store, &model, &repo, ALL, later, &mut |_| ()).await.expect("embeds");
        assert_eq!(nearest().await, [3, 2]);
        store.disconnect().await;
    }
}

fn search_options() -> SearchOptions {
    SearchOptions {
        mode: RetrievalMode::Hybrid,
        state: None,
        limit: 10,
        min_score: score(0.3),
        include: Vec::new(),
        exclude: Vec::new(),
    }
}

/// How much the scores and cosines of the engines may differ: PostgreSQL adds up in another order.
const TOLERANCE: f64 = 1e-3;
/// The same for the sum that orders hybrid neighbours. It measures cosines in deviations: PostgreSQL computes them in
/// full precision, SQLite's index in eight bits. The sum runs from 0 to about 15.
const SUM_TOLERANCE: f64 = 1e-2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_engines_give_the_same_candidates_within_the_tolerance() {
    let (small, large) = (TestDatabase::sqlite(), TestDatabase::postgres().await);
    let records = || {
        let lines = TIDEPOOL.items.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        lines.map(|line| parse_import_value(&line).expect("a record").record).collect::<Vec<_>>()
    };
    let (sqlite, sqlite_repo) = corpus(&small, records()).await;
    let (postgres, postgres_repo) = corpus(&large, records()).await;
    let model = LocalEmbedder::load().expect("the model is compiled in");
    assert_eq!(embedded(&sqlite, &sqlite_repo, &model, ALL).await, 214);
    // The same vectors: the model itself is not part of this comparison, and takes most of the time.
    for item_type in ItemType::ALL {
        let known = sqlite
            .corpus()
            .embeddings_after(sqlite_repo.id, &key(&model), *item_type, None, 1_000)
            .await
            .expect("reads");
        let numbers: Vec<ItemNumber> = known.iter().map(|known| known.number).collect();
        let mut tokens =
            sqlite.corpus().token_vectors(sqlite_repo.id, &key(&model), *item_type, &numbers).await.expect("reads");
        let copied: Vec<NewEmbedding> = known
            .into_iter()
            .map(|known| NewEmbedding {
                item_type: *item_type,
                number: known.number,
                embedded_hash: known.embedded_hash,
                vector: known.vector,
                tokens: tokens.remove(&known.number),
            })
            .collect();
        postgres.corpus().write_embeddings(postgres_repo.id, &key(&model), &copied, now()).await.expect("writes");
        let learned = sqlite.corpus().boilerplate(sqlite_repo.id, *item_type).await.expect("reads").expect("learned");
        postgres
            .corpus()
            .write_boilerplate(postgres_repo.id, *item_type, &learned, &[], 0, now())
            .await
            .expect("writes");
    }
    postgres.corpus().ensure_vector_index(384).await.expect("indexed");

    let mut compared = 0;
    for mode in [RetrievalMode::Hybrid, RetrievalMode::Dense] {
        let wanted = NeighbourQuery { mode, k: 8, min_score: score(0.5), state: None };
        let tolerance = if mode == RetrievalMode::Dense { TOLERANCE } else { SUM_TOLERANCE };
        for item_type in ItemType::ALL {
            let one = all_candidates(&sqlite, &sqlite_repo, *item_type, &model, wanted).await;
            let other = all_candidates(&postgres, &postgres_repo, *item_type, &model, wanted).await;
            assert_eq!(one.len(), other.len());
            for (of, one) in &one {
                same_within(tolerance, &format!("{mode} {item_type} #{of}"), one, &other[of]);
                compared += one.len();
            }
        }
    }
    assert!(compared > 1_000, "only {compared} neighbours were compared");
    sqlite.disconnect().await;
    postgres.disconnect().await;
}

/// A neighbour: number, score, and the value that it is ordered by.
type Neighbour = (i64, f64, f64);

async fn all_candidates(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    model: &LocalEmbedder,
    wanted: NeighbourQuery,
) -> BTreeMap<i64, Vec<Neighbour>> {
    let near = neighbourhood(store, repo, item_type, model, None).await;
    let options = CandidateOptions { wanted, source_state: None, joining: None };
    let report = candidates(store, repo, &near, None, &options, now(), &mut |_, _| ()).await.expect("compares");
    let order = |parts: &BTreeMap<&'static str, f64>| match wanted.mode {
        RetrievalMode::Dense => parts["dense"],
        _ => parts["ranker"],
    };
    let set = |set: &canonry_triage::WrittenSet| {
        let members = set.members.iter().map(|hit| (hit.number.get(), hit.score.get(), order(&hit.parts)));
        (set.number.get(), members.collect())
    };
    report.sets.iter().map(set).collect()
}

/// Asserts the same members with the same scores, in the same order except for those that are closer than the
/// tolerance.
fn same_within(tolerance: f64, which: &str, one: &[Neighbour], other: &[Neighbour]) {
    let found = |list: &[Neighbour]| -> BTreeMap<i64, (f64, f64)> {
        list.iter().map(|(number, score, order)| (*number, (*score, *order))).collect()
    };
    let (in_one, in_other) = (found(one), found(other));
    assert_eq!(one.len(), other.len(), "{which}: {one:?} {other:?}");
    for (number, (score, order)) in &in_one {
        // If two are equally near, either may have the last place.
        let Some(&(other_score, other_order)) = in_other.get(number) else {
            let last = other.last().map_or(0.0, |(_, _, order)| *order);
            assert!((order - last).abs() <= tolerance, "{which} has other members: {one:?} {other:?}");
            continue;
        };
        assert!((score - other_score).abs() <= TOLERANCE, "{which}: score of #{number}: {score} {other_score}");
        assert!((order - other_order).abs() <= tolerance, "{which}: order of #{number}: {order} {other_order}");
    }
    for (at, ((left, _, order), (right, _, other_order))) in one.iter().zip(other).enumerate() {
        let apart = (order - other_order).abs();
        assert!(apart <= tolerance, "{which}: #{left} and #{right} at {at} are {apart} apart");
    }
}
