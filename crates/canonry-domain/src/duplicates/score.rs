//! Similarities and probabilities: numbers in 0..1 with four decimals.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{value} is not {what}; it must lie between 0 and 1")]
pub struct InvalidScore {
    value: f64,
    what: &'static str,
}

/// Defines a score type with its range check, its rounding and its total order.
macro_rules! score {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            pub const ZERO: Self = Self(0.0);
            pub const ONE: Self = Self(1.0);

            /// Checks a number and rounds it to four decimals. NaN is an error.
            pub fn new(value: f64) -> Result<Self, InvalidScore> {
                if (0.0..=1.0).contains(&value) {
                    Ok(Self(round(value)))
                } else {
                    Err(InvalidScore { value, what: $what })
                }
            }

            /// The nearest score to a computed number, which may be outside 0..1 by a rounding error. NaN is still an
            /// error.
            pub fn clamped(value: f64) -> Result<Self, InvalidScore> {
                Self::new(value.clamp(0.0, 1.0)).map_err(|_| InvalidScore { value, what: $what })
            }

            pub const fn get(self) -> f64 {
                self.0
            }

            /// This score minus another, rounded like both.
            pub fn gap(self, other: Self) -> f64 {
                round(self.0 - other.0)
            }
        }

        impl Eq for $name {}

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $name {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.0.total_cmp(&other.0)
            }
        }

        impl TryFrom<f64> for $name {
            type Error = InvalidScore;

            fn try_from(value: f64) -> Result<Self, Self::Error> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(score: $name) -> Self {
                score.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, formatter)
            }
        }
    };
}

score!(
    /// The similarity of two items, calibrated so that the gates' constants mean the same for every model.
    Similarity,
    "a similarity"
);
score!(Probability, "a probability");

/// Rounds to four decimals, which are stored, printed and compared. Adding zero turns -0 into 0, so that equal scores
/// also print and sort the same.
fn round(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0 + 0.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{Probability, Similarity};

    #[test]
    fn scores_are_rounded_to_four_decimals() {
        for (value, expected) in
            [(0.0, 0.0), (-0.0, 0.0), (1.0, 1.0), (0.900_04, 0.9), (0.900_05, 0.9001), (0.123_456, 0.1235)]
        {
            assert_eq!(Similarity::new(value).expect("in range").get(), expected, "{value}");
        }
    }

    #[test]
    fn what_is_no_score_is_refused() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.1, 1.000_001] {
            let refused = Probability::new(value).expect_err("out of range").to_string();
            assert_eq!(refused, format!("{value} is not a probability; it must lie between 0 and 1"));
        }
        assert_eq!(Similarity::clamped(1.000_001), Ok(Similarity::ONE));
        assert_eq!(Similarity::clamped(-3.0), Ok(Similarity::ZERO));
        assert!(Similarity::clamped(f64::NAN).is_err());
    }

    #[test]
    fn json_is_a_checked_number() {
        let score: Similarity = serde_json::from_str("0.87654").expect("in range");
        assert_eq!(serde_json::to_string(&score).expect("a number"), "0.8765");
        assert!(serde_json::from_str::<Similarity>("1.5").is_err());
    }

    #[test]
    fn gaps_are_taken_after_rounding() {
        let [high, low] = [0.910_04, 0.890_04].map(|value| Similarity::new(value).expect("in range"));
        assert_eq!(high.gap(low), 0.02);
    }

    proptest! {
        #[test]
        fn rounding_twice_changes_nothing_and_keeps_order(a in 0.0..=1.0_f64, b in 0.0..=1.0_f64) {
            let [x, y] = [a, b].map(|value| Similarity::new(value).expect("in range"));
            prop_assert_eq!(Similarity::new(x.get()).expect("in range"), x);
            prop_assert!((x.get() - a).abs() <= 0.000_050_000_001);
            if a <= b {
                prop_assert!(x <= y);
            }
        }

        #[test]
        fn any_number_is_a_score_or_refused(value in any::<f64>()) {
            prop_assert_eq!(Similarity::new(value).is_ok(), (0.0..=1.0).contains(&value));
            prop_assert_eq!(Similarity::clamped(value).is_ok(), !value.is_nan());
        }
    }
}
