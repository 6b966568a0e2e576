//! Combines the scores of all parts of a candidate into one order and one score.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use canonry_domain::{ItemNumber, ItemType, Similarity};
use serde::{Deserialize, Serialize};

use crate::dense::Spread;
use crate::late::LateScores;
use crate::ranker::weigh;

/// The score of each part, by name: `dense` (cosine), `lexical`, `title`, `evidence`, `paths`, `diff` (shares of the
/// query's score against itself), `late_there` and `late_back` (tokens against tokens), `words` (all shares as one
/// score), `fused` (which selects the shortlist), `ranker` (which decides the order) and, beginning with `by_`, what
/// each kind of feature added to `ranker`. Parts that did not apply are absent.
pub type ScoreParts = BTreeMap<&'static str, f64>;

/// Which parts find and order neighbours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetrievalMode {
    #[default]
    Hybrid,
    Dense,
    /// Everything but vectors, for repositories without vectors.
    Lexical,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a way to retrieve; it must be one of hybrid, dense, lexical")]
pub struct UnknownMode {
    word: String,
}

/// What every part found about one candidate. `None` means unknown, and neither helps nor harms the candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    pub number: ItemNumber,
    /// The cosine of the vectors, if both items have one.
    pub cosine: Option<f32>,
    pub lexical: f32,
    pub title: f32,
    pub evidence: f32,
    /// The changed paths, if the query changes any.
    pub paths: Option<f32>,
    /// The identifiers of changed lines, if the query changes any.
    pub diff: Option<f32>,
    /// Title and words in both directions; see [`ItemIndex::compare`](crate::ItemIndex::compare).
    pub overlap: Option<Overlap>,
    /// The tokens of the two texts compared with each other.
    pub late: Option<LateScores>,
    pub same_author: Option<bool>,
    pub hours_apart: Option<f64>,
}

/// What two items share, in both directions, and how their titles relate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// The share of the candidate's words, weighted by rarity, that the query contains.
    pub words_back: f32,
    /// The share of the query's title that the candidate's text contains.
    pub title_within: f32,
    /// The share of the candidate's title that the query's text contains.
    pub title_within_back: f32,
    /// The share of the candidate's changed lines that the query's changed lines contain, if both change any.
    pub diff_back: Option<f32>,
    /// Whether the titles differ only in a number: the next of a series, another version.
    pub series: bool,
    /// The difference of their numbers, if the query has one.
    pub numbers_apart: Option<u64>,
}

/// Candidates that are compared closely and ordered. Of true duplicates, 86 in 100 are among the first hundred of the
/// fusion; a larger shortlist costs more than it gains.
pub const SHORTLIST: usize = 100;

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub number: ItemNumber,
    /// The position among the neighbours, from 1.
    pub rank: usize,
    pub score: Similarity,
    pub parts: ScoreParts,
}

/// The best candidates by the weighted sum of all parts, best first, with a score of at least `min_score`.
///
/// The score is the calibrated similarity of the vectors; without vectors, [`words_score`]. In modes that use
/// vectors, a candidate without a vector is left out: its score could not be compared. `spread` is the distribution
/// of cosines over the repository. It gives a model whose cosines lie between .7 and .9 the same weight as one that
/// uses all of 0..1.
pub fn shortlist(
    mode: RetrievalMode,
    candidates: Vec<Candidate>,
    spread: Spread,
    calibrate: impl Fn(f32) -> f64,
    min_score: Similarity,
    limit: usize,
) -> Vec<Candidate> {
    let scored = candidates.into_iter().filter_map(|candidate| {
        let score = score(mode, &candidate, &calibrate)?;
        (score >= min_score).then(|| (fused(mode, &candidate, spread), score, candidate))
    });
    let mut scored: Vec<(f64, Similarity, Candidate)> = scored.collect();
    scored.sort_by(|one, other| {
        other.0.total_cmp(&one.0).then(other.1.cmp(&one.1)).then(one.2.number.cmp(&other.2.number))
    });
    scored.into_iter().take(limit).map(|(_, _, candidate)| candidate).collect()
}

