//! The verdict about an item, in one sentence.

use std::collections::BTreeMap;

use canonry_domain::mention::gate_in_words;
use canonry_domain::{
    DecisionGate, DecisionOrigin, DecisionStatus, FixKind, GateReason, Item, ItemNumber, OnlineGate, OutcomeEvent,
    Override, OverrideKind, Verdict,
};
use canonry_store::{CloseMode, CloseOutcome, Grace, GraceState, ItemClose, StoredDecision, StoredTriageRecord};
use jiff::Timestamp;

use crate::items::state::{
    AfterClose, EdgeTexts, GraceSummary, ItemStatus, JudgedEdge, LastClose, PresentState, Sentence,
};
use crate::layout::formatting::{by, capital, counted, score};

/// Everything the sentence is derived from, newest first.
pub(crate) struct ItemFacts<'a> {
    pub(crate) item: &'a Item,
    pub(crate) state: &'static str,
    pub(crate) others: &'a BTreeMap<ItemNumber, Item>,
    /// What happened to the item on GitHub, in order.
    pub(crate) events: &'a [OutcomeEvent],
    pub(crate) rulings: &'a [Override],
    pub(crate) closes: &'a [ItemClose],
    pub(crate) graces: &'a [Grace],
    pub(crate) decisions: &'a [StoredDecision],
    pub(crate) records: &'a [StoredTriageRecord],
    /// The canonical of its cluster, and the number of members.
    pub(crate) cluster: Option<(ItemNumber, u64)>,
    pub(crate) now: Timestamp,
}

/// By priority: what was done, what is announced, what a person ruled, what Canonry found.
pub(crate) fn verdict(facts: &ItemFacts<'_>) -> Sentence {
    let standing = standing(facts);
    let now = standing.now;
    gone(facts)
        .or_else(|| standing.done())
        .or_else(|| ruled(facts, now))
        .or_else(|| stays_open(facts, now))
        .or_else(|| standing.history())
        .or_else(|| in_cluster(facts, now))
        .or_else(|| latest_run(facts, now))
        .unwrap_or_else(|| {
            let kind = facts.item.item_type.in_words();
            Sentence::alone("mute", format!("Canonry has not checked this {kind} yet."))
        })
}

fn standing<'a>(facts: &ItemFacts<'a>) -> ItemStatus<'a> {
    let waits = |grace: &&Grace| grace.state == GraceState::Waiting;
    let grace = facts.graces.iter().find(waits).or(facts.graces.first());
    let grace = grace.map(|grace| GraceSummary {
        target: grace.target,
        due_at: grace.due_at,
        state: grace.state,
        reason: grace.reason.as_deref().unwrap_or_default(),
    });
    let now = PresentState::of(facts.item.state, facts.state);
    ItemStatus { now, close: last_close(facts), grace, edge: edge(facts), at: facts.now }
}

fn gone(facts: &ItemFacts<'_>) -> Option<Sentence> {
    let gone = facts.item.gone?;
    Some(Sentence::alone("mute", format!("No longer in this repository: it was {gone}.")))
}

/// The last close that worked.
fn last_close<'a>(facts: &ItemFacts<'a>) -> Option<LastClose<'a>> {
    let done = |one: &&'a ItemClose, mode| one.mode == mode && one.row.result.is_some();
    let applied = |one: &'a ItemClose| {
        let result = one.row.result.as_ref()?;
        matches!(result.outcome, CloseOutcome::Applied { .. }).then_some((one, result))
    };
    let (close, result) = facts.closes.iter().filter(|one| done(one, CloseMode::Apply)).find_map(applied)?;
    let undone =
        facts.closes.iter().filter(|one| done(one, CloseMode::Undo) && one.plan == close.plan).find_map(applied);
    let objected = result.outcome == (CloseOutcome::Applied { objected: true });
    let back = undone.map(|(_, undo)| undo.at).or(objected.then_some(result.at));
    Some(LastClose {
        target: close.row.target?,
        at: result.at,
        approved: (close.row.approved == Some(true)).then(|| close.row.approved_by.as_ref().map(|by| by.as_str())),
        since: AfterClose::of(facts.item, result.at, back, facts.events),
    })
}

