//! What a closing says about an issue: its reason, people's label, what was written about it.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::items::outcome_event::has_human_label;
use crate::{
    EventBy, GithubId, IssueResolution, ItemNumber, OutcomeEvent, OutcomeEvidence, OutcomeKind, StateReason,
    explains_closing,
};

/// What a closing says, and the event that decided.
pub(crate) struct ClosingEvidence<'a> {
    pub(crate) outcome: IssueResolution,
    pub(crate) evidence: OutcomeEvidence,
    pub(crate) decided: &'a OutcomeEvent,
}

/// What a closing and the events around it say. First match: the reason `duplicate`; people's label; a text that names
/// a target; the reasons `completed` and `not_planned`.
///
/// A program's closing is no evidence, but a person's label or comment beside it is. Nobody knows who is behind a
/// closing that a sync found, and a stale bot closes as `completed` or `not_planned`, so those count only by people.
pub(crate) fn evidence_of<'a>(
    closing: &'a OutcomeEvent,
    events: &'a [OutcomeEvent],
    reopened_at: Option<Timestamp>,
    was_refuted: bool,
) -> ClosingEvidence<'a> {
    let named = NamedTargets::around(closing, events, reopened_at);
    let own_target = closing.duplicate_of.filter(|of| *of != closing.number);
    let as_duplicate = closing.state_reason == Some(StateReason::Duplicate) && !closing.by.is_automatic();
    if as_duplicate || closing.by == EventBy::Approved {
        let (of, decided) = match (named.after, own_target, named.before) {
            (Some((corrected, event)), ..) if Some(corrected) != own_target => (Some(corrected), event),
            (_, Some(own), _) => (Some(own), closing),
            (_, None, before) => (before.map(|(of, _)| of), closing),
        };
        return ClosingEvidence {
            outcome: IssueResolution::Duplicate { of },
            evidence: OutcomeEvidence::StateReason,
            decided,
        };
    }
    let in_comment = named.after.or(named.before);
    let in_body = (closing.state_reason.is_none() && !closing.by.is_automatic() && !was_refuted)
        .then_some(closing.in_body)
        .flatten()
        .filter(|of| *of != closing.number);
    if let Some(decided) = labelled_by(closing, events) {
        let of = in_comment.map(|(of, _)| of).or(own_target).or(in_body);
        return ClosingEvidence {
            outcome: IssueResolution::Duplicate { of },
            evidence: OutcomeEvidence::Label,
            decided,
        };
    }
    if let Some((of, decided)) = in_comment {
        let outcome = IssueResolution::Duplicate { of: Some(of) };
        return ClosingEvidence { outcome, evidence: OutcomeEvidence::ClosingComment, decided };
    }
    if in_body.is_some() {
        let outcome = IssueResolution::Duplicate { of: in_body };
        return ClosingEvidence { outcome, evidence: OutcomeEvidence::Body, decided: closing };
    }
    let by_person = matches!(closing.by, EventBy::Person | EventBy::Maintainer);
    let (outcome, evidence) = match closing.state_reason.filter(|_| by_person) {
        Some(StateReason::Completed) => (IssueResolution::Completed, OutcomeEvidence::StateReason),
        Some(StateReason::NotPlanned) => (IssueResolution::NotPlanned, OutcomeEvidence::StateReason),
        Some(StateReason::Duplicate | StateReason::Reopened) | None => {
            (IssueResolution::Unknown, OutcomeEvidence::Nothing)
        }
    };
    ClosingEvidence { outcome, evidence, decided: closing }
}

/// The event by which the issue has people's label `duplicate`, if it has it: that of the labelling, or the closing
/// that found it there.
fn labelled_by<'a>(closing: &'a OutcomeEvent, events: &'a [OutcomeEvent]) -> Option<&'a OutcomeEvent> {
    // A sync tells the labels of the time when it looked, not of the closing.
    let set_by = events.iter().rfind(|event| {
        event.kind == OutcomeKind::Labeled
            && (closing.by == EventBy::Unknown || event.occurred_at <= closing.occurred_at)
    });
    let by_people = |event: &&OutcomeEvent| {
        !event.by.is_automatic() && matches!(event.kind, OutcomeKind::Labeled | OutcomeKind::Unlabeled)
    };
    let before = match &closing.labels {
        Some(labels) if !has_human_label(labels) => None,
        Some(_) => match set_by {
            Some(event) if event.by.is_automatic() => None,
            _ => Some(closing),
        },
        None => events
            .iter()
            .filter(by_people)
            .rfind(|event| event.occurred_at < closing.occurred_at)
            .filter(|event| event.kind == OutcomeKind::Labeled),
    };
    // At the same second it came after: the closing's list would tell it otherwise.
    let after = events.iter().filter(by_people).rfind(|event| event.occurred_at >= closing.occurred_at);
    match after {
        Some(event) if event.kind == OutcomeKind::Labeled => Some(before.unwrap_or(event)),
        Some(_) => None,
        None => before,
    }
}

/// The targets that were named in comments about a closing, each by the last word.
struct NamedTargets<'a> {
    /// Until the closing.
    before: Option<(ItemNumber, &'a OutcomeEvent)>,
    /// After it: a correction of what GitHub or the plan names.
    after: Option<(ItemNumber, &'a OutcomeEvent)>,
}

impl<'a> NamedTargets<'a> {
    fn around(closing: &OutcomeEvent, events: &'a [OutcomeEvent], reopened_at: Option<Timestamp>) -> Self {
        let mut named = Self { before: None, after: None };
        for word in last_words(closing, events, reopened_at) {
            let Some(of) = word.duplicate_of.filter(|of| *of != closing.number) else { continue };
            let is_closer = word.actor.is_some() && word.actor == closing.actor;
            if word.by.is_automatic() || !(is_closer || word.by == EventBy::Maintainer) {
                continue;
            }
            let place = if word.occurred_at > closing.occurred_at { &mut named.after } else { &mut named.before };
            *place = Some((of, word));
        }
        named
    }
}

/// What each comment about a closing says now, by time. A comment is about it when it was written or edited around
/// it, and since the issue was last reopened; what it was edited to later still is its last word.
fn last_words<'a>(
    closing: &OutcomeEvent,
    events: &'a [OutcomeEvent],
    reopened_at: Option<Timestamp>,
) -> Vec<&'a OutcomeEvent> {
    #[derive(PartialEq, Eq, Hash)]
    enum Comment<'a> {
        Known(GithubId),
        Told(&'a str),
    }
    let mut last: HashMap<Comment<'_>, (bool, usize)> = HashMap::new();
    for (index, event) in events.iter().enumerate().filter(|(_, event)| event.kind == OutcomeKind::Commented) {
        let comment = event.comment.map_or(Comment::Told(&event.delivery_id), Comment::Known);
        let is_about = explains_closing(event.occurred_at, closing.occurred_at)
            && reopened_at.is_none_or(|reopened_at| event.occurred_at >= reopened_at);
        let (was_about, word) = last.entry(comment).or_default();
        *was_about |= is_about;
        *word = index;
    }
    let mut words: Vec<usize> = last.into_values().filter(|(is_about, _)| *is_about).map(|(_, word)| word).collect();
    words.sort_unstable();
    words.into_iter().map(|word| &events[word]).collect()
}
