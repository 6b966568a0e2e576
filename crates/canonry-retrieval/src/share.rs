//! Shares with confidence intervals.

use crate::metrics::Interval;

/// A share with Wilson's 95 % interval, which is also valid for few cases and for none or all of them.
pub fn wilson(right: usize, all: usize) -> Interval {
    const Z: f64 = 1.959_964;
    if all == 0 {
        return Interval { value: 0.0, low: 0.0, high: 1.0 };
    }
    let (right, all) = (right as f64, all as f64);
    let share = right / all;
    let scale = 1.0 + Z * Z / all;
    let centre = (share + Z * Z / (2.0 * all)) / scale;
    let half = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt() / scale;
    Interval { value: share, low: (centre - half).max(0.0), high: (centre + half).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::wilson;

    #[test]
    fn wilson_by_hand() {
        let interval = wilson(8, 10);
        assert!((interval.low - 0.4902).abs() < 1e-4 && (interval.high - 0.9433).abs() < 1e-4, "{interval:?}");
        assert_eq!((wilson(0, 5).low, wilson(5, 5).high, wilson(0, 0).high), (0.0, 1.0, 1.0));
    }
}
