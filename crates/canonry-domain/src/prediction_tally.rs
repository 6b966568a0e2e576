//! How many predictions were right and wrong, level by level.

use serde::{Deserialize, Serialize};

use crate::prediction::{Lesson, Prediction};

/// Points that a score can have: 0 to 100.
const LEVELS: usize = 101;

/// Right and wrong predictions by the points of their scores. It depends on which lessons were added, not on their
/// order: whatever is derived from it is a function of the log as a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PredictionTally {
    right: [u64; LEVELS],
    wrong: [u64; LEVELS],
    counts: OutcomeCounts,
}

/// How many outcomes of which kind a threshold rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCounts {
    /// Right predictions.
    pub confirmed: u64,
    /// Wrong predictions, also those of a duplicate of something else.
    pub false_positives: u64,
    /// Duplicates whose target was not predicted. One that another target was predicted for is counted here and under
    /// the false positives, but once in the total.
    pub missed: u64,
    /// Items without a prediction that were no duplicates.
    pub true_negatives: u64,
    /// Triage records with a known outcome.
    pub total: u64,
}

impl Default for PredictionTally {
    fn default() -> Self {
        Self { right: [0; LEVELS], wrong: [0; LEVELS], counts: OutcomeCounts::default() }
    }
}

impl PredictionTally {
    /// Counts a lesson; one that is unknown changes nothing.
    pub(crate) fn add(&mut self, lesson: Lesson) {
        let counts = &mut self.counts;
        match lesson {
            Lesson::Unknown => return,
            Lesson::TrueNegative => counts.true_negatives += 1,
            Lesson::Missed { instead } => {
                counts.missed += 1;
                if let Some(prediction) = instead {
                    self.add_wrong(prediction);
                }
            }
            Lesson::FalsePositive { prediction } => self.add_wrong(prediction),
            Lesson::Confirmed { prediction } => {
                counts.confirmed += 1;
                self.right[usize::from(prediction.level())] += 1;
            }
        }
        self.counts.total += 1;
    }

    fn add_wrong(&mut self, prediction: Prediction) {
        self.counts.false_positives += 1;
        self.wrong[usize::from(prediction.level())] += 1;
    }

    pub(crate) fn counts(&self) -> OutcomeCounts {
        self.counts
    }

    /// Right and wrong predictions from a level up.
    pub(crate) fn from(&self, level: u8) -> (u64, u64) {
        self.between(level, LEVELS as u8)
    }

    /// Right and wrong predictions from a level to below another.
    pub(crate) fn between(&self, level: u8, end: u8) -> (u64, u64) {
        let levels = usize::from(level)..usize::from(end).min(LEVELS);
        (self.right[levels.clone()].iter().sum(), self.wrong[levels].iter().sum())
    }
}
