//! Decides whether the chosen target is clearly nearer than the other candidates.

use crate::{GateCandidate, ItemNumber, PairScores};

/// The minimum difference between the scores of the chosen target and the best alternative (gate 10).
pub const SCORE_GAP: f64 = 0.015;

/// Whether another candidate is so near that the choice may be wrong.
///
/// An alternative does not count if it is known to be in the target's cluster, or if it is as similar to the target as
/// the source is: several reports of the same problem must not block each other. If the target is not a candidate, the
/// gap is always too small.
pub fn gap_too_small(target: ItemNumber, candidates: &[GateCandidate<'_>], pairs: &PairScores) -> bool {
    let Some(selected) = candidates.iter().find(|candidate| candidate.item.number == target) else {
        return true;
    };
    candidates
        .iter()
        .filter(|candidate| counts_against(selected, candidate, pairs))
        .any(|candidate| selected.score.gap(candidate.score) < SCORE_GAP)
}

/// Whether a candidate is an alternative to the selected one, and not another report of the same problem.
pub(crate) fn counts_against(selected: &GateCandidate<'_>, other: &GateCandidate<'_>, pairs: &PairScores) -> bool {
    if other.item.number == selected.item.number || other.shares_cluster(selected) {
        return false;
    }
    pairs.get(selected.item.number, other.item.number).is_none_or(|pair| selected.score.gap(pair) > SCORE_GAP)
}

#[cfg(test)]
mod tests {
    use super::gap_too_small;
    use crate::{GateCandidate, ItemNumber, ItemOrigin, ItemState, ItemType, JudgedItem, Similarity};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn score(value: f64) -> Similarity {
        Similarity::new(value).expect("in range")
    }

    fn candidate(at: i64, value: f64, cluster: Option<i64>) -> GateCandidate<'static> {
        let item = JudgedItem {
            number: number(at),
            state: ItemState::Open,
            item_type: ItemType::Issue,
            title: "",
            body: "",
            labels: &[],
            origin: ItemOrigin::default(),
        };
        GateCandidate { item, score: score(value), cluster: cluster.map(number) }
    }

    fn too_small(candidates: &[GateCandidate<'_>], pairs: &[(i64, i64, f64)]) -> bool {
        let pairs = pairs.iter().map(|&(one, other, value)| (number(one), number(other), score(value))).collect();
        gap_too_small(number(1), candidates, &pairs)
    }

    #[test]
    fn the_gap_is_taken_after_rounding() {
        for (selected, other, expected) in [
            (0.91, 0.90, true),
            (0.915, 0.900, false),
            (0.9149, 0.900, true),
            (0.91496, 0.90004, false),
            (0.95, 0.90, false),
            (0.92, 0.95, true),
            (0.5, 0.485, false),
            (1.0, 0.985, false),
        ] {
            let candidates = [candidate(1, selected, None), candidate(2, other, None)];
            assert_eq!(too_small(&candidates, &[]), expected, "{selected} {other}");
        }
        assert!(!too_small(&[candidate(1, 0.8, None)], &[]));
        assert!(too_small(&[candidate(2, 0.8, None)], &[]), "the target is no candidate");
    }

    #[test]
    fn members_of_the_targets_cluster_are_no_alternatives() {
        for (target, other, expected) in [
            (Some(7), Some(7), false),
            (None, Some(1), false),
            (Some(2), None, false),
            (Some(7), Some(8), true),
            (Some(7), None, true),
            (None, None, true),
        ] {
            let candidates = [candidate(1, 0.91, target), candidate(2, 0.90, other)];
            assert_eq!(too_small(&candidates, &[]), expected, "{target:?} {other:?}");
        }
    }

    #[test]
    fn what_is_as_like_the_target_as_the_source_is_no_alternative() {
        let three = [candidate(1, 0.97, None), candidate(2, 0.968, None), candidate(3, 0.966, None)];
        assert!(too_small(&three, &[]));
        assert!(!too_small(&three, &[(2, 1, 0.97), (1, 3, 0.955)]), "0.955 is 0.97 less 0.015");
        assert!(too_small(&three, &[(1, 2, 0.97), (1, 3, 0.9549)]));
        assert!(too_small(&three, &[(1, 2, 0.97), (2, 3, 0.99)]), "only likeness to the target counts");
    }
}
