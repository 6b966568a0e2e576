//! Simulates a stored audit with tighter gates, without asking a judge again.

use serde::{Deserialize, Serialize};

use crate::duplicates::score_gap::counts_against;
use crate::{
    AuditClass, AuditTally, GateCandidate, ItemNumber, LaneResult, LaneStatus, PairScores, Similarity, audit_class,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCandidate {
    pub number: ItemNumber,
    /// The position among the candidates, from 1.
    pub rank: u32,
    pub score: Similarity,
    /// The candidates that are not alternatives to this one, because they describe the same problem.
    #[serde(default)]
    pub same_as: Vec<ItemNumber>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AuditItem {
    pub candidates: Vec<AuditCandidate>,
    pub cheap: LaneResult,
    pub strong: LaneResult,
}

impl AuditItem {
    /// Whether a judge gave no answer. That is different from a lane in which nothing could be decided.
    pub fn has_failed(&self) -> bool {
        [&self.cheap, &self.strong].iter().any(|lane| lane.status == LaneStatus::Failed)
    }
}

/// Gates of the cheap lane that are tighter than those it ran with; `None` leaves a gate unchanged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TighterGates {
    /// The highest rank number that may be chosen.
    pub max_rank: Option<u32>,
    pub min_score: Option<Similarity>,
    /// The minimum gap between the chosen candidate and the best alternative.
    pub min_gap: Option<f64>,
}

/// The result of a stored audit with tighter gates.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AuditSimulation {
    #[serde(flatten)]
    pub gates: TighterGates,
    #[serde(flatten)]
    pub tally: AuditTally,
}

/// The candidates of a set in the order of their ranks, as an audit stores them.
pub fn audit_candidates(candidates: &[GateCandidate<'_>], pairs: &PairScores) -> Vec<AuditCandidate> {
    candidates
        .iter()
        .zip(1..)
        .map(|(candidate, rank)| {
            let same = candidates.iter().filter(|other| !counts_against(candidate, other, pairs));
            let number = candidate.item.number;
            let same_as = same.map(|other| other.item.number).filter(|other| *other != number).collect();
            AuditCandidate { number, rank, score: candidate.score, same_as }
        })
        .collect()
}

/// The audit with tighter gates: targets that the cheap lane accepted and the gates refuse become rejected; nothing
/// else changes.
pub fn simulate_audit(items: &[AuditItem], gates: TighterGates) -> AuditSimulation {
    AuditSimulation { gates, tally: items.iter().map(|item| class_with(item, &gates)).collect() }
}

/// A source whose class changes with tighter gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassChange {
    pub index: usize,
    pub before: AuditClass,
    pub after: AuditClass,
}

/// The sources whose class changes with tighter gates, in the order of the audit.
pub fn changed_by(items: &[AuditItem], gates: TighterGates) -> Vec<ClassChange> {
    items
        .iter()
        .enumerate()
        .map(|(index, item)| ClassChange {
            index,
            before: audit_class(&item.cheap, &item.strong),
            after: class_with(item, &gates),
        })
        .filter(|change| change.before != change.after)
        .collect()
}

fn class_with(item: &AuditItem, gates: &TighterGates) -> AuditClass {
    if item.cheap.status == LaneStatus::Accepted && !passes(item, gates) {
        let cheap = LaneResult { status: LaneStatus::Rejected, ..item.cheap.clone() };
        return audit_class(&cheap, &item.strong);
    }
    audit_class(&item.cheap, &item.strong)
}

/// The audit with every combination of some usual gates, the stored one first.
pub fn sweep_audit(items: &[AuditItem]) -> Vec<AuditSimulation> {
    let score = |value: Option<f64>| value.and_then(|value| Similarity::new(value).ok());
    let mut simulations = Vec::new();
    for max_rank in [None, Some(2), Some(1)] {
        for min_score in [None, Some(0.80), Some(0.85), Some(0.90), Some(0.95)] {
            for min_gap in [None, Some(0.02), Some(0.03), Some(0.05)] {
                let gates = TighterGates { max_rank, min_score: score(min_score), min_gap };
                simulations.push(simulate_audit(items, gates));
            }
        }
    }
    simulations
}

