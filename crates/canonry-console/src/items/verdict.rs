//! What became of an item, in one sentence.

use std::collections::BTreeMap;

use canonry_domain::{
    DecisionGate, DecisionOrigin, DecisionStatus, GateReason, Item, ItemNumber, OnlineGate, OutcomeEvent, Override,
    OverrideKind, Verdict,
};
use canonry_store::{CloseMode, CloseOutcome, Grace, GraceState, ItemClose, StoredDecision, StoredTriageRecord};
use jiff::Timestamp;

use crate::items::state::{
    AfterClose, EdgeTexts, GraceSummary, ItemStatus, JudgedEdge, LastClose, PresentState, Sentence,
};
use crate::layout::formatting::{by, capital, counted, score};

/// All that the sentence rests on, newest first.
pub(crate) struct ItemFacts<'a> {
    pub(crate) item: &'a Item,
    pub(crate) state: &'static str,
    pub(crate) others: &'a BTreeMap<ItemNumber, Item>,
    /// What happened to it on GitHub, in that order.
    pub(crate) events: &'a [OutcomeEvent],
    pub(crate) rulings: &'a [Override],
    pub(crate) closes: &'a [ItemClose],
    pub(crate) graces: &'a [Grace],
    pub(crate) decisions: &'a [StoredDecision],
    pub(crate) records: &'a [StoredTriageRecord],
    /// The canonical of its cluster, and how many members that has.
    pub(crate) cluster: Option<(ItemNumber, u64)>,
    pub(crate) now: Timestamp,
}