/// Orders the candidates of a [`shortlist`] and scores them.
///
/// In hybrid mode, a linear model over the features of the candidates decides the order. It was fitted to duplicates
/// that people linked. The share of every feature in the sum is among the parts. In the other modes the order of the
/// shortlist remains.
pub fn rank(
    item_type: ItemType,
    mode: RetrievalMode,
    candidates: &[Candidate],
    spread: Spread,
    calibrate: impl Fn(f32) -> f64,
    limit: usize,
) -> Vec<Hit> {
    let known: Vec<Candidate> =
        candidates.iter().filter(|candidate| score(mode, candidate, &calibrate).is_some()).copied().collect();
    let weighed = if mode == RetrievalMode::Hybrid { weigh(item_type, &known, spread) } else { Vec::new() };
    let mut hits: Vec<(f64, Hit)> = Vec::with_capacity(known.len());
    for (at, candidate) in known.iter().enumerate() {
        let Some(score) = score(mode, candidate, &calibrate) else { continue };
        let fused = fused(mode, candidate, spread);
        let mut parts = parts(candidate, fused);
        let by = match weighed.get(at) {
            Some(weighed) => {
                weighed.tell(&mut parts);
                weighed.sum
            }
            None => fused,
        };
        hits.push((by, Hit { number: candidate.number, rank: 0, score, parts }));
    }
    hits.sort_by(|(one, one_hit), (other, other_hit)| {
        other.total_cmp(one).then(other_hit.score.cmp(&one_hit.score)).then(one_hit.number.cmp(&other_hit.number))
    });
    let mut hits: Vec<Hit> = hits.into_iter().map(|(_, hit)| hit).take(limit).collect();
    for (at, hit) in hits.iter_mut().enumerate() {
        hit.rank = at + 1;
    }
    hits
}

/// The score that gates use; `None` if the mode compares vectors and there are none.
fn score(mode: RetrievalMode, candidate: &Candidate, calibrate: impl Fn(f32) -> f64) -> Option<Similarity> {
    match mode {
        RetrievalMode::Lexical => Some(words_score(candidate)),
        RetrievalMode::Dense | RetrievalMode::Hybrid => Some(calibrated(calibrate, candidate.cosine?)),
    }
}

/// The weighted sum of all parts.
fn fused(mode: RetrievalMode, candidate: &Candidate, spread: Spread) -> f64 {
    let (words, _) = words(candidate);
    let changes_known = candidate.paths.is_some() || candidate.diff.is_some();
    let weight = if changes_known { DENSE_BESIDE_CHANGES } else { DENSE };
    let cosine = f64::from(candidate.cosine.unwrap_or_default());
    let sum = match mode {
        RetrievalMode::Lexical => words,
        RetrievalMode::Dense => cosine,
        RetrievalMode::Hybrid => weight * (cosine - spread.mean) / spread.deviation.max(1e-6) + words,
    };
    // Six decimals: the last bits of a sum depend on the order of its addends, but the order of neighbours must not.
    (sum * 1e6).round() / 1e6
}

// The weights were chosen from a coarse grid on four public sets of issues and two of pull requests together; none is
// the best for every set. Over the whole grid, recall at 10 changes by less than five points on any set.

/// The weight of one standard deviation of the cosine, in the units of the weights below.
const DENSE: f64 = 0.15;
/// The same between pull requests whose changes are known: their text says less than their diff.
const DENSE_BESIDE_CHANGES: f64 = 0.05;
const LEXICAL: f64 = 1.0;
const TITLE: f64 = 0.15;
const EVIDENCE: f64 = 0.2;
const PATHS: f64 = 1.0;
const DIFF: f64 = 2.0;

/// Maps the weighted mean of roots to a score. Chosen on the same sets: 95 % of true pairs lie above .22; around .65
/// about half of the first answers are right (.38 to .72 by set), above .70 between .6 and .95.
const ANCHORS: [(f64, f64); 5] = [(0.0, 0.0), (0.22, 0.75), (0.65, 0.90), (0.80, 0.95), (1.0, 1.0)];

/// The weighted sum of roots of all shares except vectors, and its maximum. Roots, because two reports of one problem
/// seldom share more than a quarter of their words.
fn words(candidate: &Candidate) -> (f64, f64) {
    let parts = [
        (LEXICAL, Some(candidate.lexical)),
        (TITLE, Some(candidate.title)),
        (EVIDENCE, Some(candidate.evidence)),
        (PATHS, candidate.paths),
        (DIFF, candidate.diff),
    ];
    let root = |share: f32| f64::from(share.clamp(0.0, 1.0)).sqrt();
    parts.into_iter().fold((0.0, 0.0), |(sum, most), (weight, share)| match share {
        Some(share) => (sum + weight * root(share), most + weight),
        None => (sum, most),
    })
}

