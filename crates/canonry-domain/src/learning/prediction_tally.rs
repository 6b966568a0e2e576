//! Counts right and wrong predictions by level.

use serde::{Deserialize, Serialize};

use crate::LessonKind;

/// The number of possible points of a score: 0 to 100.
const LEVELS: usize = 101;

/// Right and wrong predictions by the points of their scores. The result depends on the set of lessons, not on their
/// order, so everything derived from it is a function of the log as a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PredictionTally {
    right: [u64; LEVELS],
    wrong: [u64; LEVELS],
    counts: OutcomeCounts,
}

/// The numbers of outcomes of each kind behind a threshold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCounts {
    pub confirmed: u64,
    /// Wrong predictions, including those for a duplicate of another item.
    pub false_positives: u64,
    /// Duplicates whose target was not predicted. A duplicate for which another target was predicted is counted here
    /// and under the false positives, but once in the total.
    pub missed: u64,
    /// Items without a prediction that were not duplicates.
    pub true_negatives: u64,
    pub total: u64,
}

impl Default for PredictionTally {
    fn default() -> Self {
        Self { right: [0; LEVELS], wrong: [0; LEVELS], counts: OutcomeCounts::default() }
    }
}

impl PredictionTally {
    /// Counts lessons of one kind whose predictions, if any, have the same points. Unknown lessons change nothing.
    pub(crate) fn add(&mut self, kind: LessonKind, level: Option<u8>, times: u64) {
        let counts = &mut self.counts;
        match kind {
            LessonKind::Unknown => return,
            LessonKind::TrueNegative => counts.true_negatives += times,
            LessonKind::Confirmed => counts.confirmed += times,
            LessonKind::FalsePositive => counts.false_positives += times,
            LessonKind::Missed => {
                counts.missed += times;
                // Another target was predicted instead, which was wrong.
                counts.false_positives += if level.is_some() { times } else { 0 };
            }
        }
        counts.total += times;
        if let Some(level) = level {
            let level = usize::from(level).min(LEVELS - 1);
            let levels = if kind == LessonKind::Confirmed { &mut self.right } else { &mut self.wrong };
            levels[level] += times;
        }
    }

    pub(crate) fn counts(&self) -> OutcomeCounts {
        self.counts
    }

    /// Right and wrong predictions at a level and above.
    pub(crate) fn from(&self, level: u8) -> (u64, u64) {
        self.between(level, LEVELS as u8)
    }

    /// Right and wrong predictions from a level up to, but not including, another.
    pub(crate) fn between(&self, level: u8, end: u8) -> (u64, u64) {
        let levels = usize::from(level)..usize::from(end).min(LEVELS);
        (self.right[levels.clone()].iter().sum(), self.wrong[levels].iter().sum())
    }
}
