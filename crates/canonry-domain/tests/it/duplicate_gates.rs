//! Tests of the gates: every decision of the table, and properties for any answer.

use canonry_domain::{
    Certainty, DecisionStatus, GateCandidate, GateDecision, GateReason, GateRules, InvalidAnswer, ItemNumber,
    ItemOrigin, ItemState, ItemType, JudgeAnswer, JudgedItem, PairScores, PathMatch, Probability, Relation,
    RootCauseMatch, ScopeRelation, Similarity, Structure, bug_feature_mismatch, gate_answer, gate_before_judge,
    is_too_vague, parse_judge_answer,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

const TITLE: &str = "exec approvals still required despite ask=off and security=full";
const BODY: &str = "Every exec call asks for approval. The configuration says ask=off and security=full. \
    Restarting the gateway does not change that.";
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

fn score(value: f64) -> Similarity {
    Similarity::new(value).expect("in range")
}

fn item<'a>(at: i64, state: ItemState, title: &'a str, body: &'a str) -> JudgedItem<'a> {
    JudgedItem {
        number: number(at),
        state,
        item_type: ItemType::Issue,
        title,
        body,
        labels: &[],
        origin: ItemOrigin::default(),
    }
}

fn candidate(at: i64, state: ItemState, value: f64) -> GateCandidate<'static> {
    GateCandidate { item: item(at, state, TITLE, BODY), score: score(value), cluster: None }
}

fn yes(target: i64, confidence: f64, structure: Structure) -> Result<JudgeAnswer, InvalidAnswer> {
    Ok(JudgeAnswer {
        is_duplicate: true,
        duplicate_of: Some(number(target)),
        confidence: Probability::new(confidence).expect("in range"),
        reasoning: String::new(),
        structure,
    })
}

/// A decision as one line: status, target, reason.
fn said(ruled: &GateDecision) -> String {
    let target = ruled.target.map_or_else(String::new, |target| format!(" {target}"));
    format!("{}{target} {}", ruled.status, ruled.stored_reason().unwrap_or_else(|| "-".to_owned()))
}

/// The decision about an answer for the usual source with the usual candidates: 9001 open .95, 9002 closed .90.
fn usual(answer: &Result<JudgeAnswer, InvalidAnswer>) -> String {
    let candidates = [candidate(9_001, ItemState::Open, 0.95), candidate(9_002, ItemState::Closed, 0.90)];
    let source = item(1, ItemState::Open, TITLE, BODY);
    assert_eq!(gate_before_judge(&source, &candidates), None);
    said(&gate_answer(&source, &candidates, &PairScores::default(), answer, &GateRules::default()))
}

#[test]
fn what_spares_a_call() {
    let one = [candidate(9_001, ItemState::Open, 0.95)];
    let source = item(1, ItemState::Open, TITLE, BODY);
    assert_eq!(gate_before_judge(&source, &[]).as_ref().map(said).as_deref(), Some("skipped no_candidates"));
    let vague = item(1, ItemState::Open, "[Bug]:", "plz fix not working");
    assert_eq!(gate_before_judge(&vague, &one).as_ref().map(said).as_deref(), Some("skipped source_too_vague"));
    assert_eq!(gate_before_judge(&vague, &[]).as_ref().map(said).as_deref(), Some("skipped no_candidates"));
    let japanese: String = "承認が毎回求められます。設定では無効にしています。".chars().cycle().take(150).collect();
    assert!(!is_too_vague("実行の承認", &japanese));
}

#[test]
fn the_answer_itself_comes_first() {
    for kind in InvalidAnswer::ALL {
        assert_eq!(usual(&Err(*kind)), format!("skipped invalid_response:{kind}"));
    }
    assert_eq!(usual(&yes(9_003, 0.99, FULL)), "skipped invalid_response:target_not_in_set");
    let nowhere = yes(9_001, 0.99, FULL).map(|answer| JudgeAnswer { duplicate_of: None, ..answer });
    assert_eq!(usual(&nowhere), "skipped invalid_response:no_target");
    let no = parse_judge_answer(
        r#"{"is_duplicate":false,"duplicate_of":0,"confidence":0.2,"reasoning":"Different root cause.","certainty":"unsure"}"#,
        &[number(9_001)],
    );
    assert_eq!(usual(&no), "rejected -");

    let source = item(1, ItemState::Open, TITLE, BODY);
    let itself = [candidate(1, ItemState::Open, 1.0)];
    let ruled = gate_answer(&source, &itself, &PairScores::default(), &yes(1, 0.99, FULL), &GateRules::default());
    assert_eq!(said(&ruled), "skipped invalid_response:target_not_in_set");
    let mut pull = candidate(9_001, ItemState::Open, 1.0);
    pull.item.item_type = ItemType::Pr;
    let ruled = gate_answer(&source, &[pull], &PairScores::default(), &yes(9_001, 0.99, FULL), &GateRules::default());
    assert_eq!(said(&ruled), "skipped invalid_response:target_not_in_set");
}

