//! Tests of the verdict about a new item: each row of the table, and verdicts that must never occur.

use canonry_domain::{
    Certainty, GateCandidate, ItemNumber, ItemOrigin, ItemState, ItemType, JudgeAnswer, JudgedItem, OnlineThresholds,
    OnlineVerdict, PairScores, PathMatch, Probability, Relation, RootCauseMatch, ScopeRelation, Similarity, Structure,
    Verdict, is_judged, online_verdict,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

const FULL: Structure = Structure {
    relation: Some(Relation::SameInstance),
    root_cause_match: Some(RootCauseMatch::Same),
    scope_relation: Some(ScopeRelation::SameScope),
    path_match: Some(PathMatch::Same),
    certainty: Some(Certainty::Sure),
};

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("positive")
}

fn item(at: i64, title: &str) -> JudgedItem<'_> {
    JudgedItem {
        number: number(at),
        state: ItemState::Open,
        item_type: ItemType::Issue,
        title,
        body: "",
        labels: &[],
        origin: ItemOrigin::default(),
    }
}

fn neighbour(at: i64, score: f64) -> GateCandidate<'static> {
    GateCandidate { item: item(at, "It stops"), score: Similarity::new(score).expect("in range"), cluster: None }
}

/// Neighbours 10, 11, … with these scores.
fn neighbours(scores: &[f64]) -> Vec<GateCandidate<'static>> {
    scores.iter().zip(10..).map(|(score, at)| neighbour(at, *score)).collect()
}

fn yes(target: i64, confidence: f64, structure: Structure) -> JudgeAnswer {
    JudgeAnswer {
        is_duplicate: true,
        duplicate_of: Some(number(target)),
        confidence: Probability::new(confidence).expect("in range"),
        reasoning: String::new(),
        structure,
    }
}

