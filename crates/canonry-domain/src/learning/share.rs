//! A share of right outcomes, and its confidence interval.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use crate::learning::beta::quantile;

/// The probability inside an interval; the rest is half below and half above.
const INSIDE: f64 = 0.95;

/// The numbers of right and wrong outcomes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    pub right: u64,
    pub wrong: u64,
}

/// The 95 % interval of a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShareInterval {
    /// The lower end, 0 to 1.
    pub low: f64,
    /// The upper end, 0 to 1.
    pub high: f64,
}

impl Share {
    pub const fn all(self) -> u64 {
        self.right + self.wrong
    }

    /// The share, with four decimals like every score; `None` without outcomes.
    pub fn value(self) -> Option<f64> {
        (self.all() > 0).then(|| rounded(self.right as f64 / self.all() as f64))
    }

    /// The 95 % interval of the true share if nothing was known before: from Beta(1 + right, 1 + wrong), as for
    /// learned thresholds. If nothing was wrong, the interval ends at 1, because nothing contradicts a share of 1; if
    /// nothing was right, it begins at 0.
    pub fn interval(self) -> ShareInterval {
        let outside = 1.0 - INSIDE;
        let (alpha, beta) = (1.0 + self.right as f64, 1.0 + self.wrong as f64);
        let (low, high) = match (self.right, self.wrong) {
            (0, 0) => (0.0, 1.0),
            (0, _) => (0.0, quantile(INSIDE, alpha, beta)),
            (_, 0) => (quantile(outside, alpha, beta), 1.0),
            _ => (quantile(outside / 2.0, alpha, beta), quantile(1.0 - outside / 2.0, alpha, beta)),
        };
        ShareInterval { low: rounded(low), high: rounded(high) }
    }
}

/// The 95 % interval of a share with this Beta distribution.
pub(crate) fn beta_interval(alpha: f64, beta: f64) -> ShareInterval {
    let outside = (1.0 - INSIDE) / 2.0;
    ShareInterval { low: rounded(quantile(outside, alpha, beta)), high: rounded(quantile(1.0 - outside, alpha, beta)) }
}

impl std::ops::AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let known = self.value().map(|_| self.interval());
        let mut share = serializer.serialize_struct("Share", 5)?;
        share.serialize_field("confirmed", &self.right)?;
        share.serialize_field("refuted", &self.wrong)?;
        share.serialize_field("precision", &self.value())?;
        share.serialize_field("low", &known.map(|interval| interval.low))?;
        share.serialize_field("high", &known.map(|interval| interval.high))?;
        share.end()
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};
    use serde_json::json;

    use super::{Share, beta_interval};

    #[test]
    fn few_cases_say_little() {
        let interval = |right, wrong| {
            let interval = Share { right, wrong }.interval();
            (interval.low, interval.high)
        };
        assert_eq!(interval(0, 0), (0.0, 1.0));
        // By hand: the 5 % point of Beta(n + 1, 1) is 0.05 to the power of 1 / (n + 1).
        assert_eq!(interval(1, 0), (0.2236, 1.0));
        assert_eq!(interval(19, 0), (0.8609, 1.0));
        assert_eq!(interval(0, 1), (0.0, 0.7764));
        let (low, high) = interval(80, 20);
        assert!((0.70..0.72).contains(&low) && (0.86..0.88).contains(&high), "{low} {high}");
        let uniform = beta_interval(1.0, 1.0);
        assert_eq!((uniform.low, uniform.high), (0.025, 0.975));
    }

    #[test]
    fn a_share_for_programs() {
        let nothing = json!({"confirmed": 0, "refuted": 0, "precision": null, "low": null, "high": null});
        assert_eq!(serde_json::to_value(Share::default()).expect("serialises"), nothing);
        let one = json!({"confirmed": 1, "refuted": 0, "precision": 1.0, "low": 0.2236, "high": 1.0});
        assert_eq!(serde_json::to_value(Share { right: 1, wrong: 0 }).expect("serialises"), one);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_share_and_shrinks_with_evidence(right in 0_u64..2_000, wrong in 0_u64..2_000) {
            let share = Share { right, wrong };
            let interval = share.interval();
            prop_assert!(0.0 <= interval.low && interval.low <= interval.high && interval.high <= 1.0);
            if let Some(value) = share.value() {
                prop_assert!(interval.low <= value && value <= interval.high, "{value} not in {interval:?}");
                let tenfold = Share { right: 10 * right, wrong: 10 * wrong }.interval();
                prop_assert!(tenfold.high - tenfold.low <= interval.high - interval.low);
            }
        }
    }
}
