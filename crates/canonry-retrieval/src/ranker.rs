//! The order of the candidates: a linear model over a few features that a person can understand.

use std::fmt::Write as _;

use canonry_domain::ItemType;

use crate::dense::Spread;
use crate::fuse::{Candidate, ScoreParts};
use crate::ranker_weights::weights;

/// The names of the features, in the order of the weights.
pub const RANKER_FEATURES: [&str; 14] = [
    "dense",
    "late",
    "lexical",
    "words_back",
    "title_within",
    "title_within_back",
    "evidence",
    "paths",
    "diff",
    "diff_back",
    "near",
    "same_author",
    "sibling",
    "series",
];

/// One number for each of [`RANKER_FEATURES`], around 0..1.
pub type RankerFeatures = [f64; RANKER_FEATURES.len()];

/// The name under which each feature's share of the sum is shown; features with the same name are added up.
const TOLD: [&str; RANKER_FEATURES.len()] = [
    "by_vectors",
    "by_tokens",
    "by_words",
    "by_words",
    "by_titles",
    "by_titles",
    "by_evidence",
    "by_paths",
    "by_changes",
    "by_changes",
    "by_nearness",
    "by_same_author",
    "by_same_author_within_an_hour",
    "by_series",
];

/// The average value of a feature, used if nothing is known about a candidate. Only features about changes have one:
/// candidates with known changes are often candidates because their changes are similar, so their own mean would be
/// too high for the others.
const TYPICAL: [Option<f64>; RANKER_FEATURES.len()] = {
    let mut typical = [None; RANKER_FEATURES.len()];
    (typical[PATHS], typical[DIFF], typical[DIFF_BACK]) = (Some(0.3), Some(0.2), Some(0.2));
    typical
};
const PATHS: usize = 7;
const DIFF: usize = 8;
const DIFF_BACK: usize = 9;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankerScore {
    /// The value that decides the order.
    pub(crate) sum: f64,
    added: [Option<f64>; RANKER_FEATURES.len()],
}

/// Scores the candidates of one query relative to each other.
pub(crate) fn weigh(item_type: ItemType, candidates: &[Candidate], spread: Spread) -> Vec<RankerScore> {
    let weights = weights(item_type, candidates.iter().any(|candidate| candidate.late.is_some()));
    let known = known_features(candidates, spread);
    let weighed = |(known, features): (&KnownFeatures, RankerFeatures)| {
        let sum: f64 = weights.iter().zip(features).map(|(weight, feature)| weight * feature).sum();
        // Six decimals: the last bits of a sum depend on the order of its addends, but the order of neighbours must
        // not.
        let sum = (sum * 1e6).round() / 1e6;
        RankerScore { sum, added: std::array::from_fn(|at| known[at].map(|feature| weights[at] * feature)) }
    };
    known.iter().zip(completed(&known)).map(weighed).collect()
}

type KnownFeatures = [Option<f64>; RANKER_FEATURES.len()];

/// The features of the candidates of one query.
///
/// A value that is unknown for one candidate becomes the mean of the others, for unknown changes at most the typical
/// value. A value that is unknown for all counts as nothing. So neither a missing diff nor a missing token vector
/// moves a candidate far up or down.
pub fn ranker_features(candidates: &[Candidate], spread: Spread) -> Vec<RankerFeatures> {
    completed(&known_features(candidates, spread))
}

fn known_features(candidates: &[Candidate], spread: Spread) -> Vec<KnownFeatures> {
    candidates.iter().map(|candidate| features(candidate, spread)).collect()
}

fn completed(known: &[KnownFeatures]) -> Vec<RankerFeatures> {
    let neutral: RankerFeatures = std::array::from_fn(|at| {
        let mut values: Vec<f64> = known.iter().filter_map(|features| features[at]).collect();
        // Sorted, so that the sum does not depend on the order of the candidates.
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        TYPICAL[at].map_or(mean, |typical| mean.min(typical))
    });
    known.iter().map(|features| std::array::from_fn(|at| features[at].unwrap_or(neutral[at]))).collect()
}