#[test]
fn each_gate_in_its_order() {
    let nothing = Structure::default();
    let subset = Some(ScopeRelation::SourceSubset);
    for (answer, expected) in [
        (yes(9_001, 0.93, nothing), "accepted 9001 -"),
        (
            yes(
                9_001,
                0.92,
                Structure {
                    relation: Some(Relation::PartialOverlap),
                    root_cause_match: Some(RootCauseMatch::Adjacent),
                    ..nothing
                },
            ),
            "rejected 9001 relation=partial_overlap",
        ),
        (
            yes(9_002, 0.92, Structure { certainty: Some(Certainty::Unsure), ..nothing }),
            "rejected 9002 certainty=unsure",
        ),
        (yes(9_002, 0.97, FULL), "rejected 9002 target_not_open"),
        (yes(9_002, 0.80, FULL), "rejected 9002 target_not_open"),
        (yes(9_001, 0.93, Structure { scope_relation: subset, ..FULL }), "accepted 9001 -"),
        (
            yes(9_001, 0.93, Structure { scope_relation: subset, ..nothing }),
            "rejected 9001 scope_relation=source_subset,root_cause_match=absent",
        ),
        (
            yes(9_001, 0.10, Structure { root_cause_match: Some(RootCauseMatch::Adjacent), ..FULL }),
            "rejected 9001 root_cause_match=adjacent",
        ),
        (yes(9_001, 0.84, FULL), "rejected 9001 below_min_edge"),
        (yes(9_001, 0.8499, FULL), "rejected 9001 below_min_edge"),
        (yes(9_001, 0.85, FULL), "accepted 9001 -"),
        (yes(9_001, 0.849_96, FULL), "accepted 9001 -"),
    ] {
        assert_eq!(usual(&answer), expected);
    }
}

#[test]
fn kinds_are_compared_before_confidence_and_gap() {
    let filler =
        "Messages of one chat that are sent quickly one after another are what this is about, in every client.";
    let source_body = format!("They come in another order than they were sent. {filler}");
    let target_body = format!("Add a new ordering strategy option. {filler}");
    let source = item(1, ItemState::Open, "[Bug] Telegram messages arrive out of order", &source_body);
    let target = item(2, ItemState::Open, "[Feature] Improve message ordering controls", &target_body);
    let candidates = [
        GateCandidate { item: target, score: score(0.91), cluster: None },
        GateCandidate { item: item(3, ItemState::Open, TITLE, BODY), score: score(0.90), cluster: None },
    ];
    assert_eq!(gate_before_judge(&source, &candidates), None);
    for confidence in [0.95, 0.10] {
        let answer = yes(2, confidence, Structure::default());
        let ruled = gate_answer(&source, &candidates, &PairScores::default(), &answer, &GateRules::default());
        assert_eq!(said(&ruled), "rejected 2 bug_feature_mismatch:bug_vs_feature");
    }
    let answer = yes(3, 0.84, Structure::default());
    let ruled = gate_answer(&source, &candidates, &PairScores::default(), &answer, &GateRules::default());
    assert_eq!(said(&ruled), "rejected 3 below_min_edge", "before the gap, which is too small as well");
}

