//! Maps a model's cosine to a similarity score that means the same for every model.

use canonry_domain::Similarity;
use serde::{Deserialize, Serialize};

/// A monotone map from cosine to a similarity in 0..1, linear between its anchors.
///
/// Gates use scores, not cosines, so that they keep their meaning when the model changes: .75 keeps 95 % of true
/// pairs; among items that have an earlier duplicate, .90 means even odds and .95 four in five.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Anchors", into = "Anchors")]
pub struct Calibration {
    anchors: Option<Vec<(f64, f64)>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalibrationError {
    #[error("calibrate: two anchors at least are needed")]
    TooFewAnchors,
    #[error("calibrate: cosines must rise, scores must not fall, all of them within -1..1 and 0..1")]
    NotMonotone,
    #[error("calibrate: {found} {kind} pairs are too few, {needed} are needed")]
    TooFewPairs {
        /// `true` or `other`.
        kind: &'static str,
        found: usize,
        needed: usize,
    },
}

impl Calibration {
    /// The score is the cosine itself: for a model without a fitted calibration.
    pub const fn identity() -> Self {
        Self { anchors: None }
    }

    /// A map through `(cosine, score)` anchors: cosines increase, scores do not decrease.
    pub fn from_anchors(anchors: Vec<(f64, f64)>) -> Result<Self, CalibrationError> {
        if anchors.len() < 2 {
            return Err(CalibrationError::TooFewAnchors);
        }
        let in_range = |&(cosine, score): &(f64, f64)| (-1.0..=1.0).contains(&cosine) && (0.0..=1.0).contains(&score);
        let rising = anchors.is_sorted_by(|left, right| left.0 < right.0 && left.1 <= right.1);
        if !rising || !anchors.iter().all(in_range) {
            return Err(CalibrationError::NotMonotone);
        }
        Ok(Self { anchors: Some(anchors) })
    }

    /// Whether the map was fitted to data. If not, a score is the bare cosine, and every output must say so.
    pub fn is_fitted(&self) -> bool {
        self.anchors.is_some()
    }

    /// The similarity of a cosine; NaN gives zero.
    pub fn similarity(&self, cosine: f32) -> Similarity {
        let cosine = f64::from(cosine);
        let score = match &self.anchors {
            None => cosine,
            Some(anchors) => interpolate(anchors, cosine),
        };
        Similarity::clamped(score).unwrap_or(Similarity::ZERO)
    }
}

fn interpolate(anchors: &[(f64, f64)], x: f64) -> f64 {
    let after = anchors.partition_point(|anchor| anchor.0 < x);
    let Some(right) = anchors.get(after) else {
        return anchors.last().map_or(x, |anchor| anchor.1);
    };
    let Some(left) = after.checked_sub(1).map(|before| anchors[before]) else {
        return right.1;
    };
    left.1 + (x - left.0) / (right.0 - left.0) * (right.1 - left.1)
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Anchors {
    anchors: Vec<(f64, f64)>,
}

impl TryFrom<Anchors> for Calibration {
    type Error = CalibrationError;

    fn try_from(written: Anchors) -> Result<Self, CalibrationError> {
        if written.anchors.is_empty() { Ok(Self::identity()) } else { Self::from_anchors(written.anchors) }
    }
}

impl From<Calibration> for Anchors {
    fn from(calibration: Calibration) -> Self {
        Self { anchors: calibration.anchors.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Calibration, CalibrationError};

    fn map() -> Calibration {
        Calibration::from_anchors(vec![(0.0, 0.0), (0.5, 0.75), (0.8, 0.9), (1.0, 1.0)]).expect("monotone")
    }

    #[test]
    fn is_linear_between_anchors_and_flat_outside() {
        let scores: Vec<f64> =
            [-1.0, 0.0, 0.25, 0.5, 0.65, 1.0, 1.5].map(|cosine| map().similarity(cosine).get()).to_vec();
        assert_eq!(scores, [0.0, 0.0, 0.375, 0.75, 0.825, 1.0, 1.0]);
        assert_eq!(map().similarity(f32::NAN).get(), 0.0);
    }

    #[test]
    fn the_identity_is_the_cosine_and_says_that_it_is_not_fitted() {
        let identity = Calibration::identity();
        assert_eq!(identity.similarity(0.123_456).get(), 0.1235);
        assert_eq!(identity.similarity(-0.5).get(), 0.0);
        assert!(!identity.is_fitted() && map().is_fitted());
    }

    #[test]
    fn survives_being_written_down() {
        for calibration in [map(), Calibration::identity()] {
            let written = serde_json::to_string(&calibration).expect("plain data");
            assert_eq!(serde_json::from_str::<Calibration>(&written).expect("as written"), calibration);
        }
        assert_eq!(serde_json::to_string(&Calibration::identity()).expect("plain data"), r#"{"anchors":[]}"#);
    }

    #[test]
    fn refuses_what_is_no_map() {
        let refused = |anchors: &[(f64, f64)]| Calibration::from_anchors(anchors.to_vec()).expect_err("refused");
        assert_eq!(refused(&[(0.0, 0.0)]), CalibrationError::TooFewAnchors);
        for anchors in [
            [(0.5, 0.1), (0.5, 0.2)],
            [(0.1, 0.5), (0.2, 0.4)],
            [(0.1, 0.5), (0.2, 1.1)],
            [(0.1, 0.5), (f64::NAN, 0.6)],
        ] {
            assert_eq!(refused(&anchors), CalibrationError::NotMonotone, "{anchors:?}");
        }
        let falling = r#"{"anchors":[[0.1,0.5],[0.2,0.4]]}"#;
        assert!(serde_json::from_str::<Calibration>(falling).is_err());
    }
}
