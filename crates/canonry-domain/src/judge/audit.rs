//! Audits: a cheap judge is measured against a strong one.

use serde::{Deserialize, Serialize};

use crate::{DecisionStatus, GateDecision, ItemNumber, Probability, text_enum};

text_enum! {
    /// The result of one judge's lane.
    pub enum LaneStatus: "a lane's status" {
        Accepted = "accepted",
        /// The judge said no, or a gate vetoed its yes.
        Rejected = "rejected",
        /// No decision was possible: a vague source, a malformed answer.
        Skipped = "skipped",
        Failed = "failed",
    }
}

text_enum! {
    /// The comparison of two lanes; the strong one counts as the truth.
    pub enum AuditClass: "a class of an audit" {
        Tp = "tp",
        /// Only the cheap judge accepts.
        Fp = "fp",
        /// Only the strong judge accepts.
        Fn = "fn",
        Tn = "tn",
        /// Both accept, but not the same target.
        Conflict = "conflict",
        Incomplete = "incomplete",
    }
}

/// The result of one judge for one candidate set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LaneResult {
    pub status: LaneStatus,
    pub target: Option<ItemNumber>,
    /// `None` if the judge did not answer.
    pub confidence: Option<Probability>,
    pub reason: Option<String>,
}

impl LaneResult {
    /// A lane that reached the gates.
    pub fn ruled(ruled: &GateDecision, confidence: Option<Probability>) -> Self {
        let status = match ruled.status {
            DecisionStatus::Accepted => LaneStatus::Accepted,
            DecisionStatus::Rejected => LaneStatus::Rejected,
            DecisionStatus::Skipped => LaneStatus::Skipped,
        };
        Self { status, target: ruled.target, confidence, reason: ruled.stored_reason() }
    }

    /// A lane whose judge gave no answer.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self { status: LaneStatus::Failed, target: None, confidence: None, reason: Some(reason.into()) }
    }

    fn is_incomplete(&self) -> bool {
        matches!(self.status, LaneStatus::Skipped | LaneStatus::Failed)
    }

    fn accepts(&self) -> bool {
        self.status == LaneStatus::Accepted
    }
}

pub fn audit_class(cheap: &LaneResult, strong: &LaneResult) -> AuditClass {
    if cheap.is_incomplete() || strong.is_incomplete() {
        return AuditClass::Incomplete;
    }
    match (cheap.accepts(), strong.accepts()) {
        (true, true) if cheap.target == strong.target => AuditClass::Tp,
        (true, true) => AuditClass::Conflict,
        (true, false) => AuditClass::Fp,
        (false, true) => AuditClass::Fn,
        (false, false) => AuditClass::Tn,
    }
}

/// How often each class occurs, and the precision and recall of the cheap judge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AuditTally {
    pub sample_size: u64,
    pub tp: u64,
    /// Only the cheap judge accepts.
    pub fp: u64,
    /// Only the strong judge accepts.
    #[serde(rename = "fn")]
    pub missed: u64,
    pub tn: u64,
    /// Both accept, but not the same target.
    pub conflict: u64,
    pub incomplete: u64,
    /// tp / (tp + fp); `None` if the cheap judge accepted nothing that can be compared.
    pub precision: Option<f64>,
    /// tp / (tp + fn); `None` if the strong judge accepted nothing that can be compared.
    pub recall: Option<f64>,
}

impl FromIterator<AuditClass> for AuditTally {
    fn from_iter<I: IntoIterator<Item = AuditClass>>(classes: I) -> Self {
        let mut tally = Self::default();
        for class in classes {
            tally.sample_size += 1;
            *match class {
                AuditClass::Tp => &mut tally.tp,
                AuditClass::Fp => &mut tally.fp,
                AuditClass::Fn => &mut tally.missed,
                AuditClass::Tn => &mut tally.tn,
                AuditClass::Conflict => &mut tally.conflict,
                AuditClass::Incomplete => &mut tally.incomplete,
            } += 1;
        }
        tally.precision = share(tally.tp, tally.fp);
        tally.recall = share(tally.tp, tally.missed);
        tally
    }
}

/// The share of right ones, with four decimals like every score.
fn share(right: u64, wrong: u64) -> Option<f64> {
    let all = right + wrong;
    (all > 0).then(|| (right as f64 / all as f64 * 10_000.0).round() / 10_000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{AuditClass, AuditTally, LaneResult, audit_class};
    use crate::{GateDecision, GateReason, InvalidAnswer, ItemNumber};

    fn accepts(target: i64) -> LaneResult {
        LaneResult::ruled(&GateDecision::accepted(ItemNumber::new(target).expect("positive")), None)
    }

    fn rejects() -> LaneResult {
        LaneResult::ruled(&GateDecision::rejected_by_judge(), None)
    }

    #[test]
    fn each_class_of_two_lanes() {
        let vetoed = LaneResult::ruled(
            &GateDecision::vetoed(ItemNumber::new(2).expect("positive"), GateReason::CandidateGapTooSmall),
            None,
        );
        let invalid =
            LaneResult::ruled(&GateDecision::skipped(GateReason::InvalidResponse(InvalidAnswer::Empty)), None);
        for (cheap, strong, expected) in [
            (accepts(1), accepts(1), AuditClass::Tp),
            (accepts(1), accepts(2), AuditClass::Conflict),
            (accepts(1), rejects(), AuditClass::Fp),
            (accepts(1), vetoed, AuditClass::Fp),
            (rejects(), accepts(1), AuditClass::Fn),
            (rejects(), rejects(), AuditClass::Tn),
            (invalid.clone(), accepts(1), AuditClass::Incomplete),
            (accepts(1), invalid, AuditClass::Incomplete),
            (LaneResult::failed("timeout"), rejects(), AuditClass::Incomplete),
        ] {
            assert_eq!(audit_class(&cheap, &strong), expected, "{cheap:?} {strong:?}");
        }
    }

    #[test]
    fn classes_add_up() {
        let four = [(accepts(1), accepts(1)), (accepts(1), rejects()), (rejects(), accepts(1)), (rejects(), rejects())];
        let tally: AuditTally = four.iter().map(|(cheap, strong)| audit_class(cheap, strong)).collect();
        assert_eq!(
            serde_json::to_value(tally).expect("serialises"),
            json!({"sample_size": 4, "tp": 1, "fp": 1, "fn": 1, "tn": 1, "conflict": 0, "incomplete": 0,
                "precision": 0.5, "recall": 0.5})
        );
        use AuditClass::{Conflict, Fn, Fp, Incomplete, Tn, Tp};
        let tally: AuditTally = [Tp, Tp, Fp, Fn, Fn, Fn, Tn, Conflict, Incomplete, Incomplete].into_iter().collect();
        assert_eq!((tally.precision, tally.recall), (Some(0.6667), Some(0.4)));
        assert_eq!((tally.sample_size, tally.conflict, tally.incomplete), (10, 1, 2));
        let tally: AuditTally = [Tn, Incomplete, Conflict].into_iter().collect();
        assert_eq!((tally.precision, tally.recall), (None, None));
        assert_eq!(std::iter::empty::<AuditClass>().collect::<AuditTally>(), AuditTally::default());
    }
}
