//! Computes the outcome of an issue from its events.

use std::collections::HashSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::learning::closing_evidence::{ClosingEvidence, evidence_of};
use crate::{
    Component, EventBy, ItemNumber, OutcomeEvent, OutcomeKind, Prediction, PredictionTruth, StateReason, text_enum,
};

/// How people resolved an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum IssueResolution {
    Duplicate {
        /// The target; `None` if nobody named one.
        of: Option<ItemNumber>,
    },
    Completed,
    NotPlanned,
    /// The issue was closed as a duplicate, and a person reopened it.
    ReopenedDuplicate,
    Unknown,
}

impl IssueResolution {
    /// The kind as a word, without the target.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Duplicate { .. } => "duplicate",
            Self::Completed => "completed",
            Self::NotPlanned => "not_planned",
            Self::ReopenedDuplicate => "reopened_duplicate",
            Self::Unknown => "unknown",
        }
    }
}

text_enum! {
    pub enum OutcomeEvidence: "evidence of an outcome" {
        /// The reason of the close, or a close by Canonry for a row that a person had approved.
        StateReason = "state_reason",
        /// The label `duplicate` that people use.
        Label = "label",
        /// A comment by the closer or a maintainer around the time of the close.
        ClosingComment = "closing_comment",
        Body = "body",
        Reopening = "reopening",
        Nothing = "nothing",
    }
}

/// The outcome of an issue, and its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IssueOutcome {
    pub outcome: IssueResolution,
    pub evidence: OutcomeEvidence,
    pub decided_by: Option<String>,
    /// The time of the outcome: the close, or a later event that decided.
    pub at: Option<Timestamp>,
    pub component: Option<Component>,
    pub cluster: Vec<ItemNumber>,
}

impl IssueOutcome {
    /// No outcome: the issue is open, or no event shows its outcome.
    pub const UNKNOWN: Self = Self {
        outcome: IssueResolution::Unknown,
        evidence: OutcomeEvidence::Nothing,
        decided_by: None,
        at: None,
        component: None,
        cluster: Vec::new(),
    };

    /// What this outcome says about a prediction, or about an item without one.
    ///
    /// A named target is right if it is in the predicted target's cluster: it is chance which of several reports of
    /// one problem people name.
    pub fn truth(&self, prediction: Option<Prediction>) -> PredictionTruth {
        match (self.outcome, prediction) {
            (IssueResolution::Unknown, _) => PredictionTruth::Unknown,
            (IssueResolution::Completed | IssueResolution::NotPlanned | IssueResolution::ReopenedDuplicate, _) => {
                PredictionTruth::NotDuplicate
            }
            (IssueResolution::Duplicate { of: None }, _) | (IssueResolution::Duplicate { .. }, None) => {
                PredictionTruth::Duplicate
            }
            (IssueResolution::Duplicate { of: Some(of) }, Some(prediction)) => {
                let target = prediction.target;
                // A cluster without the target was stored for an earlier prediction.
                let together = self.cluster.contains(&target) && self.cluster.contains(&of);
                if of == target || together { PredictionTruth::Duplicate } else { PredictionTruth::DuplicateOfAnother }
            }
        }
    }

    /// The later of the close and the deciding event is the moment of the outcome: its labels and its cluster count.
    /// If it does not contain them, those of the other event count.
    fn new(
        outcome: IssueResolution,
        evidence: OutcomeEvidence,
        closing: &OutcomeEvent,
        decided: &OutcomeEvent,
    ) -> Self {
        let (last, first) =
            if decided.occurred_at >= closing.occurred_at { (decided, closing) } else { (closing, decided) };
        let labels = last.labels.as_ref().or(first.labels.as_ref());
        let cluster = if last.cluster.is_empty() { &first.cluster } else { &last.cluster };
        Self {
            outcome,
            evidence,
            decided_by: Some(decided.delivery_id.clone()),
            at: Some(last.occurred_at),
            component: labels.and_then(|labels| Component::of_labels(labels.iter().map(String::as_str))),
            cluster: cluster.clone(),
        }
    }
}

/// The outcome of an issue with these events.
///
/// It depends on the set of events, not on the order in which they arrived, and a repeated event counts once. There is
/// an outcome only while the issue is closed, and the last close decides it. A person who reopens an issue that was
/// closed as a duplicate says that it is not one, until it is closed again.
pub fn issue_outcome(events: &[OutcomeEvent]) -> IssueOutcome {
    let events = in_order(events);
    let mut course = Course::default();
    for (index, event) in events.iter().enumerate() {
        match event.kind {
            OutcomeKind::Closed => course.state = State::Closed(event),
            OutcomeKind::Reopened => course.reopen(event, &events[..=index]),
            OutcomeKind::Labeled | OutcomeKind::Unlabeled | OutcomeKind::Commented => {}
        }
    }
    match course.state {
        State::Open => IssueOutcome::UNKNOWN,
        State::Closed(closing) => course.outcome_of(closing, &events),
        State::ReopenedDuplicate { closing, reopening } => {
            IssueOutcome::new(IssueResolution::ReopenedDuplicate, OutcomeEvidence::Reopening, closing, reopening)
        }
    }
}

