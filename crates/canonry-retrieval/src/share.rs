//! Shares of counts, with confidence intervals.

use canonry_domain::{Interval, wilson_interval};

/// The share of `right` among `all`.
pub fn wilson(right: usize, all: usize) -> Interval {
    wilson_interval(right as f64 / all.max(1) as f64, all as f64)
}
