//! What a threshold would have meant, at the natural frequency of duplicates.
//!
//! A verdict here is "the first neighbour's score is at least t". Duplicates and other items are two samples of known
//! sizes; each replayed item also represents items that were not replayed.

use canonry_domain::{Interval, Similarity};
use canonry_retrieval::wilson;
use serde::Serialize;

/// The first neighbours of the replayed items.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FirstAnswers {
    /// For each replayed duplicate: the score of its first neighbour, and whether that was the right one.
    pub(crate) duplicates: Vec<(Option<Similarity>, bool)>,
    pub(crate) duplicates_in_all: usize,
    /// For each replayed item that is not a duplicate: the score of its first neighbour.
    pub(crate) others: Vec<Option<Similarity>>,
    pub(crate) others_in_all: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct VerdictPoint {
    /// First neighbours with at least this score are named.
    pub threshold: Similarity,
    /// The number of replayed items that got an answer.
    pub given: usize,
    pub right: usize,
    /// Answers among a thousand new items, at the natural frequency of duplicates.
    pub per_thousand: f64,
    /// The share of answers that are right, at the natural frequency of duplicates; `None` if there are no answers.
    pub precision: Option<Interval>,
    /// The share of duplicates that get the right answer.
    pub recall: Interval,
}

/// First neighbours with about the same score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ScoreBand {
    pub from: f64,
    /// The upper limit, exclusive; the last band includes it.
    pub to: f64,
    /// Replayed items whose first neighbour has such a score.
    pub answers: usize,
    /// The share of those neighbours that are right, at the natural frequency of duplicates.
    pub right: Interval,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdicts {
    /// Every threshold that can be set, from .50 to .99.
    pub levels: Vec<VerdictPoint>,
    /// How often first neighbours are right, by score. Bands without answers are left out.
    pub reliability: Vec<ScoreBand>,
    pub wanted_precision: f64,
    /// The lowest threshold that would have met the wanted precision.
    pub meets_wanted: Option<VerdictPoint>,
}

/// The number of right answers that a threshold needs before it is recommended: one answer that happens to be right
/// is always "100 % precise".
const LEAST_RIGHT: usize = 5;
/// Thresholds are set in whole hundredths.
const LEVELS: std::ops::RangeInclusive<u32> = 50..=99;
/// Bands of scores in hundredths: as wide as the distance between gates, and one for everything below what can be
/// set.
const BANDS: [u32; 12] = [0, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100];

impl Verdicts {
    pub(crate) fn of(answers: &FirstAnswers, wanted_precision: f64) -> Self {
        let hundredth = |level: u32| Similarity::clamped(f64::from(level) / 100.0).unwrap_or(Similarity::ONE);
        let levels: Vec<VerdictPoint> = LEVELS.map(|level| answers.at(hundredth(level))).collect();
        let meets = |point: &&VerdictPoint| {
            point.right >= LEAST_RIGHT && point.precision.is_some_and(|share| share.value >= wanted_precision)
        };
        let meets_wanted = levels.iter().find(meets).copied();
        Self { reliability: answers.bands(), levels, wanted_precision, meets_wanted }
    }

    /// The level nearest to a threshold.
    pub fn at(&self, threshold: f64) -> &VerdictPoint {
        let far = |point: &&VerdictPoint| (point.threshold.get() - threshold).abs();
        let nearest = self.levels.iter().min_by(|one, other| far(one).total_cmp(&far(other)));
        nearest.expect("invariant: there are levels")
    }
}

/// Counts of answers in a range of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AnswerCounts {
    right: usize,
    wrong_for_duplicates: usize,
    wrong_for_others: usize,
}

/// A number with its confidence limits.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    value: f64,
    low: f64,
    high: f64,
}

impl FirstAnswers {
    fn at(&self, threshold: Similarity) -> VerdictPoint {
        let counted = self.count(|score| score >= threshold);
        let given = counted.right + counted.wrong_for_duplicates + counted.wrong_for_others;
        let all = (self.duplicates_in_all + self.others_in_all).max(1) as f64;
        let answered = self.of_duplicates(counted.right).value + self.wrong(counted).value;
        VerdictPoint {
            threshold,
            given,
            right: counted.right,
            per_thousand: 1_000.0 * answered / all,
            precision: self.precision(counted),
            recall: wilson(counted.right, self.duplicates.len()),
        }
    }

