//! A text as counted, hashed terms: documents and queries of the lexical index.

use canonry_domain::{BODY_LIMIT, TITLE_LIMIT};

use crate::tokens::for_each_token;

/// How much a word in the title counts compared to one in the body, as in the public baselines.
const TITLE_WEIGHT: u32 = 3;

/// The distinct terms of a text with their counts, sorted by hash.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bag {
    terms: Vec<Term>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    pub(crate) hash: u64,
    /// Both counts in one byte, as the index stores them.
    pub(crate) count: Count,
}

/// How often a term occurs: up to 3 times in the title and 63 times in the body, in one byte. Higher counts change
/// nothing, because BM25 is nearly flat there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count(pub(crate) u8);

impl Count {
    fn new(title: u32, body: u32) -> Self {
        let packed = (title.min(3) << 6) | body.min(63);
        Self(u8::try_from(packed).expect("invariant: two and six bits fill a byte"))
    }

    pub(crate) fn in_title(self) -> u32 {
        u32::from(self.0 >> 6)
    }

    /// The weighted count that BM25 uses.
    pub(crate) fn weighted(self) -> u32 {
        TITLE_WEIGHT * self.in_title() + u32::from(self.0 & 63)
    }
}

impl Bag {
    /// The bag of an item, truncated like its raw representation.
    pub fn of_item(title: &str, body: &str) -> Self {
        let mut hashes = Vec::new();
        for_each_token(first_chars(title, TITLE_LIMIT), |token| hashes.push((term_hash(token), true)));
        for_each_token(first_chars(body, BODY_LIMIT), |token| hashes.push((term_hash(token), false)));
        Self::count(hashes)
    }

    /// The bag of terms that are not words of a text: paths, identifiers, facts. Each counts once: it matters that an
    /// identifier changed, not how often (3 points of recall at 10 on pull requests of rust and of rails).
    pub fn of_terms<'a>(terms: impl IntoIterator<Item = &'a str>) -> Self {
        let mut hashes: Vec<(u64, bool)> = terms.into_iter().map(|term| (term_hash(term), false)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        Self::count(hashes)
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub(crate) fn find(&self, hash: u64) -> Option<Count> {
        self.terms.binary_search_by_key(&hash, |term| term.hash).ok().map(|at| self.terms[at].count)
    }

    pub(crate) fn terms(&self) -> &[Term] {
        &self.terms
    }

    pub(crate) fn length(&self) -> u32 {
        self.terms.iter().map(|term| term.count.weighted()).sum()
    }

    /// The number of words in the title.
    pub(crate) fn title_length(&self) -> u32 {
        self.terms.iter().map(|term| term.count.in_title()).sum()
    }

    fn count(mut hashes: Vec<(u64, bool)>) -> Self {
        hashes.sort_unstable();
        let terms = hashes
            .chunk_by(|one, other| one.0 == other.0)
            .map(|same| {
                let title = same.iter().filter(|(_, title)| *title).count();
                let saturated = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
                Term { hash: same[0].0, count: Count::new(saturated(title), saturated(same.len() - title)) }
            })
            .collect();
        Self { terms }
    }
}

/// A hash that never changes, because snapshots store it: FNV-1a, then a finaliser that spreads its weak high bits.
/// With 64 bits, two of a million terms collide with odds of 1 : 37 million.
pub(crate) fn term_hash(term: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in term.as_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 29)
}

/// The first `limit` characters of a text, without a copy.
pub(crate) fn first_chars(text: &str, limit: usize) -> &str {
    text.char_indices().nth(limit).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::{Bag, term_hash};

    #[test]
    fn counts_are_kept_apart_and_capped() {
        let bag = Bag::of_item("crash crash", &"crash ".repeat(500));
        assert_eq!(bag.terms().len(), 1);
        assert_eq!(bag.terms()[0].count.in_title(), 2);
        assert_eq!(bag.length(), 3 * 2 + 63);
        assert_eq!(bag.title_length(), 2);
    }

    #[test]
    fn ten_megabytes_are_cut_to_the_raw_representation() {
        let body = "word9 ".repeat(10 * 1024 * 1024 / 6) + "needle";
        assert_eq!(Bag::of_item("title", &body), Bag::of_item("title", &body[..7_700]));
    }

    #[test]
    fn hashes_never_change() {
        // A change of these values makes every stored snapshot wrong: raise the snapshot's format version.
        assert_eq!(term_hash(""), 0xfdbd_f6ab_5f97_6db6);
        assert_eq!(term_hash("crash"), 0x9040_a150_8469_fdd2);
    }
}
