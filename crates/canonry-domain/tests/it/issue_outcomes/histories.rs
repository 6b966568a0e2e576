//! Properties that hold for every history of an issue.

use canonry_domain::{
    EventBy, EventOrigin, GithubId, IssueOutcome, IssueResolution, LearningEntry, LessonKind, OutcomeEvent,
    OutcomeKind, Prediction, Similarity, StateReason, ThresholdSettings, issue_outcome, learn_thresholds, lesson_of,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, prop_assert_ne, prop_oneof, proptest};
use proptest::sample::select;

use crate::issue_outcomes::events::{duplicate_of, entry, event, number};

fn some_labels() -> impl Strategy<Value = Option<Vec<String>>> {
    option::of(
        select(vec![vec![], vec!["duplicate"], vec!["area/auth"], vec!["area/api", "duplicate"]])
            .prop_map(|labels| labels.into_iter().map(str::to_owned).collect()),
    )
}

/// Histories of a few hours in which several events may have the same minute. All versions of a comment have the same
/// author.
fn history() -> impl Strategy<Value = Vec<OutcomeEvent>> {
    let kinds = prop_oneof![
        4 => Just(OutcomeKind::Closed),
        3 => Just(OutcomeKind::Reopened),
        1 => Just(OutcomeKind::Labeled),
        1 => Just(OutcomeKind::Unlabeled),
        2 => Just(OutcomeKind::Commented),
    ];
    let by = select(EventBy::ALL);
    let reason = option::of(select(StateReason::ALL));
    let named = option::of((1..4_i64).prop_map(number));
    let one = (kinds, by, 0..8_i64, reason, named.clone(), named, some_labels(), 0..2_i64);
    vec(one, 0..10).prop_map(|events| {
        let events = events.into_iter().enumerate();
        events
            .map(|(index, (kind, by, tens, state_reason, duplicate_of, in_body, labels, nth))| {
                let is_comment = kind == OutcomeKind::Commented;
                let is_closing = kind == OutcomeKind::Closed;
                let comment = EventBy::ALL.iter().position(|known| *known == by).map(|of| of as i64 * 2 + nth);
                OutcomeEvent {
                    delivery_id: format!("delivery-{}", index * 7 % 10),
                    state_reason: state_reason.filter(|_| is_closing),
                    duplicate_of: duplicate_of.filter(|_| is_closing || is_comment),
                    in_body: in_body.filter(|_| is_closing),
                    comment: comment.filter(|_| is_comment).map(GithubId),
                    labels,
                    cluster: vec![number(2), number(3)],
                    ..event(kind, by, tens * 10)
                }
            })
            .collect()
    })
}

