//! Tests that the trail of gates agrees with the gates' decisions.

use canonry_domain::{
    Certainty, DecisionGate, DecisionOrigin, DecisionStatus, GateCandidate, GateMark, GateRules, InvalidAnswer,
    ItemNumber, ItemOrigin, ItemState, ItemType, JudgeAnswer, JudgedItem, OnlineGate, OnlineThresholds, PairScores,
    PathMatch, Probability, Relation, RootCauseMatch, ScopeRelation, Similarity, Structure, Verdict, gate_answer,
    gate_before_judge, gate_trail, online_trail, online_verdict,
};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::{option, sample};

const BUG: &str =
    "It crashes with an error when the tide turns, every time, on every machine that was tried so far here.";
const WISH: &str =
    "It would be great to support another tide table; please add an option for it, as a feature request.";
const PLAIN: &str =
    "The tide table of the northern harbour and that of the southern one are both shown on the first page.";

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("positive")
}

fn item(at: i64, body: &'static str, state: ItemState) -> JudgedItem<'static> {
    JudgedItem {
        number: number(at),
        state,
        item_type: ItemType::Issue,
        title: "The tide table",
        body,
        labels: &[],
        origin: ItemOrigin::default(),
    }
}

fn bodies() -> impl Strategy<Value = &'static str> {
    sample::select(vec![BUG, WISH, PLAIN, "not working"])
}

fn structures() -> impl Strategy<Value = Structure> {
    (
        option::of(sample::select(Relation::ALL)),
        option::of(sample::select(RootCauseMatch::ALL)),
        option::of(sample::select(ScopeRelation::ALL)),
        option::of(sample::select(PathMatch::ALL)),
        option::of(sample::select(Certainty::ALL)),
    )
        .prop_map(|(relation, root_cause_match, scope_relation, path_match, certainty)| Structure {
            relation,
            root_cause_match,
            scope_relation,
            path_match,
            certainty,
        })
}

fn same() -> Structure {
    Structure {
        relation: Some(Relation::SameInstance),
        root_cause_match: Some(RootCauseMatch::Same),
        scope_relation: Some(ScopeRelation::SameScope),
        path_match: Some(PathMatch::Same),
        certainty: Some(Certainty::Sure),
    }
}

fn answers() -> impl Strategy<Value = Result<JudgeAnswer, InvalidAnswer>> {
    let structure = prop_oneof![Just(same()), structures()];
    let said = (any::<bool>(), option::of(1_i64..5), 0.8..1.0_f64, structure).prop_map(
        |(is_duplicate, target, confidence, structure)| {
            Ok(JudgeAnswer {
                is_duplicate,
                duplicate_of: target.map(number),
                confidence: Probability::new(confidence).expect("in range"),
                reasoning: String::new(),
                structure,
            })
        },
    );
    prop_oneof![8 => said, 1 => sample::select(InvalidAnswer::ALL).prop_map(Err)]
}

fn candidates() -> impl Strategy<Value = Vec<GateCandidate<'static>>> {
    let one = (bodies(), sample::select(ItemState::ALL), 0.7..1.0_f64);
    proptest::collection::vec(one, 0..4).prop_map(|all| {
        let candidate = |(at, (body, state, score)): (i64, (&'static str, ItemState, f64))| GateCandidate {
            item: item(at, body, state),
            score: Similarity::new(score).expect("in range"),
            cluster: None,
        };
        (2_i64..).zip(all).map(candidate).collect()
    })
}

/// The gate that decided. All gates before it must be passed, and none after it checked.
fn decided<G: Copy + PartialEq + std::fmt::Debug>(trail: &[(G, GateMark)]) -> Option<G> {
    let at = trail.iter().position(|(_, mark)| *mark == GateMark::Decided)?;
    let before = trail[..at].iter().all(|(_, mark)| *mark == GateMark::Passed);
    let behind = trail[at + 1..].iter().all(|(_, mark)| *mark == GateMark::NotAsked);
    assert!(before && behind, "{trail:?}");
    Some(trail[at].0)
}

proptest! {
    #[test]
    fn the_gate_that_decided_is_the_stored_reasons(
        body in bodies(), candidates in candidates(), answer in answers(),
    ) {
        let source = item(1, body, ItemState::Open);
        let ruled = gate_before_judge(&source, &candidates).unwrap_or_else(|| {
            gate_answer(&source, &candidates, &PairScores::default(), &answer, &GateRules::default())
        });
        let trail = gate_trail(DecisionOrigin::Batch, ruled.status, ruled.stored_reason().as_deref());
        let gate = decided(&trail);
        let reason = ruled.stored_reason().unwrap_or_default();
        let expected = match ruled.status {
            DecisionStatus::Accepted => DecisionGate::Accept,
            _ if reason.is_empty() => DecisionGate::SaidYes,
            _ if candidates.is_empty() => DecisionGate::Candidates,
            _ if reason == "source_too_vague" => DecisionGate::EnoughText,
            DecisionStatus::Skipped => DecisionGate::UsableAnswer,
            _ if reason == "target_not_open" => DecisionGate::TargetOpen,
            _ if reason == "below_min_edge" => DecisionGate::Confidence,
            _ if reason == "candidate_gap_too_small" => DecisionGate::Gap,
            _ if reason.contains("_vs_") => DecisionGate::SameKind,
            _ => DecisionGate::Structure,
        };
        prop_assert_eq!(gate, Some(expected), "{:?}", ruled);
    }

    #[test]
    fn every_verdict_was_decided_by_one_gate(
        body in bodies(), neighbours in candidates(), answer in option::of(answers()),
    ) {
        let source = item(1, body, ItemState::Open);
        let answer = answer.and_then(Result::ok);
        let said = online_verdict(
            &source, &neighbours, &PairScores::default(), answer.as_ref(), &OnlineThresholds::default(),
        );
        let gate = decided(&online_trail(&said.reason));
        prop_assert!(gate.is_some(), "{}", said.reason);
        prop_assert_eq!(gate == Some(OnlineGate::Duplicate), said.verdict == Verdict::Duplicate, "{}", said.reason);
        prop_assert_eq!(gate == Some(OnlineGate::SaidYes), said.reason == "model_not_duplicate");
    }

    #[test]
    fn a_reason_of_nobody_is_decided_by_no_gate(reason in "[a-z]{1,6} [a-z]{1,6}") {
        let trail = gate_trail(DecisionOrigin::Batch, DecisionStatus::Rejected, Some(&reason));
        prop_assert!(trail.iter().all(|(_, mark)| *mark == GateMark::NotAsked));
        prop_assert!(online_trail(&reason).iter().all(|(_, mark)| *mark == GateMark::NotAsked));
    }
}

