//! Vectors on both engines: stored exactly, listed if stale, found by the index within a stated tolerance.

use canonry_domain::{ItemRecord, ItemType, parse_moment};
use canonry_store::{EmbedFilter, EmbeddingKey, NewEmbedding, Repo, Representation, Store};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::on_both_engines;
use jiff::Timestamp;

use crate::fixtures::number;

fn now() -> Timestamp {
    parse_moment("2026-02-01").expect("valid")
}

fn key(model: &str) -> EmbeddingKey {
    EmbeddingKey { representation: Representation::Raw, model: model.to_owned() }
}

async fn filled(database: &TestDatabase, count: i64) -> (Store, Repo) {
    let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
    let repo = store.repos().ensure(&"o/n".parse().expect("valid"), now()).await.expect("created");
    let records = (1..=count).map(|of| ItemRecord {
        body: Some(format!("Body {of}")),
        ..ItemRecord::new(ItemType::Issue, number(of), "Title")
    });
    store.corpus().upsert_items(&repo, records.collect(), now()).await.expect("taken in");
    (store, repo)
}

/// Pseudo-random vectors that are the same in every run.
fn vector(seed: u64, dim: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut numbers: Vec<f32> = (0..dim)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1_u64 << 24) as f32 - 0.5
        })
        .collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.iter_mut().for_each(|number| *number /= length);
    numbers
}

async fn embed(store: &Store, repo: &Repo, key: &EmbeddingKey, count: i64, dim: usize) {
    let items = store.corpus().items_to_embed(repo.id, key, EmbedFilter::default(), None, 10_000).await.expect("reads");
    let embeddings: Vec<NewEmbedding> = items
        .iter()
        .take(usize::try_from(count).expect("fits"))
        .map(|item| NewEmbedding {
            item_type: item.item_type,
            number: item.number,
            embedded_hash: item.content_hash.clone(),
            vector: vector(item.number.get().unsigned_abs(), dim),
            tokens: None,
        })
        .collect();
    store.corpus().write_embeddings(repo.id, key, &embeddings, now()).await.expect("written");
}