/// The score of a candidate if there are no vectors: 0 for nothing in common, 1 for the same words, on the scale that
/// gates expect.
pub fn words_score(candidate: &Candidate) -> Similarity {
    let (sum, most) = words(candidate);
    let mean = sum / most;
    let above = ANCHORS.iter().position(|anchor| anchor.0 >= mean).unwrap_or(ANCHORS.len() - 1).max(1);
    let ((from, low), (to, high)) = (ANCHORS[above - 1], ANCHORS[above]);
    similarity(low + (high - low) * (mean - from) / (to - from))
}

fn calibrated(calibrate: impl Fn(f32) -> f64, cosine: f32) -> Similarity {
    similarity(calibrate(cosine))
}

/// A calibration that returns NaN is no evidence of similarity.
fn similarity(value: f64) -> Similarity {
    Similarity::clamped(value).unwrap_or(Similarity::ZERO)
}

fn parts(candidate: &Candidate, fused: f64) -> ScoreParts {
    let four = |value: f32| (f64::from(value) * 1e4).round() / 1e4;
    let mut parts = ScoreParts::from([
        ("lexical", four(candidate.lexical)),
        ("title", four(candidate.title)),
        ("evidence", four(candidate.evidence)),
        ("words", words_score(candidate).get()),
        ("fused", fused),
    ]);
    let optional = [
        ("dense", candidate.cosine),
        ("paths", candidate.paths),
        ("diff", candidate.diff),
        ("late_there", candidate.late.map(|late| late.there)),
        ("late_back", candidate.late.map(|late| late.back)),
    ];
    parts.extend(optional.into_iter().filter_map(|(name, value)| Some((name, four(value?)))));
    parts
}

impl Candidate {
    /// A candidate about which nothing is known yet.
    pub const fn of(number: ItemNumber) -> Self {
        Self {
            number,
            cosine: None,
            lexical: 0.0,
            title: 0.0,
            evidence: 0.0,
            paths: None,
            diff: None,
            overlap: None,
            late: None,
            same_author: None,
            hours_apart: None,
        }
    }
}

impl RetrievalMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hybrid => "hybrid",
            Self::Dense => "dense",
            Self::Lexical => "lexical",
        }
    }
}

