//! The rules `beta-mean` and `beta-complement`: the threshold follows from the mean share of right predictions.

use crate::learning::prediction_tally::PredictionTally;
use crate::learning::threshold_rule::ThresholdDecision;
use crate::{CurrentThreshold, Probability, Threshold, ThresholdReason};

/// The prior: two right predictions of ten.
const PRIOR: (f64, f64) = (2.0, 8.0);
/// The minimum number of predictions with an outcome: α + β must exceed 30, so that the prior is less than a third of
/// the total. The required minimum of 20 outcomes follows from this.
pub(crate) const PREDICTIONS: u64 = 21;

/// The threshold that `share_of` computes from the mean, once there are enough predictions; until then the configured
/// one.
pub(crate) fn beta_rule(
    tally: &PredictionTally,
    configured: Threshold,
    share_of: impl Fn(f64) -> f64,
) -> ThresholdDecision {
    let counts = tally.counts();
    let (alpha, beta) = (PRIOR.0 + counts.confirmed as f64, PRIOR.1 + counts.false_positives as f64);
    let mean = alpha / (alpha + beta);
    let predictions = counts.confirmed + counts.false_positives;
    let (current, reason) = if predictions < PREDICTIONS {
        (configured, ThresholdReason::TooFewPredictions { predictions })
    } else {
        let mean_right = Probability::clamped(mean).expect("invariant: a mean of counts is a number");
        (Threshold::nearest(100.0 * share_of(mean)), ThresholdReason::FromMean { mean_right })
    };
    ThresholdDecision { current: CurrentThreshold::From(current), alpha, beta, reason }
}
