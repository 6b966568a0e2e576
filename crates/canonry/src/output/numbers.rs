//! Numbers in a form for people.

use canonry_domain::CurrentThreshold;
pub(crate) use canonry_domain::thousands;

/// A score, a confidence or a share as a whole percentage. Only exact values become 0 % or 100 %.
pub(crate) fn percent(share: f64) -> String {
    let whole = (share * 100.0).round();
    let whole = if share < 1.0 { whole.min(99.0) } else { whole };
    let whole = if share > 0.0 { whole.max(1.0) } else { whole };
    format!("{whole:.0} %")
}

/// `85 %`, or `silent`.
pub(crate) fn threshold(current: CurrentThreshold) -> String {
    match current {
        CurrentThreshold::From(threshold) => format!("{threshold} %"),
        CurrentThreshold::Silent => current.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn shares_are_whole_percentages() {
        let shown = [0.0, 0.001, 0.5, 0.934, 0.9999, 1.0].map(percent);
        assert_eq!(shown, ["0 %", "1 %", "50 %", "93 %", "99 %", "100 %"]);
    }
}
