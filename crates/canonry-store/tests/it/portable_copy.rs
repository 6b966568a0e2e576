//! The copy of a database that others may read: what it leaves out, and how vectors get back into it.

use canonry_domain::{ItemRecord, ItemType, TokenVectors, parse_moment};
use canonry_store::{EmbeddingKey, NewEmbedding, Repo, Representation, SessionOwner, Store};
use canonry_testkit::database::TestDatabase;
use jiff::Timestamp;

use crate::fixtures::number;

const SECRET: [u8; 32] = *b"a secret that signs all comments";
const SESSION: [u8; 32] = [0xa5; 32];
const SEAL: [u8; 32] = [0x5a; 32];

fn now() -> Timestamp {
    parse_moment("2026-02-01").expect("valid")
}

fn key() -> EmbeddingKey {
    EmbeddingKey { representation: Representation::Raw, model: "one".to_owned() }
}

/// A database with an item that has vectors, a secret, and an operator's session.
async fn filled(database: &TestDatabase) -> (Store, Repo) {
    let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
    let repo = store.repos().ensure(&"o/n".parse().expect("valid"), now()).await.expect("created");
    let record = ItemRecord::new(ItemType::Issue, number(1), "The tide is late");
    store.corpus().upsert_items(&repo, vec![record], now()).await.expect("stored");
    let item = store.corpus().item(repo.id, ItemType::Issue, number(1)).await.expect("reads").expect("known");
    let embedding = NewEmbedding {
        item_type: ItemType::Issue,
        number: item.number,
        embedded_hash: item.content_hash,
        vector: vec![0.125; 16],
        tokens: Some(TokenVectors::new(4, vec![77; 64]).expect("rows")),
    };
    store.corpus().write_embeddings(repo.id, &key(), &[embedding], now()).await.expect("stored");
    store.outbox().marker_secret(SECRET, now()).await.expect("stored");
    store.console().begin_session(&SESSION, SessionOwner::Operator { seal: SEAL }, now()).await.expect("begins");
    (store, repo)
}

async fn vectors(store: &Store, repo: &Repo) -> (usize, usize) {
    let whole = store.corpus().embeddings_after(repo.id, &key(), ItemType::Issue, None, 10).await.expect("reads");
    let tokens = store.corpus().token_vectors(repo.id, &key(), ItemType::Issue, &[number(1)]).await.expect("reads");
    (whole.len(), tokens.len())
}

/// The bytes of the file are searched, because a deleted row stays in a file that is not written anew.
#[tokio::test]
async fn a_portable_copy_has_the_items_and_neither_secrets_nor_vectors() {
    let database = TestDatabase::sqlite();
    let (store, repo) = filled(&database).await;
    let file = std::path::Path::new(database.url().strip_prefix("sqlite:").expect("a file"));
    let (whole, copy) = (file.with_extension("whole"), file.with_extension("copy"));
    store.maintenance().write_portable_copy(&copy).await.expect("writes");

    let bytes = std::fs::read(&copy).expect("a file");
    let holds = |words: &[u8]| bytes.windows(words.len()).any(|window| window == words);
    let hex = |bytes: &[u8]| canonry_domain::hex_digits(bytes);
    assert!(holds(b"The tide is late"));
    let vector: Vec<u8> = 0.125_f32.to_le_bytes().repeat(16);
    for (what, words) in [
        ("the secret", SECRET.to_vec()),
        ("the session", hex(&SESSION).into_bytes()),
        ("the session's seal", hex(&SEAL).into_bytes()),
        ("the vector", vector),
        ("the token vectors", vec![77; 64]),
    ] {
        assert!(!holds(&words), "{what} is in the copy");
    }

    // The database itself is unchanged, and its vectors can be taken over.
    assert_eq!(vectors(&store, &repo).await, (1, 1));
    let kept = store.outbox().marker_secret([0; 32], now()).await.expect("reads");
    assert_eq!(kept, SECRET);
    let opened =
        Store::open(&format!("sqlite:{}", copy.display()).parse().expect("valid"), now()).await.expect("opens");
    assert_eq!(vectors(&opened, &repo).await, (0, 0));
    store.disconnect().await;
    std::fs::copy(file, &whole).expect("a copy");
    assert_eq!(opened.maintenance().adopt_vectors(&whole).await.expect("adopts"), 1);
    assert_eq!(vectors(&opened, &repo).await, (1, 1));
    opened.disconnect().await;
}

#[tokio::test]
async fn a_portable_copy_is_made_of_a_file_only() {
    let database = TestDatabase::postgres().await;
    let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
    let refused = store.maintenance().write_portable_copy(std::path::Path::new("copy.db")).await.expect_err("refused");
    assert!(refused.to_string().contains("only a SQLite database"), "{refused}");
    store.disconnect().await;
}
