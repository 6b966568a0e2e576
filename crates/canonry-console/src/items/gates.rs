//! Gate by gate: what each asked, what it found, and which of them decided.

use canonry_domain::{
    DecisionGate, DecisionOrigin, DecisionStatus, GateMark, GateReason, ItemNumber, OnlineGate, OnlineThresholds,
    SCORE_GAP, STRONG_RETRIEVAL, Structure, Verdict, gate_trail, online_trail,
};

use crate::layout::formatting::score;

/// As many candidates that are too near are named: a person reads a few.
const RIVALS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GateLine {
    pub(crate) class: &'static str,
    pub(crate) mark: &'static str,
    pub(crate) question: &'static str,
    pub(crate) answer: String,
}

pub(crate) struct GateInput<'a> {
    pub(crate) target: Option<ItemNumber>,
    pub(crate) confidence: Option<f64>,
    /// What was before the judge, with its scores.
    pub(crate) scores: &'a [(ItemNumber, f64)],
    /// The nearest of all, before the judge or not.
    pub(crate) nearest: Option<(ItemNumber, f64)>,
    pub(crate) structure: Option<&'a Structure>,
    pub(crate) min_edge: f64,
}

pub(crate) fn decision_gates(
    origin: DecisionOrigin,
    status: DecisionStatus,
    reason: Option<&str>,
    compared: &GateInput<'_>,
) -> Vec<GateLine> {
    let is_good = status == DecisionStatus::Accepted;
    let told = |(gate, mark): (DecisionGate, GateMark)| {
        let decided = mark == GateMark::Decided;
        let reason = reason.unwrap_or_default();
        let (question, answer) = match gate {
            DecisionGate::Ruling => ("Has a person ruled about it?", ruling(decided, origin, is_good, compared)),
            DecisionGate::Candidates => ("Is there anything to compare it with?", candidates(decided, compared)),
            DecisionGate::EnoughText => (
                "Does it say enough to be compared?",
                pick(
                    decided,
                    match GateReason::NoContent.is_stored_as(Some(reason)) {
                        true => "No: it, or the other one, is an unfilled template.",
                        false => "No: it is too short, or only says that something does not work.",
                    },
                    "Yes.",
                ),
            ),
            DecisionGate::NoEdgeYet => ("Is it known to be a duplicate already?", existing_edge(decided, compared)),
            DecisionGate::UsableAnswer => ("Could the judge’s answer be used?", usable(decided, reason)),
            DecisionGate::SaidYes => ("Did the judge call it a duplicate?", said_yes(decided, compared)),
            DecisionGate::Structure => {
                ("Do the parts of the answer agree with its yes?", structure(decided, reason, compared))
            }
            DecisionGate::TargetOpen => {
                ("Is the other one open?", pick(decided, "No, and nobody is sent to something that is closed.", "Yes."))
            }
            DecisionGate::SameKind => ("Do both report a bug, or both ask for something?", same_kind(decided, reason)),
            DecisionGate::Confidence => {
                ("Is the judge sure enough?", at_least(decided, compared.confidence, compared.min_edge))
            }
            DecisionGate::Gap => ("Does the other one stand out among the candidates?", gap(decided, compared)),
            DecisionGate::Accept => {
                ("Does anything else speak against it?", "No: it is taken for a duplicate.".to_owned())
            }
        };
        line(mark, is_good, question, answer)
    };
    gate_trail(origin, status, reason).into_iter().map(told).collect()
}