#[test]
fn near_alternatives_block_unless_they_are_the_same_thing() {
    let source = item(1, ItemState::Open, TITLE, BODY);
    let ruled = |candidates: &[GateCandidate<'_>], pairs: &PairScores| {
        said(&gate_answer(&source, candidates, pairs, &yes(10, 0.93, FULL), &GateRules::default()))
    };
    let [first, second] = [(10, 0.91), (11, 0.90)].map(|(at, value)| candidate(at, ItemState::Open, value));
    let none = PairScores::default();
    assert_eq!(ruled(&[first, second], &none), "rejected 10 candidate_gap_too_small");
    assert_eq!(ruled(&[first, GateCandidate { cluster: Some(number(10)), ..second }], &none), "accepted 10 -");
    let [first, second] = [(10, 0.915), (11, 0.900)].map(|(at, value)| candidate(at, ItemState::Open, value));
    assert_eq!(ruled(&[first, second], &none), "accepted 10 -");
    let three = [(10, 0.97), (11, 0.968), (12, 0.966)].map(|(at, value)| candidate(at, ItemState::Open, value));
    let pairs: PairScores = [(10, 11, 0.97), (11, 12, 0.97), (12, 10, 0.97)]
        .into_iter()
        .map(|(one, other, value)| (number(one), number(other), score(value)))
        .collect();
    assert_eq!(ruled(&three, &none), "rejected 10 candidate_gap_too_small");
    assert_eq!(ruled(&three, &pairs), "accepted 10 -");
}

#[test]
fn an_audit_does_not_ask_whether_the_target_is_open() {
    let source = item(1, ItemState::Open, TITLE, BODY);
    let closed = [candidate(9_001, ItemState::Closed, 0.95), candidate(9_002, ItemState::Open, 0.92)];
    let rules = GateRules { check_target_state: false, ..GateRules::default() };
    let ruled = |target| said(&gate_answer(&source, &closed, &PairScores::default(), &yes(target, 0.9, FULL), &rules));
    assert_eq!(ruled(9_001), "accepted 9001 -");
    assert_eq!(ruled(9_002), "rejected 9002 candidate_gap_too_small");
}

/// A case in whole numbers, so that the expected result can be computed without the tested code.
#[derive(Debug, Clone)]
struct Case {
    source: (String, String, Vec<String>),
    /// State, title, score and cluster of candidates 10, 11, …; scores in ten-thousandths.
    candidates: Vec<(ItemState, String, i64, Option<i64>)>,
    pairs: Vec<(usize, usize, i64)>,
    target: i64,
    confidence: i64,
    structure: Structure,
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just(TITLE.to_owned()),
        1 => any::<String>(),
        2 => select(vec![
            "[Bug] it stops", "[Feature] more of it", "feat: x", "It is broken", "Please add a flag", "[[Bug]",
            "<!-- [Bug] -->", "\u{202e}guB\u{0}", "```\nbug", "承認が毎回求められます", "",
        ])
        .prop_map(str::to_owned),
    ]
}

fn structure() -> impl Strategy<Value = Structure> {
    fn word<T: Copy + std::fmt::Debug + 'static>(words: &'static [T], good: T) -> impl Strategy<Value = Option<T>> {
        prop_oneof![3 => Just(Some(good)), 1 => option::of(select(words))]
    }
    let parts = (
        word(Relation::ALL, Relation::SameInstance),
        word(RootCauseMatch::ALL, RootCauseMatch::Same),
        word(ScopeRelation::ALL, ScopeRelation::SameScope),
        word(PathMatch::ALL, PathMatch::Same),
        word(Certainty::ALL, Certainty::Sure),
    );
    parts.prop_map(|(relation, root_cause_match, scope_relation, path_match, certainty)| Structure {
        relation,
        root_cause_match,
        scope_relation,
        path_match,
        certainty,
    })
}

fn case() -> impl Strategy<Value = Case> {
    let state = prop_oneof![4 => Just(ItemState::Open), 1 => Just(ItemState::Closed)];
    let candidate = (state, text(), 9_000_i64..9_400, option::of(10_i64..14));
    let labels = vec(select(vec!["bug", "enhancement", "debug", "area/ui"]).prop_map(str::to_owned), 0..2);
    (
        (text(), text(), labels),
        vec(candidate, 0..4),
        vec((0_usize..4, 0_usize..4, 8_900_i64..9_500), 0..5),
        9_i64..15,
        8_000_i64..=10_000,
        structure(),
    )
        .prop_map(|(source, candidates, pairs, target, confidence, structure)| Case {
            source,
            candidates,
            pairs,
            target,
            confidence,
            structure,
        })
}

impl Case {
    fn rule(&self, confidence: i64) -> GateDecision {
        let (title, body, labels) = &self.source;
        let source = JudgedItem { labels, ..item(1, ItemState::Open, title, body) };
        let candidates = self.gate_candidates();
        let answer = yes(self.target, confidence as f64 / 10_000.0, self.structure);
        gate_answer(&source, &candidates, &self.pair_scores(), &answer, &GateRules::default())
    }