/// Whether the target that the cheap lane accepted passes the gates. A target that is not among the candidates passes
/// no gate.
fn passes(item: &AuditItem, gates: &TighterGates) -> bool {
    let Some(chosen) = item.candidates.iter().find(|candidate| Some(candidate.number) == item.cheap.target) else {
        return *gates == TighterGates::default();
    };
    gates.max_rank.is_none_or(|max| chosen.rank <= max)
        && gates.min_score.is_none_or(|min| chosen.score >= min)
        && gates.min_gap.is_none_or(|min| {
            item.candidates
                .iter()
                .filter(|other| other.number != chosen.number && !chosen.same_as.contains(&other.number))
                // With this comparison a gap of NaN is refused; no flag should let it through.
                .all(|other| chosen.score.gap(other.score) >= min)
        })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, proptest};
    use serde_json::json;

    use super::{AuditCandidate, AuditItem, TighterGates, changed_by, simulate_audit, sweep_audit};
    use crate::{AuditClass, GateDecision, ItemNumber, LaneResult, LaneStatus, Similarity, audit_class};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn score(value: f64) -> Similarity {
        Similarity::new(value).expect("in range")
    }

    fn lane(target: Option<i64>) -> LaneResult {
        let ruled =
            target.map_or_else(GateDecision::rejected_by_judge, |target| GateDecision::accepted(number(target)));
        LaneResult::ruled(&ruled, None)
    }

    /// A source with candidates 1, 2, … that have these scores.
    fn item(scores: &[f64], cheap: Option<i64>, strong: Option<i64>) -> AuditItem {
        let candidates = scores
            .iter()
            .zip(1..)
            .map(|(value, rank)| AuditCandidate {
                number: number(i64::from(rank)),
                rank,
                score: score(*value),
                same_as: Vec::new(),
            })
            .collect();
        AuditItem { candidates, cheap: lane(cheap), strong: lane(strong) }
    }

    fn counts(items: &[AuditItem], gates: TighterGates) -> [u64; 6] {
        let tally = simulate_audit(items, gates).tally;
        [tally.tp, tally.fp, tally.missed, tally.tn, tally.conflict, tally.incomplete]
    }

    fn stored() -> Vec<AuditItem> {
        let mut failed = item(&[0.99], Some(1), None);
        failed.strong = LaneResult::failed("timeout");
        vec![
            item(&[0.96, 0.80], Some(1), Some(1)),
            item(&[0.90, 0.86], Some(1), None),
            item(&[0.93, 0.91], Some(2), Some(2)),
            item(&[0.95, 0.92], Some(1), Some(2)),
            item(&[0.88], None, Some(1)),
            item(&[0.80], None, None),
            failed,
        ]
    }

    #[test]
    fn tighter_gates_turn_acceptances_into_rejections() {
        let items = stored();
        let none = TighterGates::default();
        assert_eq!(counts(&items, none), [2, 1, 1, 1, 1, 1]);
        let max_rank = TighterGates { max_rank: Some(1), ..none };
        assert_eq!(counts(&items, max_rank), [1, 1, 2, 1, 1, 1], "the third chose rank 2");
        let min_score = TighterGates { min_score: Some(score(0.92)), ..none };
        assert_eq!(counts(&items, min_score), [1, 0, 2, 2, 1, 1], "the second has .90, the third .91");
        let changes: Vec<_> =
            changed_by(&items, min_score).into_iter().map(|one| (one.index, one.before, one.after)).collect();
        assert_eq!(changes, [(1, AuditClass::Fp, AuditClass::Tn), (2, AuditClass::Tp, AuditClass::Fn)]);
        let min_gap = TighterGates { min_gap: Some(0.04), ..none };
        assert_eq!(counts(&items, min_gap), [1, 1, 3, 1, 0, 1], ".90 - .86 is enough, .95 - .92 is not");
        let all = TighterGates { max_rank: Some(1), min_score: Some(score(0.96)), min_gap: Some(0.16) };
        assert_eq!(counts(&items, all), [1, 0, 3, 2, 0, 1]);
        let simulation = simulate_audit(&items, all);
        assert_eq!((simulation.tally.precision, simulation.tally.recall), (Some(1.0), Some(0.25)));
        let json = serde_json::to_value(simulation).expect("serialises");
        assert_eq!((&json["max_rank"], &json["min_gap"], &json["fn"]), (&json!(1), &json!(0.16), &json!(3)));
        assert_eq!(counts(&items, TighterGates { min_gap: Some(f64::NAN), ..none })[..2], [0, 0]);
    }

    #[test]
    fn the_same_thing_again_is_no_alternative() {
        let mut items = [item(&[0.97, 0.968], Some(1), Some(1))];
        let gates = TighterGates { min_gap: Some(0.015), ..TighterGates::default() };
        assert_eq!(counts(&items, gates), [0, 0, 1, 0, 0, 0]);
        items[0].candidates[0].same_as = vec![number(2)];
        assert_eq!(counts(&items, gates), [1, 0, 0, 0, 0, 0]);
        let unknown = [item(&[0.9], Some(7), Some(7))];
        assert_eq!(counts(&unknown, TighterGates::default())[0], 1);
        assert_eq!(counts(&unknown, TighterGates { max_rank: Some(9), ..TighterGates::default() })[0], 0);
    }

    #[test]
    fn a_sweep_begins_with_what_is_stored() {
        let sweep = sweep_audit(&stored());
        assert_eq!(sweep.len(), 60);
        assert_eq!(sweep[0], simulate_audit(&stored(), TighterGates::default()));
        let gates = sweep.last().expect("sixty").gates;
        assert_eq!(gates, TighterGates { max_rank: Some(1), min_score: Some(score(0.95)), min_gap: Some(0.05) });
        assert!(sweep.iter().all(|simulation| simulation.tally.sample_size == 7));
    }

    fn any_item() -> impl Strategy<Value = AuditItem> {
        let choice = || proptest::option::of(1_i64..4);
        (vec(0.7..=1.0_f64, 3), choice(), choice()).prop_map(|(mut scores, cheap, strong)| {
            scores.sort_by(|one, other| other.total_cmp(one));
            item(&scores, cheap, strong)
        })
    }

    proptest! {
        #[test]
        fn tightening_only_takes_acceptances_away(items in vec(any_item(), 0..12), rank in 1_u32..4, least in 0.7..=1.0_f64, gap in 0.0..0.2_f64) {
            let before = simulate_audit(&items, TighterGates::default()).tally;
            let classes = items.iter().map(|item| audit_class(&item.cheap, &item.strong));
            prop_assert_eq!(before, classes.collect());
            let gates = TighterGates { max_rank: Some(rank), min_score: Some(score(least)), min_gap: Some(gap) };
            let after = simulate_audit(&items, gates).tally;
            prop_assert!(after.tp <= before.tp && after.fp <= before.fp && after.conflict <= before.conflict);
            prop_assert_eq!(after.incomplete, before.incomplete);
            prop_assert!(changed_by(&items, TighterGates::default()).is_empty());
            let changes = changed_by(&items, gates);
            let lost = (before.tp + before.fp + before.conflict) - (after.tp + after.fp + after.conflict);
            prop_assert_eq!(changes.len() as u64, lost);
            prop_assert_eq!(after.sample_size, before.sample_size);
            prop_assert_eq!(after.tp + after.missed + after.conflict, before.tp + before.missed + before.conflict);
        }
    }

    #[test]
    fn a_lane_that_decided_nothing_stays_incomplete() {
        let mut skipped = item(&[0.9], Some(1), Some(1));
        skipped.cheap =
            LaneResult::ruled(&GateDecision::skipped(crate::duplicates::gate_reason::GateReason::SourceTooVague), None);
        assert_eq!(skipped.cheap.status, LaneStatus::Skipped);
        let tally =
            simulate_audit(&[skipped.clone()], TighterGates { max_rank: Some(1), ..TighterGates::default() }).tally;
        assert_eq!(tally.incomplete, 1);
        assert_eq!(audit_class(&skipped.cheap, &skipped.strong), AuditClass::Incomplete);
    }
}
