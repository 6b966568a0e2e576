//! Tests which events are evidence of an outcome, and which are not.

use canonry_domain::{
    IssueResolution, ItemNumber, OutcomeEvent, OutcomeEvidence, RepoName, issue_outcome, named_duplicate,
};

use crate::issue_outcomes::events::{
    APPROVED, BOT, CANONRY, COMPLETED, DUPLICATE, MAINTAINER, NOT_PLANNED, PERSON, REOPENED, SYNC, UNKNOWN, body_names,
    closed, commented, duplicate, duplicate_of, labeled, of, outcome, reopened, unlabeled, with_labels,
};

/// "Order of evidence: `state_reason = duplicate`; the human label; "duplicate of #N" …; then `completed`,
/// `not_planned`; else `unknown`."
#[test]
fn evidence_has_an_order() {
    let evidence = |events: &[OutcomeEvent]| {
        let found = issue_outcome(events);
        (found.outcome, found.evidence, found.decided_by)
    };
    let told = |event: &OutcomeEvent| Some(event.delivery_id.clone());
    let comment = commented(PERSON, 0, 1, 5);
    for (reason, plain) in [
        (COMPLETED, (IssueResolution::Completed, OutcomeEvidence::StateReason)),
        (NOT_PLANNED, (IssueResolution::NotPlanned, OutcomeEvidence::StateReason)),
    ] {
        let close = closed(PERSON, 10, reason);
        assert_eq!(evidence(std::slice::from_ref(&close)), (plain.0, plain.1, told(&close)));
        let with_text = [comment.clone(), close.clone()];
        assert_eq!(evidence(&with_text), (duplicate_of(5), OutcomeEvidence::ClosingComment, told(&comment)));
        let close = with_labels(close, &["duplicate"]);
        let with_label = [comment.clone(), close.clone()];
        assert_eq!(evidence(&with_label), (duplicate_of(5), OutcomeEvidence::Label, told(&close)));
    }
    let close = of(closed(PERSON, 10, DUPLICATE), 7);
    let all = [comment, with_labels(close.clone(), &["duplicate"])];
    assert_eq!(evidence(&all), (duplicate_of(7), OutcomeEvidence::StateReason, told(&close)));
    let nothing = (UNKNOWN, OutcomeEvidence::Nothing, None);
    assert_eq!(evidence(&[closed(PERSON, 10, None)]), nothing);
    assert_eq!(evidence(&[]), nothing);
}

/// "An event sent by Canonry or any bot (stale bots too) is never evidence: its own close counts only when a person
/// approved that plan row, or a person's event follows."
#[test]
fn what_a_program_does_by_itself_is_no_evidence() {
    let own = of(closed(CANONRY, 10, DUPLICATE), 5);
    let stale = closed(BOT, 10, NOT_PLANNED);
    for (expected, events) in [
        (UNKNOWN, vec![own.clone()]),
        (UNKNOWN, vec![stale.clone()]),
        (UNKNOWN, vec![closed(BOT, 10, COMPLETED)]),
        (UNKNOWN, vec![closed(BOT, 10, DUPLICATE)]),
        (UNKNOWN, vec![own.clone(), commented(CANONRY, 10, 1, 5)]),
        (UNKNOWN, vec![stale.clone(), commented(BOT, 10, 1, 5), labeled(BOT, 11)]),
        (UNKNOWN, vec![labeled(BOT, 5), with_labels(stale.clone(), &["duplicate"])]),
        (UNKNOWN, vec![body_names(closed(BOT, 10, None), 5)]),
        (duplicate_of(5), vec![of(closed(APPROVED, 10, DUPLICATE), 5)]),
        (duplicate_of(5), vec![of(closed(APPROVED, 10, NOT_PLANNED), 5)]),
        (duplicate_of(5), vec![own.clone(), labeled(PERSON, 11)]),
        (duplicate_of(6), vec![own.clone(), commented(MAINTAINER, 11, 1, 6)]),
        (UNKNOWN, vec![own.clone(), commented(PERSON, 11, 1, 6)]),
        (duplicate_of(9), vec![stale.clone(), commented(MAINTAINER, 11, 1, 9)]),
        (duplicate(), vec![labeled(PERSON, 5), with_labels(stale, &["duplicate"])]),
        (REOPENED, vec![own.clone(), reopened(PERSON, 20)]),
        (UNKNOWN, vec![own, reopened(BOT, 20)]),
    ] {
        assert_eq!(outcome(&events), expected, "{events:#?}");
    }
}