fn features(candidate: &Candidate, spread: Spread) -> KnownFeatures {
    let overlap = candidate.overlap;
    let back = |share: fn(&crate::fuse::Overlap) -> f32| overlap.as_ref().map(share);
    let same_author = candidate.same_author.map(flag);
    let sibling = match (candidate.same_author, candidate.hours_apart) {
        (Some(false), _) => Some(false),
        (Some(true), Some(hours)) => Some(hours < 1.0),
        _ => None,
    };
    // A pull request with unknown changes has no `diff_back`, so what the query has in common with it is unknown too.
    let changes_known = overlap.is_none_or(|overlap| overlap.diff_back.is_some());
    let changed = |share: Option<f32>| share.filter(|_| changes_known).map(root);
    let numbers_apart = overlap.and_then(|overlap| overlap.numbers_apart);
    [
        // Five deviations make 1, which is about where duplicates are.
        candidate.cosine.map(|cosine| (f64::from(cosine) - spread.mean) / spread.deviation.max(1e-6) / 5.0),
        // Token cosines of any two texts of a repository are around 0.5.
        candidate.late.map(|late| (f64::from(late.there + late.back) / 2.0 - 0.5) * 4.0),
        Some(root(candidate.lexical)),
        back(|overlap| overlap.words_back).map(root),
        back(|overlap| overlap.title_within).map(f64::from),
        back(|overlap| overlap.title_within_back).map(f64::from),
        Some(root(candidate.evidence)),
        changed(candidate.paths),
        changed(candidate.diff),
        overlap.and_then(|overlap| overlap.diff_back).map(root),
        // Duplicates come soon after their original. Measured by numbers and not by time, because busy repositories
        // have more items in between; a distance of 22,000 numbers makes 0.
        numbers_apart.map(|apart| 1.0 - (apart as f64).ln_1p() / 10.0),
        same_author,
        sibling.map(flag),
        back(|overlap| if overlap.series { 1.0 } else { 0.0 }).map(f64::from),
    ]
}

/// Two reports of one problem seldom share more than a quarter of their words.
fn root(share: f32) -> f64 {
    f64::from(share.clamp(0.0, 1.0)).sqrt()
}

fn flag(is: bool) -> f64 {
    if is { 1.0 } else { 0.0 }
}

impl RankerScore {
    /// Adds the value that decides the order, and what each kind of feature added to it. A value that replaces an
    /// unknown one is in the sum, but is not shown as a reason.
    pub(crate) fn tell(&self, parts: &mut ScoreParts) {
        parts.insert("ranker", self.sum);
        let known = TOLD.into_iter().zip(self.added).filter_map(|(name, added)| Some((name, added?)));
        for (name, added) in known.filter(|(_, added)| *added != 0.0) {
            *parts.entry(name).or_insert(0.0) += added;
        }
        for name in TOLD {
            if let Some(added) = parts.get_mut(name) {
                *added = (*added * 1e4).round() / 1e4;
            }
        }
    }
}

