//! Derives the lesson of a triage from the issue's outcome, or from the reactions to Canonry's comment.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{IssueOutcome, IssueResolution, Lesson, OnlineReason, Prediction, PredictionTruth, Verdict};

/// The minimum number of people who must agree before reactions count: one thumb is an opinion.
const AGREEING: u32 = 2;

/// The reactions to a comment of Canonry, counted by person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentReactions {
    /// People who reacted only with 👍.
    pub up: u32,
    /// People who reacted only with 👎.
    pub down: u32,
    pub mixed: u32,
}

impl CommentReactions {
    /// What the reactions say: two or more people, all of one opinion.
    fn truth(self) -> PredictionTruth {
        match self {
            Self { up, down: 0, mixed: 0 } if up >= AGREEING => PredictionTruth::Duplicate,
            Self { up: 0, down, mixed: 0 } if down >= AGREEING => PredictionTruth::NotDuplicate,
            _ => PredictionTruth::Unknown,
        }
    }
}

/// The lesson of a triage record. Reactions count only while there is no outcome, and only if there is a prediction:
/// they belong to the comment that posted it.
pub fn lesson_of(
    outcome: &IssueOutcome,
    prediction: Option<Prediction>,
    reactions: Option<CommentReactions>,
) -> Lesson {
    match (outcome.truth(prediction), prediction, reactions) {
        (PredictionTruth::Unknown, Some(_), Some(reactions)) => Lesson::new(prediction, reactions.truth()),
        (truth, ..) => Lesson::new(prediction, truth),
    }
}

/// The lesson of a suggestion that an issue is fixed already or is a regression. It predicted no duplicate, so only
/// people who disagree teach something: the suggestion was wrong at its score.
pub fn lesson_of_fix(named: Prediction, reactions: Option<CommentReactions>) -> Lesson {
    match reactions.map(CommentReactions::truth) {
        Some(PredictionTruth::NotDuplicate) => Lesson::FalsePositive { prediction: named },
        _ => Lesson::Unknown,
    }
}

/// Whether a triage record's reason says that the judge gave no usable answer. Such a record has no lesson.
pub fn triage_failed(reason: &str) -> bool {
    OnlineReason::InvalidJudgeResponse.is_stored_as(reason)
}

/// Whether a triage record can have a lesson. A failed one predicted nothing, one that follows a person's override
/// repeats what people said, and a target without a score counts at no level.
pub fn can_teach(verdict: Verdict, reason: &str, has_score: bool) -> bool {
    let is_measured = verdict == Verdict::NotDuplicate || has_score;
    !triage_failed(reason) && !OnlineReason::Override.is_stored_as(reason) && is_measured
}

/// The fields of a triage record that matter for learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PastTriage {
    /// The key in the store; a later record has a greater key.
    pub id: i64,
    pub prediction: Option<Prediction>,
    /// The closed report that was named as fixed or as back. Such a record says nothing about duplicates.
    pub fixed: Option<Prediction>,
    /// Whether the record can have a lesson; see [`can_teach`].
    pub teaches: bool,
    pub said: TriageVisibility,
    pub created_at: Timestamp,
}

/// What people could see of a triage record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TriageVisibility {
    Nothing,
    Spoken,
    /// The existing comment says that the suggestion is withdrawn.
    TakenBack,
}

/// The record of an issue that counts, so that each issue has one lesson: the last record that can teach and was made
/// before people decided, preferring posted ones. While people have not decided, it is the last record.
pub fn counted_triage(records: &[PastTriage], outcome: &IssueOutcome) -> Option<usize> {
    last_triage(records, outcome.at.filter(|_| outcome.outcome != IssueResolution::Unknown))
}

/// The record that counts at a moment: the last posted one, or the last one if none was posted.
///
/// People answer what was posted, whatever was recorded later without a comment. GitHub's times are whole seconds, so
/// a record of the same second counts.
pub fn last_triage(records: &[PastTriage], until: Option<Timestamp>) -> Option<usize> {
    records
        .iter()
        .enumerate()
        .filter(|(_, record)| {
            record.teaches && until.is_none_or(|until| record.created_at.as_second() <= until.as_second())
        })
        .max_by_key(|(_, record)| (record.said == TriageVisibility::Spoken, record.created_at, record.id))
        .map(|(index, _)| index)
}