fn verdict(neighbours: &[GateCandidate<'_>], answer: Option<&JudgeAnswer>) -> OnlineVerdict {
    online_verdict(&item(1, "It stops"), neighbours, &PairScores::default(), answer, &OnlineThresholds::default())
}

/// A verdict as one line: verdict, target, reason.
fn said(neighbours: &[GateCandidate<'_>], answer: Option<&JudgeAnswer>) -> String {
    let verdict = verdict(neighbours, answer);
    let target = verdict.target.map_or_else(String::new, |target| format!(" {target}"));
    format!("{}{target} {}", verdict.verdict, verdict.reason)
}

#[test]
fn each_row_of_the_table() {
    let nothing = Structure::default();
    for (scores, answer, expected) in [
        (&[0.93][..], Some(yes(10, 0.95, FULL)), "duplicate 10 duplicate"),
        (&[0.93], Some(yes(10, 0.92, FULL)), "duplicate 10 duplicate"),
        (&[0.90], Some(yes(10, 0.95, FULL)), "duplicate 10 duplicate"),
        (&[0.93], Some(yes(10, 0.97, nothing)), "maybe_duplicate 10 online_strict_guardrail:relation=absent"),
        (&[0.93], Some(yes(10, 0.84, nothing)), "not_duplicate below_maybe_threshold"),
        (&[0.86], Some(yes(10, 0.96, FULL)), "maybe_duplicate 10 duplicate_low_retrieval_support"),
        (&[0.8999], Some(yes(10, 0.96, FULL)), "maybe_duplicate 10 duplicate_low_retrieval_support"),
        (
            &[0.91, 0.90],
            Some(yes(10, 0.96, FULL)),
            "maybe_duplicate 10 online_strict_guardrail:candidate_gap_too_small",
        ),
        (
            &[0.95, 0.91],
            Some(yes(11, 0.96, FULL)),
            "maybe_duplicate 11 online_strict_guardrail:candidate_gap_too_small",
        ),
        (&[0.89], Some(yes(10, 0.88, FULL)), "maybe_duplicate 10 low_confidence_duplicate"),
        (&[0.93], Some(yes(10, 0.9199, FULL)), "maybe_duplicate 10 low_confidence_duplicate"),
        (&[0.93], Some(yes(10, 0.85, FULL)), "maybe_duplicate 10 low_confidence_duplicate"),
        (&[0.93], Some(yes(10, 0.8499, FULL)), "not_duplicate below_maybe_threshold"),
        (&[], None, "not_duplicate no_candidates"),
        (&[0.7499], None, "not_duplicate no_candidates"),
        (&[0.7499], Some(yes(10, 0.99, FULL)), "not_duplicate no_candidates"),
        (&[0.93], None, "maybe_duplicate 10 invalid_judge_response"),
        (&[0.85], None, "maybe_duplicate 10 invalid_judge_response"),
        (&[0.8499], None, "not_duplicate invalid_judge_response"),
        (&[0.80], None, "not_duplicate invalid_judge_response"),
        (&[0.80, 0.93, 0.93], None, "maybe_duplicate 11 invalid_judge_response"),
        (&[0.93, 0.70], Some(yes(11, 0.99, FULL)), "maybe_duplicate 10 invalid_judge_response"),
        (&[0.93], Some(yes(99, 0.99, FULL)), "maybe_duplicate 10 invalid_judge_response"),
    ] {
        assert_eq!(said(&neighbours(scores), answer.as_ref()), expected, "{scores:?} {answer:?}");
    }
    let no = JudgeAnswer { is_duplicate: false, duplicate_of: None, ..yes(10, 0.9, FULL) };
    assert_eq!(said(&neighbours(&[0.99]), Some(&no)), "not_duplicate model_not_duplicate");
    assert_eq!(verdict(&neighbours(&[0.99]), Some(&no)).confidence, Some(no.confidence));
}

#[test]
fn the_guardrail_names_what_is_missing() {
    for (structure, expected) in [
        (Structure { certainty: Some(Certainty::Unsure), ..FULL }, "certainty=unsure"),
        (Structure { relation: Some(Relation::RelatedFollowup), ..FULL }, "relation=related_followup"),
        (Structure { root_cause_match: None, ..FULL }, "root_cause_match=absent"),
        (Structure { scope_relation: Some(ScopeRelation::SourceSuperset), ..FULL }, "scope_relation=source_superset"),
        (
            Structure { scope_relation: Some(ScopeRelation::SourceSubset), root_cause_match: None, ..FULL },
            "scope_relation=source_subset,root_cause_match=absent",
        ),
        (Structure { certainty: None, ..FULL }, "certainty=absent"),
    ] {
        let expected = format!("maybe_duplicate 10 online_strict_guardrail:{expected}");
        assert_eq!(said(&neighbours(&[0.95]), Some(&yes(10, 0.99, structure))), expected);
    }
    assert_eq!(
        said(&neighbours(&[0.95]), Some(&yes(10, 0.99, Structure { path_match: None, ..FULL }))),
        "duplicate 10 duplicate"
    );
    let feature = GateCandidate { item: item(10, "[Feature] Let it stop"), ..neighbour(10, 0.95) };
    let source = item(1, "[Bug] It stops");
    let answer = yes(10, 0.99, FULL);
    let verdict =
        online_verdict(&source, &[feature], &PairScores::default(), Some(&answer), &OnlineThresholds::default());
    assert_eq!(verdict.reason, "online_strict_guardrail:bug_feature_mismatch:bug_vs_feature");
    assert_eq!((verdict.verdict, verdict.target), (Verdict::MaybeDuplicate, Some(number(10))));
}

#[test]
fn what_is_related_in_another_way_is_no_duplicate() {
    let mut target = neighbour(10, 0.97);
    target.item.title = "Release checklist 1.2.0";
    let answer = yes(10, 0.99, FULL);
    let verdict = |source: &JudgedItem<'_>| {
        let thresholds = OnlineThresholds::default();
        online_verdict(source, &[target], &PairScores::default(), Some(&answer), &thresholds)
    };
    let next = verdict(&item(11, "Release checklist 1.3.0"));
    assert_eq!((next.verdict, next.target, next.reason.as_str()), (Verdict::NotDuplicate, None, "series"));
    let cited = verdict(&JudgedItem { body: "Unlike #10, this one is lost.", ..item(11, "The list is lost") });
    assert_eq!((cited.verdict, cited.reason.as_str()), (Verdict::NotDuplicate, "cited_as_different"));
}

#[test]
fn what_is_closed_far_or_of_another_type_plays_no_part() {
    let mut others = [neighbour(11, 0.93), neighbour(12, 0.93), neighbour(1, 1.0), neighbour(13, 0.74)];
    others[0].item.state = ItemState::Closed;
    others[1].item.item_type = ItemType::Pr;
    let thresholds = OnlineThresholds::default();
    assert!(others.iter().all(|other| !is_judged(&item(1, ""), other, &thresholds)));
    assert_eq!(said(&others, None), "not_duplicate no_candidates");
    let all: Vec<_> = neighbours(&[0.93]).into_iter().chain(others).collect();
    assert_eq!(said(&all, Some(&yes(10, 0.95, FULL))), "duplicate 10 duplicate", "the gap is among what is judged");
    assert_eq!(said(&all, Some(&yes(11, 0.95, FULL))), "maybe_duplicate 10 invalid_judge_response");
}

#[test]
fn thresholds_can_be_moved() {
    let thresholds = OnlineThresholds {
        min_score: Similarity::new(0.90).expect("in range"),
        maybe: Probability::new(0.5).expect("in range"),
        duplicate: Probability::new(0.6).expect("in range"),
    };
    let said = |scores: &[f64], answer: Option<&JudgeAnswer>| {
        let source = item(1, "It stops");
        online_verdict(&source, &neighbours(scores), &PairScores::default(), answer, &thresholds).reason
    };
    assert_eq!(said(&[0.89], None), "no_candidates");
    assert_eq!(said(&[0.90], Some(&yes(10, 0.6, FULL))), "duplicate");
    assert_eq!(said(&[0.90], Some(&yes(10, 0.59, FULL))), "low_confidence_duplicate");
    assert_eq!(said(&[0.90], Some(&yes(10, 0.49, FULL))), "below_maybe_threshold");
}

fn structure() -> impl Strategy<Value = Structure> {
    let certainty = prop_oneof![3 => Just(Some(Certainty::Sure)), 1 => option::of(select(Certainty::ALL))];
    let relation = prop_oneof![3 => Just(Some(Relation::SameInstance)), 1 => option::of(select(Relation::ALL))];
    let scope = prop_oneof![3 => Just(Some(ScopeRelation::SameScope)), 1 => option::of(select(ScopeRelation::ALL))];
    let cause = prop_oneof![3 => Just(Some(RootCauseMatch::Same)), 1 => option::of(select(RootCauseMatch::ALL))];
    (certainty, relation, scope, cause, option::of(select(PathMatch::ALL))).prop_map(
        |(certainty, relation, scope_relation, root_cause_match, path_match)| Structure {
            relation,
            root_cause_match,
            scope_relation,
            path_match,
            certainty,
        },
    )
}

proptest! {
    #[test]
    fn duplicate_is_said_only_when_everything_holds(
        scores in vec(0.7..=1.0_f64, 0..5),
        target in 10_i64..15,
        confidence in 0.8..=1.0_f64,
        structure in structure(),
        title in any::<String>(),
    ) {
        let neighbours = neighbours(&scores);
        let answer = yes(target, confidence, structure);
        let source = item(1, &title);
        let thresholds = OnlineThresholds::default();
        let verdict = online_verdict(&source, &neighbours, &PairScores::default(), Some(&answer), &thresholds);
        prop_assert_eq!(verdict.target.is_some(), verdict.verdict != Verdict::NotDuplicate);
        if verdict.verdict == Verdict::Duplicate {
            prop_assert_eq!(verdict.target, Some(number(target)));
            prop_assert!(answer.confidence.get() >= 0.92);
            prop_assert_eq!(Structure { path_match: None, ..structure }, Structure { path_match: None, ..FULL });
            let selected = neighbours.iter().find(|neighbour| neighbour.item.number == number(target)).expect("judged");
            prop_assert!(selected.score.get() >= 0.90);
            for other in neighbours.iter().filter(|other| other.item.number != number(target)) {
                prop_assert!(selected.score.get() - other.score.get() > 0.014_99);
            }
        }
    }

    #[test]
    fn more_confidence_never_turns_a_guardrail_into_a_duplicate(
        confidence in 0.0..=1.0_f64,
        structure in structure(),
        score in 0.75..=1.0_f64,
    ) {
        let at = |confidence| verdict(&neighbours(&[score]), Some(&yes(10, confidence, structure)));
        let before = at(confidence);
        if before.reason.starts_with("online_strict_guardrail:") {
            let sure = at(1.0);
            prop_assert_eq!(sure.verdict, Verdict::MaybeDuplicate);
            prop_assert_eq!(sure.reason, before.reason);
        }
    }
}
