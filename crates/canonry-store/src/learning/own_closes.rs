//! Canonry's own closes and undos among an issue's events.
//!
//! A close by Canonry becomes an event as soon as its result is stored, so that it is in the log without a webhook.
//! GitHub may report the same close too, with its own time and without the plan's row: that report counts as the same
//! close, with what Canonry knows about it.

use std::collections::{BTreeMap, BTreeSet};

use canonry_domain::{EventBy, EventOrigin, ItemNumber, OutcomeEvent, OutcomeKind, StateReason};
use jiff::{SignedDuration, Timestamp};

use crate::close::runs::CloseRunId;

/// How far apart GitHub's time of a close and the time of its stored result may be: an unanswered write is rechecked
/// for some minutes before it counts as done.
pub(crate) const SAME_CLOSE: SignedDuration = SignedDuration::from_mins(10);

/// Canonry's own action on an issue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnAct {
    Closed {
        onto: ItemNumber,
        approved: bool,
        /// People reopened the issue before its close was confirmed.
        objected: bool,
    },
    Undone,
}

/// Returns the events of Canonry's own action, as soon as its result is known.
pub(crate) fn own_events(
    run: CloseRunId,
    number: ItemNumber,
    act: OwnAct,
    labels: &[String],
    now: Timestamp,
) -> Vec<OutcomeEvent> {
    let event = |origin: EventOrigin, kind, by, occurred_at| OutcomeEvent {
        delivery_id: origin.id(format_args!("{}#{number}", run.get())),
        number,
        kind,
        state_reason: None,
        actor: None,
        by,
        duplicate_of: None,
        in_body: None,
        comment: None,
        labels: Some(labels.to_vec()),
        cluster: Vec::new(),
        occurred_at,
    };
    match act {
        OwnAct::Undone => vec![event(EventOrigin::Undo, OutcomeKind::Reopened, EventBy::Canonry, now)],
        OwnAct::Closed { onto, approved, objected } => {
            let by = if approved { EventBy::Approved } else { EventBy::Canonry };
            let closed_at = if objected { now - SignedDuration::from_micros(1) } else { now };
            let closed = OutcomeEvent {
                state_reason: Some(StateReason::Duplicate),
                duplicate_of: Some(onto),
                ..event(EventOrigin::Apply, OutcomeKind::Closed, by, closed_at)
            };
            let reopened =
                objected.then(|| event(EventOrigin::Objection, OutcomeKind::Reopened, EventBy::Unknown, now));
            std::iter::once(closed).chain(reopened).collect()
        }
    }
}

/// Returns the events of one issue, with each own action only once.
pub(crate) fn without_repeated_reports(mut events: Vec<OutcomeEvent>) -> Vec<OutcomeEvent> {
    let reported_at = reported_at(&events);
    let own: Vec<OutcomeEvent> = events.iter().filter(|event| is_own(event)).cloned().collect();
    for own in own {
        let Some(at) = reported_at.get(&own.delivery_id) else {
            if own.kind == OutcomeKind::Closed {
                put_before_reopening(&mut events, &own);
            }
            continue;
        };
        // One change may have several reports: a webhook and a sync report the same time.
        let of_it = |event: &&mut OutcomeEvent| {
            !is_own(event) && (event.kind, event.occurred_at) == (own.kind, *at) && !is_objection(&own)
        };
        for event in events.iter_mut().filter(of_it) {
            event.by = own.by;
            event.duplicate_of = event.duplicate_of.or(own.duplicate_of);
            event.state_reason = event.state_reason.or(own.state_reason);
            if event.cluster.is_empty() {
                event.cluster.clone_from(&own.cluster);
            }
        }
        events.retain(|event| event.delivery_id != own.delivery_id);
    }
    events
}

