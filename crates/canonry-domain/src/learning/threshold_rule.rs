//! The rules by which a threshold follows from outcomes, and what they are told.

use serde::{Deserialize, Serialize};

use crate::duplicates::score::Probability;
use crate::learning::beta_rules::beta_rule;
use crate::learning::precision_target::precision_target;
use crate::learning::prediction_tally::PredictionTally;
use crate::learning::threshold::{CurrentThreshold, Threshold};
use crate::learning::threshold_reason::ThresholdReason;
use crate::text_enum;

text_enum! {
    /// A rule by which a threshold follows from outcomes.
    pub enum ThresholdRule: "a learning rule" {
        /// The lowest level that is surely right often enough; silence where no level is.
        PrecisionTarget = "precision-target",
        /// 100 times the mean share of right predictions. It falls with every wrong one: a wrong bot becomes noisier.
        BetaMean = "beta-mean",
        /// 100 times one minus that mean. It goes the right way, but not to any wanted precision.
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
    /// `precision-target`, 85 and 0.80.
    fn default() -> Self {
        let wanted = Probability::new(0.80).expect("invariant: the constant is in range");
        Self { rule: ThresholdRule::PrecisionTarget, configured: Threshold::default(), wanted }
    }
}

/// What a rule makes of a tally.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ruling {
    pub(crate) current: CurrentThreshold,
    /// The parameters of the Beta distribution that it rests on.
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) reason: ThresholdReason,
}

/// Applies the rule that the settings name.
pub(crate) fn rule_on(settings: &ThresholdSettings, tally: &PredictionTally) -> Ruling {
    match settings.rule {
        ThresholdRule::PrecisionTarget => precision_target(tally, settings.configured, settings.wanted),
        ThresholdRule::BetaMean => beta_rule(tally, settings.configured, |mean| mean),
        ThresholdRule::BetaComplement => beta_rule(tally, settings.configured, |mean| 1.0 - mean),
    }
}
