//! The sentences of the learning page.

use canonry_domain::{
    Component, CountedLessons, CurrentThreshold, EventBy, IssueResolution, ItemType, Lesson, LessonKind, LevelEvidence,
    MOST_IN_A_ROW, NextMove, OutcomeEvidence, Share, ThresholdReason, ThresholdRule, ThresholdSettings, ThresholdState,
    next_lowering, next_raise, posterior_band,
};
use canonry_store::{LearnedOutcome, LogStep};
use jiff::Timestamp;

use crate::layout::formatting::{TimeLabel, capital, counted, interval, item_path, percent, share, when};

pub(crate) fn current_sentence(current: CurrentThreshold) -> String {
    match current {
        CurrentThreshold::From(threshold) => {
            format!("Canonry comments on a new issue at a score of {threshold}\u{a0}% or more.")
        }
        CurrentThreshold::Silent => "Canonry posts no comments here: no score was right often enough.".to_owned(),
    }
}

pub(crate) fn reason_sentence(reason: &ThresholdReason) -> String {
    format!("{}.", capital(&reason.to_string()))
}

/// The predictions behind the threshold, with their confidence interval.
pub(crate) fn evidence_sentence(state: &ThresholdState) -> String {
    let evidence = match &state.reason {
        ThresholdReason::Lowered { now, .. } | ThresholdReason::Raised { now, .. } => now,
        ThresholdReason::NotSure { configured }
        | ThresholdReason::TooFewWrong { configured }
        | ThresholdReason::NoLower { configured, .. }
        | ThresholdReason::NoLevel { configured } => configured,
        ThresholdReason::TooFewPredictions { .. } | ThresholdReason::FromMean { .. } => {
            let band = posterior_band(state);
            return format!(
                "{} with an outcome: an estimated {} are right (95\u{a0}% CI {}).",
                counted(state.counts.confirmed + state.counts.false_positives, "prediction"),
                percent(state.alpha / (state.alpha + state.beta)),
                interval(band.low, band.high)
            );
        }
    };
    let LevelEvidence { level, right, wrong, .. } = *evidence;
    if right + wrong == 0 {
        return format!("No prediction at {level}\u{a0}% or more has an outcome yet.");
    }
    format!("Predictions at {level}\u{a0}% or more: {}.", share(Share { right, wrong }, "right"))
}

pub(crate) fn what_would_move(
    settings: &ThresholdSettings,
    lessons: &[CountedLessons],
    bucket: Option<&Component>,
    state: &ThresholdState,
) -> Vec<String> {
    if settings.rule != ThresholdRule::PrecisionTarget {
        return vec![format!(
            "The rule {} follows the mean share of right predictions: every outcome moves it.",
            settings.rule
        )];
    }
    let effect = |to: CurrentThreshold| match to {
        CurrentThreshold::From(threshold) => format!("would move it to {threshold}\u{a0}%"),
        CurrentThreshold::Silent => "would stop all comments".to_owned(),
    };
    let sentence = |next: NextMove, kind: &str| {
        let predictions = counted(next.times, &format!("{kind} prediction"));
        let levels: Vec<String> = next.levels.iter().map(|level| format!("{level}\u{a0}%")).collect();
        let more = if levels.len() > 1 { " and as many at " } else { "" };
        let in_a_row = if next.times > 1 { " in a row" } else { "" };
        format!("{predictions}{in_a_row} at {} {}.", levels.join(more), effect(next.to))
    };
    let raise = match next_raise(settings, lessons, bucket) {
        Some(next) => sentence(next, "wrong"),
        None if state.current == CurrentThreshold::Silent => "It cannot go up: no comments are posted.".to_owned(),
        None => format!("Even {MOST_IN_A_ROW} wrong predictions in a row would not raise it."),
    };
    let lower = match next_lowering(settings, lessons, bucket) {
        Some(next) => sentence(next, "right"),
        None => format!("Even {MOST_IN_A_ROW} right predictions in a row would not lower it."),
    };
    vec![raise, lower, "Issues without a known outcome change nothing.".to_owned()]
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

/// An outcome with its prediction and who decided.
pub(crate) fn latest_row(one: &LearnedOutcome, path: &str, now: Timestamp) -> LatestRow {
    let predicted = match one.lesson {
        Lesson::Confirmed { prediction }
        | Lesson::FalsePositive { prediction }
        | Lesson::Missed { instead: Some(prediction) } => {
            format!("duplicate of #{}, {}\u{a0}%", prediction.target, prediction.level())
        }
        Lesson::Missed { instead: None } | Lesson::TrueNegative | Lesson::Unknown => "no duplicate".to_owned(),
    };
    let (taught, class) = match one.lesson.kind() {
        LessonKind::Confirmed => ("right", "good"),
        LessonKind::FalsePositive => ("wrong", "bad"),
        LessonKind::Missed => ("missed", "warn"),
        LessonKind::TrueNegative => ("right: not flagged", "mute"),
        LessonKind::Unknown => ("unknown", "mute"),
    };
    let became = match one.outcome.outcome {
        IssueResolution::Duplicate { of: Some(of) } => format!("closed as a duplicate of #{of}"),
        IssueResolution::Duplicate { of: None } => "closed as a duplicate".to_owned(),
        IssueResolution::Completed => "closed as done".to_owned(),
        IssueResolution::NotPlanned => "closed as not planned".to_owned(),
        IssueResolution::ReopenedDuplicate => "reopened after a close as a duplicate".to_owned(),
        IssueResolution::Unknown => "people reacted to the comment".to_owned(),
    };
    let known_by = match one.outcome.evidence {
        OutcomeEvidence::StateReason | OutcomeEvidence::Reopening | OutcomeEvidence::Nothing => "",
        OutcomeEvidence::Label => " (label)",
        OutcomeEvidence::ClosingComment => " (closing comment)",
        OutcomeEvidence::Body => " (its own text)",
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
        None => return "reactions of two or more people".to_owned(),
        Some(EventBy::Unknown) => "unknown",
        Some(EventBy::Bot) => "a bot",
        Some(EventBy::Canonry) => "Canonry itself",
        Some(EventBy::Approved) => "Canonry, for a row approved by a person",
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
        LogStep::Quarter => "13 weeks",
        LogStep::Year => "year",
    }
}