impl fmt::Display for RetrievalMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for RetrievalMode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        [Self::Hybrid, Self::Dense, Self::Lexical]
            .into_iter()
            .find(|mode| mode.as_str() == word)
            .ok_or_else(|| UnknownMode { word: word.chars().take(60).collect() })
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{ItemNumber, ItemType, Similarity};
    use proptest::prelude::{Strategy, prop, prop_assert, prop_assert_eq, proptest};

    use super::{Candidate, RetrievalMode, SHORTLIST, rank, shortlist, words_score};
    use crate::dense::Spread;
    use crate::late::LateScores;

    const SPREAD: Spread = Spread { mean: 0.2, deviation: 0.1 };

    fn candidate(number: i64, cosine: Option<f32>, lexical: f32) -> Candidate {
        let number = ItemNumber::new(number).expect("a number");
        Candidate { cosine, lexical, ..Candidate::of(number) }
    }

    fn order(mode: RetrievalMode, candidates: &[Candidate], min_score: f64, limit: usize) -> Vec<i64> {
        let min_score = Similarity::new(min_score).expect("a score");
        let candidates = shortlist(mode, candidates.to_vec(), SPREAD, f64::from, min_score, SHORTLIST);
        let hits = rank(ItemType::Issue, mode, &candidates, SPREAD, f64::from, limit);
        assert!(hits.iter().enumerate().all(|(at, hit)| hit.rank == at + 1));
        hits.iter().map(|hit| hit.number.get()).collect()
    }

    #[test]
    fn each_mode_orders_by_its_own_parts() {
        let candidates = [candidate(1, Some(0.9), 0.0), candidate(2, Some(0.8), 0.5), candidate(3, None, 0.9)];
        assert_eq!(order(RetrievalMode::Hybrid, &candidates, 0.0, 9), [2, 1]);
        assert_eq!(order(RetrievalMode::Dense, &candidates, 0.0, 9), [1, 2]);
        assert_eq!(order(RetrievalMode::Lexical, &candidates, 0.0, 9), [3, 2, 1]);
    }

    #[test]
    fn the_least_score_filters_before_the_limit() {
        let candidates = [candidate(1, Some(0.5), 0.9), candidate(2, Some(0.8), 0.1), candidate(3, Some(0.76), 0.0)];
        assert_eq!(order(RetrievalMode::Hybrid, &candidates, 0.75, 1), [2]);
        assert_eq!(order(RetrievalMode::Hybrid, &candidates, 0.75, 9), [2, 3]);
    }

    #[test]
    fn a_model_with_crowded_cosines_weighs_as_much() {
        let wide = [candidate(1, Some(0.5), 0.3), candidate(2, Some(0.4), 0.35)];
        let crowded = [candidate(1, Some(0.83), 0.3), candidate(2, Some(0.82), 0.35)];
        let orders = [(wide, SPREAD), (crowded, Spread { mean: 0.8, deviation: 0.01 })].map(|(candidates, spread)| {
            let hits = rank(ItemType::Issue, RetrievalMode::Hybrid, &candidates, spread, f64::from, 9);
            hits.iter().map(|hit| hit.number.get()).collect::<Vec<_>>()
        });
        assert_eq!(orders, [[1, 2], [1, 2]]);
    }

    #[test]
    fn a_calibration_that_fails_passes_no_gate() {
        let candidates = [candidate(1, Some(0.9), 0.0)];
        let hits = rank(ItemType::Issue, RetrievalMode::Dense, &candidates, SPREAD, |_| f64::NAN, 9);
        assert_eq!(hits[0].score, Similarity::ZERO);
    }

    #[test]
    fn words_are_scored_on_the_scale_of_the_gates() {
        let scored = |share: f32| {
            let all = Candidate { title: share, evidence: share, ..candidate(1, None, share) };
            words_score(&all).get()
        };
        assert_eq!([0.0, 0.22 * 0.22, 0.65 * 0.65, 0.64, 1.0].map(scored), [0.0, 0.75, 0.9, 0.95, 1.0]);
    }

    #[test]
    fn every_part_that_applied_can_be_read() {
        let mut whole = candidate(1, Some(0.5), 0.25);
        (whole.paths, whole.diff) = (Some(0.5), Some(1.0));
        whole.late = Some(LateScores { there: 0.7, back: 0.6 });
        let hits = rank(ItemType::Pr, RetrievalMode::Hybrid, &[whole], SPREAD, f64::from, 9);
        let names: Vec<&str> = hits[0].parts.keys().copied().collect();
        let expected = "by_changes by_paths by_tokens by_vectors by_words dense diff evidence fused late_back late_there \
                        lexical paths ranker title words";
        assert_eq!(names.join(" "), expected);
        // 1 × √.25 + 1 × √.5 + 2 × 1 + .05 × three deviations
        assert_eq!(hits[0].parts["fused"], 3.357_107);
    }

    #[test]
    fn modes_are_read_as_they_are_written() {
        assert_eq!("lexical".parse(), Ok(RetrievalMode::Lexical));
        assert!("fuzzy".parse::<RetrievalMode>().is_err());
    }

    proptest! {
        #[test]
        fn the_order_does_not_depend_on_the_order_of_candidates(
            candidates in prop::collection::vec((-1.0..=1.0_f32, 0.0..=1.0_f32, 0_u8..3), 1..40)
                .prop_map(|list| {
                    let made = |(number, (cosine, share, crowd)): (i64, (f32, f32, u8))| {
                        // A third of them are equal in everything but their number.
                        if crowd == 0 { candidate(number, Some(0.5), 0.5) } else { candidate(number, Some(cosine), share) }
                    };
                    (1_i64..).zip(list).map(made).collect::<Vec<_>>()
                }),
        ) {
            let mut reversed = candidates.clone();
            reversed.reverse();
            for mode in [RetrievalMode::Hybrid, RetrievalMode::Dense, RetrievalMode::Lexical] {
                let found = order(mode, &candidates, 0.0, 10);
                prop_assert_eq!(&found, &order(mode, &reversed, 0.0, 10));
                prop_assert!(found.len() == candidates.len().min(10));
            }
        }
    }
}