pub(crate) fn verdict_gates(verdict: Verdict, reason: &str, compared: &GateInput<'_>) -> Vec<GateLine> {
    let thresholds = OnlineThresholds::default();
    let is_good = verdict == Verdict::Duplicate;
    let alike = || compared.target.and_then(|target| compared.score_of(target));
    let told = |(gate, mark): (OnlineGate, GateMark)| {
        let decided = mark == GateMark::Decided;
        let guarded = reason.strip_prefix("online_strict_guardrail:").unwrap_or(reason);
        let (question, answer) = match gate {
            OnlineGate::Ruling => {
                ("Has a person ruled about it?", pick(decided, "Yes: that it is a duplicate.", "No."))
            }
            OnlineGate::EnoughText => {
                ("Does it have text of its own?", pick(decided, "No: it is an unfilled template.", "Yes."))
            }
            OnlineGate::Neighbours => {
                ("Is an open one near enough to be judged?", neighbours(decided, compared, thresholds.min_score.get()))
            }
            OnlineGate::UsableAnswer => (
                "Could the judge’s answer be used?",
                pick(decided, "No, or there was none. Nothing is said on such a ground.", "Yes."),
            ),
            OnlineGate::SaidYes => ("Did the judge call it a duplicate?", said_yes(decided, compared)),
            OnlineGate::Structure => {
                ("Do the parts of the answer agree with its yes?", structure(decided, guarded, compared))
            }
            OnlineGate::SameKind => ("Do both report a bug, or both ask for something?", same_kind(decided, guarded)),
            OnlineGate::AllSame => {
                ("Does the answer say: same thing, same cause, same scope, sure?", all_same(decided, guarded))
            }
            OnlineGate::Gap => ("Does the other one stand out among the candidates?", gap(decided, compared)),
            OnlineGate::MaybeConfidence => {
                let least = thresholds.maybe.get();
                ("Is the judge sure enough to mention it?", at_least(decided, compared.confidence, least))
            }
            OnlineGate::DuplicateConfidence => (
                "Is the judge sure enough to call it a duplicate?",
                at_least(decided, compared.confidence, thresholds.duplicate.get()),
            ),
            OnlineGate::Alike => {
                ("Are the two alike enough, whatever the judge says?", at_least(decided, alike(), STRONG_RETRIEVAL))
            }
            OnlineGate::ProvenJudge => (
                "Has this judge proven itself in this repository?",
                pick(decided, "No: its yes closes nothing. An operator runs `canonry judge-audit`.", "Yes."),
            ),
            OnlineGate::Duplicate => {
                ("Does anything else speak against it?", "No: it is called a duplicate.".to_owned())
            }
        };
        line(mark, is_good, question, answer)
    };
    online_trail(reason).into_iter().map(told).collect()
}

fn line(mark: GateMark, is_good: bool, question: &'static str, answer: String) -> GateLine {
    let (class, mark, answer) = match mark {
        GateMark::Passed => ("passed", "passed", answer),
        GateMark::Decided if is_good => ("decided yes", "decided", answer),
        GateMark::Decided => ("decided", "decided", answer),
        GateMark::NotAsked => ("skipped", "not asked", String::new()),
    };
    GateLine { class, mark, question, answer }
}

impl GateInput<'_> {
    fn score_of(&self, number: ItemNumber) -> Option<f64> {
        self.scores.iter().find(|(one, _)| *one == number).map(|(_, alike)| *alike)
    }
}

fn pick(decided: bool, if_decided: &str, if_passed: &str) -> String {
    (if decided { if_decided } else { if_passed }).to_owned()
}

fn ruling(decided: bool, origin: DecisionOrigin, is_good: bool, compared: &GateInput<'_>) -> String {
    match (decided, is_good, compared.target) {
        (true, true, Some(target)) => format!("Yes: that it is a duplicate of #{target}."),
        (true, _, _) => "Yes: that it is no duplicate of any candidate.".to_owned(),
        (false, _, _) if origin == DecisionOrigin::Override => "Yes, and a judge had found an edge before.".to_owned(),
        (false, _, _) => "No.".to_owned(),
    }
}

fn candidates(decided: bool, compared: &GateInput<'_>) -> String {
    match (decided, compared.scores.len()) {
        (true, _) => "No: nothing was near enough.".to_owned(),
        (false, 0) => "Yes.".to_owned(),
        (false, 1) => "Yes, one.".to_owned(),
        (false, count) => format!("Yes, {count}."),
    }
}

fn neighbours(decided: bool, compared: &GateInput<'_>, least: f64) -> String {
    match (decided, compared.nearest, compared.scores.len()) {
        (true, Some((number, alike)), _) => {
            format!(
                "No: the nearest is #{number} with {}, and it takes an open one with {}.",
                score(alike),
                score(least)
            )
        }
        (true, None, _) => "No: there was nothing alike at all.".to_owned(),
        (false, _, 0) => "Yes.".to_owned(),
        (false, _, count) => format!("Yes, {count} with at least {}.", score(least)),
    }
}

fn existing_edge(decided: bool, compared: &GateInput<'_>) -> String {
    match (decided, compared.target) {
        (true, Some(target)) => format!("Yes: of #{target}. The judge is not asked twice about the same texts."),
        (true, None) => "Yes. The judge is not asked twice about the same texts.".to_owned(),
        (false, _) => "No.".to_owned(),
    }
}

