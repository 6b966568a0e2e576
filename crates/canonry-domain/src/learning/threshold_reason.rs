//! The reason for a threshold, as data and as a sentence.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::learning::beta_rules::PREDICTIONS;
use crate::learning::precision_target::{ADDED_SHARE, NEAR, RIGHT_NEAR, RIGHT_TO_LOWER, WRONG_TO_RAISE};
use crate::{Probability, Threshold};

/// The condition that decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decided_by", rename_all = "snake_case")]
pub enum ThresholdReason {
    /// The configured threshold stays: it is certain neither that it is right often enough nor that it is not.
    NotSure {
        configured: LevelEvidence,
    },
    /// The configured threshold stays: it seems wrong too often, but there are too few wrong predictions to be
    /// certain.
    TooFewWrong {
        configured: LevelEvidence,
    },
    /// The configured threshold stays: it is right often enough, and no lower one may replace it.
    NoLower {
        configured: LevelEvidence,
        /// What prevents lowering; `None` if there is no lower level.
        next: Option<Obstacle>,
    },
    Lowered {
        configured: LevelEvidence,
        now: LevelEvidence,
    },
    Raised {
        configured: LevelEvidence,
        now: LevelEvidence,
    },
    /// Silence: the configured level is wrong too often, and no higher level is likely to be better.
    NoLevel {
        configured: LevelEvidence,
    },
    /// The configured threshold stays: a rule of means needs more predictions.
    TooFewPredictions {
        predictions: u64,
    },
    /// The threshold follows from the mean share of right predictions.
    FromMean {
        mean_right: Probability,
    },
}

/// The evidence from predictions at a level and above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelEvidence {
    pub level: Threshold,
    /// Right predictions with at least this score.
    pub right: u64,
    pub wrong: u64,
    pub wanted: Probability,
    pub sure: Probability,
}

/// The lower level that came nearest to the conditions for lowering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Obstacle {
    pub next: LevelEvidence,
    pub lacking: MissingCondition,
}

/// The condition that a lower level does not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "condition", rename_all = "snake_case")]
pub enum MissingCondition {
    /// It is not certain that the level is right often enough.
    Sureness,
    Right {
        right: u64,
    },
    RightNear {
        right: u64,
    },
    /// The predictions that lowering would add are wrong too often, or there are too few to know.
    Added {
        /// Right predictions from that level up to the configured one.
        right: u64,
        wrong: u64,
    },
}

impl fmt::Display for ThresholdReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSure { configured } if configured.right + configured.wrong == 0 => {
                write!(formatter, "no prediction at {} % or above has an outcome yet", configured.level)
            }
            Self::NotSure { configured } => write!(formatter, "{configured}: too few outcomes to move the threshold"),
            Self::TooFewWrong { configured } => {
                write!(formatter, "{configured}: raising the threshold needs {WRONG_TO_RAISE} wrong predictions")
            }
            Self::NoLower { configured, next: None } => {
                write!(formatter, "{configured}: the threshold is at its lowest level")
            }
            Self::NoLower { configured, next: Some(Obstacle { next, lacking }) } => {
                write!(formatter, "{configured}; not lowered to {} %: ", next.level)?;
                lacking.tell(next, configured.level, formatter)
            }
            Self::Lowered { configured, now } => write!(formatter, "lowered from {} %: {now}", configured.level),
            Self::Raised { configured, now } => {
                write!(formatter, "raised from {} %: {configured}; {now}", configured.level)
            }
            Self::NoLevel { configured } => {
                write!(formatter, "{configured}, and no higher level is likely to be better")
            }
            Self::TooFewPredictions { predictions } => {
                write!(formatter, "only {predictions} predictions have an outcome; {PREDICTIONS} are needed")
            }
            Self::FromMean { mean_right } => {
                write!(formatter, "the estimated share of right predictions is {}", percent(*mean_right))
            }
        }
    }
}

impl fmt::Display for LevelEvidence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, right, wrong, wanted, sure } = self;
        write!(
            formatter,
            "{right} of {} predictions at {level} % or above were right ({} probability that at least {} are)",
            right + wrong,
            percent(*sure),
            percent(*wanted)
        )
    }
}

impl MissingCondition {
    /// The number of conditions that are met, and the count for the next condition.
    pub(crate) fn came_so_far(self) -> (u8, u64) {
        match self {
            Self::Sureness => (0, 0),
            Self::Right { right } => (1, right),
            Self::RightNear { right } => (2, right),
            Self::Added { right, .. } => (3, right),
        }
    }

    fn tell(self, next: &LevelEvidence, configured: Threshold, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sureness => write!(formatter, "{next}"),
            Self::Right { right } => {
                write!(
                    formatter,
                    "only {right} right predictions at {} % or above; {RIGHT_TO_LOWER} are needed",
                    next.level
                )
            }
            Self::RightNear { right } => write!(
                formatter,
                "only {right} right predictions from {} % to below {} %; {RIGHT_NEAR} are needed",
                next.level,
                next.level.get() + NEAR
            ),
            Self::Added { right, wrong } => write!(
                formatter,
                "{right} of {} predictions from {} % to below {configured} % were right; it must be likely that {:.0} % are",
                right + wrong,
                next.level,
                ADDED_SHARE * 100.0
            ),
        }
    }
}

/// A share in whole per cent. A share below 1 is never shown as 100 %.
fn percent(share: Probability) -> String {
    let whole = (share.get() * 100.0).round();
    if whole >= 100.0 && share < Probability::ONE { "over 99 %".to_owned() } else { format!("{whole:.0} %") }
}
