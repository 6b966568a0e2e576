//! What followed from a look at an item: what was said, announced, closed, written, done by people, and learned.

use canonry_domain::{
    CurrentThreshold, DriftKind, EventBy, GraceEnd, IssueResolution, ItemNumber, Lesson, LessonKind, OutcomeEvent,
    OutcomeKind, Override, OverrideKind, SilenceReason, SkipReason, StateReason, ThresholdSource, TriageMode,
    WriteKind,
};
use canonry_store::{
    CloseMode, CloseOutcome, Grace, GraceState, ItemClose, OutboxEntry, OutboxState, StoredOutcome, StoredTriageAction,
    TriageActionKind,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::layout::formatting::{TimeLabel, by, capital, when};

pub(crate) struct TimelineEvent {
    pub(crate) when: TimeLabel,
    pub(crate) badge: &'static str,
    pub(crate) class: &'static str,
    pub(crate) words: String,
}

pub(crate) struct GraceEventLine {
    pub(crate) id: i64,
    pub(crate) badge: &'static str,
    pub(crate) class: &'static str,
    pub(crate) target: ItemNumber,
    pub(crate) began: TimeLabel,
    pub(crate) due: TimeLabel,
    pub(crate) by: Option<String>,
    pub(crate) ended: Option<TimeLabel>,
    pub(crate) why: Option<String>,
    pub(crate) is_waiting: bool,
    pub(crate) is_closed: bool,
}

pub(crate) struct CloseLine {
    pub(crate) when: TimeLabel,
    pub(crate) badge: &'static str,
    pub(crate) class: &'static str,
    pub(crate) words: String,
    pub(crate) plan: i64,
}

pub(crate) struct WriteLine {
    pub(crate) when: TimeLabel,
    pub(crate) what: String,
    pub(crate) badge: &'static str,
    pub(crate) class: &'static str,
    pub(crate) reason: Option<String>,
    pub(crate) attempts: i64,
    pub(crate) text: Option<String>,
}

pub(crate) struct RulingEventLine {
    pub(crate) id: i64,
    pub(crate) words: String,
    pub(crate) when: TimeLabel,
    pub(crate) note: Option<String>,
    pub(crate) removed: Option<TimeLabel>,
}

/// What a look led to on GitHub, and by which threshold.
pub(crate) fn action_event(stored: &StoredTriageAction, now: Timestamp) -> TimelineEvent {
    let action = &stored.action;
    let (badge, class) = match action.action {
        TriageActionKind::Recorded => ("said nothing", "mute"),
        TriageActionKind::Commented => ("commented", "info"),
        TriageActionKind::Edited => ("edited its comment", "info"),
        TriageActionKind::Withdrawn => ("took its comment back", "warn"),
    };
    let from = match (action.threshold, action.source) {
        (CurrentThreshold::Silent, _) => {
            "too many suggestions were wrong here, so that it says nothing at any score".to_owned()
        }
        (CurrentThreshold::From(points), ThresholdSource::Learned) => {
            format!("it speaks from {points} % on, as learned from what people did before")
        }
        (CurrentThreshold::From(points), ThresholdSource::Configured) => {
            format!("it speaks from {points} % on, as configured")
        }
    };
    let component = action.component.as_ref().map(|component| format!(", for the component “{}”", component.as_str()));
    let because = match (action.mode, action.reason.parse::<SilenceReason>()) {
        (mode, _) if !mode.speaks() && mode != TriageMode::Off => format!("in the mode “{mode}” it only watches"),
        (_, Ok(SilenceReason::Mode)) => format!("the mode is “{}”", action.mode),
        (_, Ok(SilenceReason::NotDuplicate)) => "there was nothing to say".to_owned(),
        (_, Ok(SilenceReason::NoScore)) => "there was no score to hold against the threshold".to_owned(),
        (_, Ok(SilenceReason::BelowThreshold)) => "the two are not alike enough for that".to_owned(),
        (_, Ok(SilenceReason::FallenSilent)) => "of that".to_owned(),
        (_, Err(_)) => told_reason(&action.reason),
    };
    let words = match action.action {
        TriageActionKind::Recorded => format!("Because {because}; {from}{}.", component.unwrap_or_default()),
        _ if because.is_empty() => format!("{}{}.", capital(&from), component.unwrap_or_default()),
        _ => format!("{}{}; {because}.", capital(&from), component.unwrap_or_default()),
    };
    TimelineEvent { when: when(stored.created_at, now), badge, class, words }
}

/// The reasons of triage, in words; that the score was high enough goes without saying.
fn told_reason(reason: &str) -> String {
    if let Some(hours) = reason.strip_prefix("grace:") {
        return format!("it announced a close after {hours} hours");
    }
    match reason {
        "above_threshold" => String::new(),
        "no_longer_predicted" => "it no longer looks like one".to_owned(),
        "said_already" => "its comment says exactly that already".to_owned(),
        "comment_deleted" => "people deleted its comment, and it would name the same one again".to_owned(),
        "over_budget" => "the money for models is spent, so no model was asked".to_owned(),
        "no_prices" => "a budget is set, but the model's prices are not, so no model was asked".to_owned(),
        "cooldown" => "its last comment is too young for another one".to_owned(),
        other => other.replace('_', " "),
    }
}

/// The reason why a grace ended without a close, after "because".
pub(crate) fn why_it_ended(reason: &str) -> String {
    if let Ok(end) = reason.parse::<GraceEnd>() {
        return end.in_words().to_owned();
    }
    if let Ok(skip) = reason.parse::<SkipReason>() {
        return skip.in_words().to_owned();
    }
    let drifted = reason.strip_prefix("drift:").and_then(|kind| kind.parse::<DriftKind>().ok());
    if let Some(kind) = drifted {
        return kind.in_words().to_owned();
    }
    match reason {
        "" => "a second look was not sure enough".to_owned(),
        // Words of ours have no spaces, and sentences of GitHub's do.
        _ if reason.contains(' ') => reason.to_owned(),
        _ => format!("of “{}”", reason.replace(['_', ':'], " ")),
    }
}

pub(crate) fn grace_event(grace: &Grace, now: Timestamp) -> GraceEventLine {
    let (badge, class) = match grace.state {
        GraceState::Waiting => ("waiting", "warn"),
        GraceState::Cancelled => ("called off", "good"),
        GraceState::Closed => ("closed", "info"),
        GraceState::Refused => ("left open", "good"),
    };
    let ended = matches!(grace.state, GraceState::Cancelled | GraceState::Refused);
    let waits_for = grace.reason.as_deref().filter(|_| grace.state == GraceState::Waiting);
    GraceEventLine {
        id: grace.id,
        badge,
        class,
        target: grace.target,
        began: when(grace.began_at, now),
        due: when(grace.due_at, now),
        by: grace.approved_by.as_ref().map(ToString::to_string),
        ended: grace.ended_at.map(|at| when(at, now)),
        why: match ended {
            true => Some(format!("because {}", why_it_ended(grace.reason.as_deref().unwrap_or_default()))),
            false => waits_for.map(|reason| format!("it still waits: {}", reason.replace('_', " "))),
        },
        is_waiting: grace.state == GraceState::Waiting,
        is_closed: grace.state == GraceState::Closed,
    }
}

pub(crate) fn close_event(close: &ItemClose, now: Timestamp) -> CloseLine {
    let row = &close.row;
    let target = row.target.map(|target| format!("#{target}")).unwrap_or_default();
    let reason = |result: Option<&str>| result.map(|why| format!(": {why}")).unwrap_or_default();
    let (at, badge, class, words) = match (&row.result, close.mode) {
        (Some(result), mode) => {
            let why = reason(result.reason.as_deref());
            let (badge, class, words) = match (result.outcome, mode) {
                (CloseOutcome::Applied { objected: true }, _) => {
                    ("objected", "good", format!("Closed in favour of {target}, and people opened it again at once."))
                }
                (CloseOutcome::Applied { .. }, CloseMode::Undo) => ("undone", "good", format!("Opened again{why}.")),
                (CloseOutcome::Applied { .. }, _) => ("closed", "info", format!("Closed in favour of {target}{why}.")),
                (CloseOutcome::Skipped, _) => ("left as it is", "mute", format!("Not touched{why}.")),
                (CloseOutcome::Failed, _) => ("failed", "warn", format!("It did not work{why}.")),
            };
            (result.at, badge, class, words)
        }
        (None, CloseMode::Plan) => {
            let (badge, class, words) = match (row.skip, row.approved) {
                (Some(skip), _) => ("kept open", "mute", format!("The plan leaves it alone: {}.", skip.in_words())),
                (None, Some(false)) => (
                    "excluded",
                    "good",
                    format!("The plan would close it in favour of {target}; a person took the row out."),
                ),
                (None, Some(true)) => {
                    ("approved", "warn", format!("The plan closes it in favour of {target}; a person approved it."))
                }
                (None, None) => ("planned", "warn", format!("The plan closes it in favour of {target}.")),
            };
            (close.created_at, badge, class, words)
        }
        (None, CloseMode::Apply) => {
            (close.created_at, "under way", "info", format!("It is about to be closed in favour of {target}."))
        }
        (None, CloseMode::Undo) => {
            (close.created_at, "under way", "info", "It is about to be opened again.".to_owned())
        }
    };
    CloseLine { when: when(at, now), badge, class, words, plan: close.plan.get() }
}

pub(crate) fn write_line(entry: &OutboxEntry, now: Timestamp) -> WriteLine {
    let (badge, class) = match entry.state {
        OutboxState::Pending => ("owed", "warn"),
        OutboxState::Sent => ("on GitHub", "good"),
        OutboxState::Refused => ("refused", "mute"),
        OutboxState::Failed => ("failed", "bad"),
    };
    let name = entry
        .payload
        .get("label")
        .or_else(|| entry.payload.get("unlabel"))
        .and_then(|label| label.get("name")?.as_str());
    let what = match (entry.kind, name) {
        (WriteKind::Label, Some(name)) => format!("sets the label “{name}”"),
        (WriteKind::Unlabel, Some(name)) => format!("takes the label “{name}” off"),
        (WriteKind::Comment, _) => "comments".to_owned(),
        (WriteKind::EditComment, _) => "edits its comment".to_owned(),
        (WriteKind::DeleteComment, _) => "deletes its comment".to_owned(),
        (WriteKind::Close, _) => "closes it, with a comment".to_owned(),
        (WriteKind::Reopen, _) => "opens it again".to_owned(),
        (WriteKind::React, _) => "reacts to a comment".to_owned(),
        (other, _) => other.as_str().replace('_', " "),
    };
    WriteLine {
        when: when(entry.updated_at, now),
        what,
        badge,
        class,
        reason: entry.reason.clone(),
        attempts: entry.attempts,
        text: written_text(&entry.payload).map(str::to_owned),
    }
}

fn written_text(payload: &Value) -> Option<&str> {
    let fields = payload.as_object()?;
    let own = ["body", "comment"].into_iter().find_map(|name| fields.get(name)?.as_str());
    own.or_else(|| fields.values().find_map(written_text))
}

/// How far the times of one close may lie apart: a write without an answer is looked for over some minutes before its
/// result is stored. The store takes two reports for one within the same time.
pub(crate) const ECHO: SignedDuration = SignedDuration::from_mins(10);

/// What happened, each thing once: Canonry notes what it does itself, and hears of it from GitHub as well.
pub(crate) fn people_events(all: &[OutcomeEvent], now: Timestamp) -> Vec<TimelineEvent> {
    let is_own = |event: &OutcomeEvent| matches!(event.by, EventBy::Canonry | EventBy::Approved);
    let mut told: Vec<&OutcomeEvent> = Vec::new();
    for event in all {
        let is_echo = |before: &&mut &OutcomeEvent| {
            let apart = before.occurred_at.duration_until(event.occurred_at).abs();
            before.kind == event.kind && is_own(before) && is_own(event) && apart < ECHO
        };
        match told.iter_mut().rev().find(is_echo) {
            // The one that tells more stays.
            Some(before) if before.duplicate_of.is_none() => *before = event,
            Some(_) => {}
            None => told.push(event),
        }
    }
    told.into_iter().map(|one| event(one, now)).collect()
}

fn event(event: &OutcomeEvent, now: Timestamp) -> TimelineEvent {
    let who = match (event.by, &event.actor) {
        (EventBy::Canonry, _) => "Canonry".to_owned(),
        (EventBy::Approved, _) => "Canonry, for a row that a person had approved,".to_owned(),
        (EventBy::Bot, Some(actor)) => format!("{actor} (a bot)"),
        (EventBy::Bot, None) => "A bot".to_owned(),
        (EventBy::Maintainer, Some(actor)) => format!("{actor} (a maintainer)"),
        (_, Some(actor)) => actor.to_string(),
        (_, None) => "Somebody".to_owned(),
    };
    let (badge, class, did) = match event.kind {
        OutcomeKind::Closed => {
            let how = match (event.state_reason, event.duplicate_of) {
                (_, Some(target)) => format!(" as a duplicate of #{target}"),
                (Some(StateReason::Duplicate), None) => " as a duplicate".to_owned(),
                (Some(StateReason::Completed), None) => " as done".to_owned(),
                (Some(StateReason::NotPlanned), None) => " as not planned".to_owned(),
                _ => String::new(),
            };
            ("closed", "mute", format!("closed it{how}"))
        }
        OutcomeKind::Reopened => ("reopened", "good", "opened it again".to_owned()),
        OutcomeKind::Labeled => ("labeled", "info", "gave it the label “duplicate”".to_owned()),
        OutcomeKind::Unlabeled => ("unlabeled", "info", "took the label “duplicate” off".to_owned()),
        OutcomeKind::Commented => match event.duplicate_of {
            Some(target) => ("commented", "info", format!("wrote that it is a duplicate of #{target}")),
            None => ("commented", "mute", "commented, and named no duplicate".to_owned()),
        },
    };
    TimelineEvent { when: when(event.occurred_at, now), badge, class, words: format!("{who} {did}.") }
}

pub(crate) fn outcome_sentences(stored: &StoredOutcome) -> (String, String) {
    let became = match stored.outcome.outcome {
        IssueResolution::Duplicate { of: Some(target) } => format!("It was closed as a duplicate of #{target}."),
        IssueResolution::Duplicate { of: None } => "It was closed as a duplicate; Canonry was not told of what.".to_owned(),
        IssueResolution::Completed => "It was closed as done.".to_owned(),
        IssueResolution::NotPlanned => "It was closed as not planned.".to_owned(),
        IssueResolution::ReopenedDuplicate => "It was closed as a duplicate, and a person opened it again.".to_owned(),
        IssueResolution::Unknown => "What became of it is not known: it is open, or nothing that people did says more. What Canonry does by itself is no evidence.".to_owned(),
    };
    let level = stored.lesson.level().map(|level| format!(" at {level} %")).unwrap_or_default();
    let taught = match stored.lesson.kind() {
        LessonKind::Confirmed => {
            format!("Canonry’s prediction{level} was right: that speaks for a threshold no higher than this.")
        }
        LessonKind::FalsePositive => {
            format!("Canonry’s prediction{level} was wrong: that speaks for a higher threshold.")
        }
        LessonKind::Missed => match stored.lesson {
            Lesson::Missed { instead: Some(_) } => format!(
                "It was a duplicate of something else than predicted{level}: counted as missed, and as wrong at that level."
            ),
            _ => "It was a duplicate that Canonry had not named: counted as missed.".to_owned(),
        },
        LessonKind::TrueNegative => "Canonry had named nothing, and it was no duplicate: as it should be.".to_owned(),
        LessonKind::Unknown => "Nothing was learned from it.".to_owned(),
    };
    (became, taught)
}

pub(crate) fn ruling_event(
    (ruled, removed_at): &(Override, Option<Timestamp>),
    number: ItemNumber,
    now: Timestamp,
) -> RulingEventLine {
    let by = capital(&by(ruled.created_by.as_ref()));
    let other = if ruled.item == number { ruled.other } else { Some(ruled.item) };
    let words = match (ruled.kind, other) {
        (OverrideKind::Duplicate, Some(other)) if ruled.item == number => {
            format!("{by} ruled that it is a duplicate of #{other}.")
        }
        (OverrideKind::Duplicate, Some(other)) => format!("{by} ruled that #{other} is a duplicate of it."),
        (OverrideKind::NotDuplicate, Some(other)) => {
            format!("{by} ruled that it and #{other} are no duplicates of each other.")
        }
        (OverrideKind::Excluded, Some(other)) if ruled.item == number => {
            format!("{by} excluded it: it is not to be closed as a duplicate of #{other}.")
        }
        (OverrideKind::Excluded, Some(other)) => {
            format!("{by} excluded #{other}: that one is not to be closed as a duplicate of it.")
        }
        _ => format!("{by} ruled that it is the one to stay open."),
    };
    RulingEventLine {
        id: ruled.id,
        words,
        when: when(ruled.created_at, now),
        note: ruled.note.clone(),
        removed: removed_at.map(|at| when(at, now)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{why_it_ended, written_text};

    #[test]
    fn what_a_write_says_is_found_in_its_payload() {
        assert_eq!(written_text(&json!({ "comment": { "body": "Looks like #7." } })), Some("Looks like #7."));
        let close = json!({ "close": { "close_as": "pull", "comment": "Closing.", "comment_if_refused": "Not." } });
        assert_eq!(written_text(&close), Some("Closing."));
        assert_eq!((written_text(&json!("reopen")), written_text(&json!({ "label": { "name": "x" } }))), (None, None));
    }

    #[test]
    fn every_end_of_a_grace_has_words() {
        assert_eq!(why_it_ended("human_commented"), "somebody commented");
        assert_eq!(why_it_ended("maintainer_author"), "a maintainer wrote it");
        assert_eq!(why_it_ended("drift:label_added"), "it got a label");
        assert_eq!(why_it_ended("another_word"), "of “another word”");
        assert_eq!(why_it_ended("GitHub answered 403"), "GitHub answered 403");
    }
}
