//! What the learning page says about a threshold, in sentences.

use canonry_domain::{
    Component, CountedLessons, CurrentThreshold, EventBy, IssueResolution, ItemType, Lesson, LessonKind, LevelEvidence,
    MOST_IN_A_ROW, NextMove, OutcomeEvidence, Share, ThresholdReason, ThresholdRule, ThresholdSettings, ThresholdState,
    next_lowering, next_raise, posterior_band,
};
use canonry_store::{LearnedOutcome, LogStep};
use jiff::Timestamp;

use crate::layout::formatting::{TimeLabel, capital, counted, item_path, percent, when};

pub(crate) fn holds(current: CurrentThreshold) -> String {
    match current {
        CurrentThreshold::From(threshold) => {
            format!("Canonry speaks about a new issue from a score of {threshold} points on.")
        }
        CurrentThreshold::Silent => "Canonry says nothing here, whatever the score, and goes on recording.".to_owned(),
    }
}

pub(crate) fn sentence(reason: &ThresholdReason) -> String {
    format!("{}.", capital(&reason.to_string()))
}

/// The predictions that the threshold rests on, with how sure that is.
pub(crate) fn rests_on(state: &ThresholdState) -> String {
    let evidence = match &state.reason {
        ThresholdReason::Lowered { now, .. } | ThresholdReason::Raised { now, .. } => now,
        ThresholdReason::NotSure { configured }
        | ThresholdReason::TooFewWrong { configured }
        | ThresholdReason::NoLower { configured, .. }
        | ThresholdReason::NoLevel { configured } => configured,
        ThresholdReason::TooFewPredictions { .. } | ThresholdReason::FromMean { .. } => {
            let band = posterior_band(state);
            let mean = state.alpha / (state.alpha + state.beta);
            return format!(
                "It rests on {} with an outcome: the mean share of right ones is {}, 95 in 100 times between {} and {}.",
                counted(state.counts.confirmed + state.counts.false_positives, "prediction"),
                percent(mean),
                percent(band.low),
                percent(band.high)
            );
        }
    };
    let LevelEvidence { level, right, wrong, .. } = *evidence;
    if right + wrong == 0 {
        return format!("No prediction at {level} points or more has an outcome yet, so nothing is known about it.");
    }
    let known = Share { right, wrong };
    let interval = known.interval();
    format!(
        "Of {} at {level} points or more {} were right; the true share lies between {} and {}, 95 in 100 times.",
        counted(known.all(), "prediction"),
        percent(known.value().unwrap_or_default()),
        percent(interval.low),
        percent(interval.high)
    )
}

pub(crate) fn what_would_move(
    settings: &ThresholdSettings,
    lessons: &[CountedLessons],
    bucket: Option<&Component>,
    state: &ThresholdState,
) -> Vec<String> {
    if settings.rule != ThresholdRule::PrecisionTarget {
        return vec![format!(
            "The rule {} moves with every outcome: it follows the mean share of right predictions.",
            settings.rule
        )];
    }
    let goes = |to: CurrentThreshold| match to {
        CurrentThreshold::From(threshold) => format!("to {threshold}"),
        CurrentThreshold::Silent => "into silence".to_owned(),
    };
    let told = |next: NextMove, kind: &str| {
        let predictions = counted(next.times, &format!("{kind} prediction"));
        let levels: Vec<String> = next.levels.iter().map(ToString::to_string).collect();
        let more = if levels.len() > 1 { " and as many with " } else { "" };
        let in_a_row = if next.times > 1 { " in a row" } else { "" };
        format!("{predictions}{in_a_row} with a score of {} points would move it {}.", levels.join(more), goes(next.to))
    };
    let mut words = Vec::new();
    match next_raise(settings, lessons, bucket) {
        Some(next) => words.push(told(next, "wrong")),
        None if state.current == CurrentThreshold::Silent => {
            words.push("It cannot be raised any further: it says nothing at all now.".to_owned());
        }
        None => words.push(format!("Even {MOST_IN_A_ROW} wrong predictions in a row would not raise it.")),
    }
    match next_lowering(settings, lessons, bucket) {
        Some(next) => words.push(told(next, "right")),
        None => words.push(format!("No {MOST_IN_A_ROW} right predictions in a row would lower it.")),
    }
    words.push("Silence of people moves nothing: an outcome that nobody can tell teaches nothing.".to_owned());
    words
}