fn ruled(facts: &ItemFacts<'_>, now: PresentState) -> Option<Sentence> {
    let number = facts.item.number;
    let by = |ruled: &Override| capital(&by(ruled.created_by.as_ref()));
    let last = |kind: OverrideKind| facts.rulings.iter().rev().find(|ruled| ruled.kind == kind && ruled.item == number);
    if let Some(ruled) = last(OverrideKind::Duplicate) {
        let before = format!("{} ruled that it is a duplicate of ", by(ruled));
        return Some(Sentence::about(now.class("info"), before, ruled.other?, now.end()));
    }
    if let Some(ruled) = last(OverrideKind::Canonical) {
        let words = format!("{} ruled that it stays open as the canonical of its cluster{}", by(ruled), now.end());
        return Some(Sentence::alone(now.class("good"), words));
    }
    if let Some(ruled) = last(OverrideKind::Excluded) {
        let before = format!("{} excluded it from being closed as a duplicate of ", by(ruled));
        return Some(Sentence::about(now.class("good"), before, ruled.other?, now.end()));
    }
    // A not-duplicate ruling comes first only if it is about the item that Canonry predicted.
    let taken_for = facts
        .records
        .first()
        .and_then(|stored| stored.record.named_item())
        .map(|(number, _)| number)
        .or(facts.decisions.first().and_then(|one| one.target))?;
    let apart = |ruled: &&Override| {
        ruled.kind == OverrideKind::NotDuplicate && (ruled.other == Some(taken_for) || ruled.item == taken_for)
    };
    let ruled = facts.rulings.iter().rev().find(apart)?;
    let before = format!("{} ruled that it is not a duplicate of ", by(ruled));
    Some(Sentence::about(now.class("good"), before, taken_for, now.end()))
}

/// The accepted edge that is not superseded; of several, one whose texts are unchanged.
fn edge(facts: &ItemFacts<'_>) -> Option<JudgedEdge> {
    let in_force = |one: &&StoredDecision| one.status == DecisionStatus::Accepted && one.superseded_at.is_none();
    let judged = |one: &StoredDecision| {
        let target = one.target?;
        let is_ruled = one.origin == DecisionOrigin::Override;
        // For readers who may not see deleted items, the item is missing here.
        let other = facts.others.get(&target).filter(|other| other.gone.is_none());
        let texts = EdgeTexts::new(
            is_ruled || one.source_version == facts.item.content_version,
            other.map(|other| is_ruled || one.target_version == Some(other.content_version)),
        );
        let canonical = facts.cluster.map(|(canonical, _)| canonical).filter(|canonical| *canonical != target);
        Some(JudgedEdge { target, confidence: one.confidence.map(|sure| sure.get()), texts, canonical })
    };
    let edges = || facts.decisions.iter().filter(in_force).filter_map(judged);
    edges().find(|edge| edge.texts == EdgeTexts::AsJudged).or_else(|| edges().next())
}

fn stays_open(facts: &ItemFacts<'_>, now: PresentState) -> Option<Sentence> {
    let (_, members) = facts.cluster.filter(|(canonical, _)| *canonical == facts.item.number)?;
    let duplicates = counted(members.saturating_sub(1), "duplicate");
    let words = match now {
        PresentState::Open => format!("Canonical of its cluster: it stays open and has {duplicates}."),
        PresentState::Closed(how) => format!("Canonical of its cluster with {duplicates}. It is {how} now."),
    };
    Some(Sentence::alone(now.class("good"), words))
}

fn in_cluster(facts: &ItemFacts<'_>, now: PresentState) -> Option<Sentence> {
    Some(Sentence::about(now.class("warn"), "In the cluster of ", facts.cluster?.0, now.end()))
}

/// The finding of the newest run, which the page shows first.
fn latest_run(facts: &ItemFacts<'_>, now: PresentState) -> Option<Sentence> {
    let (record, decision) = (facts.records.first(), facts.decisions.first());
    let is_newer = decision.zip(record).is_some_and(|(decision, record)| decision.created_at > record.created_at);
    let decided = || decision.map(|decision| decided(decision, now));
    if is_newer { decided() } else { found(facts, now).or_else(decided) }
}