fn usable(decided: bool, reason: &str) -> String {
    let kind = reason.split_once(':').map_or(reason, |(_, kind)| kind).replace('_', " ");
    if decided { format!("No ({kind}). It is asked again with the next run.") } else { "Yes.".to_owned() }
}

fn said_yes(decided: bool, compared: &GateInput<'_>) -> String {
    let sure = compared.confidence.map(|sure| format!(" (confidence {})", score(sure))).unwrap_or_default();
    match (decided, compared.target) {
        (true, _) => format!("No{sure}."),
        (false, Some(target)) => format!("Yes, of #{target}{sure}."),
        (false, None) => format!("Yes{sure}."),
    }
}

fn structure(decided: bool, reason: &str, compared: &GateInput<'_>) -> String {
    if decided {
        return format!("No: {}.", keys(reason));
    }
    let certain = compared.structure.is_some_and(|structure| structure.relation.is_some());
    pick(certain, "Yes: it says that both are the same thing.", "Yes: nothing in it speaks against.")
}

fn all_same(decided: bool, reason: &str) -> String {
    if decided { format!("No: {}.", keys(reason)) } else { "Yes.".to_owned() }
}

/// `relation=partial_overlap` as people read it.
fn keys(reason: &str) -> String {
    let one = |pair: &str| match pair.split_once('=') {
        Some((key, "absent")) => format!("it does not tell the {}", key.replace('_', " ")),
        Some((key, value)) => format!("the {} is “{}”", key.replace('_', " "), value.replace('_', " ")),
        None => pair.replace('_', " "),
    };
    reason.split(',').map(one).collect::<Vec<_>>().join(", and ")
}

fn same_kind(decided: bool, reason: &str) -> String {
    let kinds = reason.rsplit(':').next().unwrap_or_default();
    match (decided, kinds.split_once("_vs_")) {
        (true, Some((one, other))) => format!("No: this is a {one}, the other one a {other}."),
        (true, None) => "No.".to_owned(),
        (false, _) => "Nothing says otherwise.".to_owned(),
    }
}

/// What was decided then, beside what it takes today: the record does not keep what it took then.
fn at_least(decided: bool, value: Option<f64>, least: f64) -> String {
    let Some(value) = value else { return format!("It takes {}.", score(least)) };
    match (decided, value >= least) {
        (false, true) => format!("Yes: {}, and it takes {}.", score(value), score(least)),
        (true, false) => format!("No: {}, and it takes {}.", score(value), score(least)),
        (false, false) => format!("Yes, then: {}. Today it takes {}.", score(value), score(least)),
        (true, true) => format!("No, then: {}. Today it takes {}.", score(value), score(least)),
    }
}

