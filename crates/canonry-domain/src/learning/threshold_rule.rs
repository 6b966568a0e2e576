//! The rules that compute a threshold from outcomes, and their settings.

use serde::{Deserialize, Serialize};

use crate::learning::beta_rules::beta_rule;
use crate::learning::precision_target::precision_target;
use crate::learning::prediction_tally::PredictionTally;
use crate::{CurrentThreshold, Probability, Threshold, ThresholdReason, text_enum};

text_enum! {
    /// The rule by which the threshold moves.
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum ThresholdRule: "a learning rule" {
        /// The lowest threshold whose suggestions are right often enough.
        PrecisionTarget = "precision-target",
        // This threshold falls with every wrong prediction: a wrong bot becomes noisier.
        /// 100 times the mean of the Beta distribution of outcomes.
        BetaMean = "beta-mean",
        // This threshold moves in the right direction, but does not aim at any precision.
        /// 100 times one minus that mean.
        BetaComplement = "beta-complement",
    }
}

/// What a repository asks of its thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdSettings {
    pub rule: ThresholdRule,
    /// The threshold that holds until another is learned.
    pub configured: Threshold,
    /// The share of predictions that should be right, for [`ThresholdRule::PrecisionTarget`].
    pub wanted: Probability,
}

impl Default for ThresholdSettings {
    /// The rule `precision-target` with the threshold 85 and the wanted precision 0.80.
    fn default() -> Self {
        let wanted = Probability::new(0.80).expect("invariant: the constant is in range");
        Self { rule: ThresholdRule::PrecisionTarget, configured: Threshold::default(), wanted }
    }
}

/// What a rule makes of a tally.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ThresholdDecision {
    pub(crate) current: CurrentThreshold,
    /// The parameters of the Beta distribution that it rests on.
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) reason: ThresholdReason,
}

/// Computes the threshold from a tally by the rule in the settings.
pub(crate) fn rule_on(settings: &ThresholdSettings, tally: &PredictionTally) -> ThresholdDecision {
    match settings.rule {
        ThresholdRule::PrecisionTarget => precision_target(tally, settings.configured, settings.wanted),
        ThresholdRule::BetaMean => beta_rule(tally, settings.configured, |mean| mean),
        ThresholdRule::BetaComplement => beta_rule(tally, settings.configured, |mean| 1.0 - mean),
    }
}
