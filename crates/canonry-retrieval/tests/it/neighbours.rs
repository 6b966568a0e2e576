//! Neighbours and searches through the public API, with realistic inputs from trackers.

use canonry_domain::{ItemNumber, ItemType, PullChanges, Similarity};
use canonry_retrieval::{Ask, Entry, ItemIndex, Query, RetrievalMode, TextFacts};

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("a number")
}

fn entry<'a>(title: &'a str, body: &'a str, vector: Option<&'a [f32]>) -> Entry<'a> {
    Entry { title, body, vector, changes: None, stamp: 0 }
}

fn ask(mode: RetrievalMode, min_score: f64) -> Ask<'static> {
    let min_score = Similarity::new(min_score).expect("a score");
    Ask { mode, k: 8, min_score, calibrate: &f64::from, filter: &|_| true }
}

fn numbers(index: &ItemIndex, query: &Query, ask: &Ask<'_>) -> Vec<i64> {
    index.neighbours(query, ask).expect("an answer").iter().map(|hit| hit.number.get()).collect()
}

#[test]
fn strange_texts_are_indexed_and_found() {
    let huge = "log line with nothing in it\n".repeat(400_000);
    let texts = [
        ("", ""),
        ("全文検索が動かない", "日本語の検索結果が空になる"),
        ("🚀🚀🚀", "🔥"),
        ("خطأ فادح عند التشغيل", "يتوقف البرنامج"),
        ("nul\0 bytes\0", "\0\0"),
        ("Only code", "```rust\nfn main() { frobnicate_widget(); }\n```"),
        ("Huge", &huge),
    ];
    let mut index = ItemIndex::new(ItemType::Issue, "model");
    for (at, (title, body)) in texts.iter().enumerate() {
        index.upsert(number(at as i64 + 1), entry(title, body, None)).expect("indexed");
    }
    let lexical = ask(RetrievalMode::Lexical, 0.0);
    for (title, expected) in [
        ("検索", Some(2)),
        ("🔥", Some(3)),
        ("خطأ فادح", Some(4)),
        ("bytes", Some(5)),
        ("frobnicateWidget frobnicate", Some(6)),
        ("huge log", Some(7)),
        ("", None),
    ] {
        let found = numbers(&index, &Query::new(title, ""), &lexical);
        assert_eq!(found.first().copied(), expected, "{title}");
    }
}

#[test]
fn an_item_is_never_its_own_neighbour_and_filters_hold() {
    let mut index = ItemIndex::new(ItemType::Issue, "model");
    for at in 1..=4 {
        index.upsert(number(at), entry("Crash on start", "", Some(&[1.0, at as f32]))).expect("indexed");
    }
    let query = Query::new("Crash on start", "").for_item(number(2)).with_vector(vec![1.0, 2.0]);
    let odd = |number: ItemNumber| number.get() % 2 == 1;
    let ask = Ask { filter: &odd, ..ask(RetrievalMode::Hybrid, 0.0) };
    assert_eq!(numbers(&index, &query, &ask), [3, 1]);
}

#[test]
fn a_text_with_a_number_is_near_what_was_opened_last() {
    let mut index = ItemIndex::new(ItemType::Issue, "model");
    for at in [1, 500, 1_000] {
        index.upsert(number(at), entry("Crash on start", "", Some(&[1.0, 0.0]))).expect("indexed");
    }
    let query = || Query::new("Crash on start", "").with_vector(vec![1.0, 0.0]);
    let hybrid = ask(RetrievalMode::Hybrid, 0.0);
    assert_eq!(numbers(&index, &query().numbered(number(1_001)), &hybrid), [1_000, 500, 1]);
    assert_eq!(numbers(&index, &query().numbered(number(1_000)), &hybrid), [1_000, 500, 1], "it is no item itself");
    assert_eq!(numbers(&index, &query(), &hybrid), [1, 500, 1_000]);
}

#[test]
fn a_bad_vector_names_item_and_model_and_changes_nothing() {
    let mut index = ItemIndex::new(ItemType::Issue, "voyage-code-3");
    index.upsert(number(1), entry("old words", "", Some(&[1.0, 0.0]))).expect("indexed");
    for (vector, expected) in [
        (
            &[1.0, 2.0, 3.0][..],
            "index issue 1 with the vector of voyage-code-3: the vector has 3 numbers, the index holds vectors of 2",
        ),
        (
            &[f32::NAN, 1.0],
            "index issue 1 with the vector of voyage-code-3: the vector holds a number that is not finite",
        ),
    ] {
        let error = index.upsert(number(1), entry("new words", "", Some(vector))).expect_err("refused");
        assert_eq!(error.to_string(), expected);
    }
    assert_eq!(numbers(&index, &Query::new("old", ""), &ask(RetrievalMode::Lexical, 0.0)), [1]);
    let error = index.neighbours(&Query::new("old", ""), &ask(RetrievalMode::Hybrid, 0.0)).expect_err("no vector");
    assert_eq!(
        error.to_string(),
        "search in hybrid mode: the query has no vector; embed it first, or use lexical mode"
    );
}