proptest! {
    /// Webhooks arrive in any order; the outcome depends on the set of events.
    #[test]
    fn the_order_of_arrival_does_not_matter(
        (history, shuffled) in history().prop_flat_map(|events| (Just(events.clone()), Just(events).prop_shuffle())),
    ) {
        prop_assert_eq!(issue_outcome(&history), issue_outcome(&shuffled));
    }

    #[test]
    fn what_is_delivered_again_changes_nothing(history in history(), again in vec(0..10_usize, 0..10)) {
        let expected = issue_outcome(&history);
        let mut delivered = history.clone();
        delivered.extend(again.into_iter().filter_map(|index| history.get(index).cloned()));
        prop_assert_eq!(issue_outcome(&delivered), expected);
    }

    /// Only an issue that is closed or was reopened has an outcome.
    #[test]
    fn an_outcome_belongs_to_the_last_change_of_state(history in history()) {
        let last = history.iter().filter(|event| matches!(event.kind, OutcomeKind::Closed | OutcomeKind::Reopened));
        let last = last.map(|event| event.occurred_at).max();
        let at_last: Vec<OutcomeKind> = history
            .iter()
            .filter(|event| Some(event.occurred_at) == last)
            .map(|event| event.kind)
            .filter(|kind| matches!(kind, OutcomeKind::Closed | OutcomeKind::Reopened))
            .collect();
        let found = issue_outcome(&history);
        match found.outcome {
            IssueResolution::Unknown => prop_assert_eq!(&found, &IssueOutcome::UNKNOWN),
            IssueResolution::ReopenedDuplicate => {
                let decided = history.iter().find(|event| Some(&event.delivery_id) == found.decided_by.as_ref());
                let by_nobody = decided.is_none_or(|event| event.by.is_automatic());
                prop_assert!(!by_nobody && decided.map(|event| event.kind) == Some(OutcomeKind::Reopened));
                prop_assert!(found.at <= last && at_last.contains(&OutcomeKind::Reopened));
            }
            IssueResolution::Duplicate { .. } | IssueResolution::Completed | IssueResolution::NotPlanned => {
                prop_assert!(at_last.contains(&OutcomeKind::Closed));
                prop_assert!(found.at >= last, "{:?} is before {:?}", found.at, last);
            }
        }
        prop_assert_ne!(found.outcome, duplicate_of(1));
    }

    /// Programs alone never produce an outcome.
    #[test]
    fn programs_are_no_evidence(history in history(), canonry in proptest::bool::ANY) {
        let by = if canonry { EventBy::Canonry } else { EventBy::Bot };
        let automatic = |event| OutcomeEvent { by, labels: None, ..event };
        let history: Vec<OutcomeEvent> = history.into_iter().map(automatic).collect();
        prop_assert_eq!(issue_outcome(&history), IssueOutcome::UNKNOWN);
    }

    /// A program's comment or unlabelling beside people's events changes nothing.
    #[test]
    fn what_programs_say_changes_nothing(history in history()) {
        let says = |event: &OutcomeEvent| matches!(event.kind, OutcomeKind::Commented | OutcomeKind::Unlabeled);
        let without: Vec<OutcomeEvent> =
            history.iter().filter(|event| !(event.by.is_automatic() && says(event))).cloned().collect();
        prop_assert_eq!(issue_outcome(&history), issue_outcome(&without));
    }

    /// A close or reopening that a sync finds is ignored if another report names the actor.
    #[test]
    fn a_sync_adds_nothing_to_what_webhooks_told(history in history()) {
        let changes_state = |event: &&OutcomeEvent| matches!(event.kind, OutcomeKind::Closed | OutcomeKind::Reopened);
        let told = history.iter().filter(changes_state).filter(|event| event.by != EventBy::Unknown);
        let found = told.map(|event| OutcomeEvent {
            delivery_id: EventOrigin::Sync.id(&event.delivery_id),
            by: EventBy::Unknown,
            actor: None,
            ..event.clone()
        });
        let both: Vec<OutcomeEvent> = history.iter().cloned().chain(found).collect();
        prop_assert_eq!(issue_outcome(&both), issue_outcome(&history));
    }

    /// The learning law, from events on: a newly known outcome never lowers a threshold if the prediction was wrong,
    /// and never raises it if the prediction was right. An unknown outcome moves nothing.
    #[test]
    fn outcomes_keep_the_law(
        others in vec((history(), proptest::option::of(50..=100_u8)), 0..60),
        repeated in 1..4_usize,
        news in history(),
        points in 50..=100_u8,
    ) {
        let predicted = |points: u8| Prediction {
            target: number(2),
            score: Similarity::new(f64::from(points) / 100.0).expect("in range"),
        };
        let mut log: Vec<LearningEntry> = Vec::new();
        for (history, points) in &others {
            let learned = LearningEntry { component: None, ..entry(points.map(predicted), history) };
            log.extend(std::iter::repeat_n(learned, repeated));
        }
        let settings = ThresholdSettings::default();
        let before = learn_thresholds(&settings, &log).repository;
        let lesson = lesson_of(&issue_outcome(&news), Some(predicted(points)), None);
        log.push(LearningEntry { lesson, component: None });
        let after = learn_thresholds(&settings, &log).repository;
        match lesson.kind() {
            LessonKind::Confirmed => prop_assert!(after.current <= before.current),
            LessonKind::FalsePositive | LessonKind::Missed => prop_assert!(after.current >= before.current),
            LessonKind::TrueNegative | LessonKind::Unknown => prop_assert_eq!(after.current, before.current),
        }
    }
}
