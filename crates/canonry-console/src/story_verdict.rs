//! What became of an item, in one sentence.

use canonry_domain::{DecisionStatus, Gate, Item, ItemNumber, ItemState, OnlineGate, Override, OverrideKind, Verdict};
use canonry_store::{CloseMode, CloseOutcome, Grace, GraceState, ItemClose, StoredDecision, StoredTriageRecord};
use jiff::Timestamp;

use crate::story_timeline::why_it_ended;
use crate::words::{counted, score, when};

/// The sentence: words, the other item, more words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sentence {
    pub(crate) class: &'static str,
    pub(crate) before: String,
    pub(crate) target: Option<ItemNumber>,
    pub(crate) after: String,
}

/// All that the sentence rests on, newest first.
pub(crate) struct Facts<'a> {
    pub(crate) item: &'a Item,
    /// The rulings in force.
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
pub(crate) fn verdict(facts: &Facts<'_>) -> Sentence {
    gone(facts)
        .or_else(|| closed(facts))
        .or_else(|| closing(facts))
        .or_else(|| ruled(facts))
        .or_else(|| stays_open(facts))
        .or_else(|| taken_back(facts))
        .or_else(|| left_open(facts))
        .or_else(|| edge(facts))
        .or_else(|| in_cluster(facts))
        .or_else(|| found(facts))
        .or_else(|| decided(facts))
        .unwrap_or_else(|| Sentence {
            class: "mute",
            before: format!("Canonry has not looked at this {} yet.", facts.item.item_type.in_words()),
            ..Sentence::default()
        })
}

fn sentence(
    class: &'static str,
    before: impl Into<String>,
    target: ItemNumber,
    after: impl Into<String>,
) -> Option<Sentence> {
    Some(Sentence { class, before: before.into(), target: Some(target), after: after.into() })
}

fn gone(facts: &Facts<'_>) -> Option<Sentence> {
    let gone = facts.item.gone?;
    let before = format!("It is no longer in this repository: it was {gone}.");
    Some(Sentence { class: "mute", before, ..Sentence::default() })
}

/// The last close that worked, with when it was taken back.
fn last_close<'a>(facts: &Facts<'a>) -> Option<(&'a ItemClose, Timestamp, Option<Timestamp>)> {
    let done = |one: &&'a ItemClose, mode| one.mode == mode && one.row.result.is_some();
    let applied = |one: &'a ItemClose| {
        let result = one.row.result.as_ref()?;
        matches!(result.outcome, CloseOutcome::Applied { .. }).then_some((one, result))
    };
    let (close, result) = facts.closes.iter().filter(|one| done(one, CloseMode::Apply)).find_map(applied)?;
    let undone =
        facts.closes.iter().filter(|one| done(one, CloseMode::Undo) && one.plan == close.plan).find_map(applied);
    let objected = result.outcome == (CloseOutcome::Applied { objected: true });
    Some((close, result.at, undone.map(|(_, undo)| undo.at).or(objected.then_some(result.at))))
}

fn closed(facts: &Facts<'_>) -> Option<Sentence> {
    let (close, at, None) = last_close(facts)? else { return None };
    if facts.item.state == ItemState::Open {
        return None;
    }
    let by = match (close.row.approved, &close.row.approved_by) {
        (Some(true), Some(by)) => format!(", as {by} had approved"),
        (Some(true), None) => ", as a person had approved".to_owned(),
        _ => String::new(),
    };
    sentence(
        "info",
        "Canonry closed it as a duplicate of ",
        close.row.target?,
        format!(" {}{by}.", when(at, facts.now).in_words()),
    )
}

fn closing(facts: &Facts<'_>) -> Option<Sentence> {
    let grace = facts.graces.iter().find(|grace| grace.state == GraceState::Waiting)?;
    let due = when(grace.due_at, facts.now).in_words();
    let after = match grace.due_at > facts.now {
        true => format!(" {due}, unless somebody objects before that."),
        false => format!("; its time was over {due}, and the close is about to come."),
    };
    sentence("warn", "It will be closed as a duplicate of ", grace.target, after)
}