/// A close that a sync finds has no actor: a stale bot may have closed it, unless it was closed as a duplicate.
#[test]
fn what_a_sync_finds_counts_as_far_as_it_can() {
    for (expected, events) in [
        (duplicate_of(5), vec![of(closed(SYNC, 10, DUPLICATE), 5)]),
        (duplicate(), vec![with_labels(closed(SYNC, 10, COMPLETED), &["duplicate"])]),
        (UNKNOWN, vec![with_labels(closed(SYNC, 10, COMPLETED), &["duplicate"]), labeled(BOT, 12)]),
        (duplicate_of(5), vec![closed(SYNC, 10, COMPLETED), commented(MAINTAINER, 9, 1, 5)]),
        (UNKNOWN, vec![closed(SYNC, 10, COMPLETED), commented(PERSON, 9, 1, 5)]),
        (duplicate_of(5), vec![body_names(closed(SYNC, 10, None), 5)]),
        (UNKNOWN, vec![closed(SYNC, 10, COMPLETED)]),
        (UNKNOWN, vec![closed(SYNC, 10, NOT_PLANNED)]),
        (REOPENED, vec![closed(PERSON, 10, DUPLICATE), reopened(SYNC, 20)]),
        // Another report names the actor.
        (IssueResolution::Completed, vec![closed(SYNC, 10, COMPLETED), closed(PERSON, 10, COMPLETED)]),
        (UNKNOWN, vec![closed(SYNC, 10, DUPLICATE), closed(BOT, 10, DUPLICATE)]),
        (UNKNOWN, vec![closed(PERSON, 10, DUPLICATE), reopened(SYNC, 20), reopened(BOT, 20)]),
        // The two reports of one close complete each other.
        (duplicate_of(5), vec![of(closed(SYNC, 10, DUPLICATE), 5), closed(PERSON, 10, None)]),
        (duplicate(), vec![with_labels(closed(SYNC, 10, COMPLETED), &["Duplicate"]), closed(PERSON, 10, COMPLETED)]),
        // A reopening that is reported twice counts once.
        (REOPENED, vec![closed(PERSON, 10, DUPLICATE), reopened(PERSON, 20), reopened(SYNC, 25)]),
        (UNKNOWN, vec![closed(PERSON, 10, DUPLICATE), reopened(BOT, 20), reopened(SYNC, 25)]),
        (UNKNOWN, vec![closed(PERSON, 10, DUPLICATE), reopened(SYNC, 18), reopened(BOT, 20)]),
        (
            REOPENED,
            vec![closed(PERSON, 10, DUPLICATE), reopened(BOT, 20), closed(PERSON, 30, DUPLICATE), reopened(SYNC, 40)],
        ),
    ] {
        assert_eq!(outcome(&events), expected, "{events:#?}");
    }
}

/// "Label outranks completed/not_planned on purpose." "Never Canonry's own `possible-duplicate`." "`unlabeled` counts
/// like `labeled`."
#[test]
fn peoples_label_says_duplicate_as_long_as_it_is_there() {
    let close = |labels: &[&str]| with_labels(closed(PERSON, 10, COMPLETED), labels);
    for (expected, events) in [
        (duplicate(), vec![close(&["bug", "Duplicate"])]),
        (duplicate(), vec![with_labels(closed(PERSON, 10, NOT_PLANNED), &["duplicate"])]),
        (IssueResolution::Completed, vec![close(&["possible-duplicate", "not-a-duplicate"])]),
        (duplicate(), vec![close(&[]), labeled(PERSON, 5000)]),
        (IssueResolution::Completed, vec![close(&[]), labeled(PERSON, 5000), unlabeled(PERSON, 6000)]),
        (duplicate(), vec![close(&[]), labeled(PERSON, 50), unlabeled(PERSON, 60), labeled(MAINTAINER, 70)]),
        (IssueResolution::Completed, vec![close(&["duplicate"]), unlabeled(PERSON, 11)]),
        (duplicate(), vec![close(&["duplicate"]), unlabeled(BOT, 11)]),
        (IssueResolution::Completed, vec![close(&[]), labeled(BOT, 11)]),
        (IssueResolution::Completed, vec![labeled(CANONRY, 5), close(&["duplicate"])]),
        (duplicate(), vec![labeled(CANONRY, 5), close(&["duplicate"]), unlabeled(PERSON, 11), labeled(PERSON, 12)]),
        (IssueResolution::Completed, vec![labeled(PERSON, 5), close(&[])]),
        // In the second of the close, but not in its list: the label came right after.
        (duplicate(), vec![close(&[]), labeled(PERSON, 10)]),
        (IssueResolution::Completed, vec![close(&["duplicate"]), unlabeled(PERSON, 10)]),
        // A close without a list of labels.
        (duplicate(), vec![labeled(PERSON, 5), closed(PERSON, 10, COMPLETED)]),
        (IssueResolution::Completed, vec![labeled(PERSON, 5), unlabeled(PERSON, 6), closed(PERSON, 10, COMPLETED)]),
        (IssueResolution::Completed, vec![labeled(BOT, 5), closed(PERSON, 10, COMPLETED)]),
        // The label stays, but an open issue has no outcome.
        (UNKNOWN, vec![labeled(PERSON, 5)]),
        (duplicate_of(5), vec![close(&["duplicate"]), commented(PERSON, 12, 1, 5)]),
        (duplicate_of(7), vec![of(close(&["duplicate"]), 7)]),
        (duplicate_of(8), vec![body_names(with_labels(closed(PERSON, 10, None), &["duplicate"]), 8)]),
    ] {
        assert_eq!(outcome(&events), expected, "{events:#?}");
    }
}

