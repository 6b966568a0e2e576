//! Token vectors on both engines: written, changed and deleted together with the vector of the same text.

use canonry_domain::{
    Extractor, IntentSource, ItemNumber, ItemRecord, ItemType, TokenVectors, extract_locally, parse_moment,
};
use canonry_store::{CardMaker, CardOutcome, EmbeddingKey, NewEmbedding, Repo, Store};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::on_both_engines;
use jiff::Timestamp;
use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::fixtures::{ISSUE, number};

fn now() -> Timestamp {
    parse_moment("2026-02-01").expect("valid")
}

fn tokens(code: i8) -> TokenVectors {
    TokenVectors::new(4, vec![code; 12]).expect("three rows")
}

async fn filled(database: &TestDatabase) -> (Store, Repo) {
    let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
    let repo = store.repos().ensure(&"o/n".parse().expect("valid"), now()).await.expect("created");
    let records = (1..=4).map(|of| ItemRecord::new(ISSUE, number(of), "Title")).collect();
    store.corpus().upsert_items(&repo, records, now()).await.expect("taken in");
    (store, repo)
}

/// Embeds the current text of an item.
async fn embed(store: &Store, repo: &Repo, key: &EmbeddingKey, of: i64, tokens: Option<TokenVectors>) {
    let item = store.corpus().item(repo.id, ISSUE, number(of)).await.expect("reads").expect("known");
    let (item_type, embedded_hash) = (ISSUE, item.content_hash);
    let embedding = NewEmbedding { item_type, number: item.number, embedded_hash, vector: vec![1.0, 0.0], tokens };
    store.corpus().write_embeddings(repo.id, key, &[embedding], now()).await.expect("written");
}

/// Returns the first code of each token vector of the items 1 to 4.
async fn read(store: &Store, repo: &Repo, key: &EmbeddingKey) -> Vec<(i64, i8)> {
    let numbers: Vec<ItemNumber> = (1..=4).map(number).collect();
    let found = store.corpus().token_vectors(repo.id, key, ISSUE, &numbers).await.expect("reads");
    let mut found: Vec<_> = found.into_iter().map(|(number, tokens)| (number.get(), tokens.codes()[0])).collect();
    found.sort_unstable();
    found
}

/// Runs a statement that the store itself never runs, and returns the number of affected rows.
async fn by_hand(database: &TestDatabase, statement: &'static str) -> u64 {
    match database.engine() {
        Engine::Sqlite => {
            let mut connection = SqliteConnection::connect(database.url()).await.expect("opens");
            sqlx::query(statement).execute(&mut connection).await.expect(statement).rows_affected()
        }
        Engine::Postgres => {
            let mut connection = PgConnection::connect(database.url()).await.expect("opens");
            sqlx::query(statement).execute(&mut connection).await.expect(statement).rows_affected()
        }
    }
}

