//! Recall on public duplicate sets, as Markdown: each part alone, the fusion, the fusion without each part, and plain
//! methods beside them.
//!
//! `cargo run --release -p canonry-retrieval --example baselines -- [--vectors FOLDER] [SET…]`
#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

mod bench_data;
mod plain_bm25;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use bench_data::{BenchItem, folder, load};
use canonry_domain::{ItemNumber, ItemType, Similarity};
use canonry_retrieval::{
    Ask, Candidate, Entry, Hit, ItemIndex, Query, RetrievalMeasures, RetrievalMode, Spread, rank, rank_of_best,
};
use plain_bm25::{Equals, PlainBm25, identifier_words, path_words, text_words};

/// How many neighbours are looked at; a relevant item after that counts as not found.
const DEPTH: usize = 200;
const PARTS: [&str; 5] = ["lexical", "title", "evidence", "paths", "diff"];

fn main() -> Result<(), String> {
    let mut vectors = None;
    let mut wanted = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--vectors" => vectors = arguments.next().map(PathBuf::from),
            _ => wanted.push(argument),
        }
    }
    let folder = folder()?;
    for (set, item_type) in [
        ("rust", ItemType::Issue),
        ("rust", ItemType::Pr),
        ("rails", ItemType::Pr),
        ("openoffice", ItemType::Issue),
        ("gitbugs_hadoop", ItemType::Issue),
        ("gitbugs_seamonkey", ItemType::Issue),
    ] {
        if !wanted.is_empty() && !wanted.contains(&format!("{set}.{item_type}")) {
            continue;
        }
        let items = load(&folder, set, item_type, vectors.as_deref())?;
        let lines = replay(&items, item_type);
        let queries = items.iter().filter(|item| !item.relevant.is_empty()).count();
        println!("\n### {set}, {} ({} items, {queries} queries)\n", item_type.in_words(), items.len());
        println!("| ranked by | R@1 | R@5 | R@10 | R@20 | MRR | 95 % of R@10 |\n|---|---|---|---|---|---|---|");
        for (name, ranks) in lines {
            let measures = RetrievalMeasures::of(&ranks, 1);
            let three = |value: f64| format!("{value:.3}").trim_start_matches('0').to_owned();
            println!(
                "| {name} | {} | {} | {} | {} | {} | {}–{} |",
                three(measures.recall_at_1.value),
                three(measures.recall_at_5.value),
                three(measures.recall_at_10.value),
                three(measures.recall_at_20.value),
                three(measures.mrr.value),
                three(measures.recall_at_10.low),
                three(measures.recall_at_10.high),
            );
        }
    }
    Ok(())
}

/// Every item in order of creation: asked about, if it is a query, and only then added. So each query meets
/// exactly what existed when it was filed, in the pool and in the counts of words.
fn replay(items: &[BenchItem], item_type: ItemType) -> Vec<(String, Vec<Option<usize>>)> {
    let mut index = ItemIndex::new(item_type, "bench");
    let mut plain = Plain::default();
    let mut ranks: BTreeMap<(u8, String), Vec<Option<usize>>> = BTreeMap::new();
    for item in items {
        if !item.relevant.is_empty() {
            let mut answers = answers(&index, item);
            answers.extend(plain.answers(item, &answers));
            for (group, name, found) in answers {
                ranks.entry((group, name)).or_default().push(rank_of_best(found, &item.relevant));
            }
        }
        let entry = Entry {
            title: &item.title,
            body: &item.body,
            vector: item.vector.as_deref(),
            changes: item.changes.as_ref(),
            stamp: 0,
        };
        index.upsert(item.number, entry).expect("bench items can be indexed");
        plain.add(item);
    }
    ranks.into_iter().map(|((_, name), ranks)| (name, ranks)).collect()
}

/// What one way of ranking found: its group in the table, its name, the items.
type Answer = (u8, String, Vec<ItemNumber>);

