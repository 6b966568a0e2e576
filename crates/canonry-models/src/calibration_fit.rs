//! Fits a calibration to known duplicate pairs and known other pairs.

use crate::calibration::{Calibration, CalibrationError};

/// Fewer pairs of either kind say nothing about a twentieth of them.
const FEWEST_PAIRS: usize = 20;
/// The minimum distance of two anchors, which keeps the map well-defined.
const CLOSEST: f64 = 1e-3;
/// The number of pairs per bin. A logistic curve needs no bins, but on four trackers its tail was far off: the share
/// of true pairs rises slowly up to cosine .8 and then steeply.
const BIN: usize = 40;
/// The share of true pairs that the score .75 keeps.
const KEPT: f64 = 0.95;

/// Cosines of pairs under one model.
///
/// Both kinds must come from the same retriever, for example the nearest neighbours of every item whose duplicates
/// are known; otherwise the odds answer another question.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CalibrationData {
    pub true_pairs: Vec<f32>,
    /// Cosines of pairs that the retriever offered and that are not duplicates.
    pub other_pairs: Vec<f32>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct FittedCalibration {
    pub calibration: Calibration,
    /// The share of true pairs at or above the score .75.
    pub kept_at_75: f64,
    /// The share of true pairs among pairs with about the score .90; .5 if the anchor could be placed exactly.
    pub odds_at_90: f64,
    /// The same for .95; .8 if the anchor could be placed exactly.
    pub odds_at_95: f64,
}

impl CalibrationData {
    /// Anchors: .75 at the cosine that 95 % of the true pairs exceed, .90 where the share of true pairs among all
    /// pairs of about that cosine passes one half, .95 where it passes four fifths.
    ///
    /// If the data do not allow that (even odds below the .75 anchor, four fifths beyond cosine 1), the anchors are
    /// moved just far enough to keep their order, and the figures report the shares that they then have.
    pub fn fit(&self) -> Result<FittedCalibration, CalibrationError> {
        let true_pairs = enough("true", &self.true_pairs)?;
        let other_pairs = enough("other", &self.other_pairs)?;
        let odds = Odds::of(&true_pairs, &other_pairs);
        let keeping = quantile(&true_pairs, 1.0 - KEPT).clamp(4.0 * CLOSEST, 1.0 - 3.0 * CLOSEST);
        let even = odds.cosine_at(0.5).clamp(keeping + CLOSEST, 1.0 - 2.0 * CLOSEST);
        let sure = odds.cosine_at(0.8).clamp(even + CLOSEST, 1.0 - CLOSEST);
        let anchors = vec![(0.0, 0.0), (keeping, 0.75), (even, 0.90), (sure, 0.95), (1.0, 1.0)];
        let kept = true_pairs.iter().filter(|cosine| **cosine >= keeping).count();
        Ok(FittedCalibration {
            calibration: Calibration::from_anchors(anchors)?,
            kept_at_75: kept as f64 / true_pairs.len() as f64,
            odds_at_90: odds.share_at(even),
            odds_at_95: odds.share_at(sure),
        })
    }
}

/// The share of true pairs as an increasing function of the cosine: means of bins. A bin is pooled with the previous
/// one if it has larger cosines but a smaller share.
struct Odds(Vec<PooledBlock>);

#[derive(Clone, Copy)]
struct PooledBlock {
    cosines: f64,
    true_pairs: f64,
    pairs: f64,
}

impl Odds {
    fn of(true_pairs: &[f64], other_pairs: &[f64]) -> Self {
        let true_pairs = true_pairs.iter().map(|cosine| (*cosine, 1.0));
        let mut pairs: Vec<(f64, f64)> = true_pairs.chain(other_pairs.iter().map(|cosine| (*cosine, 0.0))).collect();
        pairs.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut rising: Vec<PooledBlock> = Vec::new();
        // Bins start at the top, so that the bin of the most certain pairs is complete.
        let bins: Vec<&[(f64, f64)]> = pairs.rchunks(BIN).collect();
        for bin in bins.into_iter().rev() {
            let mut block = PooledBlock {
                cosines: bin.iter().map(|pair| pair.0).sum(),
                true_pairs: bin.iter().map(|pair| pair.1).sum(),
                pairs: bin.len() as f64,
            };
            while let Some(before) = rising.pop_if(|before| before.share() >= block.share()) {
                block = block.with(before);
            }
            rising.push(block);
        }
        Self(rising)
    }

    fn share_at(&self, cosine: f64) -> f64 {
        let after = self.0.partition_point(|block| block.cosine() < cosine);
        match (after.checked_sub(1).map(|before| self.0[before]), self.0.get(after)) {
            (Some(left), Some(right)) => {
                let part = (cosine - left.cosine()) / (right.cosine() - left.cosine());
                left.share() + part * (right.share() - left.share())
            }
            (Some(one), None) => one.share(),
            (None, one) => one.map_or(0.0, PooledBlock::share),
        }
    }

