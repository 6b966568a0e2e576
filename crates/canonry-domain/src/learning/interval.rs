//! Values with their confidence intervals.

use serde::Serialize;

/// A value with its 95 % confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// A share among `all` with Wilson's 95 % interval, which is also valid for few cases and for none or all of them.
pub fn wilson_interval(share: f64, all: f64) -> Interval {
    const Z: f64 = 1.959_964;
    if all <= 0.0 {
        return Interval { value: 0.0, low: 0.0, high: 1.0 };
    }
    // Sums of weights may exceed 1 by a rounding error.
    let share = share.clamp(0.0, 1.0);
    let scale = 1.0 + Z * Z / all;
    let centre = (share + Z * Z / (2.0 * all)) / scale;
    let half = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).max(0.0).sqrt() / scale;
    Interval { value: share, low: (centre - half).clamp(0.0, share), high: (centre + half).clamp(share, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::wilson_interval;

    #[test]
    fn wilson_by_hand() {
        let interval = wilson_interval(0.8, 10.0);
        assert!((interval.low - 0.4902).abs() < 1e-4 && (interval.high - 0.9433).abs() < 1e-4, "{interval:?}");
        let (none, all, unknown) = (wilson_interval(0.0, 5.0), wilson_interval(1.0, 5.0), wilson_interval(0.0, 0.0));
        assert_eq!((none.low, all.high, unknown.low, unknown.high), (0.0, 1.0, 0.0, 1.0));
    }
}