/// The record that the reactions to an issue's comment are about: the last one for which the comment was written or
/// edited. If that one was withdrawn, the meaning of a reaction is unknown.
pub fn reacted_triage(records: &[PastTriage]) -> Option<usize> {
    let said = records.iter().enumerate().filter(|(_, record)| record.said != TriageVisibility::Nothing);
    let (index, last) = said.max_by_key(|(_, record)| (record.created_at, record.id))?;
    (last.said == TriageVisibility::Spoken && (last.teaches || last.fixed.is_some())).then_some(index)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{
        CommentReactions, PastTriage, TriageVisibility, can_teach, counted_triage, last_triage, lesson_of,
        lesson_of_fix, reacted_triage, triage_failed,
    };
    use crate::{IssueOutcome, IssueResolution, ItemNumber, Lesson, Prediction, Similarity, Verdict};

    fn prediction() -> Prediction {
        Prediction { target: ItemNumber::new(5).expect("positive"), score: Similarity::ONE }
    }

    fn hour(hours: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours)
    }

    fn at(outcome: IssueResolution, hours: i64) -> IssueOutcome {
        IssueOutcome { outcome, at: Some(hour(hours)), ..IssueOutcome::UNKNOWN }
    }

    #[test]
    fn reactions_count_while_there_is_no_outcome() {
        let (confirmed, wrong) =
            (Lesson::Confirmed { prediction: prediction() }, Lesson::FalsePositive { prediction: prediction() });
        for (up, down, mixed, expected) in [
            (0, 2, 0, wrong),
            (0, 7, 0, wrong),
            (2, 0, 0, confirmed),
            (0, 1, 0, Lesson::Unknown),
            (1, 0, 0, Lesson::Unknown),
            (1, 2, 0, Lesson::Unknown),
            (5, 1, 0, Lesson::Unknown),
            (3, 0, 1, Lesson::Unknown),
            (0, 3, 1, Lesson::Unknown),
            (0, 0, 2, Lesson::Unknown),
            (0, 0, 0, Lesson::Unknown),
        ] {
            let reactions = Some(CommentReactions { up, down, mixed });
            let lesson = |outcome: &IssueOutcome, prediction| lesson_of(outcome, prediction, reactions);
            assert_eq!(lesson(&IssueOutcome::UNKNOWN, Some(prediction())), expected, "{reactions:?}");
            assert_eq!(lesson(&IssueOutcome::UNKNOWN, None), Lesson::Unknown);
            assert_eq!(lesson(&at(IssueResolution::Duplicate { of: None }, 1), Some(prediction())), confirmed);
            assert_eq!(lesson(&at(IssueResolution::NotPlanned, 1), Some(prediction())), wrong);
            assert_eq!(lesson(&at(IssueResolution::Completed, 1), None), Lesson::TrueNegative);
        }
    }

    #[test]
    fn the_last_triage_before_people_decided_counts() {
        let record = |id, hours, teaches| PastTriage { teaches, ..record(id, hours, TriageVisibility::Nothing) };
        let records =
            [record(1, 0, true), record(2, 3, true), record(3, 3, true), record(4, 5, false), record(5, 8, true)];
        let closed = |hours| at(IssueResolution::Completed, hours);
        assert_eq!(counted_triage(&records, &closed(2)), Some(0));
        assert_eq!(counted_triage(&records, &closed(3)), Some(2));
        assert_eq!(counted_triage(&records, &closed(6)), Some(2));
        assert_eq!(counted_triage(&records, &closed(8)), Some(4));
        assert_eq!(counted_triage(&records, &IssueOutcome::UNKNOWN), Some(4));
        assert_eq!(counted_triage(&records[1..], &closed(2)), None);
        assert_eq!(counted_triage(&records[3..4], &IssueOutcome::UNKNOWN), None);
        let half_a_second_later = PastTriage { created_at: hour(2) + SignedDuration::from_millis(500), ..records[0] };
        assert_eq!(counted_triage(&[half_a_second_later], &closed(2)), Some(0));
        assert_eq!(last_triage(&[half_a_second_later], Some(hour(2))), Some(0));
        let mut reversed = records;
        reversed.reverse();
        assert_eq!(counted_triage(&reversed, &closed(6)), Some(2));
    }

    fn record(id: i64, hours: i64, said: TriageVisibility) -> PastTriage {
        PastTriage { id, prediction: None, fixed: None, teaches: true, said, created_at: hour(hours) }
    }

    #[test]
    fn what_was_spoken_counts_before_what_was_only_recorded() {
        let spoken = [
            record(1, 0, TriageVisibility::Nothing),
            record(2, 1, TriageVisibility::Spoken),
            record(3, 2, TriageVisibility::Spoken),
            record(4, 3, TriageVisibility::Nothing),
            record(5, 9, TriageVisibility::Spoken),
        ];
        assert_eq!(counted_triage(&spoken, &at(IssueResolution::Completed, 5)), Some(2));
        assert_eq!(counted_triage(&spoken, &at(IssueResolution::Completed, 0)), Some(0));
        assert_eq!(counted_triage(&spoken, &IssueOutcome::UNKNOWN), Some(4));
        let failed = PastTriage { teaches: false, ..spoken[1] };
        assert_eq!(counted_triage(&[spoken[0], failed, spoken[3]], &at(IssueResolution::Completed, 5)), Some(2));
    }

    #[test]
    fn reactions_are_about_what_the_comment_says() {
        let (first, silent, edited) = (
            record(1, 0, TriageVisibility::Spoken),
            record(2, 1, TriageVisibility::Nothing),
            record(3, 2, TriageVisibility::Spoken),
        );
        assert_eq!(reacted_triage(&[first, silent]), Some(0));
        assert_eq!(reacted_triage(&[first, edited, silent]), Some(1));
        assert_eq!(reacted_triage(&[silent]), None);
        assert_eq!(reacted_triage(&[first, record(4, 3, TriageVisibility::TakenBack), silent]), None);
        assert_eq!(reacted_triage(&[first, PastTriage { teaches: false, ..edited }]), None);
    }

    #[test]
    fn a_named_fix_teaches_only_that_it_was_wrong() {
        let wrong = Lesson::FalsePositive { prediction: prediction() };
        for (up, down, mixed, expected) in
            [(0, 2, 0, wrong), (2, 0, 0, Lesson::Unknown), (0, 1, 0, Lesson::Unknown), (0, 2, 1, Lesson::Unknown)]
        {
            let reactions = Some(CommentReactions { up, down, mixed });
            assert_eq!(lesson_of_fix(prediction(), reactions), expected, "{reactions:?}");
        }
        assert_eq!(lesson_of_fix(prediction(), None), Lesson::Unknown);
        let named = PastTriage { fixed: Some(prediction()), teaches: false, ..record(2, 1, TriageVisibility::Spoken) };
        assert_eq!(reacted_triage(&[named]), Some(0));
        // What people do with the issue is no lesson about duplicates.
        for outcome in [IssueResolution::Duplicate { of: None }, IssueResolution::Completed] {
            assert_eq!(counted_triage(&[named], &at(outcome, 5)), None);
        }
    }

    #[test]
    fn only_a_judgement_with_a_score_can_teach() {
        for (verdict, reason, has_score, expected) in [
            (Verdict::Duplicate, "duplicate", true, true),
            (Verdict::MaybeDuplicate, "low_confidence_duplicate", true, true),
            (Verdict::NotDuplicate, "no_candidates", false, true),
            (Verdict::Duplicate, "duplicate", false, false),
            (Verdict::MaybeDuplicate, "low_confidence_duplicate", false, false),
            (Verdict::Duplicate, "override", true, false),
            (Verdict::MaybeDuplicate, "invalid_judge_response", true, false),
            (Verdict::NotDuplicate, "invalid_judge_response", false, false),
        ] {
            assert_eq!(can_teach(verdict, reason, has_score), expected, "{verdict} {reason} {has_score}");
        }
    }

    #[test]
    fn a_triage_without_a_usable_answer_failed() {
        assert!(triage_failed("invalid_judge_response"));
        for reason in ["duplicate", "no_candidates", "online_strict_guardrail:sure", ""] {
            assert!(!triage_failed(reason), "{reason}");
        }
    }
}
