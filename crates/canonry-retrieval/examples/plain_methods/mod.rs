//! The methods of the published baselines, with which ours are compared.

use std::collections::HashMap;

use canonry_domain::{ItemNumber, ItemType};
use canonry_retrieval::ItemIndex;

use crate::bench_data::BenchItem;
use crate::close_look::{add, query};
use crate::plain_bm25::{PlainBm25, identifier_words, path_words, text_words};
use crate::{Answer, DEPTH, standard};

/// All earlier items.
pub(crate) struct Plain {
    text: PlainBm25,
    paths: PlainBm25,
    identifiers: PlainBm25,
    index: ItemIndex,
}

impl Plain {
    pub(crate) fn new(item_type: ItemType) -> Self {
        Self {
            text: PlainBm25::default(),
            paths: PlainBm25::default(),
            identifiers: PlainBm25::default(),
            index: ItemIndex::new(item_type, "plain"),
        }
    }

    pub(crate) fn add(&mut self, item: &BenchItem) {
        self.text.add(text_words(&item.title, &item.body));
        self.paths.add(item.changes.as_ref().map_or_else(Vec::new, path_words));
        self.identifiers.add(item.changes.as_ref().map_or_else(Vec::new, identifier_words));
        add(&mut self.index, item);
    }

    pub(crate) fn answers(&self, item: &BenchItem) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut answer = |name: &str, found: &[ItemNumber]| {
            answers.push((0, format!("plain: {name}"), found.iter().copied().take(DEPTH).collect()));
        };
        let text = numbers(self.text.order(text_words(&item.title, &item.body)));
        answer("BM25, title three times", &text);
        let dense = self.by_vectors(item);
        answer("dense", &dense);
        answer("BM25 and dense, by ranks", &by_ranks(&text, &dense));
        answer("code-aware BM25 and dense, sum of z-scores", &self.by_deviations(item));
        if let Some(changes) = &item.changes {
            let paths = numbers(self.paths.order(path_words(changes)));
            let identifiers = numbers(self.identifiers.order(identifier_words(changes)));
            answer("BM25 over paths", &paths);
            answer("BM25 over identifiers", &identifiers);
            answer("paths and identifiers, by ranks", &by_ranks(&paths, &identifiers));
        }
        answers
    }

    fn cosines(&self, item: &BenchItem) -> HashMap<ItemNumber, f64> {
        let Some(vector) = item.vector.as_deref() else { return HashMap::new() };
        let product = |other: &[f32]| f64::from(other.iter().zip(vector).map(|(one, other)| one * other).sum::<f32>());
        self.index.numbers().filter_map(|number| Some((number, product(self.index.vector(number)?)))).collect()
    }

    fn by_vectors(&self, item: &BenchItem) -> Vec<ItemNumber> {
        best_first(self.cosines(item).into_iter().collect())
    }

    fn by_deviations(&self, item: &BenchItem) -> Vec<ItemNumber> {
        let cosines = self.cosines(item);
        let all: Vec<ItemNumber> = self.index.numbers().collect();
        let candidates = self.index.word_candidates(&query(item), &all, DEPTH, &|_| true);
        let words: Vec<f64> = candidates.iter().map(|candidate| f64::from(candidate.lexical)).collect();
        let vectors: Vec<f64> =
            candidates.iter().map(|candidate| cosines.get(&candidate.number).copied().unwrap_or(0.0)).collect();
        let sums = standard(&words).into_iter().zip(standard(&vectors)).map(|(one, other)| one + other);
        best_first(candidates.iter().map(|candidate| candidate.number).zip(sums).collect())
    }
}

/// Equal scores are ordered newest first: a duplicate is usually filed soon after its original.
fn best_first(mut scored: Vec<(ItemNumber, f64)>) -> Vec<ItemNumber> {
    scored.sort_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    scored.into_iter().map(|(number, _)| number).collect()
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
    best_first(sums.into_iter().collect())
}
