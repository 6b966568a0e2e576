//! BM25 over one field of documents that do not change.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::postings::TermHasher;

const K1: f64 = 1.2;
const B: f64 = 0.75;

type OfTerm<T> = HashMap<u64, T, BuildHasherDefault<TermHasher>>;

/// The hash of a term: FNV-1a, whose value does not depend on the program.
pub(crate) fn term(text: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// How often each term occurs in a text.
#[derive(Debug, Clone, Default)]
pub(crate) struct TermCounts(OfTerm<u32>);

impl TermCounts {
    pub(crate) fn add(&mut self, text: &str) {
        *self.0.entry(term(text)).or_default() += 1;
    }

    pub(crate) fn times(&self, factor: u32) -> Self {
        Self(self.0.iter().map(|(term, count)| (*term, count * factor)).collect())
    }

    pub(crate) fn and(mut self, other: &Self) -> Self {
        for (term, count) in &other.0 {
            *self.0.entry(*term).or_default() += count;
        }
        self
    }

    /// Only the terms that another text contains too, and the others together as one, which keeps the length.
    pub(crate) fn kept(mut self, other: &Self) -> Self {
        let length: u32 = self.0.values().sum();
        self.0.retain(|term, _| other.0.contains_key(term));
        let rest = length - self.0.values().sum::<u32>();
        if rest > 0 {
            self.0.insert(0, rest);
        }
        self
    }
}

#[derive(Debug, Default)]
pub(crate) struct FieldIndex {
    postings: OfTerm<Vec<(u32, u32)>>,
    lengths: Vec<u32>,
    total: u64,
}

impl FieldIndex {
    pub(crate) fn add(&mut self, terms: &TermCounts) {
        let document = u32::try_from(self.lengths.len()).expect("invariant: fewer than 2^32 documents");
        let mut length = 0;
        for (term, count) in &terms.0 {
            self.postings.entry(*term).or_default().push((document, *count));
            length += count;
        }
        self.lengths.push(length);
        self.total += u64::from(length);
    }

    /// The score of each document as a share of the best among those that count; 0 for the others. Rare terms count
    /// by their rarity to the power of `power`.
    pub(crate) fn shares(&self, query: &TermCounts, power: i32, counts: impl Fn(usize) -> bool) -> Vec<f64> {
        let documents = self.lengths.len() as f64;
        let mean = (self.total as f64 / documents.max(1.0)).max(1.0);
        let mut scores = vec![0.0; self.lengths.len()];
        // In the order of the hashes: the order of addition must not depend on that of a map.
        let mut terms: Vec<(&u64, &u32)> = query.0.iter().collect();
        terms.sort_unstable();
        for (term, asked) in terms {
            let Some(postings) = self.postings.get(term) else { continue };
            let containing = postings.len() as f64;
            let rarity = ((documents - containing + 0.5) / (containing + 0.5)).ln_1p().powi(power);
            let asked = f64::from(*asked);
            let weight = 2.0 * asked / (asked + 1.0) * rarity;
            for (document, count) in postings {
                let (count, length) = (f64::from(*count), f64::from(self.lengths[*document as usize]));
                let saturated = (K1 + 1.0) * count / (count + K1 * (1.0 - B + B * length / mean));
                scores[*document as usize] += weight * saturated;
            }
        }
        let mut best = 0.0_f64;
        for (document, score) in scores.iter_mut().enumerate() {
            if *score > 0.0 && !counts(document) {
                *score = 0.0;
            }
            best = best.max(*score);
        }
        if best > 0.0 {
            scores.iter_mut().for_each(|score| *score /= best);
        }
        scores
    }
}
