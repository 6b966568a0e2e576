//! How likely a problem that reviewers name is one that people want to know.
//!
//! Words of failure, taste and doubt, the number of named identifiers and the length of the text were measured too. They rank no better
//! on projects that the weights were not fitted to (docs/benchmarks.md, "Referee"), so they are no traits.

use crate::Share;

/// The share of right remarks where nothing is known, and how many remarks it counts as. On the judged comments of
/// docs/benchmarks.md ("Referee") 29 % are right.
const USUAL: f64 = 0.27;
const USUAL_COUNTS_AS: f64 = 10.0;

/// The traits of a problem.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProblemTraits {
    /// The logarithm of how many reviewers name it.
    pub agreement: f64,
    /// The logarithm of how many further remarks they make about it, plus one.
    pub repeats: f64,
    /// How often its reviewers were right before, on average, as log-odds.
    pub record: f64,
}

/// The weights of a problem's traits, in log-odds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankWeights {
    pub agreement: f64,
    pub repeats: f64,
    pub record: f64,
    pub intercept: f64,
}

/// Fitted as in `training/fit_referee.py` to the groups of all judged comments, made with vectors of the published MiniLM.
pub const RANK_WEIGHTS: RankWeights =
    RankWeights { agreement: 1.734, repeats: 0.885, record: 1.244, intercept: -1.183 };

/// The log-odds that a reviewer with this record is right; with few outcomes near the usual ones.
pub fn record_log_odds(share: Share) -> f64 {
    let right = share.right as f64 + USUAL * USUAL_COUNTS_AS;
    let wrong = share.wrong as f64 + (1.0 - USUAL) * USUAL_COUNTS_AS;
    (right / wrong).ln()
}

/// The traits of a problem that reviewers with these records name in so many remarks.
pub fn problem_traits(reviewers: &[Share], remarks: usize) -> ProblemTraits {
    let count = reviewers.len().max(1) as f64;
    ProblemTraits {
        agreement: count.ln(),
        repeats: (remarks.saturating_sub(reviewers.len()) as f64).ln_1p(),
        record: reviewers.iter().map(|share| record_log_odds(*share)).sum::<f64>() / count,
    }
}

impl RankWeights {
    /// The log-odds that people want to know the problem.
    pub fn rank(&self, traits: &ProblemTraits) -> f64 {
        self.intercept + self.agreement * traits.agreement + self.repeats * traits.repeats + self.record * traits.record
    }
}

#[cfg(test)]
mod tests {
    use super::{RANK_WEIGHTS, problem_traits, record_log_odds};
    use crate::Share;

    #[test]
    fn a_record_counts_once_there_is_one() {
        let odds = |right, wrong| record_log_odds(Share { right, wrong });
        assert!(odds(0, 0) < odds(3, 1) && odds(3, 1) < odds(60, 20) && odds(0, 9) < odds(0, 0));
    }

    #[test]
    fn agreement_and_a_good_record_rank_first() {
        let rank = |reviewers: &[Share], remarks| RANK_WEIGHTS.rank(&problem_traits(reviewers, remarks));
        let (good, unknown, bad) = (Share { right: 30, wrong: 10 }, Share::default(), Share { right: 2, wrong: 38 });
        assert!(rank(&[unknown; 3], 3) > rank(&[unknown; 2], 2) && rank(&[unknown; 2], 2) > rank(&[unknown], 1));
        assert!(rank(&[good], 1) > rank(&[unknown], 1) && rank(&[unknown], 1) > rank(&[bad], 1));
    }
}
