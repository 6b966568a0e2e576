//! The features of a source and a candidate that the local judge weighs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::Hash;

use canonry_domain::{ItemType, Login};
use canonry_retrieval::{FactKind, SharedFact, shared_facts};

use crate::judge::local::answer::{LocalCandidate, LocalText};
use crate::judge::local::item_facts::LocalFacts;
use crate::judge::local::titles::Titles;

/// The names of the features, in the order of the weights.
pub const FEATURES: [&str; 27] = [
    "score",
    "lexical",
    "evidence",
    "title_overlap",
    "title_one_word_differs",
    "title_each_own",
    "title_names_differ",
    "title_numbers_differ",
    "triples",
    "contained",
    "titles_in_texts",
    "error_shared",
    "frames_shared",
    "places_differ",
    "same_author",
    "same_author_within_hour",
    "far_in_time",
    "behind_words",
    "crowd",
    "short",
    "distinct",
    "paths",
    "diff",
    "late",
    "ranker",
    "ahead_by_ranker",
    "behind_by_ranker",
];

#[derive(Debug, Clone, PartialEq)]
pub struct PairFeatures {
    /// One number around 0..1 for each of [`FEATURES`].
    pub features: [f64; FEATURES.len()],
    /// What both texts contain, the most specific first.
    pub facts: Vec<SharedFact>,
    pub(crate) titles: Titles,
    /// The overlap of word triples (three words in a row): those in both texts divided by those in either.
    pub(crate) triples: f64,
    /// The same output of a program, or a place in a source file, is in both.
    pub(crate) prints_same: bool,
    /// Rare words of the most specific error that a program printed in both.
    pub(crate) printed_words: usize,
    /// A frame that a program printed is in both.
    pub(crate) frames_shared: bool,
    /// Both name places in source files: whether they share one, or all differ.
    pub(crate) places_shared: bool,
    pub(crate) places_differ: bool,
    /// Both name versions, and have none in common.
    pub(crate) versions_differ: bool,
    pub(crate) same_author: bool,
    pub(crate) hours: Option<f64>,
    /// Word triples that both have, except those that another candidate by a third person has too: text that several
    /// people wrote belongs to nobody.
    pub(crate) copied: usize,
    /// Words of the shorter text, without what a template contains.
    pub(crate) shortest: usize,
    /// Changed paths in both divided by those in either.
    pub(crate) paths: f64,
}

/// Compares a source with all candidates together: how far a candidate stands out among the others is a feature.
pub fn compare(source: &LocalText<'_>, candidates: &[LocalCandidate<'_>]) -> Vec<PairFeatures> {
    let own = LocalFacts::of(source);
    let others: Vec<LocalFacts> = candidates.iter().map(|candidate| LocalFacts::of(&candidate.text)).collect();
    (0..candidates.len()).map(|at| pair(source, &own, candidates, &others, at)).collect()
}

