//! One triage run of an item: its candidates, the judge's answer and the checks.

use std::collections::BTreeMap;

use canonry_domain::{
    DecisionOrigin, DecisionStatus, FixKind, Item, ItemNumber, ItemState, ItemType, Structure, Verdict, ordered_scores,
};
use canonry_retrieval::ranked_by;
use canonry_store::{CandidateSet, Representation, StoredDecision, StoredTriageRecord};
use jiff::Timestamp;

use crate::items::gates::{GateInput, GateLine, GateSummary, decision_gates, verdict_gates};
use crate::items::judge_part::JudgePart;
use crate::layout::formatting::{TimeLabel, counted, item_path, judge_in_words, score, when};
use crate::layout::markdown::markdown;
use crate::layout::marked_text::MarkedText;

pub(crate) struct TriageRunContext<'a> {
    pub(crate) path: &'a str,
    pub(crate) item_type: ItemType,
    pub(crate) others: &'a BTreeMap<ItemNumber, Item>,
    /// Whether the texts of items that are gone from GitHub may be shown.
    pub(crate) tells_of_gone: bool,
    /// The least confidence of an edge in the repository's current settings.
    pub(crate) min_edge: f64,
    pub(crate) now: Timestamp,
}

impl TriageRunView {
    pub(crate) fn candidate_count(&self) -> String {
        counted(self.candidates.len() as u64, "candidate")
    }
}

impl TriageRunContext<'_> {
    /// Whether one of these items is hidden: a judge's reasoning quotes its text.
    fn hides_any(&self, mut numbers: impl Iterator<Item = ItemNumber>) -> bool {
        let is_gone = |number| self.others.get(&number).is_some_and(|item| item.gone.is_some());
        !self.tells_of_gone && numbers.any(is_gone)
    }
}

pub(crate) struct TriageRunView {
    pub(crate) at: Timestamp,
    pub(crate) when: TimeLabel,
    pub(crate) occasion: &'static str,
    pub(crate) badge: &'static str,
    pub(crate) class: &'static str,
    pub(crate) superseded: Option<TimeLabel>,
    pub(crate) compared: String,
    pub(crate) part_names: Vec<&'static str>,
    pub(crate) candidates: Vec<CandidateLine>,
    pub(crate) judge: Option<JudgeLine>,
    pub(crate) without_answer: String,
    pub(crate) checks: GateSummary,
    pub(crate) gates: Vec<GateLine>,
}

pub(crate) struct CandidateLine {
    pub(crate) number: ItemNumber,
    pub(crate) href: String,
    pub(crate) title: String,
    pub(crate) state: String,
    pub(crate) score: String,
    pub(crate) width: f64,
    pub(crate) parts: Vec<PartBar>,
    pub(crate) is_target: bool,
    pub(crate) unseen: Option<&'static str>,
    pub(crate) ranked_by: Option<String>,
}

pub(crate) struct PartBar {
    pub(crate) name: &'static str,
    pub(crate) words: String,
    pub(crate) width: f64,
}

