//! Synthetic repositories whose precision at every threshold is known, to test learning rules on.

use canonry_domain::{ItemNumber, LearningEntry, Lesson, Prediction, PredictionTruth, Similarity, Threshold};
use serde::Serialize;

/// The range of prediction scores, most of them in the middle: lower ones are hardly ever selected.
const SCORES: (f64, f64) = (0.60, 1.0);
/// The share of triage records that predict something.
const PREDICTED: f64 = 0.5;
/// The share of wrong predictions whose item is a duplicate of something else.
const OF_ANOTHER: f64 = 0.2;
/// The share of items without a prediction that are duplicates.
const MISSED: f64 = 0.1;
/// The number of steps over which an expected precision is summed up: each is 0.001 wide.
const STEPS: u32 = 400;

/// How the share of right predictions depends on score and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RepositoryKind {
    /// Nearly always right, at every score.
    Good,
    /// Right from some score on: at some threshold the precision crosses the wanted one.
    Crossing,
    Bad,
    /// Good at first, bad in the end.
    Drifting,
}

impl RepositoryKind {
    pub const ALL: [Self; 4] = [Self::Good, Self::Crossing, Self::Bad, Self::Drifting];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Crossing => "crossing",
            Self::Bad => "bad",
            Self::Drifting => "drifting",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct SyntheticRepository {
    /// The threshold at which the precision crosses the wanted one, for repositories made to have one.
    pub(crate) crosses_at: Option<Threshold>,
    early: Chance,
    late: Chance,
    random: Random,
}

/// The probability that a prediction is right. It rises with the score from `low` to `high` around `middle`.
#[derive(Debug, Clone, Copy)]
struct Chance {
    low: f64,
    high: f64,
    middle: f64,
    width: f64,
}

impl SyntheticRepository {
    /// The repository with this number for a seed. Each has its own random generator, so that a larger number of
    /// repositories changes none of them.
    pub(crate) fn new(kind: RepositoryKind, seed: u64, number: u64, wanted: f64) -> Self {
        let mut random = Random::new(seed, number);
        let good = Chance::flat(random.between(0.90, 0.97));
        let bad = Chance { low: 0.05, high: random.between(0.15, 0.35), middle: 0.80, width: 0.04 };
        let mut crosses_at = None;
        let (early, late) = match kind {
            RepositoryKind::Good => (good, good),
            RepositoryKind::Bad => (bad, bad),
            RepositoryKind::Drifting => (good, bad),
            RepositoryKind::Crossing => {
                let points = random.between(65.0, 93.0) as u8;
                let threshold = Threshold::new(points).expect("invariant: drawn within the bounds");
                let low = random.between(0.05, 0.25);
                let width = random.between(0.02, 0.05);
                crosses_at = Some(threshold);
                let crossing = Chance::crossing(low, width, f64::from(points) / 100.0, wanted);
                (crossing, crossing)
            }
        };
        Self { crosses_at, early, late, random }
    }

    /// The given number of triage records with their outcomes.
    pub(crate) fn history(mut self, outcomes: usize) -> Vec<LearningEntry> {
        (0..outcomes).map(|at| self.entry(at as f64 / outcomes as f64)).collect()
    }

    fn entry(&mut self, time: f64) -> LearningEntry {
        let lesson = if self.random.unit() < PREDICTED {
            let drawn = SCORES.0 + (SCORES.1 - SCORES.0) * (self.random.unit() + self.random.unit()) / 2.0;
            let score = Similarity::clamped(drawn).expect("invariant: drawn within 0 and 1");
            // No rule depends on the target.
            let target = ItemNumber::new(1).expect("invariant: one is positive");
            let truth = if self.random.unit() < self.chance(score.get(), time) {
                PredictionTruth::Duplicate
            } else if self.random.unit() < OF_ANOTHER {
                PredictionTruth::DuplicateOfAnother
            } else {
                PredictionTruth::NotDuplicate
            };
            Lesson::new(Some(Prediction { target, score }), truth)
        } else {
            let truth =
                if self.random.unit() < MISSED { PredictionTruth::Duplicate } else { PredictionTruth::NotDuplicate };
            Lesson::new(None, truth)
        };
        LearningEntry { lesson, component: None }
    }

    /// The precision of comments from this threshold on, at a time from 0 (the beginning) to 1 (the end).
    pub(crate) fn precision(&self, threshold: Threshold, time: f64) -> f64 {
        precision_from(f64::from(threshold.get()) / 100.0, |score| self.chance(score, time))
    }