on_both_engines! {
    async fn exactly_what_changed_is_embedded_again(database: TestDatabase) {
        let (store, repo) = filled(&database, 5).await;
        let (one, other) = (key("one"), key("other"));
        let changed = EmbedFilter { only_changed: true, ..EmbedFilter::default() };
        let missing = async |key: &EmbeddingKey, after| {
            let items = store.corpus().items_to_embed(repo.id, key, changed, after, 100).await.expect("reads");
            items.iter().map(|item| item.number.get()).collect::<Vec<_>>()
        };
        embed(&store, &repo, &one, 4, 3).await;
        assert_eq!(missing(&one, None).await, [5]);
        assert_eq!(missing(&other, None).await, [1, 2, 3, 4, 5]);
        assert_eq!(missing(&other, Some((number(3), ItemType::Issue))).await, [4, 5]);
        let edited = ItemRecord { body: Some("Edited".into()), ..ItemRecord::new(ItemType::Issue, number(2), "Title") };
        let labelled = ItemRecord { labels: Some(vec!["bug".into()]), ..ItemRecord::new(ItemType::Issue, number(3), "Title") };
        store.corpus().upsert_items(&repo, vec![edited, labelled], now()).await.expect("taken in");
        assert_eq!(missing(&one, None).await, [2, 5]);

        let stored = store.corpus().embeddings_after(repo.id, &one, ItemType::Issue, None, 100).await.expect("reads");
        assert_eq!(stored.iter().map(|row| (row.number.get(), row.fresh)).collect::<Vec<_>>(), [(1, true), (2, false), (3, true), (4, true)]);
        assert_eq!(stored[2].vector, vector(3, 3));
        assert_eq!(store.corpus().embeddings_after(repo.id, &one, ItemType::Issue, Some(number(3)), 100).await.expect("reads").len(), 1);
        embed(&store, &repo, &other, 5, 7).await;
        assert_eq!(store.corpus().embedding_models(repo.id, Representation::Raw).await.expect("reads"), [("one".to_owned(), 4), ("other".to_owned(), 5)]);
        assert_eq!(store.corpus().embedding_models(repo.id, Representation::Intent).await.expect("reads"), []);
    }

    async fn an_index_is_built_from_rows_and_entries(database: TestDatabase) {
        let (store, repo) = filled(&database, 3).await;
        let model = key("one");
        embed(&store, &repo, &model, 2, 3).await;
        let edited = ItemRecord {
            body: Some("Edited".into()),
            duplicate_of: Some(Some(number(1))),
            changes: Some(canonry_domain::PullChanges { files: vec!["a.rs".into()], diff: "+x\n".into() }),
            ..ItemRecord::new(ItemType::Issue, number(2), "Title")
        };
        store.corpus().upsert_items(&repo, vec![edited], now()).await.expect("taken in");
        let rows = store.corpus().index_rows(repo.id, &model, ItemType::Issue, None).await.expect("reads");
        assert_eq!(rows.iter().map(|row| (row.number.get(), row.embedded)).collect::<Vec<_>>(), [(1, true), (2, false), (3, false)]);
        assert_eq!((rows[1].duplicate_of, rows[0].changes_hash, rows[1].changes_hash != 0), (Some(number(1)), 0, true));
        let numbers = [number(2), number(1), number(9)];
        let entries = store.corpus().index_entries(repo.id, ItemType::Issue, &numbers, Some(&model)).await.expect("reads");
        let seen: Vec<_> = entries.iter().map(|entry| (entry.number.get(), entry.body.as_str(), entry.vector.clone())).collect();
        assert_eq!(seen, [(1, "Body 1", Some(vector(1, 3))), (2, "Edited", None)]);
        assert_eq!(entries[1].changes.as_ref().map(|changes| changes.files.as_slice()), Some(&["a.rs".to_owned()][..]));
    }

    async fn a_calibration_is_kept_for_each_model(database: TestDatabase) {
        let (store, _) = filled(&database, 1).await;
        assert_eq!(store.corpus().calibration("remote").await.expect("reads"), None);
        for calibration in [serde_json::json!({"points": [[0.1, 0.2]]}), serde_json::json!({"points": [[0.3, 0.4]]})] {
            store.corpus().write_calibration("remote", &calibration, now()).await.expect("written");
            assert_eq!(store.corpus().calibration("remote").await.expect("reads"), Some(calibration));
        }
    }

    /// Searches in half precision, scores in full precision: of the true twenty nearest among 2,000 at least nineteen
    /// are found for each query, and their scores are exact to 1e-5.
    async fn the_database_finds_the_nearest(database: TestDatabase) {
        const DIM: usize = 32;
        let (store, repo) = filled(&database, 2_000).await;
        let model = key("one");
        embed(&store, &repo, &model, 2_000, DIM).await;
        embed(&store, &repo, &key("another"), 50, DIM).await;
        store.corpus().ensure_vector_index(DIM).await.expect("made");
        store.corpus().ensure_vector_index(DIM).await.expect("there already");
        store.corpus().mark_gone(repo.id, number(7), canonry_domain::GoneReason::Deleted, now()).await.expect("marked");
        for query in [3, 700, 1_999] {
            let query = vector(query, DIM);
            let found = store.corpus().nearest(repo.id, &model, ItemType::Issue, &query, 20).await.expect("asked");
            if database.engine() == Engine::Sqlite {
                assert_eq!(found, None);
                continue;
            }
            let found = found.expect("PostgreSQL searches");
            let product = |of: i64| vector(of.unsigned_abs(), DIM).iter().zip(&query).map(|(a, b)| a * b).sum::<f32>();
            let mut exact: Vec<(i64, f32)> = (1..=2_000).filter(|of| *of != 7).map(|of| (of, product(of))).collect();
            exact.sort_by(|a, b| b.1.total_cmp(&a.1));
            let hits = exact[..20].iter().filter(|(of, _)| found.iter().any(|(number, _)| number.get() == *of)).count();
            assert!(hits >= 19, "only {hits} of the nearest 20");
            for (number, score) in &found {
                assert!((score - product(number.get())).abs() < 1e-5, "#{number}: {score}");
            }
            assert!(store.corpus().nearest(repo.id, &model, ItemType::Pr, &query, 20).await.expect("asked").expect("searched").is_empty());
        }
    }
}
