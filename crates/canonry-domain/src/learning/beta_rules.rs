//! The rules `beta-mean` and `beta-complement`: a threshold read off the mean share of right predictions.

use crate::learning::prediction_tally::PredictionTally;
use crate::learning::threshold_rule::ThresholdDecision;
use crate::{CurrentThreshold, Probability, Threshold, ThresholdReason};

/// What is believed before anything is seen: two right predictions of ten.
const PRIOR: (f64, f64) = (2.0, 8.0);
/// Outcomes of predictions that it takes: α + β must exceed 30, so that the prior is less than a third of what counts.
/// That there must be 20 outcomes in all follows.
pub(crate) const PREDICTIONS: u64 = 21;

/// The threshold that `share_of` makes of the mean, once enough is known; until then the configured one.
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