/// What weighs most comes first: what was done, what is going to be done, what a person said, what Canonry found.
pub(crate) fn verdict(facts: &ItemFacts<'_>) -> Sentence {
    let standing = standing(facts);
    let now = standing.now;
    gone(facts)
        .or_else(|| standing.done())
        .or_else(|| ruled(facts, now))
        .or_else(|| stays_open(facts, now))
        .or_else(|| standing.history())
        .or_else(|| in_cluster(facts, now))
        .or_else(|| last_look(facts, now))
        .unwrap_or_else(|| {
            let kind = facts.item.item_type.in_words();
            Sentence::alone("mute", format!("Canonry has not looked at this {kind} yet."))
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
    Some(Sentence::alone("mute", format!("It is no longer in this repository: it was {gone}.")))
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
        let words = format!("{} ruled that it is the one to stay open{}", by(ruled), now.end());
        return Some(Sentence::alone(now.class("good"), words));
    }
    if let Some(ruled) = last(OverrideKind::Excluded) {
        let before = format!("{} excluded it: it is not to be closed as a duplicate of ", by(ruled));
        return Some(Sentence::about(now.class("good"), before, ruled.other?, now.end()));
    }
    // That it is none of one thing is worth the first sentence where that is what Canonry took it for.
    let taken_for = facts
        .records
        .first()
        .and_then(|stored| stored.record.target)
        .or(facts.decisions.first().and_then(|one| one.target))?;
    let apart = |ruled: &&Override| {
        ruled.kind == OverrideKind::NotDuplicate && (ruled.other == Some(taken_for) || ruled.item == taken_for)
    };
    let ruled = facts.rulings.iter().rev().find(apart)?;
    let before = format!("{} ruled that it is not a duplicate of ", by(ruled));
    let after = format!(", whatever Canonry found{}", now.end());
    Some(Sentence::about(now.class("good"), before, taken_for, after))
}

/// The edge that nothing superseded, and of several one that counts.
fn edge(facts: &ItemFacts<'_>) -> Option<JudgedEdge> {
    let in_force = |one: &&StoredDecision| one.status == DecisionStatus::Accepted && one.superseded_at.is_none();
    let judged = |one: &StoredDecision| {
        let target = one.target?;
        let is_ruled = one.origin == DecisionOrigin::Override;
        // Who may not read what was deleted has no item of it here.
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
    let others = members.saturating_sub(1);
    let say = if others == 1 { "says" } else { "say" };
    let same = format!("{} {say} the same thing.", counted(others, "other item"));
    let words = match now {
        PresentState::Open => format!("This is the one that stays open: {same}"),
        PresentState::Closed(how) => format!("This is the one that stays open, or would: it is {how} now. {same}"),
    };
    Some(Sentence::alone(now.class("good"), words))
}

fn in_cluster(facts: &ItemFacts<'_>, now: PresentState) -> Option<Sentence> {
    Some(Sentence::about(now.class("warn"), "It is in the cluster of ", facts.cluster?.0, now.end()))
}

/// What the newest look found: the one that the page shows first.
fn last_look(facts: &ItemFacts<'_>, now: PresentState) -> Option<Sentence> {
    let (record, decision) = (facts.records.first(), facts.decisions.first());
    let is_newer = decision.zip(record).is_some_and(|(decision, record)| decision.created_at > record.created_at);
    let decided = || decision.map(|decision| decided(decision, now));
    if is_newer { decided() } else { found(facts, now).or_else(decided) }
}

fn found(facts: &ItemFacts<'_>, now: PresentState) -> Option<Sentence> {
    let record = &facts.records.first()?.record;
    let alike =
        record.target_score.map(|alike| format!(": the two are {} alike", score(alike.get()))).unwrap_or_default();
    let sure = record
        .confidence
        .map(|sure| format!(", and the judge’s confidence is {}", score(sure.get())))
        .unwrap_or_default();
    let grounds = format!("{alike}{sure}{}", now.end());
    Some(match (record.verdict, record.target, now) {
        (Verdict::Duplicate, Some(target), PresentState::Open) => {
            Sentence::about("info", "It looks like a duplicate of ", target, grounds)
        }
        (Verdict::Duplicate, Some(target), PresentState::Closed(_)) => {
            Sentence::about("mute", "It looked like a duplicate of ", target, grounds)
        }
        (Verdict::MaybeDuplicate, Some(target), PresentState::Open) => {
            Sentence::about("warn", "It may be a duplicate of ", target, format!("{grounds} A person should look."))
        }
        (Verdict::MaybeDuplicate, Some(target), PresentState::Closed(_)) => {
            Sentence::about("mute", "It looked as if it might be a duplicate of ", target, grounds)
        }
        (Verdict::NotDuplicate, ..) | (_, None, _) => {
            let why = match OnlineGate::that_decided(&record.reason) {
                Some(OnlineGate::EnoughText) => "it is an unfilled template, with no text of its own",
                Some(OnlineGate::Neighbours) => "nothing that is open was near enough",
                Some(OnlineGate::SaidYes) => "the judge read the nearest ones and said no",
                Some(OnlineGate::UsableAnswer) => "the judge gave no answer that could be used",
                Some(OnlineGate::MaybeConfidence) => "the judge was not sure enough",
                Some(_) => "a gate turned the judge’s yes down",
                None => "nothing spoke for it",
            };
            Sentence::alone(now.class("good"), format!("Canonry found no duplicate: {why}{}", now.end()))
        }
    })
}

fn decided(last: &StoredDecision, now: PresentState) -> Sentence {
    let words = match (DecisionGate::that_decided(last.origin, last.status, last.reason.as_deref()), now) {
        (Some(DecisionGate::Candidates), _) => "Canonry found nothing near enough to compare it with",
        (Some(DecisionGate::EnoughText), _) if GateReason::NoContent.is_stored_as(last.reason.as_deref()) => {
            "It is an unfilled template, with no text of its own to compare"
        }
        (Some(DecisionGate::EnoughText), _) => "It says too little to be compared with others",
        (Some(DecisionGate::UsableAnswer), PresentState::Open) => {
            "The judge gave no answer about it that could be used; it is asked again with the next run"
        }
        (Some(DecisionGate::UsableAnswer), PresentState::Closed(_)) => {
            "The judge gave no answer about it that could be used"
        }
        (Some(DecisionGate::SaidYes), _) => "Canonry found no duplicate: the judge read the nearest ones and said no",
        (Some(DecisionGate::NoEdgeYet), _) => "It was taken for a duplicate before, so the judge was not asked again",
        (Some(DecisionGate::Ruling), _) => "People ruled that it is no duplicate of what is near it",
        _ => "Canonry found no duplicate: a gate turned the judge’s yes down",
    };
    Sentence::alone(now.class("good"), format!("{words}{}", now.end()))
}