pub(crate) struct JudgeLine {
    pub(crate) said: String,
    pub(crate) confidence: Option<String>,
    pub(crate) reasoning: Option<MarkedText>,
    pub(crate) who: String,
    pub(crate) structure: Vec<(&'static str, String)>,
    pub(crate) answer: Option<String>,
}

/// The parts of a score that are shown, each with its label.
const PARTS: [(&str, &str); 6] = [
    ("dense", "Meaning"),
    ("lexical", "Words"),
    ("title", "Title"),
    ("evidence", "Evidence"),
    ("paths", "Files"),
    ("diff", "Changes"),
];

/// The part that gates compare.
const SIMILARITY: &str = "similarity";

/// A run of a new item, or a later check of it.
pub(crate) fn view_record(
    stored: &StoredTriageRecord,
    is_first: bool,
    context: &TriageRunContext<'_>,
) -> TriageRunView {
    let record = &stored.record;
    let (badge, class) = match (record.verdict, record.fix.as_ref().map(|fix| fix.kind)) {
        (Verdict::Duplicate, _) => ("duplicate", "info"),
        (Verdict::MaybeDuplicate, _) => ("possible duplicate", "warn"),
        (Verdict::NotDuplicate, Some(FixKind::Fixed)) => ("probably fixed", "info"),
        (Verdict::NotDuplicate, Some(FixKind::PossibleRegression)) => ("possible regression", "warn"),
        (Verdict::NotDuplicate, None) => ("no duplicate found", "good"),
    };
    let scores: Vec<(ItemNumber, f64)> =
        record.candidates.iter().filter(|one| one.judged).map(|one| (one.number, one.score.get())).collect();
    let parts: Vec<&BTreeMap<String, f64>> = record.candidates.iter().map(|one| &one.parts).collect();
    let similarities: Vec<f64> = record.candidates.iter().map(|one| one.score.get()).collect();
    let shown = ordered_scores(&similarities);
    let part_names = names_of(&parts, shown != similarities);
    let candidates = record
        .candidates
        .iter()
        .zip(shown)
        .map(|(one, shown)| {
            let unseen = match (one.judged, one.state) {
                (true, _) => None,
                (false, ItemState::Closed) => Some("closed: never a target"),
                (false, ItemState::Open) => Some("not similar enough to be judged"),
            };
            candidate(
                context,
                (one.number, shown, one.score.get()),
                &one.parts,
                Some(one.state),
                record.target,
                unseen,
                &part_names,
            )
        })
        .collect();
    let hides = context.hides_any(record.candidates.iter().map(|one| one.number).chain(record.target));
    let heard = JudgePart::of_record(stored);
    let judge = (heard == JudgePart::Answer).then(|| JudgeLine {
        said: said(record.is_duplicate, record.target),
        confidence: record.confidence.map(|sure| score(sure.get())),
        reasoning: Some(&record.reasoning).filter(|text| !hides && !text.is_empty()).map(|text| markdown(text)),
        who: who(&record.provider, &record.model, record.prompt_version),
        structure: Vec::new(),
        answer: None,
    });
    let compared = GateInput {
        target: record.target,
        confidence: record.confidence.map(|sure| sure.get()),
        scores: &scores,
        nearest: record.candidates.first().map(|one| (one.number, one.score.get())),
        structure: None,
        min_edge: context.min_edge,
    };
    let gates = verdict_gates(record.verdict, &record.reason, &compared);
    let fallback = record
        .source_fallback_reason
        .as_deref()
        .map(|why| format!(" because the intent card is not usable ({})", why.replace('_', " ")));
    TriageRunView {
        at: stored.created_at,
        when: when(stored.created_at, context.now),
        occasion: if is_first { "When it was opened" } else { "Checked again" },
        badge,
        class,
        superseded: None,
        compared: format!(
            "{}{}, vectors by {}",
            by(record.effective_source),
            fallback.unwrap_or_default(),
            record.embed_model
        ),
        part_names: part_names.iter().map(|(_, word)| *word).collect(),
        candidates,
        judge,
        without_answer: heard.without_answer(),
        checks: GateSummary::of(&gates),
        gates,
    }
}

pub(crate) fn view_decision(
    decision: &StoredDecision,
    sets: &[CandidateSet],
    context: &TriageRunContext<'_>,
) -> TriageRunView {
    let (badge, class) = match decision.status {
        DecisionStatus::Accepted => ("duplicate", "info"),
        DecisionStatus::Rejected => ("no duplicate found", "good"),
        DecisionStatus::Skipped => ("not decided", "mute"),
    };
    let occasion = match decision.origin {
        DecisionOrigin::Batch => "Batch run",
        DecisionOrigin::Online => "Recheck before the close",
        DecisionOrigin::Override => "Ruling",
    };
    let set = sets.iter().find(|set| decision.candidate_set == Some(set.id));
    let nothing = BTreeMap::new();
    let parts_of = |number: ItemNumber| {
        set.and_then(|set| set.members.iter().find(|member| member.number == number))
            .map_or(&nothing, |member| &member.parts)
    };
    let scores: Vec<(ItemNumber, f64)> = decision.candidates.iter().map(|one| (one.number, one.score.get())).collect();
    // A decision made before the judge was asked has no candidates of its own.
    let shown: Vec<(ItemNumber, f64)> = match (scores.is_empty(), set) {
        (true, Some(set)) => set.members.iter().map(|member| (member.number, member.score)).collect(),
        _ => scores.clone(),
    };
    let similarities: Vec<f64> = shown.iter().map(|(_, alike)| *alike).collect();
    let in_order = ordered_scores(&similarities);
    let parts: Vec<&BTreeMap<String, f64>> = shown.iter().map(|(number, _)| parts_of(*number)).collect();
    let part_names = names_of(&parts, in_order != similarities);
    let unseen = scores.is_empty().then_some("the judge was not asked");
    let candidates = shown
        .iter()
        .zip(in_order)
        .map(|((number, alike), score)| {
            let scores = (*number, score, *alike);
            candidate(context, scores, parts_of(*number), None, decision.target, unseen, &part_names)
        })
        .collect();
    let hides = context.hides_any(shown.iter().map(|(number, _)| *number).chain(decision.target));
    let heard = JudgePart::of_decision(decision);
    let is_duplicate = decision.model_is_duplicate.unwrap_or(decision.status == DecisionStatus::Accepted);
    let judge = (heard == JudgePart::Answer).then(|| JudgeLine {
        said: said(is_duplicate, decision.target),
        confidence: decision.confidence.map(|sure| score(sure.get())),
        reasoning: decision.reasoning.as_ref().filter(|text| !hides && !text.is_empty()).map(|text| markdown(text)),
        who: who(&decision.provider, &decision.model, decision.prompt_version),
        structure: decision.structure.as_ref().map(structure_words).unwrap_or_default(),
        answer: decision.answer.clone().filter(|answer| !answer.is_empty() && !hides),
    });
    let compared = GateInput {
        target: decision.target,
        confidence: decision.confidence.map(|sure| sure.get()),
        scores: &scores,
        nearest: shown.first().copied(),
        structure: decision.structure.as_ref(),
        min_edge: context.min_edge,
    };
    let gates = decision_gates(decision.origin, decision.status, decision.reason.as_deref(), &compared);
    TriageRunView {
        at: decision.created_at,
        when: when(decision.created_at, context.now),
        occasion,
        badge,
        class,
        superseded: decision.superseded_at.map(|at| when(at, context.now)),
        compared: by(decision.representation).to_owned(),
        part_names: part_names.iter().map(|(_, word)| *word).collect(),
        candidates,
        judge,
        without_answer: heard.without_answer(),
        checks: GateSummary::of(&gates),
        gates,
    }
}

fn by(representation: Representation) -> &'static str {
    match representation {
        Representation::Raw => "compared by title and body",
        Representation::Intent => "compared by intent cards",
    }
}

