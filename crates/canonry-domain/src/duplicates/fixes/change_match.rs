//! Whether a pull request makes the same change as a draft, from what the two have in common.

/// What a draft's change and a pull request have in common. Every number is from 0 to 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChangeOverlap {
    /// The share of the draft's identifiers and changed lines that the pull request also changes; rare ones count more.
    pub identifiers: f64,
    /// The same for paths.
    pub paths: f64,
    /// The same for the words of title and text.
    pub words: f64,
    /// The share of the changed lines of the smaller change that are in both.
    pub lines: f64,
    /// How lately the pull request was opened: 1 for the newest, 0 for one that 22,000 others followed.
    pub nearness: f64,
}

impl ChangeOverlap {
    /// The names of the features, in the order of the weights.
    pub const FEATURES: [&'static str; 5] = ["identifiers", "paths", "words", "lines", "nearness"];

    /// The nearness of a pull request that so many others followed.
    pub fn nearness_after(followed_by: usize) -> f64 {
        (1.0 - (followed_by as f64).ln_1p() / 10.0).max(0.0)
    }

    /// Shares by their roots: two changes for one problem seldom have more than a quarter in common.
    pub fn features(&self) -> [f64; Self::FEATURES.len()] {
        let root = |share: f64| share.clamp(0.0, 1.0).sqrt();
        [root(self.identifiers), root(self.paths), root(self.words), root(self.lines), self.nearness]
    }

    /// The logarithm of the odds that both are the same change.
    pub fn log_odds(&self) -> f64 {
        INTERCEPT + WEIGHTS.iter().zip(self.features()).map(|(weight, feature)| weight * feature).sum::<f64>()
    }

    /// Whether the two are probably the same change.
    pub fn is_match(&self) -> bool {
        self.log_odds() >= MATCH
    }

    /// Whether it is worth a look.
    pub fn is_similar(&self) -> bool {
        self.log_odds() >= SIMILAR
    }
}

// Fitted to the pull requests of rust by `training/fit_change_match.py`, and to no other project: docs/benchmarks.md has what
// they do on rails, which they never met.
const INTERCEPT: f64 = -12.700;
const WEIGHTS: [f64; ChangeOverlap::FEATURES.len()] = [3.732, 2.953, 1.272, 2.015, 4.468];
/// In rust one in fifty pull requests without an earlier duplicate by somebody else matches one, counting those that change the
/// same lines.
const MATCH: f64 = -1.8;
/// One in seven of them is as similar as this.
const SIMILAR: f64 = -4.5;

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, proptest};

    use super::ChangeOverlap;

    #[test]
    fn the_same_lines_of_the_same_files_are_a_match() {
        let same = ChangeOverlap { identifiers: 0.9, paths: 1.0, words: 0.2, lines: 0.8, nearness: 0.7 };
        assert!(same.is_match() && same.is_similar());
        let same_file = ChangeOverlap { identifiers: 0.3, lines: 0.0, words: 0.05, ..same };
        assert!(!same_file.is_match() && same_file.is_similar(), "{}", same_file.log_odds());
        assert!(!ChangeOverlap::default().is_similar());
    }

    #[test]
    fn the_newest_is_the_nearest() {
        let nearness: Vec<f64> = [0, 1, 100, 30_000].map(ChangeOverlap::nearness_after).to_vec();
        assert!(nearness.is_sorted_by(|one, other| one > other), "{nearness:?}");
        assert_eq!((nearness[0], nearness[3]), (1.0, 0.0));
    }

    proptest! {
        #[test]
        fn more_in_common_is_never_less_likely(shares in any::<[f64; 5]>(), at in 0..5_usize, more in 0.0..1.0_f64) {
            let of = |shares: [f64; 5]| {
                let [identifiers, paths, words, lines, nearness] = shares.map(|share| share.abs().fract());
                ChangeOverlap { identifiers, paths, words, lines, nearness }
            };
            let shares = shares.map(|share| if share.is_finite() { share } else { 0.5 });
            let mut raised = shares.map(|share| share.abs().fract());
            raised[at] += (1.0 - raised[at]) * more * 0.999;
            prop_assert!(of(raised).log_odds() >= of(shares).log_odds() - 1e-9);
        }
    }
}
