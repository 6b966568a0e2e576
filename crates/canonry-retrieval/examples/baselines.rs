//! Recall on public duplicate sets, as Markdown: each part alone, the fusion, and the fusion without each part.
//!
//! `cargo run --release -p canonry-retrieval --example baselines -- [--vectors FOLDER] [SET…]`
#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

mod bench_data;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use bench_data::{BenchItem, folder, load};
use canonry_domain::{ItemNumber, ItemType, Similarity};
use canonry_retrieval::{
    Ask, Candidate, Entry, Hit, ItemIndex, Query, RetrievalMeasures, RetrievalMode, Spread, rank, rank_of_best,
};

/// How many neighbours are looked at; a relevant item after that counts as not found.
const DEPTH: usize = 200;
const PARTS: [&str; 6] = ["dense", "lexical", "title", "evidence", "paths", "diff"];

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
    let mut ranks: BTreeMap<(u8, String), Vec<Option<usize>>> = BTreeMap::new();
    for item in items {
        if !item.relevant.is_empty() {
            for (group, name, found) in answers(&index, item) {
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
    }
    ranks.into_iter().map(|((_, name), ranks)| (name, ranks)).collect()
}

/// What each way of ranking finds for a query.
fn answers(index: &ItemIndex, item: &BenchItem) -> Vec<(u8, String, Vec<ItemNumber>)> {
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
    let cosines: Vec<(ItemNumber, f32)> = item.vector.as_deref().map_or_else(Vec::new, |vector| {
        let cosine = |number| Some((number, index.vector(number)?.iter().zip(vector).map(|(a, b)| a * b).sum()));
        index.numbers().filter_map(cosine).collect()
    });
    let spread = Spread::of(cosines.iter().map(|(_, cosine)| *cosine));
    let cosines: HashMap<ItemNumber, f32> = cosines.into_iter().collect();
    let mut candidates = index.word_candidates(&query, &numbers(&hits), DEPTH, &|_| true);
    for candidate in &mut candidates {
        candidate.cosine = cosines.get(&candidate.number).copied();
    }
    let has_changes = candidates.iter().any(|candidate| candidate.diff.is_some());
    for part in PARTS {
        if part == "dense" && cosines.is_empty() || matches!(part, "paths" | "diff") && !has_changes {
            continue;
        }
        answers.push((1, format!("{part} alone"), by_part(&candidates, part)));
        if part != "dense" {
            let silenced: Vec<Candidate> = candidates.iter().map(|&candidate| without(candidate, part)).collect();
            let hits = rank(mode, &silenced, spread, f64::from, Similarity::ZERO, DEPTH);
            answers.push((2, format!("all without {part}"), numbers(&hits)));
        }
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

fn by_part(candidates: &[Candidate], part: &str) -> Vec<ItemNumber> {
    let value = |candidate: &Candidate| match part {
        "dense" => candidate.cosine.unwrap_or(-1.0),
        "lexical" => candidate.lexical,
        "title" => candidate.title,
        "evidence" => candidate.evidence,
        "paths" => candidate.paths.unwrap_or(0.0),
        _ => candidate.diff.unwrap_or(0.0),
    };
    let mut candidates: Vec<&Candidate> = candidates.iter().collect();
    candidates.sort_by(|one, other| value(other).total_cmp(&value(one)).then(one.number.cmp(&other.number)));
    candidates.into_iter().map(|candidate| candidate.number).collect()
}