#[test]
fn every_stored_reason_has_its_gate() {
    use DecisionOrigin::{Batch, Online, Override};
    use DecisionStatus::{Accepted, Rejected, Skipped};
    for (origin, status, reason, gate) in [
        (Override, Accepted, None, DecisionGate::Ruling),
        (Override, Rejected, Some("override:not_duplicate"), DecisionGate::Ruling),
        (Batch, Skipped, Some("no_candidates"), DecisionGate::Candidates),
        (Batch, Skipped, Some("source_too_vague"), DecisionGate::EnoughText),
        (Batch, Skipped, Some("existing_edge"), DecisionGate::NoEdgeYet),
        (Batch, Skipped, Some("invalid_response:not_json"), DecisionGate::UsableAnswer),
        (Batch, Rejected, None, DecisionGate::SaidYes),
        (Batch, Rejected, Some("series"), DecisionGate::Unrelated),
        (Batch, Rejected, Some("cited_as_different"), DecisionGate::Unrelated),
        (Batch, Rejected, Some("certainty=unsure"), DecisionGate::Structure),
        (Batch, Rejected, Some("path_match=different,relation=absent"), DecisionGate::Structure),
        (Batch, Rejected, Some("target_not_open"), DecisionGate::TargetOpen),
        (Batch, Rejected, Some("bug_feature_mismatch:bug_vs_feature"), DecisionGate::SameKind),
        (Batch, Rejected, Some("below_min_edge"), DecisionGate::Confidence),
        (Online, Rejected, Some("candidate_gap_too_small"), DecisionGate::Gap),
        (Online, Accepted, None, DecisionGate::Accept),
    ] {
        assert_eq!(decided(&gate_trail(origin, status, reason)), Some(gate), "{reason:?}");
    }
    // An item without text of its own is not compared with anything.
    let unfilled = gate_trail(Batch, Skipped, Some("no_content"));
    let marks: Vec<GateMark> = unfilled.iter().take(4).map(|(_, mark)| *mark).collect();
    assert_eq!(marks, [GateMark::Passed, GateMark::NotAsked, GateMark::Decided, GateMark::NotAsked]);
    for (reason, gate) in [
        ("override", OnlineGate::Ruling),
        ("no_content", OnlineGate::EnoughText),
        ("no_candidates", OnlineGate::Neighbours),
        ("invalid_judge_response", OnlineGate::UsableAnswer),
        ("control_failed", OnlineGate::UsableAnswer),
        ("model_not_duplicate", OnlineGate::SaidYes),
        ("revert", OnlineGate::Unrelated),
        ("backport", OnlineGate::Unrelated),
        ("online_strict_guardrail:certainty=unsure", OnlineGate::Structure),
        ("online_strict_guardrail:scope_relation=source_subset,root_cause_match=absent", OnlineGate::Structure),
        ("online_strict_guardrail:bug_feature_mismatch:bug_vs_feature", OnlineGate::SameKind),
        ("online_strict_guardrail:certainty=absent", OnlineGate::AllSame),
        ("online_strict_guardrail:scope_relation=source_subset", OnlineGate::AllSame),
        ("online_strict_guardrail:candidate_gap_too_small", OnlineGate::Gap),
        ("below_maybe_threshold", OnlineGate::MaybeConfidence),
        ("low_confidence_duplicate", OnlineGate::DuplicateConfidence),
        ("duplicate_low_retrieval_support", OnlineGate::Alike),
        ("duplicate", OnlineGate::Duplicate),
    ] {
        assert_eq!(decided(&online_trail(reason)), Some(gate), "{reason}");
    }
}

#[test]
fn a_ruling_beside_an_edge_of_before_skips_the_cheap_gates() {
    let trail = gate_trail(DecisionOrigin::Override, DecisionStatus::Skipped, Some("existing_edge"));
    assert_eq!(trail[0], (DecisionGate::Ruling, GateMark::Passed));
    assert_eq!(trail[1], (DecisionGate::Candidates, GateMark::NotAsked));
    assert_eq!(trail[3], (DecisionGate::NoEdgeYet, GateMark::Decided));
}