/// Returns GitHub's time of each own action: the nearest report, each used for one action only. A person may close
/// the issue again a few minutes after Canonry closed it and it was reopened.
fn reported_at(events: &[OutcomeEvent]) -> BTreeMap<String, Timestamp> {
    let mut pairs = Vec::new();
    for own in events.iter().filter(|event| is_own(event)) {
        let reports = events.iter().filter(|event| is_report_of(event, own, events));
        pairs.extend(reports.map(|event| (distance(event, own), event.occurred_at, own.kind, &own.delivery_id)));
    }
    pairs.sort_unstable();
    let (mut reported, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for (_, at, kind, own) in pairs {
        if !reported.contains_key(own) && taken.insert((kind, at)) {
            reported.insert(own.clone(), at);
        }
    }
    reported
}

/// A result is stored some time after GitHub closed the issue, and a person may have reopened it before that.
fn put_before_reopening(events: &mut [OutcomeEvent], own: &OutcomeEvent) {
    let window = own.occurred_at - SAME_CLOSE..=own.occurred_at;
    let reopenings = events.iter().filter(|event| event.kind == OutcomeKind::Reopened && !is_own(event));
    let Some(first) = reopenings.map(|event| event.occurred_at).filter(|at| window.contains(at)).min() else { return };
    for event in events.iter_mut().filter(|event| event.delivery_id == own.delivery_id) {
        event.occurred_at = first - SignedDuration::from_micros(1);
    }
}

fn is_own(event: &OutcomeEvent) -> bool {
    event.origin().is_own()
}

fn is_objection(own: &OutcomeEvent) -> bool {
    own.origin() == EventOrigin::Objection
}

fn distance(event: &OutcomeEvent, own: &OutcomeEvent) -> SignedDuration {
    event.occurred_at.duration_since(own.occurred_at).abs()
}

/// Whether an event from GitHub may report an own action. For an objection the actor is another person; any other own
/// action is never one that another account is known to have done.
fn is_report_of(event: &OutcomeEvent, own: &OutcomeEvent, events: &[OutcomeEvent]) -> bool {
    let is_known = |other: &OutcomeEvent| {
        !is_own(other)
            && (other.kind, other.occurred_at) == (event.kind, event.occurred_at)
            && matches!(other.by, EventBy::Person | EventBy::Maintainer | EventBy::Bot)
    };
    !is_own(event)
        && event.kind == own.kind
        && distance(event, own) <= SAME_CLOSE
        && (is_objection(own) || !events.iter().any(is_known))
}

#[cfg(test)]
mod tests {
    use canonry_domain::{EventBy, ItemNumber, OutcomeEvent, OutcomeKind};
    use jiff::Timestamp;

    use super::{OwnAct, own_events, without_repeated_reports};
    use crate::close::runs::CloseRunId;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("in range")
    }

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("a number")
    }

    fn acted(act: OwnAct, second: i64) -> Vec<OutcomeEvent> {
        own_events(CloseRunId::new(4), number(7), act, &[], at(second))
    }

    fn github(kind: OutcomeKind, by: EventBy, second: i64) -> OutcomeEvent {
        let template = acted(OwnAct::Undone, second).remove(0);
        OutcomeEvent { delivery_id: format!("{kind}{second}"), kind, by, ..template }
    }

    #[test]
    fn a_close_that_github_tells_too_keeps_githubs_time_and_our_knowledge() {
        let own = acted(OwnAct::Closed { onto: number(3), approved: true, objected: false }, 5);
        let webhook = github(OutcomeKind::Closed, EventBy::Canonry, 0);
        let reopened = github(OutcomeKind::Reopened, EventBy::Person, 2);
        let told = without_repeated_reports([own, vec![webhook.clone(), reopened.clone()]].concat());
        let close = OutcomeEvent {
            by: EventBy::Approved,
            duplicate_of: Some(number(3)),
            state_reason: told[0].state_reason,
            ..webhook
        };
        assert_eq!(told, [close, reopened]);
        assert!(told[0].state_reason.is_some());
    }

    #[test]
    fn a_close_that_nobody_else_tells_stays() {
        let own = acted(OwnAct::Closed { onto: number(3), approved: false, objected: false }, 5);
        assert_eq!(without_repeated_reports(own.clone()), own);
        for other in [
            github(OutcomeKind::Closed, EventBy::Unknown, 5 + 601),
            github(OutcomeKind::Closed, EventBy::Person, 6),
            github(OutcomeKind::Reopened, EventBy::Unknown, 6),
        ] {
            let events = [own.clone(), vec![other]].concat();
            assert_eq!(without_repeated_reports(events.clone()), events);
        }
    }

    #[test]
    fn of_several_reports_the_nearest_is_ours() {
        let own = acted(OwnAct::Closed { onto: number(3), approved: true, objected: false }, 5);
        let ours = github(OutcomeKind::Closed, EventBy::Canonry, 4);
        let reopened = github(OutcomeKind::Reopened, EventBy::Person, 60);
        // A person closed it by hand with Canonry's token, or a sync found a close by another person.
        for by in [EventBy::Canonry, EventBy::Unknown] {
            let again = github(OutcomeKind::Closed, by, 120);
            let told =
                without_repeated_reports([own.clone(), vec![ours.clone(), reopened.clone(), again.clone()]].concat());
            assert_eq!((told.len(), told[0].by, &told[2]), (3, EventBy::Approved, &again));
        }
    }

    #[test]
    fn two_closes_have_a_report_each() {
        let close = OwnAct::Closed { onto: number(3), approved: true, objected: false };
        let second = own_events(CloseRunId::new(5), number(7), close, &[], at(240));
        let own = [acted(close, 0), acted(OwnAct::Undone, 100), second].concat();
        let report = github(OutcomeKind::Closed, EventBy::Unknown, 239);
        let told = without_repeated_reports([own.clone(), vec![report.clone()]].concat());
        assert_eq!((told.len(), &told[0], &told[1]), (3, &own[0], &own[1]));
        assert_eq!((told[2].by, told[2].occurred_at), (EventBy::Approved, report.occurred_at));
    }

    #[test]
    fn what_a_sync_found_and_somebody_is_known_to_have_done_is_theirs() {
        let own = acted(OwnAct::Closed { onto: number(3), approved: true, objected: false }, 5);
        for by in [EventBy::Person, EventBy::Maintainer, EventBy::Bot] {
            let found = github(OutcomeKind::Closed, EventBy::Unknown, 60);
            let known = OutcomeEvent { delivery_id: "webhook".to_owned(), by, ..found.clone() };
            let events = [own.clone(), vec![found, known]].concat();
            assert_eq!(without_repeated_reports(events.clone()), events);
        }
    }

    #[test]
    fn an_objection_is_somebody_elses() {
        let own = acted(OwnAct::Closed { onto: number(3), approved: false, objected: true }, 5);
        let ids: Vec<_> = own.iter().map(|event| event.delivery_id.as_str()).collect();
        assert_eq!(ids, ["apply:4#7", "objected:4#7"]);
        assert!(own[0].occurred_at < own[1].occurred_at);
        let reopened = github(OutcomeKind::Reopened, EventBy::Person, 2);
        let told = without_repeated_reports([own.clone(), vec![reopened.clone()]].concat());
        assert_eq!((told[0].delivery_id.as_str(), &told[1]), ("apply:4#7", &reopened));
        assert!(told[0].occurred_at < told[1].occurred_at, "what was opened again had been closed before");
    }
}
