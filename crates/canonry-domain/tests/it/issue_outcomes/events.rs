//! Events of issue #1, with times in minutes, and the resulting outcome.

use canonry_domain::{
    EventBy, GithubId, IssueResolution, ItemNumber, LearningEntry, OutcomeEvent, OutcomeKind, Prediction, StateReason,
    issue_outcome, lesson_of,
};
use jiff::{SignedDuration, Timestamp};

pub(crate) const BOT: EventBy = EventBy::Bot;
pub(crate) const CANONRY: EventBy = EventBy::Canonry;
pub(crate) const APPROVED: EventBy = EventBy::Approved;
pub(crate) const PERSON: EventBy = EventBy::Person;
pub(crate) const MAINTAINER: EventBy = EventBy::Maintainer;
pub(crate) const SYNC: EventBy = EventBy::Unknown;
pub(crate) const DUPLICATE: Option<StateReason> = Some(StateReason::Duplicate);
pub(crate) const COMPLETED: Option<StateReason> = Some(StateReason::Completed);
pub(crate) const NOT_PLANNED: Option<StateReason> = Some(StateReason::NotPlanned);

pub(crate) const UNKNOWN: IssueResolution = IssueResolution::Unknown;
pub(crate) const REOPENED: IssueResolution = IssueResolution::ReopenedDuplicate;

pub(crate) fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("positive")
}

pub(crate) fn duplicate_of(of: i64) -> IssueResolution {
    IssueResolution::Duplicate { of: Some(number(of)) }
}

pub(crate) fn duplicate() -> IssueResolution {
    IssueResolution::Duplicate { of: None }
}

pub(crate) fn moment(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minutes)
}

/// Each kind of actor has its own account, so that one can be the closer and another not.
pub(crate) fn event(kind: OutcomeKind, by: EventBy, minutes: i64) -> OutcomeEvent {
    let actor = (by != EventBy::Unknown).then(|| by.as_str().parse().expect("a login"));
    OutcomeEvent {
        delivery_id: format!("{kind}-{by}-{minutes}"),
        number: number(1),
        kind,
        state_reason: None,
        actor,
        by,
        duplicate_of: None,
        in_body: None,
        comment: None,
        labels: None,
        cluster: Vec::new(),
        occurred_at: moment(minutes),
    }
}

pub(crate) fn closed(by: EventBy, minutes: i64, state_reason: Option<StateReason>) -> OutcomeEvent {
    OutcomeEvent { state_reason, ..event(OutcomeKind::Closed, by, minutes) }
}

pub(crate) fn reopened(by: EventBy, minutes: i64) -> OutcomeEvent {
    event(OutcomeKind::Reopened, by, minutes)
}

pub(crate) fn labeled(by: EventBy, minutes: i64) -> OutcomeEvent {
    event(OutcomeKind::Labeled, by, minutes)
}

pub(crate) fn unlabeled(by: EventBy, minutes: i64) -> OutcomeEvent {
    event(OutcomeKind::Unlabeled, by, minutes)
}

/// A comment that names an issue; 0 for none.
pub(crate) fn commented(by: EventBy, minutes: i64, id: i64, names: i64) -> OutcomeEvent {
    OutcomeEvent {
        comment: Some(GithubId(id)),
        duplicate_of: ItemNumber::new(names).ok(),
        ..event(OutcomeKind::Commented, by, minutes)
    }
}

pub(crate) fn with_labels(event: OutcomeEvent, labels: &[&str]) -> OutcomeEvent {
    OutcomeEvent { labels: Some(labels.iter().map(|&label| label.to_owned()).collect()), ..event }
}

pub(crate) fn of(event: OutcomeEvent, target: i64) -> OutcomeEvent {
    OutcomeEvent { duplicate_of: Some(number(target)), ..event }
}

pub(crate) fn body_names(event: OutcomeEvent, target: i64) -> OutcomeEvent {
    OutcomeEvent { in_body: Some(number(target)), ..event }
}

/// The outcome; the events in reverse order must give the same.
pub(crate) fn outcome(events: &[OutcomeEvent]) -> IssueResolution {
    let found = issue_outcome(events);
    let mut reversed = events.to_vec();
    reversed.reverse();
    assert_eq!(found, issue_outcome(&reversed), "the order of arrival matters");
    found.outcome
}

pub(crate) fn entry(prediction: Option<Prediction>, events: &[OutcomeEvent]) -> LearningEntry {
    let outcome = issue_outcome(events);
    LearningEntry { lesson: lesson_of(&outcome, prediction, None), component: outcome.component }
}