fn ruled(facts: &Facts<'_>) -> Option<Sentence> {
    let number = facts.item.number;
    let by =
        |ruled: &Override| ruled.created_by.as_ref().map_or_else(|| "A maintainer".to_owned(), |by| by.to_string());
    let last = |kind: OverrideKind| facts.rulings.iter().rev().find(|ruled| ruled.kind == kind && ruled.item == number);
    if let Some(ruled) = last(OverrideKind::Duplicate) {
        return sentence("info", format!("{} ruled that it is a duplicate of ", by(ruled)), ruled.other?, ".");
    }
    if let Some(ruled) = last(OverrideKind::Canonical) {
        let before = format!("{} ruled that it is the one to stay open.", by(ruled));
        return Some(Sentence { class: "good", before, ..Sentence::default() });
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
    sentence(
        "good",
        format!("{} ruled that it is not a duplicate of ", by(ruled)),
        taken_for,
        ", whatever Canonry found.",
    )
}

/// An undo, an objection, or people who opened it again: whatever Canonry thinks of it, that is what happened last.
fn taken_back(facts: &Facts<'_>) -> Option<Sentence> {
    let (close, _, back) = last_close(facts)?;
    let after = match back {
        Some(back) => format!(", and that was taken back {}.", when(back, facts.now).in_words()),
        None => ", and people opened it again.".to_owned(),
    };
    (facts.item.state == ItemState::Open).then_some(())?;
    sentence("good", "Canonry closed it as a duplicate of ", close.row.target?, after)
}

fn left_open(facts: &Facts<'_>) -> Option<Sentence> {
    let grace = facts.graces.first()?;
    if !matches!(grace.state, GraceState::Cancelled | GraceState::Refused) {
        return None;
    }
    let why = why_it_ended(grace.reason.as_deref().unwrap_or_default());
    sentence(
        "good",
        "It was going to be closed as a duplicate of ",
        grace.target,
        format!(", and stays open because {why}."),
    )
}

fn edge(facts: &Facts<'_>) -> Option<Sentence> {
    let in_force = |one: &&StoredDecision| one.status == DecisionStatus::Accepted && one.superseded_at.is_none();
    let edge = facts.decisions.iter().find(in_force)?;
    let sure = edge
        .confidence
        .map(|sure| format!(": the judge’s confidence is {}, and every gate let it pass", score(sure.get())));
    let through = match facts.cluster {
        Some((canonical, _)) if Some(canonical) != edge.target => {
            format!(" Its cluster’s canonical is #{canonical}.")
        }
        _ => String::new(),
    };
    sentence(
        "info",
        "Canonry takes it for a duplicate of ",
        edge.target?,
        format!("{}.{through}", sure.unwrap_or_default()),
    )
}

fn stays_open(facts: &Facts<'_>) -> Option<Sentence> {
    let (_, members) = facts.cluster.filter(|(canonical, _)| *canonical == facts.item.number)?;
    let others = members.saturating_sub(1);
    let say = if others == 1 { "says" } else { "say" };
    let before = format!("This is the one that stays open: {} {say} the same thing.", counted(others, "other item"));
    Some(Sentence { class: "good", before, ..Sentence::default() })
}

fn in_cluster(facts: &Facts<'_>) -> Option<Sentence> {
    sentence("warn", "It is in the cluster of ", facts.cluster?.0, ".")
}

fn found(facts: &Facts<'_>) -> Option<Sentence> {
    let record = &facts.records.first()?.record;
    let alike =
        record.target_score.map(|alike| format!(": the two are {} alike", score(alike.get()))).unwrap_or_default();
    let sure = record
        .confidence
        .map(|sure| format!(", and the judge’s confidence is {}", score(sure.get())))
        .unwrap_or_default();
    match (record.verdict, record.target) {
        (Verdict::Duplicate, Some(target)) => {
            sentence("info", "It looks like a duplicate of ", target, format!("{alike}{sure}."))
        }
        (Verdict::MaybeDuplicate, Some(target)) => {
            sentence("warn", "It may be a duplicate of ", target, format!("{alike}{sure}. A person should look."))
        }
        _ => {
            let why = match OnlineGate::that_decided(&record.reason) {
                Some(OnlineGate::Neighbours) => "nothing that is open was near enough",
                Some(OnlineGate::SaidYes) => "the judge read the nearest ones and said no",
                Some(OnlineGate::UsableAnswer) => "the judge gave no answer that could be used",
                Some(OnlineGate::MaybeConfidence) => "the judge was not sure enough",
                Some(_) => "a gate turned the judge’s yes down",
                None => "nothing spoke for it",
            };
            Some(Sentence {
                class: "good",
                before: format!("Canonry found no duplicate: {why}."),
                ..Sentence::default()
            })
        }
    }
}

fn decided(facts: &Facts<'_>) -> Option<Sentence> {
    let last = facts.decisions.first()?;
    let before = match Gate::that_decided(last.origin, last.status, last.reason.as_deref()) {
        Some(Gate::Candidates) => "Canonry found nothing near enough to compare it with.",
        Some(Gate::EnoughText) => "It says too little to be compared with others.",
        Some(Gate::UsableAnswer) => {
            "The judge gave no answer about it that could be used; it is asked again with the next run."
        }
        Some(Gate::SaidYes) => "Canonry found no duplicate: the judge read the nearest ones and said no.",
        Some(Gate::Ruling) => "People ruled that it is no duplicate of what is near it.",
        _ => "Canonry found no duplicate: a gate turned the judge’s yes down.",
    };
    Some(Sentence { class: "good", before: before.to_owned(), ..Sentence::default() })
}