    /// A drifting repository changes in the middle third of the time.
    fn chance(&self, score: f64, time: f64) -> f64 {
        let late = (3.0 * time - 1.0).clamp(0.0, 1.0);
        (1.0 - late) * self.early.at(score) + late * self.late.at(score)
    }
}

impl Chance {
    fn flat(share: f64) -> Self {
        Self { low: share, high: share, middle: 0.5, width: 1.0 }
    }

    /// The curve whose precision from `threshold` on is the wanted one.
    fn crossing(low: f64, width: f64, threshold: f64, wanted: f64) -> Self {
        let with_middle = |middle| Self { low, high: 0.98, middle, width };
        // The further right the middle, the lower the precision. Fifty bisections are enough for full precision.
        let (mut left, mut right) = (0.0, 1.5);
        for _ in 0..50 {
            let middle = (left + right) / 2.0;
            let chance = with_middle(middle);
            if precision_from(threshold, |score| chance.at(score)) > wanted {
                left = middle;
            } else {
                right = middle;
            }
        }
        with_middle((left + right) / 2.0)
    }

    fn at(self, score: f64) -> f64 {
        self.low + (self.high - self.low) / (1.0 + (-(score - self.middle) / self.width).exp())
    }
}

/// The mean of a chance over the scores from a threshold on, weighted by their distribution.
fn precision_from(threshold: f64, chance: impl Fn(f64) -> f64) -> f64 {
    let (mut weights, mut right) = (0.0, 0.0);
    for step in 0..STEPS {
        let place = (f64::from(step) + 0.5) / f64::from(STEPS);
        let score = SCORES.0 + (SCORES.1 - SCORES.0) * place;
        if score >= threshold {
            // The mean of two uniform draws has a triangular distribution.
            let weight = place.min(1.0 - place);
            weights += weight;
            right += weight * chance(score);
        }
    }
    right / weights
}

/// SplitMix: a generator that does not change with a library's version, so that a seed always gives the same figures.
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn new(seed: u64, number: u64) -> Self {
        // Adjacent states would give the same numbers, one step apart.
        let mut of_seed = Self(seed);
        Self(of_seed.next() ^ Self(number.wrapping_mul(0xd6e8_feb8_6659_fd93)).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{Lesson, Threshold};

    use super::{RepositoryKind, SyntheticRepository};

    fn threshold(points: u8) -> Threshold {
        Threshold::new(points).expect("in bounds")
    }

    #[test]
    fn each_kind_has_the_curve_that_it_is_named_for() {
        for number in 0..50 {
            let repository = |kind| SyntheticRepository::new(kind, 1, number, 0.8);
            for points in 50..=95 {
                let precision = |kind, time| repository(kind).precision(threshold(points), time);
                assert!(precision(RepositoryKind::Good, 0.5) >= 0.9);
                assert!(precision(RepositoryKind::Bad, 0.5) <= 0.36);
                assert!(precision(RepositoryKind::Drifting, 0.0) >= 0.9);
                assert!(precision(RepositoryKind::Drifting, 1.0) <= 0.36);
            }
            let crossing = repository(RepositoryKind::Crossing);
            let at = crossing.crosses_at.expect("it crosses");
            assert!((crossing.precision(at, 0.0) - 0.8).abs() < 1e-9, "{at}");
            assert!(crossing.precision(threshold(at.get() + 2), 0.0) > 0.8);
            assert!(crossing.precision(threshold(at.get() - 2), 0.0) < 0.8);
        }
    }

    /// The drawn history is distributed like the known curve.
    #[test]
    fn a_long_history_has_the_known_precision() {
        for kind in RepositoryKind::ALL.into_iter().filter(|kind| *kind != RepositoryKind::Drifting) {
            let repository = SyntheticRepository::new(kind, 7, 3, 0.8);
            let expected = [60, 75, 85, 93].map(|points| repository.precision(threshold(points), 0.0));
            let history = repository.history(40_000);
            for (points, expected) in [60, 75, 85, 93].into_iter().zip(expected) {
                let (mut right, mut all) = (0.0, 0.0);
                for entry in &history {
                    let (prediction, is_right) = match entry.lesson {
                        Lesson::Confirmed { prediction } => (prediction, 1.0),
                        Lesson::FalsePositive { prediction } | Lesson::Missed { instead: Some(prediction) } => {
                            (prediction, 0.0)
                        }
                        _ => continue,
                    };
                    if prediction.level() >= points {
                        right += is_right;
                        all += 1.0;
                    }
                }
                // At 93 there are about 1,200 predictions: five standard deviations are below 0.07.
                assert!((right / all - expected).abs() < 0.07, "{kind:?} at {points}: {} not {expected}", right / all);
            }
        }
    }
}
