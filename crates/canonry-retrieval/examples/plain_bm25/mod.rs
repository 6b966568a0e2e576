//! Textbook BM25, which knows nothing about code: the baseline for our own parts.

use std::collections::{BTreeSet, HashMap};

use canonry_domain::PullChanges;

// The defaults of the common Python packages, which the published figures used.
const K1: f64 = 1.5;
const B: f64 = 0.75;
const STOP_WORDS: [&str; 33] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
];

/// An index of words; an item is identified by its position, from 0.
#[derive(Default)]
pub(crate) struct PlainBm25 {
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    total_length: f64,
}

impl PlainBm25 {
    pub(crate) fn add(&mut self, words: Vec<String>) {
        let item = self.lengths.len();
        self.lengths.push(words.len() as f64);
        self.total_length += words.len() as f64;
        for word in words {
            let postings = self.postings.entry(word).or_default();
            match postings.last_mut() {
                Some((last, count)) if *last == item => *count += 1.0,
                _ => postings.push((item, 1.0)),
            }
        }
    }

    /// All items, best first; among equals the newest first. Each word of the query counts once.
    pub(crate) fn order(&self, query: Vec<String>) -> Vec<usize> {
        let items = self.lengths.len() as f64;
        let mean_length = self.total_length / items;
        let mut scores = vec![0.0_f64; self.lengths.len()];
        for postings in BTreeSet::from_iter(query).iter().filter_map(|word| self.postings.get(word)) {
            let holders = postings.len() as f64;
            let rarity = (1.0 + (items - holders + 0.5) / (holders + 0.5)).ln();
            for &(item, count) in postings {
                let length = 1.0 - B + B * self.lengths[item] / mean_length;
                scores[item] += rarity * count * (K1 + 1.0) / (count + K1 * length);
            }
        }
        let mut order: Vec<usize> = (0..scores.len()).rev().collect();
        order.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
        order
    }
}

/// The words of a text; those of the title count three times.
pub(crate) fn text_words(title: &str, body: &str) -> Vec<String> {
    let words = [title, title, title, body].into_iter().flat_map(|text| words(text, 2)).map(str::to_lowercase);
    words.filter(|word| !STOP_WORDS.contains(&word.as_str())).collect()
}

/// The changed files, each as one word.
pub(crate) fn path_words(changes: &PullChanges) -> Vec<String> {
    changes.files.clone()
}

pub(crate) fn identifier_words(changes: &PullChanges) -> Vec<String> {
    let starts = |word: &&str| word.starts_with(|first: char| first.is_alphabetic() || first == '_');
    words(&changes.diff, 3).filter(starts).map(str::to_owned).collect()
}

fn words(text: &str, least: usize) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_alphanumeric() || character == '_'))
        .filter(move |word| word.chars().nth(least - 1).is_some())
}