/// The state of an issue between two of its events.
#[derive(Default)]
struct Course<'a> {
    state: State<'a>,
    /// When the issue was last reopened, other than by a program: comments from before are about an earlier close.
    reopened_at: Option<Timestamp>,
    /// Whether a person ever reopened the issue and so said that it is not a duplicate.
    was_refuted: bool,
}

#[derive(Default)]
enum State<'a> {
    #[default]
    Open,
    Closed(&'a OutcomeEvent),
    ReopenedDuplicate {
        closing: &'a OutcomeEvent,
        reopening: &'a OutcomeEvent,
    },
}

impl<'a> Course<'a> {
    fn reopen(&mut self, reopening: &'a OutcomeEvent, so_far: &[OutcomeEvent]) {
        // An issue that is already open stays as it is: a sync reports a reopening again, with a later time.
        let State::Closed(closing) = self.state else { return };
        if reopening.by.is_automatic() {
            self.state = State::Open;
            return;
        }
        let was_duplicate = closing.state_reason == Some(StateReason::Duplicate)
            || (closing.by == EventBy::Canonry && closing.duplicate_of.is_some())
            || matches!(self.outcome_of(closing, so_far).outcome, IssueResolution::Duplicate { .. });
        self.state = if was_duplicate { State::ReopenedDuplicate { closing, reopening } } else { State::Open };
        self.was_refuted |= was_duplicate;
        self.reopened_at = Some(reopening.occurred_at);
    }

    fn outcome_of(&self, closing: &OutcomeEvent, events: &[OutcomeEvent]) -> IssueOutcome {
        let ClosingEvidence { outcome, evidence, decided } =
            evidence_of(closing, events, self.reopened_at, self.was_refuted);
        if outcome == IssueResolution::Unknown {
            return IssueOutcome::UNKNOWN;
        }
        IssueOutcome::new(outcome, evidence, closing, decided)
    }
}

/// The events by time, without repetitions.
///
/// GitHub's times are whole seconds, so an issue may be closed and reopened at the same time: the event that changes
/// the state comes first.
fn in_order(events: &[OutcomeEvent]) -> Vec<OutcomeEvent> {
    let mut sorted: Vec<&OutcomeEvent> = events.iter().collect();
    sorted.sort_by_key(|event| {
        (
            event.occurred_at,
            event.kind,
            event.by,
            event.state_reason == Some(StateReason::Duplicate),
            &event.delivery_id,
        )
    });
    let mut seen = HashSet::new();
    sorted.retain(|event| seen.insert(event.delivery_id.as_str()));
    let mut is_closed = false;
    let mut ordered: Vec<OutcomeEvent> = Vec::with_capacity(sorted.len());
    for at_once in sorted.chunk_by(|one, other| one.occurred_at == other.occurred_at) {
        let (closed, rest) = told_once(at_once, OutcomeKind::Closed);
        let (reopened, rest) = told_once(&rest, OutcomeKind::Reopened);
        let changes = if is_closed { [reopened, closed] } else { [closed, reopened] };
        for change in changes.into_iter().flatten() {
            is_closed = change.kind == OutcomeKind::Closed;
            ordered.push(change);
        }
        ordered.extend(rest.into_iter().cloned());
    }
    without_guesses(ordered)
}

/// Removes a reopening that a sync guessed if another report between the same two closes names who reopened: a sync
/// only knows when the issue last changed.
fn without_guesses(mut ordered: Vec<OutcomeEvent>) -> Vec<OutcomeEvent> {
    let is_known = |event: &OutcomeEvent| event.kind == OutcomeKind::Reopened && event.by != EventBy::Unknown;
    let is_guess = |event: &OutcomeEvent| event.kind == OutcomeKind::Reopened && event.by == EventBy::Unknown;
    let mut keeps = Vec::with_capacity(ordered.len());
    for stretch in ordered.chunk_by(|_, next| next.kind != OutcomeKind::Closed) {
        let knows = stretch.iter().any(is_known);
        keeps.extend(stretch.iter().map(|event| !(knows && is_guess(event))));
    }
    let mut keeps = keeps.into_iter();
    ordered.retain(|_| keeps.next().unwrap_or(true));
    ordered
}

/// Merges several reports of one change of state into one event, and returns the other events. Facts that the best
/// report lacks are taken from the next one: a sync knows the labels, but not who closed the issue.
fn told_once<'a>(at_once: &[&'a OutcomeEvent], kind: OutcomeKind) -> (Option<OutcomeEvent>, Vec<&'a OutcomeEvent>) {
    let (mut reports, rest): (Vec<_>, Vec<_>) = at_once.iter().copied().partition(|event| event.kind == kind);
    let Some(best) = reports.pop() else { return (None, rest) };
    let mut told = best.clone();
    for report in reports.into_iter().rev() {
        told.state_reason = told.state_reason.or(report.state_reason);
        told.duplicate_of = told.duplicate_of.or(report.duplicate_of);
        told.in_body = told.in_body.or(report.in_body);
        if told.labels.is_none() {
            told.labels.clone_from(&report.labels);
        }
        if told.cluster.is_empty() {
            told.cluster.clone_from(&report.cluster);
        }
    }
    (Some(told), rest)
}