pub(crate) struct LatestRow {
    pub(crate) href: String,
    pub(crate) number: i64,
    pub(crate) title: String,
    pub(crate) predicted: String,
    pub(crate) became: String,
    pub(crate) taught: &'static str,
    pub(crate) class: &'static str,
    pub(crate) by: String,
    pub(crate) at: TimeLabel,
}

/// An outcome, what was predicted about it, and who decided.
pub(crate) fn latest_row(one: &LearnedOutcome, path: &str, now: Timestamp) -> LatestRow {
    let predicted = match one.lesson {
        Lesson::Confirmed { prediction }
        | Lesson::FalsePositive { prediction }
        | Lesson::Missed { instead: Some(prediction) } => {
            format!("duplicate of #{} at {} points", prediction.target, prediction.level())
        }
        Lesson::Missed { instead: None } | Lesson::TrueNegative | Lesson::Unknown => "no duplicate".to_owned(),
    };
    let (taught, class) = match one.lesson.kind() {
        LessonKind::Confirmed => ("right", "good"),
        LessonKind::FalsePositive => ("wrong", "bad"),
        LessonKind::Missed => ("missed", "warn"),
        LessonKind::TrueNegative => ("rightly left alone", "mute"),
        LessonKind::Unknown => ("nothing", "mute"),
    };
    let became = match one.outcome.outcome {
        IssueResolution::Duplicate { of: Some(of) } => format!("closed as a duplicate of #{of}"),
        IssueResolution::Duplicate { of: None } => "closed as a duplicate".to_owned(),
        IssueResolution::Completed => "closed as done".to_owned(),
        IssueResolution::NotPlanned => "closed as not planned".to_owned(),
        IssueResolution::ReopenedDuplicate => "opened again after it was closed as a duplicate".to_owned(),
        IssueResolution::Unknown => "people reacted to the comment".to_owned(),
    };
    let known_by = match one.outcome.evidence {
        OutcomeEvidence::StateReason | OutcomeEvidence::Reopening | OutcomeEvidence::Nothing => "",
        OutcomeEvidence::Label => ", by the label",
        OutcomeEvidence::ClosingComment => ", by the closing comment",
        OutcomeEvidence::Body => ", by its own text",
    };
    LatestRow {
        href: item_path(path, ItemType::Issue, one.number),
        number: one.number.get(),
        title: one.title.clone(),
        predicted,
        became: format!("{became}{known_by}"),
        taught,
        class,
        by: by_words(one),
        at: when(one.at, now),
    }
}

fn by_words(one: &LearnedOutcome) -> String {
    let login = one.by.as_ref().map(|login| format!("@{login}"));
    let kind = match one.by_whom {
        None => return "reactions of two people or more".to_owned(),
        Some(EventBy::Unknown) => "nobody told who",
        Some(EventBy::Bot) => "a bot",
        Some(EventBy::Canonry) => "Canonry itself",
        Some(EventBy::Approved) => "Canonry, for a row that a person approved",
        Some(EventBy::Person) => "a person",
        Some(EventBy::Maintainer) => "a maintainer",
    };
    login.map_or_else(|| kind.to_owned(), |login| format!("{login}, {kind}"))
}

pub(crate) fn step_words(step: LogStep) -> &'static str {
    match step {
        LogStep::Hour => "hour",
        LogStep::SixHours => "six hours",
        LogStep::Day => "day",
        LogStep::Week => "week",
        LogStep::FourWeeks => "four weeks",
        LogStep::Quarter => "thirteen weeks",
        LogStep::Year => "year",
    }
}