/// "Text counts in a comment by the closer or a maintainer between 24 h before and 1 h after closing, or in the body
/// when state_reason is null."
#[test]
fn texts_count_around_a_closing() {
    const DAY: i64 = 24 * 60;
    let close = |reason| closed(PERSON, 2 * DAY, reason);
    let by_bot = closed(BOT, 2 * DAY, NOT_PLANNED);
    for (expected, events) in [
        (duplicate_of(5), vec![close(COMPLETED), commented(PERSON, 2 * DAY, 1, 5)]),
        (duplicate_of(5), vec![close(COMPLETED), commented(PERSON, DAY, 1, 5)]),
        (IssueResolution::Completed, vec![close(COMPLETED), commented(PERSON, DAY - 1, 1, 5)]),
        (duplicate_of(5), vec![close(COMPLETED), commented(PERSON, 2 * DAY + 60, 1, 5)]),
        (IssueResolution::Completed, vec![close(COMPLETED), commented(PERSON, 2 * DAY + 61, 1, 5)]),
        (duplicate_of(5), vec![close(COMPLETED), commented(MAINTAINER, 2 * DAY, 1, 5)]),
        (IssueResolution::Completed, vec![close(COMPLETED), commented(SYNC, 2 * DAY, 1, 5)]),
        (IssueResolution::Completed, vec![close(COMPLETED), commented(BOT, 2 * DAY, 1, 5)]),
        // A stranger: neither the bot that closed it nor a maintainer.
        (UNKNOWN, vec![by_bot.clone(), commented(PERSON, 2 * DAY, 1, 5)]),
        (duplicate_of(5), vec![by_bot, commented(MAINTAINER, 2 * DAY, 1, 5)]),
        // The last version of each comment counts, and of several comments the last.
        (
            IssueResolution::Completed,
            vec![close(COMPLETED), commented(PERSON, DAY, 1, 5), commented(PERSON, DAY + 9, 1, 0)],
        ),
        (
            IssueResolution::Completed,
            vec![close(COMPLETED), commented(PERSON, DAY, 1, 5), commented(PERSON, 9 * DAY, 1, 0)],
        ),
        (duplicate_of(6), vec![close(COMPLETED), commented(PERSON, DAY, 1, 5), commented(PERSON, 9 * DAY, 1, 6)]),
        (duplicate_of(6), vec![close(COMPLETED), commented(PERSON, DAY, 1, 5), commented(MAINTAINER, DAY + 1, 2, 6)]),
        (duplicate_of(5), vec![close(COMPLETED), commented(PERSON, DAY, 1, 5), commented(PERSON, DAY + 1, 2, 0)]),
        (duplicate_of(5), vec![close(COMPLETED), commented(PERSON, DAY - 9, 1, 0), commented(PERSON, DAY, 1, 5)]),
        // An issue is not a duplicate of itself.
        (IssueResolution::Completed, vec![close(COMPLETED), commented(PERSON, DAY, 1, 1)]),
        (UNKNOWN, vec![body_names(close(None), 1)]),
        (duplicate(), vec![of(close(DUPLICATE), 1)]),
        // The body.
        (duplicate_of(5), vec![body_names(close(None), 5)]),
        (IssueResolution::Completed, vec![body_names(close(COMPLETED), 5)]),
        (duplicate(), vec![body_names(close(DUPLICATE), 5)]),
        (duplicate_of(6), vec![body_names(close(None), 5), commented(PERSON, DAY, 1, 6)]),
        // The target is the one that GitHub names, unless it is corrected afterwards.
        (duplicate_of(5), vec![close(DUPLICATE), commented(PERSON, DAY, 1, 5)]),
        (duplicate_of(7), vec![of(close(DUPLICATE), 7), commented(PERSON, DAY, 1, 5)]),
        (duplicate_of(5), vec![of(close(DUPLICATE), 7), commented(MAINTAINER, 2 * DAY + 9, 1, 5)]),
        (duplicate_of(7), vec![of(close(DUPLICATE), 7), commented(PERSON, 9 * DAY, 1, 5)]),
    ] {
        assert_eq!(outcome(&events), expected, "{events:#?}");
    }
}

/// "Patterns "duplicate of #N", "dup(e) of #N", "duped by #N", "dup #N"; not when negated or quoted."
#[test]
fn what_a_text_names() {
    let repo: RepoName = "o/n".parse().expect("a name");
    for (text, expected) in [
        ("Duplicate of #5", Some(5)),
        ("dup of #5", Some(5)),
        ("dupe of #5", Some(5)),
        ("duped by #5", Some(5)),
        ("dup #5", Some(5)),
        ("This is not a duplicate of #5", None),
        ("> duplicate of #5", None),
        ("see `duplicate of #5`", None),
        ("similar to #5", None),
    ] {
        let names = named_duplicate(&repo, text).map_or(0, ItemNumber::get);
        let events = [commented(PERSON, 5, 1, names), closed(PERSON, 10, None)];
        assert_eq!(outcome(&events), expected.map_or(UNKNOWN, duplicate_of), "{text}");
    }
}
