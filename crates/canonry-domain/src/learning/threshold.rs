//! The score at which Canonry begins to comment.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Similarity;
use crate::learning::prediction::points;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a threshold; it must lie between 50 and 95")]
pub struct InvalidThreshold(u8);

/// The lowest score at which Canonry may comment, in whole points: 50 to 95. With a lower threshold nearly everything
/// would be suggested; with a higher one, nearly nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub struct Threshold(u8);

impl Threshold {
    pub const LOWEST: Self = Self(50);
    pub const HIGHEST: Self = Self(95);

    pub fn new(points: u8) -> Result<Self, InvalidThreshold> {
        if (Self::LOWEST.0..=Self::HIGHEST.0).contains(&points) {
            Ok(Self(points))
        } else {
            Err(InvalidThreshold(points))
        }
    }

    /// The nearest threshold to a computed number of points.
    pub(crate) fn nearest(points: f64) -> Self {
        Self(points.round().clamp(f64::from(Self::LOWEST.0), f64::from(Self::HIGHEST.0)) as u8)
    }

    pub const fn get(self) -> u8 {
        self.0
    }

    /// The lower thresholds, the nearest first.
    pub(crate) fn lower(self) -> impl Iterator<Item = Self> {
        (Self::LOWEST.0..self.0).rev().map(Self)
    }

    /// The higher thresholds, the nearest first.
    pub(crate) fn higher(self) -> impl Iterator<Item = Self> {
        (self.0 + 1..=Self::HIGHEST.0).map(Self)
    }
}

impl Default for Threshold {
    /// 85, until a repository sets or learns another.
    fn default() -> Self {
        Self(85)
    }
}

impl TryFrom<u8> for Threshold {
    type Error = InvalidThreshold;

    fn try_from(points: u8) -> Result<Self, Self::Error> {
        Self::new(points)
    }
}

impl From<Threshold> for u8 {
    fn from(threshold: Threshold) -> Self {
        threshold.0
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// The threshold in force. Silence is greater than every threshold; in JSON it is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Option<Threshold>", into = "Option<Threshold>")]
pub enum CurrentThreshold {
    From(Threshold),
    /// Canonry posts nothing, whatever the score, and continues to record.
    Silent,
}

impl CurrentThreshold {
    /// Whether a target with this score may be posted.
    pub fn admits(self, score: Similarity) -> bool {
        self.threshold().is_some_and(|threshold| points(score) >= threshold.get())
    }

    /// `None` if silent.
    pub const fn threshold(self) -> Option<Threshold> {
        match self {
            Self::From(threshold) => Some(threshold),
            Self::Silent => None,
        }
    }
}

impl From<Option<Threshold>> for CurrentThreshold {
    fn from(threshold: Option<Threshold>) -> Self {
        threshold.map_or(Self::Silent, Self::From)
    }
}

impl From<CurrentThreshold> for Option<Threshold> {
    fn from(current: CurrentThreshold) -> Self {
        current.threshold()
    }
}

impl fmt::Display for CurrentThreshold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(threshold) => formatter.pad(&threshold.to_string()),
            Self::Silent => formatter.pad("silent"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CurrentThreshold, Threshold};
    use crate::Similarity;

    #[test]
    fn thresholds_keep_their_bounds() {
        assert_eq!(
            Threshold::new(49).expect_err("too low").to_string(),
            "49 is not a threshold; it must lie between 50 and 95"
        );
        assert_eq!(Threshold::new(96).map(Threshold::get).ok(), None);
        assert_eq!([3.0, 50.4, 84.5, 99.0].map(|points| Threshold::nearest(points).get()), [50, 50, 85, 95]);
        assert_eq!(Threshold::LOWEST.lower().count(), 0);
        assert_eq!(Threshold::HIGHEST.higher().count(), 0);
    }

    #[test]
    fn silence_is_above_everything_and_null_in_json() {
        let highest = CurrentThreshold::From(Threshold::HIGHEST);
        assert!(CurrentThreshold::Silent > highest);
        assert!(!CurrentThreshold::Silent.admits(Similarity::ONE));
        assert_eq!(serde_json::to_string(&[highest, CurrentThreshold::Silent]).expect("plain data"), "[95,null]");
        let read: Vec<CurrentThreshold> = serde_json::from_str("[95,null]").expect("both forms");
        assert_eq!(read, [highest, CurrentThreshold::Silent]);
        assert!(serde_json::from_str::<CurrentThreshold>("96").is_err());
    }

    #[test]
    fn a_score_is_admitted_from_its_points_on() {
        let current = CurrentThreshold::From(Threshold::new(57).expect("in bounds"));
        for (score, expected) in [(0.57, true), (0.5699, false), (0.9, true)] {
            assert_eq!(current.admits(Similarity::new(score).expect("in range")), expected, "{score}");
        }
    }
}