    fn bands(&self) -> Vec<ScoreBand> {
        let band = |edges: &[u32]| {
            let [from, to] = [edges[0], edges[1]].map(|edge| f64::from(edge) / 100.0);
            let inside = |score: Similarity| score.get() >= from && (score.get() < to || edges[1] == 100);
            let counted = self.count(inside);
            let answers = counted.right + counted.wrong_for_duplicates + counted.wrong_for_others;
            Some(ScoreBand { from, to, answers, right: self.precision(counted)? })
        };
        BANDS.windows(2).filter_map(band).collect()
    }

    fn count(&self, counts: impl Fn(Similarity) -> bool) -> AnswerCounts {
        let given = |score: &Option<Similarity>| score.is_some_and(&counts);
        let of_duplicates = |right: bool| {
            let fits = |(score, was_right): &&(Option<Similarity>, bool)| given(score) && *was_right == right;
            self.duplicates.iter().filter(fits).count()
        };
        AnswerCounts {
            right: of_duplicates(true),
            wrong_for_duplicates: of_duplicates(false),
            wrong_for_others: self.others.iter().filter(|score| given(score)).count(),
        }
    }

    /// The share of answers that are right, if there are answers.
    fn precision(&self, counted: AnswerCounts) -> Option<Interval> {
        let AnswerCounts { right, wrong_for_duplicates, wrong_for_others } = counted;
        let given = right + wrong_for_duplicates + wrong_for_others;
        if given == 0 {
            return None;
        }
        if self.duplicates.len() == self.duplicates_in_all && self.others.len() == self.others_in_all {
            return Some(wilson(right, given));
        }
        Some(share(self.of_duplicates(right), self.wrong(counted)))
    }

    fn wrong(&self, counted: AnswerCounts) -> Estimate {
        let others = estimate(counted.wrong_for_others, self.others.len(), self.others_in_all);
        sum(self.of_duplicates(counted.wrong_for_duplicates), others)
    }

    fn of_duplicates(&self, count: usize) -> Estimate {
        estimate(count, self.duplicates.len(), self.duplicates_in_all)
    }
}

/// Extrapolates `count` of `sampled` to all.
fn estimate(count: usize, sampled: usize, all: usize) -> Estimate {
    let share = wilson(count, sampled);
    let all = all as f64;
    Estimate { value: share.value * all, low: share.low * all, high: share.high * all }
}

/// The sum of two independent estimates, with limits by Zou and Donner's method (adding squares).
fn sum(one: Estimate, other: Estimate) -> Estimate {
    let value = one.value + other.value;
    let below = (one.value - one.low).hypot(other.value - other.low);
    let above = (one.high - one.value).hypot(other.high - other.value);
    Estimate { value, low: (value - below).max(0.0), high: value + above }
}

/// The share of right answers. The limits come from those of the ratio wrong : right. Resampling would give "exactly
/// 100 %" if no wrong answer happens to be in the sample; these limits account for how many the sample can have
/// missed.
fn share(right: Estimate, wrong: Estimate) -> Interval {
    if right.value > 0.0 {
        let (low, high) = ratio(wrong, right);
        let value = right.value / (right.value + wrong.value);
        Interval { value, low: 1.0 / (1.0 + high), high: 1.0 / (1.0 + low) }
    } else {
        let (_, high) = ratio(right, wrong);
        Interval { value: 0.0, low: 0.0, high: high / (1.0 + high) }
    }
}

/// The limits of a ratio from those of its parts (Donner and Zou's method). The denominator is above zero.
fn ratio(upper: Estimate, lower: Estimate) -> (f64, f64) {
    let product = upper.value * lower.value;
    let root = |of_upper: f64, of_lower: f64| (product * product - of_upper * of_lower).max(0.0).sqrt();
    let least = upper.low * (2.0 * upper.value - upper.low);
    let low =
        if least > 0.0 { least / (product + root(least, lower.high * (2.0 * lower.value - lower.high))) } else { 0.0 };
    let (most, base) = (upper.high * (2.0 * upper.value - upper.high), lower.low * (2.0 * lower.value - lower.low));
    let high = (product + root(most, base)) / base.max(f64::MIN_POSITIVE);
    (low, high)
}

#[cfg(test)]
mod tests {
    use canonry_domain::Similarity;
    use canonry_retrieval::wilson;
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::{FirstAnswers, Verdicts};

    fn score(value: f64) -> Option<Similarity> {
        Some(Similarity::new(value).expect("a score"))
    }

    fn answers(duplicates: &[(f64, bool)], others: &[f64], others_in_all: usize) -> FirstAnswers {
        FirstAnswers {
            duplicates: duplicates.iter().map(|&(value, right)| (score(value), right)).collect(),
            duplicates_in_all: duplicates.len(),
            others: others.iter().map(|&value| score(value)).collect(),
            others_in_all,
        }
    }