/// The parts that at least one candidate has. They include the similarity if it contradicts the order, because then
/// the score is another value.
fn names_of(all: &[&BTreeMap<String, f64>], with_similarity: bool) -> Vec<(&'static str, &'static str)> {
    let known = PARTS.into_iter().filter(|(name, _)| all.iter().any(|parts| parts.contains_key(*name)));
    with_similarity.then_some((SIMILARITY, "Similarity")).into_iter().chain(known).collect()
}

fn candidate(
    context: &TriageRunContext<'_>,
    (number, shown, alike): (ItemNumber, f64, f64),
    parts: &BTreeMap<String, f64>,
    state_then: Option<ItemState>,
    target: Option<ItemNumber>,
    unseen: Option<&'static str>,
    part_names: &[(&'static str, &'static str)],
) -> CandidateLine {
    let item = context.others.get(&number);
    let state = match (state_then, item.map(|item| item.state)) {
        (Some(then), Some(now)) if then != now => format!("{then} then, {now} now"),
        (Some(state), _) | (None, Some(state)) => state.to_string(),
        (None, None) => "unknown".to_owned(),
    };
    let part = |name: &str| if name == SIMILARITY { Some(alike) } else { parts.get(name).copied() };
    let bar = |(part_name, name): &(&'static str, &'static str)| match part(part_name) {
        Some(value) => PartBar { name, words: score(value), width: value.clamp(0.0, 1.0) * 100.0 },
        None => PartBar { name, words: "–".to_owned(), width: 0.0 },
    };
    CandidateLine {
        number,
        href: item_path(context.path, context.item_type, number),
        title: item.map(|item| item.title.clone()).unwrap_or_default(),
        state,
        score: score(shown),
        width: shown.clamp(0.0, 1.0) * 100.0,
        parts: part_names.iter().map(bar).collect(),
        is_target: target == Some(number),
        unseen,
        ranked_by: ranked_by(parts.iter().map(|(name, value)| (name.as_str(), *value))),
    }
}

fn said(is_duplicate: bool, target: Option<ItemNumber>) -> String {
    match (is_duplicate, target) {
        (true, Some(target)) => format!("Yes: the same problem as #{target}."),
        (true, None) => "Yes, but it named none of the candidates.".to_owned(),
        (false, _) => "No: none of the candidates is the same problem.".to_owned(),
    }
}

fn who(provider: &str, model: &str, prompt_version: i64) -> String {
    let name = judge_in_words(provider, model);
    match provider {
        "local" => format!("{name}: it weighs the evidence and asks no model"),
        _ => format!("{name}; prompt version {prompt_version}"),
    }
}

fn structure_words(structure: &Structure) -> Vec<(&'static str, String)> {
    let keys = [
        ("Relation", structure.relation.map(|one| one.as_str())),
        ("Root cause", structure.root_cause_match.map(|one| one.as_str())),
        ("Scope", structure.scope_relation.map(|one| one.as_str())),
        ("Code path", structure.path_match.map(|one| one.as_str())),
        ("Certainty", structure.certainty.map(|one| one.as_str())),
    ];
    keys.into_iter().filter_map(|(key, word)| Some((key, word?.replace('_', " ")))).collect()
}
