//! Scores against outcomes: reliability, precision and recall by threshold, and the threshold for a wanted
//! precision.

use std::cmp::Reverse;

use canonry_domain::Similarity;
use serde::Serialize;

use crate::metrics::Interval;

/// One answer that was given with a score, and whether it was right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// The score.
    pub score: Similarity,
    /// Whether people agreed.
    pub right: bool,
}

/// Answers of about the same score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReliabilityRow {
    /// The least score.
    pub from: f64,
    /// The score above all; the last row includes it.
    pub to: f64,
    /// How many answers.
    pub answers: usize,
    /// Their mean score.
    pub mean_score: f64,
    /// The share that was right.
    pub right: Interval,
}

/// What a threshold would have meant.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OperatingPoint {
    /// Answers of this score or more are given.
    pub threshold: Similarity,
    /// How many that are.
    pub given: usize,
    /// The share of them that is right.
    pub precision: Interval,
    /// The share of everything there was to find that is given and right.
    pub recall: Interval,
}

/// Answers in rows of equal width. Rows without answers are left out.
pub fn reliability(answers: &[Answer], rows: usize) -> Vec<ReliabilityRow> {
    let width = 1.0 / rows.max(1) as f64;
    (0..rows)
        .filter_map(|row| {
            let (from, to) = (row as f64 * width, (row + 1) as f64 * width);
            let last = row + 1 == rows;
            let inside = |answer: &&Answer| {
                let score = answer.score.get();
                score >= from && (score < to || last)
            };
            let answers: Vec<&Answer> = answers.iter().filter(inside).collect();
            if answers.is_empty() {
                return None;
            }
            let right = answers.iter().filter(|answer| answer.right).count();
            let mean_score = answers.iter().map(|answer| answer.score.get()).sum::<f64>() / answers.len() as f64;
            Some(ReliabilityRow { from, to, answers: answers.len(), mean_score, right: wilson(right, answers.len()) })
        })
        .collect()
}

/// Every threshold that would change anything, lowest first. `findable` is how many right answers there are
/// at most, given or not.
pub fn operating_points(answers: &[Answer], findable: usize) -> Vec<OperatingPoint> {
    let mut answers = answers.to_vec();
    answers.sort_by_key(|answer| Reverse(answer.score));
    let mut points = Vec::new();
    let mut right = 0;
    for (at, answer) in answers.iter().enumerate() {
        right += usize::from(answer.right);
        let next_is_equal = answers.get(at + 1).is_some_and(|next| next.score == answer.score);
        if !next_is_equal {
            points.push(OperatingPoint {
                threshold: answer.score,
                given: at + 1,
                precision: wilson(right, at + 1),
                recall: wilson(right, findable.max(right)),
            });
        }
    }
    points.reverse();
    points
}

/// The lowest threshold from which on the precision is as wanted, that is, the one that gives the most answers.
pub fn threshold_for_precision(points: &[OperatingPoint], wanted: f64) -> Option<OperatingPoint> {
    points.iter().copied().find(|point| point.precision.value >= wanted)
}

/// A share with Wilson's 95 % interval, which also holds for few cases and for none or all of them.
pub fn wilson(right: usize, all: usize) -> Interval {
    const Z: f64 = 1.959_964;
    if all == 0 {
        return Interval { value: 0.0, low: 0.0, high: 1.0 };
    }
    let (right, all) = (right as f64, all as f64);
    let share = right / all;
    let scale = 1.0 + Z * Z / all;
    let centre = (share + Z * Z / (2.0 * all)) / scale;
    let half = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt() / scale;
    Interval { value: share, low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
}

#[cfg(test)]
mod tests {
    use canonry_domain::Similarity;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::{Answer, operating_points, reliability, threshold_for_precision, wilson};

    fn answers(list: &[(f64, bool)]) -> Vec<Answer> {
        let answer = |&(score, right): &(f64, bool)| Answer { score: Similarity::new(score).expect("a score"), right };
        list.iter().map(answer).collect()
    }

    #[test]
    fn points_by_hand() {
        let answers = answers(&[(0.9, true), (0.8, false), (0.8, true), (0.7, true), (0.6, false)]);
        let points = operating_points(&answers, 6);
        let told: Vec<(f64, usize, f64, f64)> = points
            .iter()
            .map(|point| (point.threshold.get(), point.given, point.precision.value, point.recall.value))
            .collect();
        assert_eq!(
            told,
            [(0.6, 5, 0.6, 0.5), (0.7, 4, 0.75, 0.5), (0.8, 3, 2.0 / 3.0, 2.0 / 6.0), (0.9, 1, 1.0, 1.0 / 6.0)]
        );
        let met = |wanted| threshold_for_precision(&points, wanted).map(|point| point.threshold.get());
        assert_eq!((met(0.5), met(0.7), met(0.95)), (Some(0.6), Some(0.7), Some(0.9)));
        assert_eq!(threshold_for_precision(&points[..3], 0.95), None);
    }

    #[test]
    fn reliability_by_hand() {
        let rows = reliability(&answers(&[(0.1, false), (0.75, true), (0.8, false), (1.0, true)]), 4);
        let told: Vec<(f64, usize, f64)> = rows.iter().map(|row| (row.from, row.answers, row.right.value)).collect();
        assert_eq!(told, [(0.0, 1, 0.0), (0.75, 3, 2.0 / 3.0)]);
        assert!((rows[1].mean_score - 0.85).abs() < 1e-12);
    }

    #[test]
    fn wilson_by_hand() {
        let interval = wilson(8, 10);
        assert!((interval.low - 0.4902).abs() < 1e-4 && (interval.high - 0.9433).abs() < 1e-4, "{interval:?}");
        assert_eq!((wilson(0, 5).low, wilson(5, 5).high, wilson(0, 0).high), (0.0, 1.0, 1.0));
    }

    proptest! {
        #[test]
        fn rows_and_points_account_for_every_answer(
            list in prop::collection::vec((0.0..=1.0_f64, any::<bool>()), 0..50),
            rows in 1_usize..20,
        ) {
            let answers = answers(&list);
            prop_assert_eq!(reliability(&answers, rows).iter().map(|row| row.answers).sum::<usize>(), answers.len());
            let points = operating_points(&answers, 50);
            prop_assert_eq!(points.first().map_or(0, |point| point.given), answers.len());
            prop_assert!(points.is_sorted_by(|one, other| one.threshold < other.threshold && one.given > other.given));
            prop_assert!(points.is_sorted_by(|one, other| one.recall.value >= other.recall.value));
        }
    }
}