    #[test]
    fn a_threshold_by_hand() {
        // Six duplicates, one of them without any neighbour; four of eight others were replayed, so each represents
        // two.
        let mut all = answers(
            &[(0.97, true), (0.93, true), (0.91, false), (0.80, true), (0.60, false)],
            &[0.92, 0.85, 0.70, 0.10],
            8,
        );
        all.duplicates.push((None, false));
        all.duplicates_in_all = 6;
        let verdicts = Verdicts::of(&all, 0.8);
        let at = |threshold| *verdicts.at(threshold);

        // At .90: two right and one wrong among duplicates, one wrong among others that represents two.
        assert_eq!((at(0.90).given, at(0.90).right), (4, 2));
        assert_eq!(at(0.90).precision.expect("answers").value, 2.0 / 5.0);
        assert_eq!(at(0.90).recall, wilson(2, 6));
        assert!((at(0.90).per_thousand - 1_000.0 * 5.0 / 14.0).abs() < 1e-9);
        // At .75: three right, one wrong, and two that represent four.
        assert_eq!(at(0.75).precision.expect("answers").value, 3.0 / 8.0);
        assert_eq!(at(0.95).precision.expect("answers").value, 1.0);
        assert_eq!((at(0.98).given, at(0.98).precision), (0, None));
        // One right answer is not enough for a threshold.
        assert_eq!(verdicts.meets_wanted, None);
        let bands: Vec<(f64, usize, f64)> =
            verdicts.reliability.iter().map(|band| (band.from, band.answers, band.right.value)).collect();
        assert_eq!(
            bands,
            [
                (0.0, 1, 0.0),
                (0.60, 1, 0.0),
                (0.70, 1, 0.0),
                (0.80, 1, 1.0),
                (0.85, 1, 0.0),
                (0.90, 3, 0.25),
                (0.95, 1, 1.0)
            ]
        );
    }

    #[test]
    fn the_lowest_threshold_that_meets_what_is_wanted() {
        let right: Vec<(f64, bool)> = (0..8).map(|step| (0.80 + 0.02 * f64::from(step), true)).collect();
        let all = answers(&right, &[0.85, 0.83, 0.81, 0.79], 4);
        let met = |wanted| Verdicts::of(&all, wanted).meets_wanted.map(|point| (point.threshold.get(), point.right));
        // From .84: six right and one wrong; from .82, seven and two; from .50, eight and four.
        assert_eq!(met(0.85), Some((0.84, 6)));
        assert_eq!(met(0.75), Some((0.82, 7)));
        assert_eq!(met(0.6), Some((0.5, 8)));
        assert_eq!(met(0.9), Some((0.86, 5)));
        let two_right = answers(&right[..2], &[], 0);
        assert_eq!(Verdicts::of(&two_right, 0.5).meets_wanted, None);
    }

    #[test]
    fn a_sample_without_errors_does_not_promise_a_population_without_errors() {
        // Fifty right answers; of 10,000 others 100 were replayed, and none got an answer. Up to 3.7 % of
        // them might have: 370 wrong answers against fifty right ones.
        let sampled = answers(&[(0.95, true); 50], &[0.1; 100], 10_000);
        let precision = Verdicts::of(&sampled, 0.8).at(0.9).precision.expect("answers");
        assert_eq!(precision.value, 1.0);
        assert!((0.10..0.20).contains(&precision.low), "{precision:?}");
        let everything = answers(&[(0.95, true); 50], &[0.1; 100], 100);
        assert_eq!(Verdicts::of(&everything, 0.8).at(0.9).precision, Some(wilson(50, 50)));
    }

    proptest! {
        #[test]
        fn intervals_hold_their_value_and_more_answers_never_find_less(
            duplicates in prop::collection::vec((0.0..=1.0_f64, any::<bool>()), 1..30),
            others in prop::collection::vec(0.0..=1.0_f64, 1..30),
            unseen in 0_usize..1_000,
        ) {
            let all = answers(&duplicates, &others, others.len() + unseen);
            let verdicts = Verdicts::of(&all, 0.8);
            for share in verdicts.levels.iter().filter_map(|level| level.precision) {
                prop_assert!(0.0 <= share.low && share.low <= share.value + 1e-9, "{share:?}");
                prop_assert!(share.value <= share.high + 1e-9 && share.high <= 1.0 + 1e-9, "{share:?}");
            }
            prop_assert!(verdicts.levels.is_sorted_by(|low, high| low.recall.value >= high.recall.value
                && low.per_thousand + 1e-9 >= high.per_thousand));
            prop_assert!(verdicts.reliability.iter().map(|band| band.answers).sum::<usize>() == duplicates.len() + others.len());
        }
    }
}
