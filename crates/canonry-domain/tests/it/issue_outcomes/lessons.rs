//! Tests of the lesson of an outcome, and of the component that it counts for.

use canonry_domain::{
    Component, IssueOutcome, LearningEntry, Lesson, OutcomeEvent, Prediction, PredictionTruth, Similarity,
    ThresholdSettings, issue_outcome, learn_thresholds, lesson_of,
};

use crate::issue_outcomes::events::{
    BOT, COMPLETED, DUPLICATE, NOT_PLANNED, PERSON, closed, commented, entry, labeled, number, of, reopened,
    with_labels,
};

/// "Right = the named target is in the predicted target's cluster (frozen in the event), or no target is named. A
/// duplicate of something else is wrong for the prediction and counted as missed."
#[test]
fn right_is_whatever_is_in_the_predicted_targets_cluster() {
    let predicted = Prediction { target: number(5), score: Similarity::ONE };
    let cluster = |numbers: &[i64]| numbers.iter().copied().map(number).collect::<Vec<_>>();
    let close = |target: Option<i64>, frozen: &[i64]| OutcomeEvent {
        duplicate_of: target.map(number),
        cluster: cluster(frozen),
        ..closed(PERSON, 10, DUPLICATE)
    };
    for (event, expected) in [
        (close(Some(5), &[5]), PredictionTruth::Duplicate),
        (close(Some(5), &[]), PredictionTruth::Duplicate),
        (close(Some(6), &[5, 6]), PredictionTruth::Duplicate),
        (close(None, &[5]), PredictionTruth::Duplicate),
        (close(Some(7), &[5, 6]), PredictionTruth::DuplicateOfAnother),
        (close(Some(6), &[]), PredictionTruth::DuplicateOfAnother),
        // The cluster was stored for another prediction.
        (close(Some(6), &[8, 6]), PredictionTruth::DuplicateOfAnother),
        (closed(PERSON, 10, COMPLETED), PredictionTruth::NotDuplicate),
        (closed(PERSON, 10, NOT_PLANNED), PredictionTruth::NotDuplicate),
        (closed(BOT, 10, NOT_PLANNED), PredictionTruth::Unknown),
    ] {
        assert_eq!(issue_outcome(std::slice::from_ref(&event)).truth(Some(predicted)), expected, "{event:#?}");
    }
    let of_another = issue_outcome(&[close(Some(7), &[5, 6])]);
    assert_eq!(of_another.truth(None), PredictionTruth::Duplicate);
    assert_eq!(lesson_of(&of_another, Some(predicted), None), Lesson::Missed { instead: Some(predicted) });
    assert_eq!(lesson_of(&of_another, None, None), Lesson::Missed { instead: None });
    // A label after the close is the moment of the outcome, and its cluster counts.
    let label = OutcomeEvent { cluster: cluster(&[5, 6, 7]), ..labeled(PERSON, 20) };
    let close = OutcomeEvent { state_reason: COMPLETED, ..close(Some(7), &[5, 6]) };
    assert_eq!(issue_outcome(&[close, label]).truth(Some(predicted)), PredictionTruth::Duplicate);
}

/// "Components: `area/` and `component/` only; with several, the first; … label at the outcome selects the bucket."
#[test]
fn the_labels_at_the_outcome_select_the_bucket() {
    let bucket = |events: &[OutcomeEvent]| {
        let component = issue_outcome(events).component;
        component.as_ref().map(Component::as_str).map(str::to_owned)
    };
    let close = |labels: &[&str]| with_labels(closed(PERSON, 10, COMPLETED), labels);
    for (expected, events) in [
        (Some("auth"), vec![close(&["bug", "area/auth", "component/api"])]),
        (None, vec![close(&["bug", "kind/auth"])]),
        (None, vec![closed(PERSON, 10, COMPLETED)]),
        (Some("api"), vec![close(&["area/auth"]), with_labels(labeled(PERSON, 20), &["component/api", "duplicate"])]),
        (Some("auth"), vec![close(&["area/auth"]), labeled(PERSON, 20)]),
        (None, vec![close(&["area/auth"]), with_labels(labeled(PERSON, 20), &["duplicate"])]),
        (Some("auth"), vec![with_labels(commented(PERSON, 5, 1, 5), &["area/old"]), close(&["area/auth"])]),
        (
            Some("now"),
            vec![
                with_labels(closed(PERSON, 10, DUPLICATE), &["area/auth"]),
                with_labels(reopened(PERSON, 20), &["area/now"]),
            ],
        ),
        (Some("auth"), vec![with_labels(closed(PERSON, 10, DUPLICATE), &["area/auth"]), reopened(PERSON, 20)]),
        (None, vec![with_labels(closed(BOT, 10, COMPLETED), &["area/auth"])]),
    ] {
        assert_eq!(bucket(&events).as_deref(), expected, "{events:#?}");
    }
}

/// "Total = triage records with a known outcome."
#[test]
fn the_total_counts_known_outcomes() {
    let predicted = Some(Prediction { target: number(5), score: Similarity::ONE });
    let lessons = [
        (predicted, of(closed(PERSON, 10, DUPLICATE), 5)),
        (predicted, of(closed(PERSON, 10, DUPLICATE), 7)),
        (predicted, closed(PERSON, 10, COMPLETED)),
        (None, closed(PERSON, 10, NOT_PLANNED)),
        (None, closed(PERSON, 10, DUPLICATE)),
        (predicted, closed(BOT, 10, NOT_PLANNED)),
        (None, closed(PERSON, 10, None)),
    ];
    let log: Vec<LearningEntry> =
        lessons.iter().map(|(prediction, event)| entry(*prediction, std::slice::from_ref(event))).collect();
    let counts = learn_thresholds(&ThresholdSettings::default(), &log).repository.counts;
    let found = [counts.confirmed, counts.false_positives, counts.missed, counts.true_negatives, counts.total];
    assert_eq!(found, [1, 2, 2, 1, 5]);
}

#[test]
fn an_outcome_survives_being_stored() {
    let found = issue_outcome(&[with_labels(of(closed(PERSON, 10, DUPLICATE), 5), &["area/auth"])]);
    let json = serde_json::to_string(&found).expect("plain data");
    assert_eq!(
        json,
        r#"{"outcome":{"kind":"duplicate","of":5},"evidence":"state_reason","decided_by":"closed-person-10","at":"1970-01-01T00:10:00Z","component":"auth","cluster":[]}"#
    );
    assert_eq!(serde_json::from_str::<IssueOutcome>(&json).expect("as written"), found);
}
