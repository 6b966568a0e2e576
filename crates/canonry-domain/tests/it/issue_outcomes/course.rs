//! Tests of closing, reopening and closing again.

use canonry_domain::{
    IssueResolution, LessonKind, OutcomeEvent, OutcomeEvidence, Prediction, PredictionTruth, Similarity, issue_outcome,
    lesson_of,
};

use crate::issue_outcomes::events::{
    BOT, CANONRY, COMPLETED, DUPLICATE, MAINTAINER, NOT_PLANNED, PERSON, REOPENED, UNKNOWN, body_names, closed,
    commented, duplicate, duplicate_of, labeled, moment, number, of, outcome, reopened, with_labels,
};

/// "An outcome exists only while closed; reopening makes it unknown, and a person reopening after a duplicate close is
/// a false positive until it is closed again."
#[test]
fn reopening_takes_an_outcome_back() {
    let predicted = Prediction { target: number(5), score: Similarity::ONE };
    let close = of(closed(PERSON, 10, DUPLICATE), 5);
    let story =
        [close, reopened(PERSON, 20), closed(PERSON, 30, COMPLETED), reopened(PERSON, 40), closed(BOT, 50, COMPLETED)];
    let expected = [
        (duplicate_of(5), LessonKind::Confirmed),
        (REOPENED, LessonKind::FalsePositive),
        (IssueResolution::Completed, LessonKind::FalsePositive),
        (UNKNOWN, LessonKind::Unknown),
        (UNKNOWN, LessonKind::Unknown),
    ];
    for (until, (became, kind)) in (1..).zip(expected) {
        let found = issue_outcome(&story[..until]);
        assert_eq!(
            (outcome(&story[..until]), lesson_of(&found, Some(predicted), None).kind()),
            (became, kind),
            "{until}"
        );
    }
    let reopening = issue_outcome(&story[..2]);
    assert_eq!(reopening.evidence, OutcomeEvidence::Reopening);
    assert_eq!((reopening.decided_by.as_deref(), reopening.at), (Some("reopened-person-20"), Some(moment(20))));
    assert_eq!(reopening.truth(None), PredictionTruth::NotDuplicate);
    let again = |last| [&story[..2], &[last]].concat();
    let dup = Some("duplicate");
    for (expected, events) in [
        (duplicate_of(6), again(of(closed(PERSON, 30, DUPLICATE), 6))),
        (UNKNOWN, again(closed(BOT, 30, NOT_PLANNED))),
        // A comment from before the reopening was about the other close.
        (
            IssueResolution::Completed,
            [&again(closed(PERSON, 30, COMPLETED))[..], &[commented(PERSON, 9, 1, 5)]].concat(),
        ),
        (duplicate_of(5), [&again(closed(PERSON, 30, COMPLETED))[..], &[commented(PERSON, 29, 1, 5)]].concat()),
        (UNKNOWN, again(body_names(closed(PERSON, 30, None), 5))),
        (duplicate(), again(with_labels(closed(PERSON, 30, COMPLETED), dup.as_slice()))),
        // A label alone does not close it again.
        (REOPENED, again(labeled(PERSON, 30))),
        // A close for another reason says nothing.
        (UNKNOWN, vec![closed(PERSON, 10, NOT_PLANNED), reopened(PERSON, 20)]),
        (UNKNOWN, vec![closed(BOT, 10, NOT_PLANNED), reopened(PERSON, 20)]),
        (REOPENED, vec![closed(BOT, 10, DUPLICATE), reopened(PERSON, 20)]),
        (REOPENED, vec![labeled(PERSON, 9), closed(BOT, 10, NOT_PLANNED), reopened(PERSON, 20)]),
        (UNKNOWN, vec![closed(PERSON, 10, COMPLETED), reopened(PERSON, 20), labeled(PERSON, 21)]),
        (UNKNOWN, vec![closed(PERSON, 10, DUPLICATE), reopened(CANONRY, 20)]),
        (UNKNOWN, vec![reopened(PERSON, 20)]),
        // A maintainer whose token runs the service closed it manually, and not as a duplicate.
        (UNKNOWN, vec![closed(CANONRY, 10, COMPLETED), reopened(PERSON, 20)]),
        (REOPENED, vec![closed(CANONRY, 10, DUPLICATE), reopened(PERSON, 20)]),
        (REOPENED, vec![of(closed(CANONRY, 10, NOT_PLANNED), 5), reopened(PERSON, 20)]),
        // Within one second.
        (REOPENED, vec![closed(PERSON, 10, DUPLICATE), reopened(PERSON, 10)]),
        (
            IssueResolution::Completed,
            vec![closed(PERSON, 5, DUPLICATE), closed(PERSON, 10, COMPLETED), reopened(MAINTAINER, 10)],
        ),
    ] {
        assert_eq!(outcome(&events), expected, "{events:#?}");
    }
}

/// "A later event corrects an earlier outcome": also without the reopening in between.
#[test]
fn the_last_closing_decides() {
    let first = of(closed(PERSON, 10, DUPLICATE), 5);
    assert_eq!(outcome(&[first.clone(), closed(MAINTAINER, 20, NOT_PLANNED)]), IssueResolution::NotPlanned);
    assert_eq!(outcome(&[closed(MAINTAINER, 5, NOT_PLANNED), first.clone()]), duplicate_of(5));
    // A corrected reason is a close at the time of the correction.
    assert_eq!(outcome(&[closed(MAINTAINER, 10, COMPLETED), closed(PERSON, 12, DUPLICATE)]), duplicate());
    assert_eq!(
        outcome(&[closed(MAINTAINER, 10, DUPLICATE), closed(PERSON, 12, COMPLETED)]),
        IssueResolution::Completed
    );
    // Of two reports with the same time and actor, the one that says duplicate counts.
    let changed = OutcomeEvent { delivery_id: "another".to_owned(), ..closed(PERSON, 10, NOT_PLANNED) };
    assert_eq!(outcome(&[changed, first]), duplicate_of(5));
}