/// One line that explains the position of a neighbour, the largest share first; `None` if something else decides the
/// order.
pub fn ranked_by<'a>(parts: impl IntoIterator<Item = (&'a str, f64)>) -> Option<String> {
    let mut told: Vec<(&str, f64)> = parts
        .into_iter()
        .filter_map(|(name, added)| Some((name.strip_prefix("by_")?, added)))
        // One decimal is shown, so smaller values would show as 0.0.
        .filter(|(_, added)| added.abs() >= 0.05)
        .collect();
    told.sort_by(|one, other| other.1.abs().total_cmp(&one.1.abs()).then(one.0.cmp(other.0)));
    let mut line = String::new();
    for (name, added) in told {
        let separator = if line.is_empty() { "" } else { ", " };
        write!(line, "{separator}{} {added:.1}", name.replace('_', " ")).expect("invariant: a string takes everything");
    }
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use canonry_domain::{ItemNumber, ItemType};
    use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{DIFF, DIFF_BACK, PATHS, RANKER_FEATURES, ranked_by, ranker_features, weigh};
    use crate::dense::Spread;
    use crate::fuse::{Candidate, Overlap};
    use crate::late::LateScores;
    use crate::ranker_weights::weights;

    const LATE: usize = 1;
    const SPREAD: Spread = Spread { mean: 0.2, deviation: 0.1 };

    fn candidate(number: i64) -> Candidate {
        let overlap = Overlap {
            words_back: 0.25,
            title_within: 0.5,
            title_within_back: 0.5,
            diff_back: None,
            series: false,
            numbers_apart: Some(40),
        };
        Candidate {
            cosine: Some(0.6),
            lexical: 0.2,
            title: 0.3,
            evidence: 0.1,
            overlap: Some(overlap),
            late: Some(LateScores { there: 0.7, back: 0.6 }),
            same_author: Some(false),
            hours_apart: Some(30.0),
            ..Candidate::of(item(number))
        }
    }

    fn item(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("a number")
    }

    fn sums(candidates: &[Candidate]) -> Vec<f64> {
        weigh(ItemType::Issue, candidates, SPREAD).iter().map(|weighed| weighed.sum).collect()
    }

    #[test]
    fn every_table_has_weights_and_only_those_that_apply() {
        let at = |name: &str| RANKER_FEATURES.iter().position(|feature| *feature == name).expect("a feature");
        assert_eq!(
            [LATE, PATHS, DIFF, DIFF_BACK].map(|at| RANKER_FEATURES[at]),
            ["late", "paths", "diff", "diff_back"]
        );
        for item_type in [ItemType::Issue, ItemType::Pr] {
            for late in [true, false] {
                let weights = weights(item_type, late);
                assert!(weights.iter().all(|weight| weight.is_finite() && weight.abs() < 20.0));
                assert!(weights[at("dense")] > 0.0 && weights[at("lexical")] > 0.0 && weights[at("near")] > 0.0);
                assert!(late || weights[LATE] == 0.0);
                assert_eq!(weights[at("diff")] > 0.0, item_type == ItemType::Pr);
            }
        }
        assert!(weights(ItemType::Issue, true)[LATE] > 0.0);
    }

    #[test]
    fn what_a_person_reads() {
        let mut parts = crate::fuse::ScoreParts::new();
        let sibling = Candidate { same_author: Some(true), hours_apart: Some(0.2), ..candidate(1) };
        weigh(ItemType::Issue, &[sibling], SPREAD)[0].tell(&mut parts);
        let line = ranked_by(parts.iter().map(|(name, added)| (*name, *added))).expect("a line");
        let names: Vec<&str> = line.split(", ").map(|told| told.rsplit_once(' ').expect("name and number").0).collect();
        assert!(names.contains(&"tokens") && names.contains(&"same author within an hour"), "{line}");
        let told: f64 = parts.iter().filter(|(name, _)| name.starts_with("by_")).map(|(_, added)| added).sum();
        assert!((told - parts["ranker"]).abs() < 1e-3, "{parts:?}");
        let by_hand =
            BTreeMap::from([("by_tokens", 1.92), ("by_same_author_within_an_hour", -0.8), ("by_series", 0.01)]);
        let line = ranked_by(by_hand.iter().map(|(name, added)| (*name, *added)));
        assert_eq!(line.as_deref(), Some("tokens 1.9, same author within an hour -0.8"));
        assert_eq!(ranked_by([("lexical", 0.3), ("fused", 1.2)]), None);
    }

    #[test]
    fn siblings_and_series_are_behind_what_is_otherwise_alike() {
        let plain = candidate(1);
        let sibling = Candidate { same_author: Some(true), hours_apart: Some(0.1), ..candidate(2) };
        let mut series = candidate(3);
        series.overlap = series.overlap.map(|overlap| Overlap { series: true, ..overlap });
        let sums = sums(&[plain, sibling, series]);
        assert!(sums[1] < sums[0] && sums[2] <= sums[0], "{sums:?}");
    }

    #[test]
    fn a_pull_request_with_unknown_changes_is_in_the_middle() {
        let changed = |number, share| {
            let mut one = Candidate { paths: Some(share), diff: Some(share), ..candidate(number) };
            one.overlap = one.overlap.map(|overlap| Overlap { diff_back: Some(share), ..overlap });
            one
        };
        let unknown = Candidate { paths: Some(0.0), diff: Some(0.0), ..candidate(3) };
        let weighed = weigh(ItemType::Pr, &[changed(1, 0.8), changed(2, 0.01), unknown], SPREAD);
        assert!(weighed[0].sum > weighed[2].sum && weighed[2].sum > weighed[1].sum, "{weighed:?}");
        // The only candidate with known changes ranks above all unknown ones, because its values exceed the typical
        // ones.
        let strangers: Vec<Candidate> = (10..70).map(|number| Candidate { number: item(number), ..unknown }).collect();
        let weighed = weigh(ItemType::Pr, &[vec![changed(1, 0.9)], strangers].concat(), SPREAD);
        assert!(weighed[1..].iter().all(|stranger| stranger.sum + 3.0 < weighed[0].sum), "{:?}", &weighed[..2]);
        let mut parts = crate::fuse::ScoreParts::new();
        weighed[1].tell(&mut parts);
        assert!(!parts.contains_key("by_changes") && !parts.contains_key("by_paths"), "{parts:?}");
    }

    fn any_candidate() -> impl Strategy<Value = Candidate> {
        let share = || 0.0..=1.0_f32;
        (share(), share(), share(), prop::option::of((share(), share())), prop::option::of(any::<bool>()), 1_i64..99)
            .prop_map(|(cosine, lexical, evidence, late, same_author, number)| Candidate {
                cosine: Some(cosine),
                lexical,
                evidence,
                late: late.map(|(there, back)| LateScores { there, back }),
                same_author,
                ..candidate(number)
            })
    }

    proptest! {
        #[test]
        fn what_is_unknown_of_all_changes_no_order(candidates in prop::collection::vec(any_candidate(), 2..12)) {
            let bare: Vec<Candidate> = candidates
                .iter()
                .map(|candidate| Candidate { late: None, same_author: None, hours_apart: None, ..*candidate })
                .collect();
            let strangers: Vec<Candidate> =
                bare.iter().map(|candidate| Candidate { same_author: Some(false), ..*candidate }).collect();
            prop_assert_eq!(sums(&bare), sums(&strangers));
        }

        #[test]
        fn what_is_unknown_of_one_is_the_mean_of_the_others(candidates in prop::collection::vec(any_candidate(), 3..12)) {
            let known: Vec<Candidate> = candidates
                .iter()
                .map(|candidate| Candidate { late: candidate.late.or(Some(LateScores { there: 0.5, back: 0.6 })), ..*candidate })
                .collect();
            let mut one_unknown = known.clone();
            one_unknown[0].late = None;
            let late = |candidates: &[Candidate]| -> Vec<f64> {
                ranker_features(candidates, SPREAD).iter().map(|features| features[LATE]).collect()
            };
            let mean = late(&known)[1..].iter().sum::<f64>() / (known.len() - 1) as f64;
            prop_assert!((late(&one_unknown)[0] - mean).abs() < 1e-9);
        }

        #[test]
        fn the_order_of_candidates_does_not_matter(candidates in prop::collection::vec(any_candidate(), 1..12)) {
            let mut reversed = candidates.clone();
            reversed.reverse();
            let mut back = sums(&reversed);
            back.reverse();
            prop_assert_eq!(sums(&candidates), back);
        }
    }
}
