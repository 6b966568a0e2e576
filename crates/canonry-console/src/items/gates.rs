//! The checks of a verdict, one by one: the question of each, its result, and which of them decided.

use canonry_domain::{
    DecisionGate, DecisionOrigin, DecisionStatus, GateMark, GateReason, ItemNumber, OnlineGate, OnlineThresholds,
    PairRelation, SCORE_GAP, STRONG_RETRIEVAL, Structure, Verdict, gate_trail, online_trail,
};

use crate::layout::formatting::{counted, score};

/// The most candidates that are named as too close to the target: a person reads a few.
const RIVALS: usize = 3;

const PASSED: &str = "passed";
const FAILED: &str = "failed";
const NOT_REACHED: &str = "not reached";
const UNRELATED: &str = "Related in another way?";

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
    /// The candidates before the judge, with their scores.
    pub(crate) scores: &'a [(ItemNumber, f64)],
    /// The nearest candidate, whether or not it was before the judge.
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
            DecisionGate::Ruling => ("Ruled by a person?", ruling(decided, origin, is_good, compared)),
            DecisionGate::Candidates => ("Any candidates?", candidates(decided, compared)),
            DecisionGate::EnoughText => (
                "Enough text to compare?",
                pick(
                    decided,
                    match GateReason::NoContent.is_stored_as(Some(reason)) {
                        true => "No: one of the two is an unfilled template.",
                        false => "No: the text is too short or too vague.",
                    },
                    "Yes.",
                ),
            ),
            DecisionGate::NoEdgeYet => ("Already a known duplicate?", existing_edge(decided, compared)),
            DecisionGate::UsableAnswer => ("Usable answer from the judge?", usable(decided, reason)),
            DecisionGate::SaidYes => ("Did the judge call it a duplicate?", said_yes(decided, compared)),
            DecisionGate::Unrelated => (UNRELATED, unrelated(decided, reason)),
            DecisionGate::Structure => ("Is the judge’s answer consistent?", structure(decided, reason, compared)),
            DecisionGate::TargetOpen => {
                ("Is the target open?", pick(decided, "No. A closed item is never a target.", "Yes."))
            }
            DecisionGate::SameKind => ("Same kind, bug or feature?", same_kind(decided, reason)),
            DecisionGate::Confidence => {
                ("Is the judge’s confidence high enough?", at_least(decided, compared.confidence, compared.min_edge))
            }
            DecisionGate::Gap => ("Is the target clearly ahead of the other candidates?", gap(decided, compared)),
            DecisionGate::Accept => ("Any other objection?", objection(reason, "No: accepted as a duplicate.")),
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
            OnlineGate::Ruling => ("Ruled by a person?", pick(decided, "Yes: as a duplicate.", "No.")),
            OnlineGate::EnoughText => {
                ("Any text besides the template?", pick(decided, "No: the template is unfilled.", "Yes."))
            }
            OnlineGate::Neighbours => {
                ("Is an open item similar enough?", neighbours(decided, compared, thresholds.min_score.get()))
            }
            OnlineGate::UsableAnswer => {
                ("Usable answer from the judge?", pick(decided, "No, so nothing is posted.", "Yes."))
            }
            OnlineGate::SaidYes => ("Did the judge call it a duplicate?", said_yes(decided, compared)),
            OnlineGate::Unrelated => (UNRELATED, unrelated(decided, reason)),
            OnlineGate::Structure => ("Is the judge’s answer consistent?", structure(decided, guarded, compared)),
            OnlineGate::SameKind => ("Same kind, bug or feature?", same_kind(decided, guarded)),
            OnlineGate::AllSame => {
                ("Same problem, cause and scope, and the judge is certain?", all_same(decided, guarded))
            }
            OnlineGate::Gap => ("Is the target clearly ahead of the other candidates?", gap(decided, compared)),
            OnlineGate::MaybeConfidence => {
                let least = thresholds.maybe.get();
                ("Is the confidence high enough for a mention?", at_least(decided, compared.confidence, least))
            }
            OnlineGate::DuplicateConfidence => (
                "Is the confidence high enough for “duplicate”?",
                at_least(decided, compared.confidence, thresholds.duplicate.get()),
            ),
            OnlineGate::Alike => ("Are the two items similar enough?", at_least(decided, alike(), STRONG_RETRIEVAL)),
            OnlineGate::ProvenJudge => (
                "Did the judge pass its audit in this repository?",
                pick(decided, "No, so this judge's answers close nothing. Run `canonry judge-audit`.", "Yes."),
            ),
            OnlineGate::Duplicate => ("Any other objection?", objection(guarded, "No: the verdict is “duplicate”.")),
        };
        line(mark, is_good, question, answer)
    };
    online_trail(reason).into_iter().map(told).collect()
}