fn pair(
    source: &LocalText<'_>,
    own: &LocalFacts,
    candidates: &[LocalCandidate<'_>],
    others: &[LocalFacts],
    at: usize,
) -> PairFeatures {
    let (candidate, other) = (&candidates[at], &others[at]);
    let facts = shared_facts(&own.facts, &other.facts);
    let titles = Titles::of(&own.title, &other.title);
    let triples = overlap(&own.triples, &other.triples);
    let printed = shared_facts(&own.printed, &other.printed);
    let error_words = most_rare_words(&facts);
    let frames = facts.iter().filter(|fact| fact.kind == FactKind::Frame).count();
    let places_known = !own.places.is_empty() && !other.places.is_empty();
    let places_shared = !own.places.is_disjoint(&other.places);
    let versions_differ = !own.versions.is_empty()
        && !other.versions.is_empty()
        && !own.versions.shares(FactKind::Version, &other.versions);
    let hours = source.created_at.zip(candidate.text.created_at).map(|(one, two)| hours_apart(one, two));
    let same_author = source.author.is_some() && source.author == candidate.text.author;
    let shortest = own.length.min(other.length);
    let (paths, lines) = (overlap(&own.paths, &other.paths), overlap(&own.lines, &other.lines));
    let part = |name: &str| share(candidate.parts, name);
    let changed = |both: f64, part: Option<f64>| match source.item_type {
        ItemType::Pr => (both.sqrt() + part.unwrap_or_default().sqrt()) / 2.0,
        ItemType::Issue => 0.0,
    };
    let copied = copied(source, own, candidates, others, at);
    let standing = CandidateRank::of(candidates, at);
    let features = [
        (candidate.score.get() - 0.75) / 0.25,
        part("lexical").unwrap_or_default().sqrt(),
        part("evidence").unwrap_or_default().sqrt(),
        titles.overlap,
        flag(titles.one_word_differs),
        flag(titles.each_own),
        flag(titles.names_differ),
        flag(titles.numbers_differ),
        triples.sqrt(),
        contained(&own.words, &other.words),
        (within(&own.title.words, other) + within(&other.title.words, own)) / 2.0,
        (error_words as f64 / 6.0).min(1.0),
        frames.min(4) as f64 / 4.0,
        flag(places_known && !places_shared),
        flag(same_author),
        flag(same_author && hours.is_some_and(|hours| hours < 1.0)),
        // If the times are unknown, the middle value: some 50 days.
        hours.map_or(0.5, |hours| (hours / 24.0).ln_1p() / 8.0),
        standing.behind_by_words,
        standing.crowd,
        1.0 / (1.0 + shortest as f64 / 30.0),
        (distinct(own, others, at) as f64).ln_1p() / 4.0,
        changed(paths, part("paths")),
        changed(lines, part("diff")),
        late(candidate.parts),
        ranker(source.item_type, candidate.parts),
        standing.ahead_by_ranker,
        standing.behind_by_ranker,
    ];
    PairFeatures {
        features,
        facts,
        titles,
        triples,
        prints_same: !printed.is_empty() || places_shared,
        printed_words: most_rare_words(&printed),
        frames_shared: printed.iter().any(|fact| fact.kind == FactKind::Frame),
        places_shared,
        places_differ: places_known && !places_shared,
        versions_differ,
        same_author,
        hours,
        copied,
        shortest,
        paths,
    }
}

fn copied(
    source: &LocalText<'_>,
    own: &LocalFacts,
    candidates: &[LocalCandidate<'_>],
    others: &[LocalFacts],
    at: usize,
) -> usize {
    let authors = [source.author, candidates[at].text.author];
    // An unknown author may be anybody.
    let is_third = |author: Option<&Login>| author.is_none() || !authors.contains(&author);
    let thirds: Vec<&LocalFacts> = candidates
        .iter()
        .zip(others)
        .enumerate()
        .filter(|(place, (candidate, _))| *place != at && is_third(candidate.text.author))
        .map(|(_, (_, reading))| reading)
        .collect();
    let both = own.triples.intersection(&others[at].triples);
    both.filter(|triple| !thirds.iter().any(|third| third.triples.contains(*triple))).count()
}

fn flag(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

/// A part of the retrieval score, limited to 0..1.
fn share(parts: &BTreeMap<String, f64>, name: &str) -> Option<f64> {
    parts.get(name).copied().filter(|value| value.is_finite()).map(|value| value.clamp(0.0, 1.0))
}

fn number(parts: &BTreeMap<String, f64>, name: &str) -> Option<f64> {
    parts.get(name).copied().filter(|value| value.is_finite())
}

// The average of a pair, used if a part is unknown: such a pair is judged by the rest.
const LATE_UNKNOWN: f64 = 0.6;
const RANKER_UNKNOWN_OF_ISSUES: f64 = 0.95;
const RANKER_UNKNOWN_OF_PULLS: f64 = 0.69;

/// The value that orders the candidates, divided by ten.
fn ranker(item_type: ItemType, parts: &BTreeMap<String, f64>) -> f64 {
    let unknown = match item_type {
        ItemType::Issue => RANKER_UNKNOWN_OF_ISSUES,
        ItemType::Pr => RANKER_UNKNOWN_OF_PULLS,
    };
    number(parts, "ranker").map_or(unknown, |sum| sum / 10.0)
}

/// How well the tokens of each text match tokens of the other, around 0..1.
fn late(parts: &BTreeMap<String, f64>) -> f64 {
    match (number(parts, "late_there"), number(parts, "late_back")) {
        (Some(there), Some(back)) => ((there + back) / 2.0 - 0.5) * 4.0,
        _ => LATE_UNKNOWN,
    }
}

fn hours_apart(one: jiff::Timestamp, other: jiff::Timestamp) -> f64 {
    one.duration_since(other).as_secs_f64().abs() / 3_600.0
}

/// The position of a candidate among the others.
struct CandidateRank {
    behind_by_words: f64,
    crowd: f64,
    ahead_by_ranker: f64,
    behind_by_ranker: f64,
}

/// To the gates, scores this close to each other are the same.
const CROWD: f64 = 0.015;
/// The number of candidates that a new item is compared with, minus one.
const RIVALS: f64 = 7.0;

impl CandidateRank {
    fn of(candidates: &[LocalCandidate<'_>], at: usize) -> Self {
        let words = |candidate: &LocalCandidate<'_>| share(candidate.parts, "words").unwrap_or_default();
        let rivals = || candidates.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, rival)| rival);
        let (own_words, own_score) = (words(&candidates[at]), candidates[at].score);
        let best_words = rivals().map(words).fold(0.0, f64::max);
        let ranker = |candidate: &LocalCandidate<'_>| number(candidate.parts, "ranker");
        let best_ranker = rivals().filter_map(ranker).reduce(f64::max);
        let ahead = ranker(&candidates[at]).zip(best_ranker).map_or(0.0, |(own, best)| own - best);
        let crowd = rivals().filter(|rival| rival.score.gap(own_score).abs() < CROWD).count();
        Self {
            behind_by_words: (best_words - own_words).clamp(0.0, 0.2) * 5.0,
            crowd: (crowd as f64 / RIVALS).min(1.0),
            ahead_by_ranker: ahead.clamp(0.0, 4.0) / 4.0,
            behind_by_ranker: (-ahead).clamp(0.0, 4.0) / 4.0,
        }
    }
}

/// The number of rare words in the most specific error line.
fn most_rare_words(facts: &[SharedFact]) -> usize {
    facts.iter().filter(|fact| fact.kind == FactKind::Error).map(|fact| rare_words(&fact.text)).max().unwrap_or(0)
}

/// The number of words in an error line that do not appear in most others. "error: aborting due to previous error"
/// has none.
pub(crate) fn rare_words(line: &str) -> usize {
    let words: BTreeSet<String> = line
        .split(|character: char| !character.is_alphabetic() && character != '_')
        .filter(|word| word.chars().count() > 2)
        .map(str::to_lowercase)
        .filter(|word| COMMON.binary_search(&word.as_str()).is_err())
        .collect();
    words.len()
}

/// Words of error lines that tools print whatever went wrong, sorted.
const COMMON: [&str; 126] = [
    "abort",
    "aborted",
    "aborting",
    "actual",
    "and",
    "any",
    "are",
    "assert",
    "assertion",
    "assertionerror",
    "backtrace",
    "because",
    "bug",
    "build",
    "builds",
    "but",
    "call",
    "called",
    "can",
    "cannot",
    "caused",
    "code",
    "command",
    "compile",
    "compiler",
    "compiling",
    "core",
    "could",
    "crash",
    "crashed",
    "did",
    "does",
    "due",
    "dumped",
    "else",
    "equal",
    "equals",
    "err",
    "error",
    "errors",
    "exception",
    "exit",
    "exited",
    "expect",
    "expected",
    "explicit",
    "fail",
    "failed",
    "failing",
    "fails",
    "failure",
    "fatal",
    "fault",
    "file",
    "following",
    "for",
    "found",
    "from",
    "get",
    "got",
    "has",
    "have",
    "here",
    "hit",
    "ice",
    "info",
    "internal",
    "invalid",
    "java",
    "lang",
    "last",
    "left",
    "line",
    "main",
    "make",
    "message",
    "most",
    "none",
    "not",
    "note",
    "null",
    "only",
    "option",
    "org",
    "panic",
    "panicked",
    "path",
    "previous",
    "process",
    "python",
    "received",
    "recent",
    "report",
    "result",
    "right",
    "run",
    "running",
    "rust",
    "rust_backtrace",
    "rustc",
    "segfault",
    "segmentation",
    "signal",
    "some",
    "src",
    "stack",
    "status",
    "task",
    "test",
    "tests",
    "that",
    "the",
    "this",
    "thread",
    "trace",
    "traceback",
    "unexpected",
    "unexpectedly",
    "unknown",
    "unwrap",
    "value",
    "warning",
    "when",
    "while",
    "with",
    "you",
];

/// The elements in both sets divided by those in either.
pub(crate) fn overlap<T: Eq + Hash>(one: &HashSet<T>, other: &HashSet<T>) -> f64 {
    let both = one.intersection(other).count();
    let either = one.len() + other.len() - both;
    if either == 0 { 0.0 } else { both as f64 / either as f64 }
}

/// The share of the smaller set that the larger one contains.
fn contained(one: &HashSet<String>, other: &HashSet<String>) -> f64 {
    let least = one.len().min(other.len());
    if least == 0 { 0.0 } else { one.intersection(other).count() as f64 / least as f64 }
}

/// The share of a title's words that the other item contains.
fn within(title: &[String], other: &LocalFacts) -> f64 {
    let held = title.iter().filter(|word| other.words.contains(*word)).count();
    held as f64 / title.len().max(1) as f64
}

/// Words that the source shares only with this candidate.
fn distinct(own: &LocalFacts, others: &[LocalFacts], at: usize) -> usize {
    let elsewhere =
        |word: &String| others.iter().enumerate().any(|(place, other)| place != at && other.words.contains(word));
    own.words.iter().filter(|word| others[at].words.contains(*word) && !elsewhere(word)).count()
}

#[cfg(test)]
mod tests {
    use super::{COMMON, rare_words};

    #[test]
    fn what_every_error_says_is_not_rare() {
        assert!(COMMON.is_sorted());
        for line in [
            "error: aborting due to previous error",
            "fatal error: build failed, exit code 1",
            "panicked at",
            "Traceback (most recent call last):",
        ] {
            assert_eq!(rare_words(line), 0, "{line}");
        }
        assert_eq!(rare_words("error: cannot relate bound region: ReInfer(60) <= ReLateBound(78)"), 5);
    }
}