#[test]
fn a_text_without_its_vector_yet_is_no_neighbour_by_vectors() {
    let mut index = ItemIndex::new(ItemType::Issue, "model");
    index.upsert(number(1), entry("Crash", "", Some(&[1.0, 0.0]))).expect("indexed");
    index.upsert(number(1), entry("Crash, edited", "", None)).expect("indexed");
    assert_eq!((index.len(), index.vectors()), (1, 0));
    let query = Query::new("Crash", "").with_vector(vec![1.0, 0.0]);
    assert!(numbers(&index, &query, &ask(RetrievalMode::Hybrid, 0.0)).is_empty());
    assert_eq!(numbers(&index, &query, &ask(RetrievalMode::Lexical, 0.0)), [1]);
}

#[test]
fn the_diff_finds_a_pull_request_that_the_text_does_not() {
    let mut index = ItemIndex::new(ItemType::Pr, "model");
    let changes = |path: &str, diff: &str| PullChanges { files: vec![path.to_owned()], diff: diff.to_owned() };
    let same = changes("src/reader.rs", "+    let size = buffer.remaining_mut();\n-    let size = 0;\n");
    let other = changes("docs/guide.md", "+A new chapter about readers\n");
    for (at, title, changes) in [(1, "Fix it", &same), (2, "Correct the size of readers", &other)] {
        let entry = Entry { title, body: "", vector: None, changes: Some(changes), stamp: 0 };
        index.upsert(number(at), entry).expect("indexed");
    }
    let query = Query::new("Correct the size", "").with_changes(&same);
    let hits = index.neighbours(&query, &ask(RetrievalMode::Lexical, 0.0)).expect("an answer");
    assert_eq!(hits[0].number, number(1));
    assert_eq!(hits[0].parts["lexical"], 0.0);
    assert!(hits[0].parts["diff"] > 0.5 && hits[0].parts["paths"] > 0.5, "{:?}", hits[0].parts);
}

#[test]
fn search_prefers_what_holds_the_words_and_drops_what_is_excluded() {
    let mut index = ItemIndex::new(ItemType::Issue, "model");
    for (at, title) in [(1, "E0308 on windows"), (2, "E0308 on linux"), (3, "Slow build on linux"), (4, "Unrelated")] {
        index.upsert(number(at), entry(title, "", Some(&[at as f32, 1.0]))).expect("indexed");
    }
    let query = Query::new("E0308", "").with_vector(vec![4.0, 1.0]);
    let found = |include: &[&str], exclude: &[&str]| {
        let [include, exclude] =
            [include, exclude].map(|terms| terms.iter().map(|&term| term.to_owned()).collect::<Vec<_>>());
        let calibrate = |_: f32| 0.35;
        let ask = Ask { calibrate: &calibrate, ..ask(RetrievalMode::Hybrid, 0.30) };
        let hits = {
            let hits =
                index.neighbours(&query, &Ask { k: 400, min_score: Similarity::ZERO, ..ask }).expect("an answer");
            index.search_among(hits, ask.mode, ask.min_score, ask.k, &include, &exclude)
        };
        hits.iter().map(|hit| hit.number.get()).collect::<Vec<_>>()
    };
    let mut first = found(&[], &[]);
    first.truncate(2);
    first.sort_unstable();
    assert_eq!(first, [1, 2]);
    assert_eq!(found(&["linux"], &["windows"])[..2], [2, 3]);
    assert!(!found(&[], &["windows"]).contains(&1));
}

#[test]
fn words_elsewhere_and_vectors_here_meet_in_one_fusion() {
    let mut index = ItemIndex::new(ItemType::Issue, "model");
    for (at, title) in [(1, "Crash on start"), (2, "Slow on exit"), (3, "Crash on exit")] {
        index.upsert(number(at), entry(title, "", None)).expect("indexed");
    }
    let query = Query::new("Crash", "").for_item(number(3));
    let candidates = index.word_candidates(&query, &[number(2), number(3), number(99)], 4, &|_| true);
    let told: Vec<(i64, bool)> = candidates.iter().map(|one| (one.number.get(), one.lexical > 0.0)).collect();
    assert_eq!(told, [(1, true), (2, false)]);
}

#[test]
fn facts_of_more_than_one_in_fifty_items_are_common() {
    let text = "`rare_cache` and `usual_cache` in `common_cache`";
    let mut index = ItemIndex::new(ItemType::Issue, "model");
    for at in 1..=1_000 {
        let body = match at {
            1..=2 => text,
            3..=20 => "`usual_cache` in `common_cache`",
            21 => "`common_cache`",
            _ => "nothing of that",
        };
        index.upsert(number(at), entry("", body, None)).expect("indexed");
    }
    let common = index.common_facts(&TextFacts::of(text));
    let telling = TextFacts::of_which(text, |found| !common.contains(found));
    assert_eq!(telling, TextFacts::of("`rare_cache` and `usual_cache`"));
    // In a small index no fact is common.
    let mut small = ItemIndex::new(ItemType::Issue, "model");
    for at in 1..=8 {
        small.upsert(number(at), entry("", text, None)).expect("indexed");
    }
    assert_eq!(small.common_facts(&TextFacts::of(text)), Default::default());
    // A crash that twelve of a hundred items report is still one problem.
    for at in 1..=100 {
        let body = if at <= 12 { text } else { "nothing of that" };
        small.upsert(number(at), entry("", body, None)).expect("indexed");
    }
    assert_eq!(small.common_facts(&TextFacts::of(text)), Default::default());
}