fn line(mark: GateMark, is_good: bool, question: &'static str, answer: String) -> GateLine {
    let (class, mark, answer) = match mark {
        GateMark::Passed => ("passed", PASSED, answer),
        GateMark::Decided if is_good => ("decided yes", PASSED, answer),
        GateMark::Decided => ("decided", FAILED, answer),
        GateMark::NotAsked => ("skipped", NOT_REACHED, String::new()),
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

/// What spoke against a pair that passed every gate.
fn objection(reason: &str, if_none: &str) -> String {
    let objection = reason.parse::<GateReason>().ok().and_then(|reason| reason.objection_in_words());
    objection.map_or_else(|| if_none.to_owned(), |objection| format!("Yes: {objection}."))
}

fn ruling(decided: bool, origin: DecisionOrigin, is_good: bool, compared: &GateInput<'_>) -> String {
    match (decided, is_good, compared.target) {
        (true, true, Some(target)) => format!("Yes: as a duplicate of #{target}."),
        (true, _, _) => "Yes: a person ruled that it differs from every candidate.".to_owned(),
        (false, _, _) if origin == DecisionOrigin::Override => "Yes, and a judge had accepted it before.".to_owned(),
        (false, _, _) => "No.".to_owned(),
    }
}

fn candidates(decided: bool, compared: &GateInput<'_>) -> String {
    match (decided, compared.scores.len()) {
        (true, _) => "No: nothing is similar enough.".to_owned(),
        (false, 0) => "Yes.".to_owned(),
        (false, 1) => "Yes, one.".to_owned(),
        (false, count) => format!("Yes, {count}."),
    }
}

fn neighbours(decided: bool, compared: &GateInput<'_>, least: f64) -> String {
    match (decided, compared.nearest, compared.scores.len()) {
        (true, Some((number, alike)), _) => {
            format!("No: the closest is #{number} with {}; {} is required.", score(alike), score(least))
        }
        (true, None, _) => "No: nothing similar was found.".to_owned(),
        (false, _, 0) => "Yes.".to_owned(),
        (false, _, count) => format!("Yes, {count} with at least {}.", score(least)),
    }
}

fn existing_edge(decided: bool, compared: &GateInput<'_>) -> String {
    match (decided, compared.target) {
        (true, Some(target)) => format!("Yes, of #{target}. The judge is not asked twice about the same texts."),
        (true, None) => "Yes. The judge is not asked twice about the same texts.".to_owned(),
        (false, _) => "No.".to_owned(),
    }
}

fn usable(decided: bool, reason: &str) -> String {
    let kind = reason.split_once(':').map_or(reason, |(_, kind)| kind).replace('_', " ");
    if decided { format!("No ({kind}). The next run asks again.") } else { "Yes.".to_owned() }
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
    pick(certain, "Yes: same problem.", "Yes.")
}

fn unrelated(decided: bool, reason: &str) -> String {
    let relation = reason.parse::<PairRelation>().ok().filter(|_| decided);
    relation.map_or_else(|| pick(decided, "Yes.", "No."), |relation| format!("Yes: {}.", relation.in_words()))
}

fn all_same(decided: bool, reason: &str) -> String {
    if decided { format!("No: {}.", keys(reason)) } else { "Yes.".to_owned() }
}

/// `relation=partial_overlap` in words.
fn keys(reason: &str) -> String {
    let one = |pair: &str| match pair.split_once('=') {
        Some((key, "absent")) => format!("{} is missing", key.replace('_', " ")),
        Some((key, value)) => format!("{} is “{}”", key.replace('_', " "), value.replace('_', " ")),
        None => pair.replace('_', " "),
    };
    reason.split(',').map(one).collect::<Vec<_>>().join(", ")
}

fn same_kind(decided: bool, reason: &str) -> String {
    let kinds = reason.rsplit(':').next().unwrap_or_default();
    match (decided, kinds.split_once("_vs_")) {
        (true, Some((one, other))) => format!("No: this is a {one}, the target a {other}."),
        (true, None) => "No.".to_owned(),
        (false, _) => "Yes, or one kind is unknown.".to_owned(),
    }
}

/// The decision of that time beside the current requirement: the record does not contain the requirement of that
/// time.
fn at_least(decided: bool, value: Option<f64>, least: f64) -> String {
    let least_words = score(least);
    let Some(value) = value else { return format!("{least_words} is required.") };
    let words = score(value);
    match (decided, value >= least) {
        (false, true) => format!("Yes: {words}; {least_words} is required."),
        (true, false) => format!("No: {words}; {least_words} is required."),
        (false, false) => format!("Yes at the time: {words}. Today {least_words} is required."),
        (true, true) => format!("No at the time: {words}. Today {least_words} is required."),
    }
}

/// Leads have one decimal: whole percentages of two near candidates would often be equal.
fn gap(decided: bool, compared: &GateInput<'_>) -> String {
    let target = compared.target.and_then(|target| Some((target, compared.score_of(target)?)));
    let Some((target, alike)) = target else { return pick(decided, "No.", "Yes.") };
    let mut others: Vec<_> = compared.scores.iter().copied().filter(|(number, _)| *number != target).collect();
    others.sort_by(|one, other| other.1.total_cmp(&one.1));
    let Some(&(next, near)) = others.first() else { return "Yes: it is the only candidate.".to_owned() };
    // Rounded as the gate rounds: .950 and .935 are far enough apart.
    let lead = |near: f64| ((alike - near) * 10_000.0).round() / 10_000.0;
    let points = |share: f64| format!("{:.1}\u{a0}%", share * 100.0);
    let ahead = format!("#{target} leads #{next} by {}", points(lead(near)));
    let required = points(SCORE_GAP);
    let rivals = others.iter().filter(|(_, near)| lead(*near) < SCORE_GAP).count();
    match (decided, rivals > 0) {
        // The record does not say which of them were known to be duplicates of the target then and therefore did not
        // count.
        (true, _) if rivals > 1 => {
            let named: Vec<String> =
                others.iter().take(rivals.min(RIVALS)).map(|(number, _)| format!("#{number}")).collect();
            let more = if rivals > RIVALS { " and others" } else { "" };
            format!(
                "No: #{target} leads {}{more} by less than {required}, and not all of these are known to be duplicates \
                of each other.",
                named.join(", ")
            )
        }
        (true, _) => format!("No: {ahead}; {required} is required, so it may be either of them."),
        (false, false) => format!("Yes: {ahead}; {required} is required."),
        (false, true) => format!("Yes: {ahead}, and those two are known to be duplicates of each other."),
    }
}

/// The failed checks, and how many passed.
pub(crate) struct GateSummary {
    pub(crate) failed: Vec<GateLine>,
    pub(crate) words: String,
}

impl GateSummary {
    pub(crate) fn of(gates: &[GateLine]) -> Self {
        let with = |mark: &str| gates.iter().filter(|gate| gate.mark == mark).count();
        let failed: Vec<GateLine> = gates.iter().filter(|gate| gate.mark == FAILED).cloned().collect();
        let passed = gates.len() - failed.len() - with(NOT_REACHED);
        let mut words = format!("{} passed", counted(passed as u64, "check"));
        if with(NOT_REACHED) > 0 {
            words += &format!(", {} not reached", with(NOT_REACHED));
        }
        Self { failed, words }
    }
}

#[cfg(test)]
mod tests {
    use canonry_domain::{DecisionOrigin, DecisionStatus, ItemNumber, Verdict};

    use super::{GateInput, GateLine, GateSummary, decision_gates, verdict_gates};

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
        assert_eq!(
            decided(&of(rejected, Some("below_min_edge"))),
            ("decided", "No: 81\u{a0}%; 85\u{a0}% is required.")
        );
        // If the settings changed since, the decision of that time is still shown.
        let then = |status, min_edge, reason| {
            let compared = GateInput { min_edge, structure: None, ..compared };
            let lines = decision_gates(DecisionOrigin::Batch, status, reason, &compared);
            lines.into_iter().find(|line| line.question.contains("confidence high enough")).expect("the gate").answer
        };
        assert_eq!(
            then(rejected, 0.8, Some("below_min_edge")),
            "No at the time: 81\u{a0}%. Today 80\u{a0}% is required."
        );
        assert_eq!(
            then(DecisionStatus::Accepted, 0.85, None),
            "Yes at the time: 81\u{a0}%. Today 85\u{a0}% is required."
        );
        let gap = of(rejected, Some("candidate_gap_too_small"));
        assert_eq!(
            decided(&gap).1,
            "No: #7 leads #9 by 1.3\u{a0}%; 1.5\u{a0}% is required, so it may be either of them."
        );
        // The nearest one may not have counted, because it was a known duplicate; so all near candidates are named.
        let scores = [(number(8), 0.93), (number(7), 0.934), (number(9), 0.921), (number(5), 0.8)];
        let several = GateInput { scores: &scores, structure: None, ..compared };
        let gap = decision_gates(DecisionOrigin::Batch, rejected, Some("candidate_gap_too_small"), &several);
        assert_eq!(
            decided(&gap).1,
            "No: #7 leads #8, #9 by less than 1.5\u{a0}%, and not all of these are known to be duplicates of each other."
        );
        let scores = [(number(7), 0.95), (number(9), 0.935)];
        let apart = GateInput { scores: &scores, structure: None, ..compared };
        let lines = decision_gates(DecisionOrigin::Batch, DecisionStatus::Accepted, None, &apart);
        assert!(
            lines.iter().any(|line| line.answer == "Yes: #7 leads #9 by 1.5\u{a0}%; 1.5\u{a0}% is required."),
            "{lines:?}"
        );
        assert_eq!(decided(&of(rejected, None)).1, "No (confidence 81\u{a0}%).");
        let veto = of(rejected, Some("scope_relation=source_subset,root_cause_match=absent"));
        assert_eq!(decided(&veto).1, "No: scope relation is “source subset”, root cause match is missing.");
        assert_eq!(decided(&of(DecisionStatus::Accepted, None)).0, "decided yes");
        let kinds = of(rejected, Some("bug_feature_mismatch:bug_vs_feature"));
        assert_eq!(decided(&kinds).1, "No: this is a bug, the target a feature.");
        assert!(kinds.iter().rev().take(3).all(|line| line.class == "skipped" && line.answer.is_empty()));
        let folded = GateSummary::of(&kinds);
        assert_eq!((folded.failed.len(), folded.words.as_str()), (1, "9 checks passed, 3 not reached"));
        assert_eq!(GateSummary::of(&of(DecisionStatus::Accepted, None)).words, "13 checks passed");
        let series = of(rejected, Some("series"));
        assert_eq!(decided(&series), ("decided", "Yes: they are parts of a series."));
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
        assert_eq!(decided(&lines).1, "No: 88\u{a0}%; 90\u{a0}% is required.");
        let nothing =
            GateInput { scores: &[], nearest: Some((number(4), 0.6)), target: None, confidence: None, ..compared };
        let lines = verdict_gates(Verdict::NotDuplicate, "no_candidates", &nothing);
        assert_eq!(decided(&lines).1, "No: the closest is #4 with 60\u{a0}%; 75\u{a0}% is required.");
    }
}
