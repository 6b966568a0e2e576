//! The rule `precision-target`: comment from the lowest level that is surely right often enough, or not at all.
//!
//! The law of this rule, for any log: a wrong prediction never lowers the result, and a right one never raises it. A
//! wrong prediction makes no condition for lowering easier and none for raising harder, so that there are only fewer
//! levels to lower to and fewer to raise to. The lowest of fewer levels is not lower, and without any level the result
//! is silence. A right prediction does the opposite. Any condition that is added here must be monotone in the same
//! sense.

use crate::learning::beta::at_least;
use crate::learning::prediction_tally::PredictionTally;
use crate::learning::threshold_rule::ThresholdDecision;
use crate::{CurrentThreshold, LevelEvidence, MissingCondition, Obstacle, Probability, Threshold, ThresholdReason};

/// The required certainty that a level is right often enough before lowering to it, or that the configured level is
/// not before raising.
const SURE: f64 = 0.9;
/// The minimum number of wrong predictions before raising: fewer may be one unlucky day.
pub(crate) const WRONG_TO_RAISE: u64 = 3;
/// The required certainty that a level is right often enough before raising to it: more likely than not.
const LIKELY: f64 = 0.5;
/// The minimum number of right predictions before lowering.
pub(crate) const RIGHT_TO_LOWER: u64 = 20;
/// The minimum number of right predictions just above the new level: without them nothing is known about it.
pub(crate) const RIGHT_NEAR: u64 = 5;
/// The range that counts as "just above", in points.
pub(crate) const NEAR: u8 = 5;
/// The minimum share of right predictions among those that lowering adds, so that good predictions above do not hide
/// bad ones below.
pub(crate) const ADDED_SHARE: f64 = 0.6;
/// The required certainty of that share.
const ADDED_SURE: f64 = 0.8;

pub(crate) fn precision_target(
    tally: &PredictionTally,
    configured: Threshold,
    wanted: Probability,
) -> ThresholdDecision {
    let levels = Levels { tally, configured, wanted };
    let sure = levels.sure_at(configured);
    let (current, reason) = if sure >= SURE {
        levels.lower()
    } else if 1.0 - sure < SURE {
        (CurrentThreshold::From(configured), ThresholdReason::NotSure { configured: levels.evidence(configured) })
    } else if tally.from(configured.get()).1 < WRONG_TO_RAISE {
        (CurrentThreshold::From(configured), ThresholdReason::TooFewWrong { configured: levels.evidence(configured) })
    } else {
        levels.raise()
    };
    let (right, wrong) = tally.from(current.threshold().unwrap_or(configured).get());
    ThresholdDecision { current, alpha: 1.0 + right as f64, beta: 1.0 + wrong as f64, reason }
}

struct Levels<'a> {
    tally: &'a PredictionTally,
    configured: Threshold,
    wanted: Probability,
}

impl Levels<'_> {
    /// The certainty that predictions at this level and above are right often enough.
    fn sure_at(&self, level: Threshold) -> f64 {
        let (right, wrong) = self.tally.from(level.get());
        at_least(self.wanted.get(), right, wrong)
    }

    fn evidence(&self, level: Threshold) -> LevelEvidence {
        let (right, wrong) = self.tally.from(level.get());
        let sure = Probability::clamped(at_least(self.wanted.get(), right, wrong))
            .expect("invariant: a tail probability is a number");
        LevelEvidence { level, right, wrong, wanted: self.wanted, sure }
    }

    /// The lowest level that the rule can lower to: every level from there to the configured one is surely right often
    /// enough, and there is enough evidence for the new level itself.
    fn lower(&self) -> (CurrentThreshold, ThresholdReason) {
        let configured = self.evidence(self.configured);
        let mut found = None;
        let mut obstacles = Vec::new();
        for level in self.configured.lower() {
            if self.sure_at(level) < SURE {
                obstacles.push((level, MissingCondition::Sureness));
                break;
            }
            match self.lacking(level) {
                None => found = Some(level),
                Some(lacking) => obstacles.push((level, lacking)),
            }
        }
        if let Some(level) = found {
            let now = self.evidence(level);
            return (CurrentThreshold::From(level), ThresholdReason::Lowered { configured, now });
        }
        // The level that came nearest shows best what is missing; of equals, the one nearest to the configured level.
        let nearest = obstacles.into_iter().max_by_key(|(level, lacking)| (lacking.came_so_far(), *level));
        let next = nearest.map(|(level, lacking)| Obstacle { next: self.evidence(level), lacking });
        (CurrentThreshold::From(self.configured), ThresholdReason::NoLower { configured, next })
    }

    /// The condition that a certain level does not meet for lowering to it.
    fn lacking(&self, level: Threshold) -> Option<MissingCondition> {
        let right = self.tally.from(level.get()).0;
        if right < RIGHT_TO_LOWER {
            return Some(MissingCondition::Right { right });
        }
        let near = self.tally.between(level.get(), level.get() + NEAR).0;
        if near < RIGHT_NEAR {
            return Some(MissingCondition::RightNear { right: near });
        }
        let (right, wrong) = self.tally.between(level.get(), self.configured.get());
        (at_least(ADDED_SHARE, right, wrong) < ADDED_SURE).then_some(MissingCondition::Added { right, wrong })
    }

    /// The lowest level above that is likely right often enough; silence if there is none.
    fn raise(&self) -> (CurrentThreshold, ThresholdReason) {
        let configured = self.evidence(self.configured);
        match self.configured.higher().find(|level| self.sure_at(*level) >= LIKELY) {
            Some(level) => {
                (CurrentThreshold::From(level), ThresholdReason::Raised { configured, now: self.evidence(level) })
            }
            None => (CurrentThreshold::Silent, ThresholdReason::NoLevel { configured }),
        }
    }
}