/// Shown with three digits: two of them would often be the same.
fn gap(decided: bool, compared: &GateInput<'_>) -> String {
    let target = compared.target.and_then(|target| Some((target, compared.score_of(target)?)));
    let Some((target, alike)) = target else { return pick(decided, "No.", "Yes.") };
    let mut others: Vec<_> = compared.scores.iter().copied().filter(|(number, _)| *number != target).collect();
    others.sort_by(|one, other| other.1.total_cmp(&one.1));
    let Some(&(next, near)) = others.first() else { return "Yes: it is the only one.".to_owned() };
    // Rounded as the gate rounds: .950 and .935 are far enough apart.
    let is_near = |near: f64| ((alike - near) * 10_000.0).round() / 10_000.0 < SCORE_GAP;
    let told = |(number, score): &(ItemNumber, f64)| format!("#{number} has {score:.3}");
    let numbers = format!("#{target} has {alike:.3}, #{next} has {near:.3}");
    let rivals = others.iter().filter(|(_, near)| is_near(*near)).count();
    match (decided, is_near(near)) {
        // Which of them were known to be the same thing as the target then, and so did not count, is not kept.
        (true, _) if rivals > 1 => {
            let named: Vec<String> = others.iter().take(rivals.min(RIVALS)).map(told).collect();
            let more = if rivals > RIVALS { " and others" } else { "" };
            format!(
                "No: #{target} has {alike:.3}, {}{more}. Less than {SCORE_GAP} apart, and not all of these are \
                known to be the same thing.",
                named.join(", ")
            )
        }
        (true, _) => format!("No: {numbers}. Less than {SCORE_GAP} apart, it may be either of them."),
        (false, false) => format!("Yes: {numbers}, and it takes {SCORE_GAP} between them."),
        (false, true) => format!("Yes: {numbers}, but those two are known to be the same thing."),
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{DecisionOrigin, DecisionStatus, ItemNumber, Verdict};

    use super::{GateInput, GateLine, decision_gates, verdict_gates};

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn decided(lines: &[GateLine]) -> (&'static str, &str) {
        let line = lines.iter().find(|line| line.class.starts_with("decided")).expect("one decided");
        (line.class, line.answer.as_str())
    }

    #[test]
    fn the_numbers_that_were_compared_are_told() {
        let scores = [(number(7), 0.934), (number(9), 0.921)];
        let compared = GateInput {
            target: Some(number(7)),
            confidence: Some(0.81),
            scores: &scores,
            nearest: Some(scores[0]),
            structure: None,
            min_edge: 0.85,
        };
        let of = |status, reason| decision_gates(DecisionOrigin::Batch, status, reason, &compared);
        let rejected = DecisionStatus::Rejected;
        assert_eq!(decided(&of(rejected, Some("below_min_edge"))), ("decided", "No: .81, and it takes .85."));
        // With other settings since, what was decided then is still told.
        let then = |status, min_edge, reason| {
            let compared = GateInput { min_edge, structure: None, ..compared };
            let lines = decision_gates(DecisionOrigin::Batch, status, reason, &compared);
            lines.into_iter().find(|line| line.question.contains("sure enough")).expect("the gate").answer
        };
        assert_eq!(then(rejected, 0.8, Some("below_min_edge")), "No, then: .81. Today it takes .80.");
        assert_eq!(then(DecisionStatus::Accepted, 0.85, None), "Yes, then: .81. Today it takes .85.");
        let gap = of(rejected, Some("candidate_gap_too_small"));
        assert_eq!(decided(&gap).1, "No: #7 has 0.934, #9 has 0.921. Less than 0.015 apart, it may be either of them.");
        // The nearest one may not have counted, being known to be the same thing; so all that are near are named.
        let scores = [(number(8), 0.93), (number(7), 0.934), (number(9), 0.921), (number(5), 0.8)];
        let several = GateInput { scores: &scores, structure: None, ..compared };
        let gap = decision_gates(DecisionOrigin::Batch, rejected, Some("candidate_gap_too_small"), &several);
        assert_eq!(
            decided(&gap).1,
            "No: #7 has 0.934, #8 has 0.930, #9 has 0.921. Less than 0.015 apart, and not all of these are known \
            to be the same thing."
        );
        let scores = [(number(7), 0.95), (number(9), 0.935)];
        let apart = GateInput { scores: &scores, structure: None, ..compared };
        let lines = decision_gates(DecisionOrigin::Batch, DecisionStatus::Accepted, None, &apart);
        assert!(lines.iter().any(|line| line.answer.ends_with("and it takes 0.015 between them.")), "{lines:?}");
        assert_eq!(decided(&of(rejected, None)).1, "No (confidence .81).");
        let veto = of(rejected, Some("scope_relation=source_subset,root_cause_match=absent"));
        assert_eq!(
            decided(&veto).1,
            "No: the scope relation is “source subset”, and it does not tell the root cause match."
        );
        assert_eq!(decided(&of(DecisionStatus::Accepted, None)).0, "decided yes");
        let kinds = of(rejected, Some("bug_feature_mismatch:bug_vs_feature"));
        assert_eq!(decided(&kinds).1, "No: this is a bug, the other one a feature.");
        assert!(kinds.iter().rev().take(3).all(|line| line.class == "skipped" && line.answer.is_empty()));
    }

    #[test]
    fn a_verdict_is_told_with_its_thresholds() {
        let compared = GateInput {
            target: Some(number(7)),
            confidence: Some(0.95),
            scores: &[(number(7), 0.88)],
            nearest: Some((number(7), 0.88)),
            structure: None,
            min_edge: 0.85,
        };
        let lines = verdict_gates(Verdict::MaybeDuplicate, "duplicate_low_retrieval_support", &compared);
        assert_eq!(decided(&lines).1, "No: .88, and it takes .90.");
        let nothing =
            GateInput { scores: &[], nearest: Some((number(4), 0.6)), target: None, confidence: None, ..compared };
        let lines = verdict_gates(Verdict::NotDuplicate, "no_candidates", &nothing);
        assert_eq!(decided(&lines).1, "No: the nearest is #4 with .60, and it takes an open one with .75.");
    }
}