    /// The cosine at which a share is reached, linear between two blocks; halfway to 1 if it never is.
    fn cosine_at(&self, share: f64) -> f64 {
        let after = self.0.partition_point(|block| block.share() < share);
        match (after.checked_sub(1).map(|before| self.0[before]), self.0.get(after)) {
            (Some(left), Some(right)) => {
                let part = (share - left.share()) / (right.share() - left.share());
                left.cosine() + part * (right.cosine() - left.cosine())
            }
            (Some(last), None) => f64::midpoint(last.cosine(), 1.0),
            (None, first) => first.map_or(1.0, PooledBlock::cosine),
        }
    }
}

impl PooledBlock {
    fn cosine(&self) -> f64 {
        self.cosines / self.pairs
    }

    fn share(&self) -> f64 {
        self.true_pairs / self.pairs
    }

    fn with(self, other: Self) -> Self {
        Self {
            cosines: self.cosines + other.cosines,
            true_pairs: self.true_pairs + other.true_pairs,
            pairs: self.pairs + other.pairs,
        }
    }
}

fn enough(kind: &'static str, cosines: &[f32]) -> Result<Vec<f64>, CalibrationError> {
    let finite: Vec<f64> =
        cosines.iter().filter(|cosine| cosine.is_finite()).map(|cosine| f64::from(*cosine)).collect();
    if finite.len() < FEWEST_PAIRS {
        return Err(CalibrationError::TooFewPairs { kind, found: finite.len(), needed: FEWEST_PAIRS });
    }
    Ok(finite)
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).floor() as usize]
}

#[cfg(test)]
mod tests {
    use super::CalibrationData;
    use crate::calibration::CalibrationError;
    use proptest::prelude::{prop, prop_assert, proptest};

    /// Pairs whose share of true ones is exactly logistic: one half at .7, four fifths at .7 + ln 4 / 20.
    fn logistic() -> CalibrationData {
        let mut data = CalibrationData::default();
        for at in 0..100 {
            let cosine = 0.3 + 0.7 * (at as f32 / 99.0);
            let share = 1.0 / (1.0 + (-20.0 * (cosine - 0.7)).exp());
            let count = (share * 1000.0).round() as usize;
            data.true_pairs.extend(std::iter::repeat_n(cosine, count));
            data.other_pairs.extend(std::iter::repeat_n(cosine, 1000 - count));
        }
        data
    }

    #[test]
    fn anchors_mean_what_they_promise() {
        let fitted = logistic().fit().expect("enough pairs");
        for (cosine, score) in [(0.7, 0.90), (0.7 + 4f32.ln() / 20.0, 0.95)] {
            let found = fitted.calibration.similarity(cosine).get();
            assert!((found - score).abs() < 0.01, "{cosine}: {found}");
        }
        assert!((0.95..0.97).contains(&fitted.kept_at_75), "{}", fitted.kept_at_75);
        assert!((fitted.odds_at_90 - 0.5).abs() < 1e-6 && (fitted.odds_at_95 - 0.8).abs() < 1e-6, "{fitted:?}");
    }

    #[test]
    fn anchors_that_cannot_be_met_say_what_they_stand_for() {
        let data = CalibrationData {
            true_pairs: vec![0.8; 40],
            other_pairs: (0..4000).map(|at| at as f32 / 4000.0).collect(),
        };
        let fitted = data.fit().expect("enough pairs");
        assert!(fitted.odds_at_95 < 0.8, "{fitted:?}");
        assert_eq!(fitted.calibration.similarity(0.8).get(), 0.75);
    }

    #[test]
    fn a_handful_of_pairs_is_refused() {
        let data = CalibrationData { true_pairs: vec![0.9; 19], other_pairs: vec![0.1; 500] };
        assert_eq!(data.fit(), Err(CalibrationError::TooFewPairs { kind: "true", found: 19, needed: 20 }));
    }

    proptest! {
        #[test]
        fn every_fit_is_a_monotone_map(
            true_pairs in prop::collection::vec(-1.0f32..=1.0, 20..60),
            other_pairs in prop::collection::vec(-1.0f32..=1.0, 20..60),
        ) {
            let map = CalibrationData { true_pairs, other_pairs }.fit().expect("enough pairs").calibration;
            let scores: Vec<_> = (-100..=100).map(|cosine| map.similarity(cosine as f32 / 100.0)).collect();
            prop_assert!(map.is_fitted() && scores.is_sorted());
        }
    }
}
