//! Extracts the evidence about an issue from a close: its reason, the label `duplicate`, and the texts around it.

use std::collections::HashMap;

use jiff::Timestamp;

use crate::items::outcome_event::has_human_label;
use crate::{
    EventBy, GithubId, IssueResolution, ItemNumber, OutcomeEvent, OutcomeEvidence, OutcomeKind, StateReason,
    explains_closing,
};

/// The evidence of a close, and the event that decided.
pub(crate) struct ClosingEvidence<'a> {
    pub(crate) outcome: IssueResolution,
    pub(crate) evidence: OutcomeEvidence,
    pub(crate) decided: &'a OutcomeEvent,
}

/// The evidence of a close and the events around it. The first match counts: the reason `duplicate`; the label
/// `duplicate` that people use; a text that names a target; the reasons `completed` and `not_planned`.
///
/// A close by a program is not evidence, but a person's label or comment beside it is. The actor of a close that a
/// sync found is unknown, and a stale bot closes as `completed` or `not_planned`, so these two count only if a person
/// closed.
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

/// The event by which the issue has the label `duplicate` that people use: the labelling, or the close that shows the
/// label. `None` if the issue does not have the label.
fn labelled_by<'a>(closing: &'a OutcomeEvent, events: &'a [OutcomeEvent]) -> Option<&'a OutcomeEvent> {
    // A sync reports the labels at the time of the sync, not at the time of the close.
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
    // A label event in the same second came after the close: otherwise the close's list of labels would show it.
    let after = events.iter().filter(by_people).rfind(|event| event.occurred_at >= closing.occurred_at);
    match after {
        Some(event) if event.kind == OutcomeKind::Labeled => Some(before.unwrap_or(event)),
        Some(_) => None,
        None => before,
    }
}

/// The targets that comments about a close name, each by the last version of the comment.
struct NamedTargets<'a> {
    /// Named before or at the close.
    before: Option<(ItemNumber, &'a OutcomeEvent)>,
    /// Named after the close: a correction of the target that GitHub or the plan names.
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

/// The current text of each comment about a close, by time. A comment is about a close if it was written or edited
/// around that time and since the issue was last reopened. A later edit still replaces its text.
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
