//! An index that was changed item by item gives the same answers as one that was built at once.

use canonry_domain::{ItemNumber, ItemType, PullChanges, Similarity};
use canonry_retrieval::{Ask, Entry, Hit, ItemIndex, Query, RetrievalMode, read_snapshot, write_snapshot};
use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert_eq, proptest};

const WORDS: [&str; 12] = [
    "crash",
    "read_to_end",
    "HashMap::entry",
    "slow",
    "E0308",
    "panicked at index out of bounds",
    "検索",
    "🚀",
    "the",
    "src/lib.rs",
    "1.2.3",
    "undefined symbol: foo_bar",
];

#[derive(Debug, Clone)]
struct Made {
    title: String,
    body: String,
    vector: Option<Vec<f32>>,
    changes: Option<PullChanges>,
}

fn made() -> impl Strategy<Value = Made> {
    let words =
        |most| prop::collection::vec(prop::sample::select(&WORDS[..]), 0..most).prop_map(|words| words.join(" "));
    let vector = prop::option::of(
        prop::collection::vec(1_u8..255, 5)
            .prop_map(|numbers| numbers.into_iter().map(|number| f32::from(number) - 127.5).collect()),
    );
    let changes = prop::option::of((words(3), words(6)))
        .prop_map(|changes| changes.map(|(path, diff)| PullChanges { files: vec![path], diff }));
    (words(4), words(12), vector, changes).prop_map(|(title, body, vector, changes)| Made {
        title,
        body,
        vector,
        changes,
    })
}

fn put(index: &mut ItemIndex, at: usize, made: &Made) {
    let entry = Entry {
        title: &made.title,
        body: &made.body,
        vector: made.vector.as_deref(),
        changes: made.changes.as_ref(),
        stamp: at as u64,
    };
    index.upsert(number(at), entry).expect("a usable item");
}

fn number(at: usize) -> ItemNumber {
    ItemNumber::new(at as i64 + 1).expect("counted from 1")
}

fn asked(index: &ItemIndex, made: &Made, mode: RetrievalMode) -> Vec<Hit> {
    let mut query = Query::new(&made.title, &made.body).with_vector(vec![1.0, -2.0, 3.0, 0.5, -0.5]);
    if let Some(changes) = &made.changes {
        query = query.with_changes(changes);
    }
    let ask = Ask { mode, k: 20, min_score: Similarity::ZERO, calibrate: &f64::from, filter: &|_| true };
    index.neighbours(&query, &ask).expect("a query with a vector")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn changed_item_by_item_rebuilt_and_reloaded_answer_alike(
        steps in prop::collection::vec((0_usize..12, any::<bool>(), made()), 1..40),
        query in made(),
    ) {
        let mut changed = ItemIndex::new(ItemType::Pr, "model");
        let mut known: [Option<Made>; 12] = Default::default();
        for (at, keep, made) in steps {
            if keep {
                put(&mut changed, at, &made);
                known[at] = Some(made);
            } else {
                prop_assert_eq!(changed.remove(number(at)), known[at].take().is_some());
            }
        }
        let mut rebuilt = ItemIndex::new(ItemType::Pr, "model");
        for (at, made) in known.iter().enumerate() {
            if let Some(made) = made {
                put(&mut rebuilt, at, made);
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("index");
        write_snapshot(&changed, &path).expect("a snapshot");
        let mut reloaded = read_snapshot(&path, ItemType::Pr, "model").expect("the same snapshot");
        prop_assert_eq!(changed.len(), rebuilt.len());
        for mode in [RetrievalMode::Hybrid, RetrievalMode::Dense, RetrievalMode::Lexical] {
            let expected = asked(&rebuilt, &query, mode);
            prop_assert_eq!(&asked(&changed, &query, mode), &expected);
            prop_assert_eq!(&asked(&reloaded, &query, mode), &expected);
        }
        for (at, made) in known.iter().enumerate() {
            prop_assert_eq!(reloaded.stamp(number(at)), made.as_ref().map(|_| at as u64));
        }
        // Every item of an index from a snapshot can be removed.
        for (at, made) in known.iter().enumerate() {
            prop_assert_eq!(reloaded.remove(number(at)), made.is_some());
        }
        prop_assert_eq!(reloaded.is_empty(), true);
        prop_assert_eq!(asked(&reloaded, &query, RetrievalMode::Lexical), vec![]);
    }
}