on_both_engines! {
    async fn they_are_those_of_the_present_text_by_one_model(database: TestDatabase) {
        let (store, repo) = filled(&database).await;
        let (one, other) = (EmbeddingKey::raw("one"), EmbeddingKey::raw("other"));
        for of in [1, 2, 3] {
            embed(&store, &repo, &one, of, Some(tokens(of as i8))).await;
        }
        embed(&store, &repo, &one, 4, None).await;
        embed(&store, &repo, &other, 1, Some(tokens(11))).await;
        assert_eq!(read(&store, &repo, &one).await, [(1, 1), (2, 2), (3, 3)]);
        assert_eq!(read(&store, &repo, &other).await, [(1, 11)]);
        assert_eq!(read(&store, &repo, &EmbeddingKey::raw("third")).await, []);
        let whole = store.corpus().token_vectors(repo.id, &one, ISSUE, &[number(2), number(9)]).await.expect("reads");
        assert_eq!((whole.len(), &whole[&number(2)]), (1, &tokens(2)));
        assert!(store.corpus().token_vectors(repo.id, &one, ItemType::Pr, &[number(2)]).await.expect("reads").is_empty());
        assert!(store.corpus().token_vectors(repo.id, &one, ISSUE, &[]).await.expect("reads").is_empty());

        // A changed text has no token vectors until it is embedded, and the old ones never come back.
        let edited = ItemRecord { body: Some("Edited".into()), ..ItemRecord::new(ISSUE, number(2), "Title") };
        store.corpus().upsert_items(&repo, vec![edited], now()).await.expect("taken in");
        assert_eq!(read(&store, &repo, &one).await, [(1, 1), (3, 3)]);
        embed(&store, &repo, &one, 2, Some(tokens(22))).await;
        assert_eq!(read(&store, &repo, &one).await, [(1, 1), (2, 22), (3, 3)]);
    }

    /// Token vectors beside an older vector would be from another model with the same name.
    async fn a_vector_without_them_takes_the_old_ones_away(database: TestDatabase) {
        let (store, repo) = filled(&database).await;
        let key = EmbeddingKey::raw("one");
        embed(&store, &repo, &key, 1, Some(tokens(1))).await;
        embed(&store, &repo, &key, 2, Some(tokens(2))).await;
        embed(&store, &repo, &key, 1, None).await;
        assert_eq!(read(&store, &repo, &key).await, [(2, 2)]);
        assert_eq!(by_hand(&database, "DELETE FROM token_vectors").await, 1);
    }

    async fn a_new_card_has_none_of_the_old_one(database: TestDatabase) {
        let (store, repo) = filled(&database).await;
        let key = EmbeddingKey::intent("one", Extractor::Local);
        let maker = CardMaker { extractor: Extractor::Local, model: "rules".to_owned() };
        let item = store.corpus().item(repo.id, ISSUE, number(1)).await.expect("reads").expect("known");
        let cards = [(item.clone(), CardOutcome::Ready(Box::new(extract_locally(IntentSource::from(&item)))))];
        store.corpus().write_intent_cards(repo.id, &maker, &cards, now()).await.expect("written");
        embed(&store, &repo, &key, 1, Some(tokens(1))).await;
        embed(&store, &repo, &EmbeddingKey::raw("one"), 1, Some(tokens(2))).await;
        assert_eq!(read(&store, &repo, &key).await, [(1, 1)]);
        store.corpus().write_intent_cards(repo.id, &maker, &cards, now()).await.expect("written");
        assert_eq!(read(&store, &repo, &key).await, []);
        assert_eq!(read(&store, &repo, &EmbeddingKey::raw("one")).await, [(1, 2)]);
    }

    async fn an_item_that_is_deleted_takes_them_with_it(database: TestDatabase) {
        let (store, repo) = filled(&database).await;
        embed(&store, &repo, &EmbeddingKey::raw("one"), 1, Some(tokens(1))).await;
        embed(&store, &repo, &EmbeddingKey::raw("one"), 2, Some(tokens(2))).await;
        assert_eq!(by_hand(&database, "DELETE FROM items WHERE number = 1").await, 1);
        assert_eq!(by_hand(&database, "DELETE FROM token_vectors").await, 1);
    }

    /// Truncated in the middle of a row, without a byte, and with a width of 0.
    async fn damaged_ones_count_as_absent(database: TestDatabase) {
        let (store, repo) = filled(&database).await;
        let key = EmbeddingKey::raw("one");
        for of in [1, 2, 3, 4] {
            embed(&store, &repo, &key, of, Some(tokens(of as i8))).await;
        }
        let zero = match database.engine() {
            Engine::Sqlite => "UPDATE token_vectors SET vectors = x'0001' WHERE item_id = (SELECT id FROM items WHERE number = 3)",
            Engine::Postgres => "UPDATE token_vectors SET vectors = '\\x0001' WHERE item_id = (SELECT id FROM items WHERE number = 3)",
        };
        for statement in [
            "UPDATE token_vectors SET vectors = substr(vectors, 1, 7) WHERE item_id = (SELECT id FROM items WHERE number = 1)",
            "UPDATE token_vectors SET vectors = substr(vectors, 1, 0) WHERE item_id = (SELECT id FROM items WHERE number = 2)",
            zero,
        ] {
            assert_eq!(by_hand(&database, statement).await, 1);
        }
        assert_eq!(read(&store, &repo, &key).await, [(4, 4)]);
    }
}