    fn gate_candidates(&self) -> Vec<GateCandidate<'_>> {
        self.candidates
            .iter()
            .zip(10..)
            .map(|((state, title, value, cluster), at)| GateCandidate {
                item: item(at, *state, title, BODY),
                score: score(*value as f64 / 10_000.0),
                cluster: cluster.map(number),
            })
            .collect()
    }

    fn pair_scores(&self) -> PairScores {
        let pair = |&(one, other, value): &(usize, usize, i64)| {
            (number(10 + one as i64), number(10 + other as i64), score(value as f64 / 10_000.0))
        };
        self.pairs.iter().map(pair).collect()
    }

    /// Gate 10 in ten-thousandths.
    fn stands_out(&self, chosen: usize) -> bool {
        let (_, _, selected, cluster) = self.candidates[chosen];
        let home = cluster.unwrap_or(10 + chosen as i64);
        self.candidates.iter().enumerate().all(|(at, (_, _, value, cluster))| {
            let pair = self
                .pairs
                .iter()
                .rev()
                .find(|(one, other, _)| (*one == at && *other == chosen) || (*one == chosen && *other == at));
            at == chosen
                || cluster.unwrap_or(10 + at as i64) == home
                || pair.is_some_and(|(_, _, pair)| *pair >= selected - 150)
                || selected - value >= 150
        })
    }
}

proptest! {
    #[test]
    fn an_edge_means_that_every_gate_is_open(case in case()) {
        let ruled = case.rule(case.confidence);
        let chosen = usize::try_from(case.target - 10).ok().filter(|at| *at < case.candidates.len());
        let Some(chosen) = chosen else {
            prop_assert_eq!(said(&ruled), "skipped invalid_response:target_not_in_set");
            return Ok(());
        };
        let structure = case.structure;
        let same_cause = structure.root_cause_match == Some(RootCauseMatch::Same);
        let same_instance = structure.relation == Some(Relation::SameInstance);
        let structure_holds = structure.certainty != Some(Certainty::Unsure)
            && structure.relation.is_none_or(|relation| relation == Relation::SameInstance)
            && structure.root_cause_match.is_none_or(|cause| cause == RootCauseMatch::Same)
            && (same_cause || structure.scope_relation.is_none_or(|scope| scope == ScopeRelation::SameScope))
            && (same_cause && same_instance || structure.path_match != Some(PathMatch::Different));
        let (title, body, labels) = &case.source;
        let source = JudgedItem { labels, ..item(1, ItemState::Open, title, body) };
        let expected = structure_holds
            && case.candidates[chosen].0 == ItemState::Open
            && bug_feature_mismatch(&source, &case.gate_candidates()[chosen].item).is_none()
            && case.confidence >= 8_500
            && case.stands_out(chosen);
        prop_assert_eq!(ruled.status == DecisionStatus::Accepted, expected, "{}", said(&ruled));
        prop_assert_eq!(ruled.reason.is_none(), expected);
        prop_assert_eq!(ruled.target, Some(number(case.target)));
    }

    #[test]
    fn confidence_never_outvotes_a_veto(case in case(), more in 0_i64..=2_000) {
        let before = case.rule(case.confidence);
        let after = case.rule((case.confidence + more).min(10_000));
        if before.reason != Some(GateReason::BelowMinEdge) {
            prop_assert_eq!(after, before);
        } else if after.status == DecisionStatus::Accepted {
            prop_assert!(case.confidence + more >= 8_500);
        }
    }
}

#[test]
fn a_relation_that_is_no_duplicate_vetoes_by_its_name() {
    let target = GateCandidate {
        item: item(9_001, ItemState::Open, "Upgrade the exporter to 2.1", BODY),
        ..candidate(9_001, ItemState::Open, 0.97)
    };
    let source = item(1, ItemState::Open, "Upgrade the exporter to 2.2", BODY);
    let ruled = |source: &JudgedItem<'_>, answer| {
        said(&gate_answer(source, &[target], &PairScores::default(), &answer, &GateRules::default()))
    };
    assert_eq!(ruled(&source, yes(9_001, 0.99, FULL)), "rejected 9001 series");
    // The relation says more than an answer that contradicts itself.
    assert_eq!(ruled(&source, yes(9_001, 0.99, Structure::default())), "rejected 9001 series");
    let cited = item(1, ItemState::Open, TITLE, "Follow-up to #9001, which left out half of the approvals.");
    assert_eq!(ruled(&cited, yes(9_001, 0.99, FULL)), "rejected 9001 follow_up");
}