fn found(facts: &ItemFacts<'_>, now: PresentState) -> Option<Sentence> {
    let record = &facts.records.first()?.record;
    if let Some(fix) = &record.fix {
        let before = match (fix.kind, now) {
            (FixKind::Fixed, PresentState::Open) => "Probably fixed: the same problem as ",
            (FixKind::PossibleRegression, PresentState::Open) => "May be a regression of ",
            (FixKind::Fixed, PresentState::Closed(_)) => "Looked like the fixed problem of ",
            (FixKind::PossibleRegression, PresentState::Closed(_)) => "Looked like a regression of ",
        };
        let similar = score(fix.score.get());
        let after = format!(", which #{} fixed: {similar} similar{}", fix.fix, now.end());
        return Some(Sentence::about(now.class("warn"), before, fix.report, after));
    }
    let similar = record.target_score.map(|similar| format!("{} similar", score(similar.get())));
    let sure = record.confidence.map(|sure| format!("the judge’s confidence is {}", score(sure.get())));
    let grounds: Vec<String> = similar.into_iter().chain(sure).collect();
    let grounds = if grounds.is_empty() { String::new() } else { format!(": {}", grounds.join(", ")) };
    let grounds = format!("{grounds}{}", now.end());
    Some(match (record.verdict, record.target, now) {
        (Verdict::Duplicate, Some(target), PresentState::Open) => {
            Sentence::about("info", "Looks like a duplicate of ", target, grounds)
        }
        (Verdict::Duplicate, Some(target), PresentState::Closed(_)) => {
            Sentence::about("mute", "Looked like a duplicate of ", target, grounds)
        }
        (Verdict::MaybeDuplicate, Some(target), PresentState::Open) => {
            Sentence::about("warn", "May be a duplicate of ", target, format!("{grounds} Please decide."))
        }
        (Verdict::MaybeDuplicate, Some(target), PresentState::Closed(_)) => {
            Sentence::about("mute", "Looked like a possible duplicate of ", target, grounds)
        }
        (Verdict::NotDuplicate, ..) | (_, None, _) => {
            let rejected;
            let why = match OnlineGate::that_decided(&record.reason) {
                Some(OnlineGate::EnoughText) => "the template is unfilled",
                Some(OnlineGate::Neighbours) => "no open item is similar enough",
                Some(OnlineGate::SaidYes) => "the judge compared the closest items and said no",
                Some(OnlineGate::UsableAnswer) => "the judge gave no usable answer",
                Some(OnlineGate::MaybeConfidence) => "the judge’s confidence is too low",
                Some(_) => {
                    rejected = gate_in_words(&record.reason);
                    rejected.as_str()
                }
                None => "no evidence for one",
            };
            Sentence::alone(now.class("good"), format!("No duplicate found: {why}{}", now.end()))
        }
    })
}

fn decided(last: &StoredDecision, now: PresentState) -> Sentence {
    let words = match (DecisionGate::that_decided(last.origin, last.status, last.reason.as_deref()), now) {
        (Some(DecisionGate::Candidates), _) => "No duplicate found: nothing is similar enough",
        (Some(DecisionGate::EnoughText), _) if GateReason::NoContent.is_stored_as(last.reason.as_deref()) => {
            "Not compared: the template is unfilled"
        }
        (Some(DecisionGate::EnoughText), _) => "Not compared: the text is too short or too vague",
        (Some(DecisionGate::UsableAnswer), PresentState::Open) => {
            "Not decided: the judge gave no usable answer; the next run asks again"
        }
        (Some(DecisionGate::UsableAnswer), PresentState::Closed(_)) => "Not decided: the judge gave no usable answer",
        (Some(DecisionGate::SaidYes), _) => "No duplicate found: the judge compared the closest items and said no",
        (Some(DecisionGate::NoEdgeYet), _) => "Already judged a duplicate; the judge was not asked again",
        (Some(DecisionGate::Ruling), _) => "People ruled that it is different from every candidate",
        _ => {
            let why = rejected_by(last.reason.as_deref());
            return Sentence::alone(now.class("good"), format!("No duplicate found: {why}{}", now.end()));
        }
    };
    Sentence::alone(now.class("good"), format!("{words}{}", now.end()))
}

/// The gate that rejected a judge's yes.
fn rejected_by(reason: Option<&str>) -> &'static str {
    let reason = reason.and_then(|reason| reason.parse::<GateReason>().ok());
    match &reason {
        Some(GateReason::Related(relation)) => relation.in_words(),
        Some(GateReason::Structure(_)) => "the judge did not confirm the same problem, cause and scope",
        Some(GateReason::TargetNotOpen) => "the other item is not open",
        Some(GateReason::KindMismatch(_)) => "one is a bug, the other a feature request",
        Some(GateReason::BelowMinEdge) => "the judge’s confidence is too low",
        Some(GateReason::CandidateGapTooSmall) => "another item is just as similar",
        Some(reason) => reason.objection_in_words().unwrap_or("a check rejected the judge’s yes"),
        None => "a check rejected the judge’s yes",
    }
}