/// What each way of ranking finds for a query.
fn answers(index: &ItemIndex, item: &BenchItem) -> Vec<Answer> {
    let mut query = Query::new(&item.title, &item.body).for_item(item.number);
    if let Some(changes) = &item.changes {
        query = query.with_changes(changes);
    }
    let mut mode = RetrievalMode::Lexical;
    if let Some(vector) = &item.vector {
        query = query.with_vector(vector.clone());
        mode = RetrievalMode::Hybrid;
    }
    let ask = |mode| {
        let ask = Ask { mode, k: DEPTH, min_score: Similarity::ZERO, calibrate: &f64::from, filter: &|_| true };
        index.neighbours(&query, &ask).expect("a query with its vector")
    };
    let numbers = |hits: &[Hit]| hits.iter().map(|hit| hit.number).collect::<Vec<_>>();
    let hits = ask(mode);
    let mut answers = Vec::new();
    let words = if mode == RetrievalMode::Hybrid {
        answers.push((0, "**all parts** (hybrid mode)".to_owned(), numbers(&hits)));
        numbers(&ask(RetrievalMode::Lexical))
    } else {
        numbers(&hits)
    };
    answers.push((0, "all without vectors (lexical mode)".to_owned(), words));

    // The same candidates, fused again with one part silenced.
    let mut cosines: Vec<(ItemNumber, f32)> = item.vector.as_deref().map_or_else(Vec::new, |vector| {
        let cosine = |number| Some((number, index.vector(number)?.iter().zip(vector).map(|(a, b)| a * b).sum()));
        index.numbers().filter_map(cosine).collect()
    });
    let spread = Spread::of(cosines.iter().map(|(_, cosine)| *cosine));
    cosines.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    if !cosines.is_empty() {
        answers.push((1, "dense alone".to_owned(), cosines.iter().map(|(number, _)| *number).collect()));
    }
    let cosines: HashMap<ItemNumber, f32> = cosines.into_iter().collect();
    let mut candidates = index.word_candidates(&query, &numbers(&hits), DEPTH, &|_| true);
    for candidate in &mut candidates {
        candidate.cosine = cosines.get(&candidate.number).copied();
    }
    let has_changes = candidates.iter().any(|candidate| candidate.diff.is_some());
    for part in PARTS {
        if matches!(part, "paths" | "diff") && !has_changes {
            continue;
        }
        answers.push((1, format!("{part} alone"), by_part(&candidates, part)));
        let silenced: Vec<Candidate> = candidates.iter().map(|&candidate| without(candidate, part)).collect();
        let hits = rank(mode, &silenced, spread, f64::from, Similarity::ZERO, DEPTH);
        answers.push((2, format!("all without {part}"), numbers(&hits)));
    }
    answers
}

fn without(mut candidate: Candidate, part: &str) -> Candidate {
    match part {
        "lexical" => candidate.lexical = 0.0,
        "title" => candidate.title = 0.0,
        "evidence" => candidate.evidence = 0.0,
        "paths" => candidate.paths = candidate.paths.map(|_| 0.0),
        _ => candidate.diff = candidate.diff.map(|_| 0.0),
    }
    candidate
}

/// By one part alone; equals are ordered newest first. Between changes of one file most are equal, and a duplicate is
/// usually filed soon after its original.
fn by_part(candidates: &[Candidate], part: &str) -> Vec<ItemNumber> {
    let value = |candidate: &Candidate| match part {
        "lexical" => candidate.lexical,
        "title" => candidate.title,
        "evidence" => candidate.evidence,
        "paths" => candidate.paths.unwrap_or(0.0),
        _ => candidate.diff.unwrap_or(0.0),
    };
    // A part of which an item has nothing did not find it.
    let mut candidates: Vec<&Candidate> = candidates.iter().filter(|candidate| value(candidate) > 0.0).collect();
    candidates.sort_by(|one, other| value(other).total_cmp(&value(one)).then(other.number.cmp(&one.number)));
    candidates.into_iter().map(|candidate| candidate.number).collect()
}

/// The methods of the published baselines.
#[derive(Default)]
struct Plain {
    text: PlainBm25,
    paths: PlainBm25,
    identifiers: PlainBm25,
}

impl Plain {
    fn add(&mut self, item: &BenchItem) {
        self.text.add(text_words(&item.title, &item.body));
        self.paths.add(item.changes.as_ref().map_or_else(Vec::new, path_words));
        self.identifiers.add(item.changes.as_ref().map_or_else(Vec::new, identifier_words));
    }

    fn answers(&self, item: &BenchItem, ours: &[Answer]) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut answer = |name: &str, found: &[ItemNumber]| {
            answers.push((3, format!("plain: {name}"), found.iter().copied().take(DEPTH).collect()));
        };
        let newest = Equals::NewestFirst;
        let text = numbers(self.text.order(text_words(&item.title, &item.body), newest));
        answer("BM25, title three times", &text);
        if let Some((_, _, dense)) = ours.iter().find(|(_, name, _)| name == "dense alone") {
            answer("BM25 and dense, by ranks", &by_ranks(&text, dense));
        }
        if let Some(changes) = &item.changes {
            let paths = numbers(self.paths.order(path_words(changes), newest));
            let identifiers = numbers(self.identifiers.order(identifier_words(changes), newest));
            answer("BM25 over paths", &paths);
            let oldest = self.paths.order(path_words(changes), Equals::OldestFirst);
            answer("BM25 over paths, equals oldest first", &numbers(oldest));
            answer("BM25 over identifiers", &identifiers);
            answer("paths and identifiers, by ranks", &by_ranks(&paths, &identifiers));
        }
        answers
    }
}

fn numbers(positions: Vec<usize>) -> Vec<ItemNumber> {
    positions.into_iter().map(|at| ItemNumber::new(at as i64 + 1).expect("positions count from 1")).collect()
}

/// Reciprocal rank fusion, with the constant of its authors.
fn by_ranks(one: &[ItemNumber], other: &[ItemNumber]) -> Vec<ItemNumber> {
    let mut sums: HashMap<ItemNumber, f64> = HashMap::new();
    for (at, &number) in one.iter().enumerate().chain(other.iter().enumerate()) {
        *sums.entry(number).or_default() += 1.0 / (61.0 + at as f64);
    }
    let mut order: Vec<(ItemNumber, f64)> = sums.into_iter().collect();
    order.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    order.into_iter().map(|(number, _)| number).collect()
}
