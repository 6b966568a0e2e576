//! The rule `precision-target`: speak from the lowest level that is surely right often enough, or not at all.
//!
//! The law that it keeps, whatever the log: a wrong prediction never lowers the result and a right one never raises
//! it. A wrong one makes no condition for lowering truer and none for raising less true, so that the levels to lower
//! to, and those to raise to, only become fewer; of fewer levels the lowest is no lower, and of none it is silence.
//! A right one does the opposite. A condition that is added here must be monotone in the same sense.

use crate::learning::beta::at_least;
use crate::learning::prediction_tally::PredictionTally;
use crate::learning::threshold_rule::ThresholdDecision;
use crate::{CurrentThreshold, LevelEvidence, MissingCondition, Obstacle, Probability, Threshold, ThresholdReason};

/// How sure it must be that a level is right often enough to lower to it, or that the configured one is not to raise.
const SURE: f64 = 0.9;
/// Wrong predictions that it takes to raise: fewer may be one unlucky day.
pub(crate) const WRONG_TO_RAISE: u64 = 3;
/// How sure it must be that a level is right often enough to raise to it: the likelier side.
const LIKELY: f64 = 0.5;
/// Right predictions that it takes to lower.
pub(crate) const RIGHT_TO_LOWER: u64 = 20;
/// Right predictions that it takes just above the new level: without them nobody has seen it.
pub(crate) const RIGHT_NEAR: u64 = 5;
/// What is just above, in points.
pub(crate) const NEAR: u8 = 5;
/// The share that must be right of what lowering adds, so that good predictions above do not pay for bad ones below.
pub(crate) const ADDED_SHARE: f64 = 0.6;
/// How sure that must be.
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
    /// How sure it is that predictions from this level up are right often enough.
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

    /// The lowest level that can be lowered to: every level from there to the configured one is surely right often
    /// enough, and what is seen of the new one itself suffices.
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
        // The level that came nearest tells best what is missing; of equals the one nearest to the configured.
        let nearest = obstacles.into_iter().max_by_key(|(level, lacking)| (lacking.came_so_far(), *level));
        let next = nearest.map(|(level, lacking)| Obstacle { next: self.evidence(level), lacking });
        (CurrentThreshold::From(self.configured), ThresholdReason::NoLower { configured, next })
    }

    /// What a level that is sure lacks to be lowered to.
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

    /// The lowest level above that is likely right often enough; silence when none is.
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
