//! Decides whether a judge has proven in a repository that its verdicts may close items.

use serde::{Deserialize, Serialize};

use crate::text::counted::counted;
use crate::{AuditClass, AuditItem, LaneStatus, audit_class};

/// The number of accepted answers with a known truth that one audit must have. A judge that always says yes and is
/// right in four of ten cases passes by luck five times in a million.
pub const LEAST_PROVING_ANSWERS: u64 = 20;

/// The share of them that must be right: the precision that `close.minClose` promises for a single close.
pub const LEAST_PROVEN_PRECISION: f64 = 0.90;

/// How many of a judge's accepted answers were right in an audit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeProof {
    pub right: u64,
    pub wrong: u64,
}

impl JudgeProof {
    pub const fn answers(self) -> u64 {
        self.right + self.wrong
    }

    /// The share of right answers; `None` without answers.
    pub fn precision(self) -> Option<f64> {
        (self.answers() > 0).then(|| self.right as f64 / self.answers() as f64)
    }

    pub fn in_words(self) -> String {
        let of = format!("right in {} of {}", self.right, counted(self.answers(), "accepted answer"));
        if self.is_enough() {
            format!("Proven: {of}. This judge may close here.")
        } else {
            let percent = LEAST_PROVEN_PRECISION * 100.0;
            format!(
                "Not proven: {of}. This judge closes nothing here before an audit has {LEAST_PROVING_ANSWERS} answers, \
                 {percent:.0} % of them right."
            )
        }
    }

    pub fn is_enough(self) -> bool {
        self.answers() >= LEAST_PROVING_ANSWERS
            && self.precision().is_some_and(|precision| precision >= LEAST_PROVEN_PRECISION)
    }
}

/// Counts right and wrong answers.
impl FromIterator<bool> for JudgeProof {
    fn from_iter<I: IntoIterator<Item = bool>>(answers: I) -> Self {
        answers.into_iter().fold(Self::default(), |mut proof, is_right| {
            *if is_right { &mut proof.right } else { &mut proof.wrong } += 1;
            proof
        })
    }
}

/// Whether the audited judge's accepted answer is right; `None` if it accepted nothing or the truth is unknown.
///
/// People's answer about the same pair comes first. Otherwise the other judge's answer counts as the truth, if it is a
/// different judge: no judge can prove itself.
pub fn is_accepted_answer_right(item: &AuditItem, said_by_people: Option<bool>, is_other_judge: bool) -> Option<bool> {
    if item.cheap.status != LaneStatus::Accepted {
        return None;
    }
    said_by_people.or_else(|| match audit_class(&item.cheap, &item.strong) {
        _ if !is_other_judge => None,
        AuditClass::Tp => Some(true),
        AuditClass::Fp | AuditClass::Conflict => Some(false),
        AuditClass::Fn | AuditClass::Tn | AuditClass::Incomplete => None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{JudgeProof, is_accepted_answer_right};
    use crate::{AuditItem, ItemNumber, LaneResult, LaneStatus};

    fn lane(status: LaneStatus, target: i64) -> LaneResult {
        LaneResult { status, target: ItemNumber::new(target).ok(), confidence: None, reason: None }
    }

    #[test]
    fn it_takes_enough_answers_and_enough_right_ones() {
        let enough = |right, wrong| JudgeProof { right, wrong }.is_enough();
        assert!(enough(20, 0) && enough(18, 2) && enough(90, 10));
        assert!(!enough(19, 0) && !enough(17, 3) && !enough(0, 0) && !enough(0, 99));
        assert_eq!(
            JudgeProof { right: 20, wrong: 1 }.in_words(),
            "Proven: right in 20 of 21 accepted answers. This judge may close here."
        );
        assert_eq!([true, false, true].into_iter().collect::<JudgeProof>(), JudgeProof { right: 2, wrong: 1 });
    }

    #[test]
    fn people_know_best_and_nobody_proves_themselves() {
        let of = |cheap, strong| AuditItem { candidates: Vec::new(), cheap, strong };
        let accepted = |target| lane(LaneStatus::Accepted, target);
        let rejected = lane(LaneStatus::Rejected, 1);
        let agreed = of(accepted(1), accepted(1));
        assert_eq!(is_accepted_answer_right(&agreed, None, true), Some(true));
        assert_eq!(is_accepted_answer_right(&agreed, Some(false), true), Some(false));
        assert_eq!(is_accepted_answer_right(&agreed, None, false), None);
        assert_eq!(is_accepted_answer_right(&agreed, Some(true), false), Some(true));
        assert_eq!(is_accepted_answer_right(&of(accepted(1), accepted(2)), None, true), Some(false));
        assert_eq!(is_accepted_answer_right(&of(accepted(1), rejected.clone()), None, true), Some(false));
        assert_eq!(is_accepted_answer_right(&of(accepted(1), lane(LaneStatus::Failed, 1)), None, true), None);
        assert_eq!(is_accepted_answer_right(&of(rejected, accepted(1)), Some(true), true), None);
    }

    proptest! {
        #[test]
        fn a_wrong_answer_never_proves_and_a_right_one_never_disproves(right in 0_u64..400, wrong in 0_u64..400) {
            let proof = JudgeProof { right, wrong };
            if proof.is_enough() {
                let better = JudgeProof { right: right + 1, wrong };
                prop_assert!(better.is_enough());
                prop_assert!(right >= 9 * wrong && right + wrong >= 20);
            } else {
                let worse = JudgeProof { right, wrong: wrong + 1 };
                prop_assert!(!worse.is_enough() || right + wrong == 19);
            }
            prop_assert_eq!(proof.answers(), right + wrong);
        }
    }
}
