//! A triage record as a lesson: the prediction, and the actual outcome of the issue.

use serde::{Deserialize, Serialize};

use crate::{Component, ItemNumber, Similarity, text_enum};

/// The prediction of a triage record. It counts whether or not it was posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prediction {
    pub target: ItemNumber,
    pub score: Similarity,
}

impl Prediction {
    /// The whole points of the score, 0 to 100: the highest level at which this prediction counts.
    pub fn level(self) -> u8 {
        points(self.score)
    }
}

/// The whole points of a score, 0 to 100; 0.8599 has 85. Scores have four decimals, so their ten-thousandths are whole
/// numbers, while 100 × 0.57 is less than 57.
pub(crate) fn points(score: Similarity) -> u8 {
    ((score.get() * 10_000.0).round() as u32 / 100) as u8
}

/// The actual outcome of an issue, relative to the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictionTruth {
    /// A duplicate of an item in the predicted target's cluster, or of an unnamed item.
    Duplicate,
    /// A duplicate of an item outside the predicted target's cluster.
    DuplicateOfAnother,
    NotDuplicate,
    Unknown,
}

/// The lesson of one triage record. A failed triage has no lesson.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Lesson {
    Confirmed {
        prediction: Prediction,
    },
    /// A duplicate was predicted, and the item was not one.
    FalsePositive {
        prediction: Prediction,
    },
    /// The item was a duplicate, and the right target was not predicted.
    Missed {
        /// The wrong target that was predicted instead, if any: that prediction was wrong.
        instead: Option<Prediction>,
    },
    /// No duplicate was predicted, and the item was not one.
    TrueNegative,
    Unknown,
}

impl Lesson {
    /// The lesson of a prediction, or of none, with the actual outcome of the item.
    pub fn new(prediction: Option<Prediction>, truth: PredictionTruth) -> Self {
        match (truth, prediction) {
            (PredictionTruth::Unknown, _) => Self::Unknown,
            (PredictionTruth::Duplicate, Some(prediction)) => Self::Confirmed { prediction },
            (PredictionTruth::NotDuplicate, Some(prediction)) => Self::FalsePositive { prediction },
            (PredictionTruth::DuplicateOfAnother, instead) => Self::Missed { instead },
            (PredictionTruth::Duplicate, None) => Self::Missed { instead: None },
            (PredictionTruth::NotDuplicate, None) => Self::TrueNegative,
        }
    }

    /// The kind of the lesson, for metrics and for people.
    pub fn kind(self) -> LessonKind {
        match self {
            Self::Confirmed { .. } => LessonKind::Confirmed,
            Self::FalsePositive { .. } => LessonKind::FalsePositive,
            Self::Missed { .. } => LessonKind::Missed,
            Self::TrueNegative => LessonKind::TrueNegative,
            Self::Unknown => LessonKind::Unknown,
        }
    }

    /// The points of the prediction; `None` if there was no prediction.
    pub fn level(self) -> Option<u8> {
        match self {
            Self::Confirmed { prediction } | Self::FalsePositive { prediction } => Some(prediction.level()),
            Self::Missed { instead } => instead.map(Prediction::level),
            Self::TrueNegative | Self::Unknown => None,
        }
    }
}

text_enum! {
    pub enum LessonKind: "a kind of outcome" {
        Confirmed = "confirmed",
        FalsePositive = "false_positive",
        Missed = "missed",
        TrueNegative = "true_negative",
        Unknown = "unknown",
    }
}

/// One entry of the log from which thresholds are learned: one triage record with its current outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearningEntry {
    pub lesson: Lesson,
    /// The component of the item at the time of its outcome.
    pub component: Option<Component>,
}

/// The number of equal entries of that log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedLessons {
    pub kind: LessonKind,
    /// The points of the predictions; `None` if there were none.
    pub level: Option<u8>,
    pub component: Option<Component>,
    pub times: u64,
}

impl From<&LearningEntry> for CountedLessons {
    fn from(entry: &LearningEntry) -> Self {
        let LearningEntry { lesson, component } = entry;
        Self { kind: lesson.kind(), level: lesson.level(), component: component.clone(), times: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lesson, LessonKind, Prediction, PredictionTruth, points};
    use crate::{ItemNumber, Similarity};

    #[test]
    fn a_score_counts_up_to_its_whole_points() {
        for (score, expected) in [(0.0, 0), (0.5699, 56), (0.57, 57), (0.29, 29), (0.8599, 85), (0.86, 86), (1.0, 100)]
        {
            assert_eq!(points(Similarity::new(score).expect("in range")), expected, "{score}");
        }
        for hundredths in 0..=100_u8 {
            let score = Similarity::new(f64::from(hundredths) / 100.0).expect("in range");
            assert_eq!(points(score), hundredths);
        }
    }

    #[test]
    fn what_each_truth_teaches() {
        let target = ItemNumber::new(7).expect("positive");
        let prediction = Prediction { target, score: Similarity::ONE };
        for (truth, predicted, not_predicted) in [
            (PredictionTruth::Duplicate, Lesson::Confirmed { prediction }, Lesson::Missed { instead: None }),
            (
                PredictionTruth::DuplicateOfAnother,
                Lesson::Missed { instead: Some(prediction) },
                Lesson::Missed { instead: None },
            ),
            (PredictionTruth::NotDuplicate, Lesson::FalsePositive { prediction }, Lesson::TrueNegative),
            (PredictionTruth::Unknown, Lesson::Unknown, Lesson::Unknown),
        ] {
            assert_eq!(Lesson::new(Some(prediction), truth), predicted);
            assert_eq!(Lesson::new(None, truth), not_predicted);
        }
        assert_eq!(Lesson::Missed { instead: Some(prediction) }.kind(), LessonKind::Missed);
    }
}
