//! An item's history in one list: what Canonry posted, announced, planned and closed, and what people did and ruled.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use canonry_domain::{
    ActionReason, CurrentThreshold, DriftKind, EventBy, GateReason, GraceEnd, IssueResolution, ItemNumber, Lesson,
    LessonKind, OutcomeEvent, OutcomeKind, Override, OverrideKind, SkipReason, StateReason, ThresholdSource,
    TriageMode, TriageReason, WriteKind,
};
use canonry_store::{
    CloseMode, CloseOutcome, Grace, GraceState, ItemClose, OutboxEntry, OutboxState, StoredOutcome, StoredTriageAction,
    TriageActionKind,
};
use canonry_triage::ItemHistory;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::layout::formatting::{Badge, TimeLabel, by, capital, when};
use crate::layout::markdown::markdown;
use crate::layout::marked_text::MarkedText;
use crate::layout::paging::cut;

/// More than one item ever has, unless something is broken.
const MOST_EVENTS: u32 = 100;

pub(crate) struct TimelineEvent {
    at: Timestamp,
    pub(crate) when: TimeLabel,
    pub(crate) badge: Badge,
    pub(crate) words: String,
    pub(crate) plan: Option<i64>,
    pub(crate) write: Option<WriteView>,
    pub(crate) ruling: Option<RulingView>,
}

/// What GitHub was sent.
pub(crate) struct WriteView {
    pub(crate) state: Badge,
    pub(crate) reason: Option<String>,
    pub(crate) text: Option<MarkedText>,
}

pub(crate) struct RulingView {
    pub(crate) id: i64,
    pub(crate) note: Option<String>,
    pub(crate) is_in_force: bool,
}

/// All events, the newest first, and whether there were more.
pub(crate) fn timeline(history: &ItemHistory, closes: &[ItemClose], now: Timestamp) -> (Vec<TimelineEvent>, bool) {
    let mut writes: BTreeMap<&str, &OutboxEntry> =
        history.writes.iter().map(|entry| (entry.key.as_str(), entry)).collect();
    let mut write_of = |key: Option<&String>| key.and_then(|key| writes.remove(key.as_str())).map(write_view);
    let mut events = Vec::new();
    for action in &history.triage_actions {
        let write = write_of(action.action.comment_key.as_ref());
        events.push(TimelineEvent { write, ..action_event(action, now) });
    }
    for close in closes {
        let write = write_of(close.row.result.as_ref().and_then(|result| result.outbox_key.as_ref()));
        events.push(TimelineEvent { write, ..close_event(close, now) });
    }
    // A sent check is shown with its review.
    let is_shown = |entry: &&OutboxEntry| entry.kind != WriteKind::CheckRun || entry.state != OutboxState::Sent;
    events.extend(writes.into_values().filter(is_shown).map(|entry| write_event(entry, now)));
    events.extend(history.graces.iter().flat_map(|grace| grace_events(grace, now)));
    events.extend(history.rulings.iter().flat_map(|ruled| ruling_events(ruled, history.item.number, now)));
    events.extend(people_events(&history.outcome_events, closes, now));
    events.sort_by_key(|event| Reverse(event.at));
    let had_more = cut(&mut events, MOST_EVENTS);
    (events, had_more)
}

fn event(at: Timestamp, now: Timestamp, (badge, class): (&'static str, &'static str), words: String) -> TimelineEvent {
    let badge = Badge::new(class, badge);
    TimelineEvent { at, when: when(at, now), badge, words, plan: None, write: None, ruling: None }
}

/// What a verdict caused on GitHub, and by which threshold.
fn action_event(stored: &StoredTriageAction, now: Timestamp) -> TimelineEvent {
    let action = &stored.action;
    let badge = match action.action {
        TriageActionKind::Recorded => ("not posted", ""),
        TriageActionKind::Commented => ("commented", "info"),
        TriageActionKind::Edited => ("comment edited", "info"),
        TriageActionKind::Withdrawn => ("comment withdrawn", "warn"),
    };
    let component = action.component.as_ref().map(|component| format!(" for the component “{}”", component.as_str()));
    let component = component.unwrap_or_default();
    let threshold = match (action.threshold, action.source) {
        (CurrentThreshold::Silent, _) => format!("Comments{component} are off: too many suggestions were wrong."),
        (CurrentThreshold::From(points), ThresholdSource::Learned) => {
            format!("Threshold{component}: {points} %, learned from past outcomes.")
        }
        (CurrentThreshold::From(points), ThresholdSource::Configured) => {
            format!("Threshold{component}: {points} %, as configured.")
        }
    };
    let because = match &action.reason {
        _ if !action.mode.speaks() && action.mode != TriageMode::Off => {
            format!("In mode “{}” verdicts are recorded and nothing is posted.", action.mode)
        }
        ActionReason::Rule(TriageReason::Mode) => format!("The mode is “{}”.", action.mode),
        // The threshold follows.
        ActionReason::Rule(TriageReason::AboveThreshold | TriageReason::FallenSilent) => String::new(),
        reason => format!("{}.", capital(&reason.in_words())),
    };
    let space = if because.is_empty() { "" } else { " " };
    event(stored.created_at, now, badge, format!("{because}{space}{threshold}"))
}

/// The reason why a grace ended without a close, after "because".
pub(crate) fn why_it_ended(reason: &str) -> String {
    if let Ok(end) = reason.parse::<GraceEnd>() {
        return end.in_words().to_owned();
    }
    if let Ok(skip) = reason.parse::<SkipReason>() {
        return skip.in_words().to_owned();
    }
    if let Some(objection) = reason.parse::<GateReason>().ok().and_then(|reason| reason.objection_in_words()) {
        return objection.to_owned();
    }
    let drifted = reason.strip_prefix("drift:").and_then(|kind| kind.parse::<DriftKind>().ok());
    if let Some(kind) = drifted {
        return kind.in_words().to_owned();
    }
    match reason {
        "" => "the recheck was not sure enough".to_owned(),
        // Our codes have no spaces; sentences from GitHub do.
        _ if reason.contains(' ') => reason.to_owned(),
        _ => format!("of “{}”", reason.replace(['_', ':'], " ")),
    }
}

fn grace_events(grace: &Grace, now: Timestamp) -> Vec<TimelineEvent> {
    let target = grace.target;
    let how = match &grace.approved_by {
        Some(by) => format!("@{by} ordered the close as a duplicate of #{target}"),
        None => format!("Close as a duplicate of #{target} announced"),
    };
    let due = when(grace.due_at, now).in_words();
    let (announced, end) = match grace.state {
        GraceState::Waiting => {
            let waits = grace.reason.as_deref().map(|reason| format!(" Waiting: {}.", reason.replace('_', " ")));
            (format!("{how}; it is due {due}.{}", waits.unwrap_or_default()), None)
        }
        GraceState::Closed => (format!("{how}."), Some((("no objection", "info"), "Nobody objected.".to_owned()))),
        GraceState::Cancelled | GraceState::Refused => {
            let why = why_it_ended(grace.reason.as_deref().unwrap_or_default());
            let end = match grace.state {
                GraceState::Refused => (("kept open", "good"), format!("Not closed because {why}.")),
                _ => (("close cancelled", "good"), format!("Close cancelled because {why}.")),
            };
            (format!("{how}."), Some(end))
        }
    };
    let ended = grace.ended_at.zip(end).map(|(at, (badge, words))| event(at, now, badge, words));
    ended.into_iter().chain([event(grace.began_at, now, ("close announced", "warn"), announced)]).collect()
}

fn close_event(close: &ItemClose, now: Timestamp) -> TimelineEvent {
    let row = &close.row;
    let duplicate =
        row.target.map_or_else(|| "as a duplicate".to_owned(), |target| format!("as a duplicate of #{target}"));
    let (at, badge, words) = match (&row.result, close.mode) {
        (Some(result), mode) => {
            let why = result.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            let (badge, words) = match (result.outcome, mode) {
                (CloseOutcome::Applied { objected: true }, _) => {
                    (("reopened", "good"), format!("Closed {duplicate}; a person reopened it at once."))
                }
                (CloseOutcome::Applied { .. }, CloseMode::Undo) => (("undone", "good"), format!("Reopened{why}.")),
                (CloseOutcome::Applied { .. }, _) => (("closed", "info"), format!("Closed {duplicate}{why}.")),
                (CloseOutcome::Skipped, CloseMode::Undo) => (("skipped", ""), format!("Not reopened{why}.")),
                (CloseOutcome::Skipped, _) => (("skipped", ""), format!("Not closed{why}.")),
                (CloseOutcome::Failed, CloseMode::Undo) => (("failed", "warn"), format!("Reopening failed{why}.")),
                (CloseOutcome::Failed, _) => (("failed", "warn"), format!("Closing failed{why}.")),
            };
            (result.at, badge, words)
        }
        (None, CloseMode::Plan) => {
            let (badge, words) = match (row.skip, row.approved) {
                (Some(skip), _) => (("kept open", ""), format!("The plan keeps it open: {}.", skip.in_words())),
                (None, Some(false)) => {
                    (("excluded", "good"), format!("Planned to be closed {duplicate}, and excluded by a person."))
                }
                (None, Some(true)) => {
                    (("approved", "warn"), format!("Planned to be closed {duplicate}, and approved by a person."))
                }
                (None, None) => (("planned", "warn"), format!("Planned to be closed {duplicate}.")),
            };
            (close.created_at, badge, words)
        }
        (None, CloseMode::Apply) => (close.created_at, ("closing", "info"), format!("Being closed {duplicate}.")),
        (None, CloseMode::Undo) => (close.created_at, ("reopening", "info"), "Being reopened.".to_owned()),
    };
    TimelineEvent { plan: Some(close.plan.get()), ..event(at, now, badge, words) }
}

fn write_event(entry: &OutboxEntry, now: Timestamp) -> TimelineEvent {
    let name = entry
        .payload
        .get("label")
        .or_else(|| entry.payload.get("unlabel"))
        .and_then(|label| label.get("name")?.as_str());
    let words = match (entry.kind, name) {
        (WriteKind::Label, Some(name)) => format!("Add the label “{name}”."),
        (WriteKind::Unlabel, Some(name)) => format!("Remove the label “{name}”."),
        (WriteKind::Comment, _) => "Comment.".to_owned(),
        (WriteKind::EditComment, _) => "Edit the comment.".to_owned(),
        (WriteKind::DeleteComment, _) => "Delete the comment.".to_owned(),
        (WriteKind::Close, _) => "Close with a comment.".to_owned(),
        (WriteKind::Reopen, _) => "Reopen.".to_owned(),
        (WriteKind::React, _) => "React to a comment.".to_owned(),
        (WriteKind::Review, _) => "Post a review.".to_owned(),
        (WriteKind::CheckRun, _) => "Write the check run.".to_owned(),
        (WriteKind::Reply, _) => "Reply in a thread.".to_owned(),
        (WriteKind::EditReviewComment, _) => "Edit a comment at a line.".to_owned(),
        (WriteKind::ResolveThread, _) => "Resolve a thread.".to_owned(),
        (WriteKind::Label, None) => "Add a label.".to_owned(),
        (WriteKind::Unlabel, None) => "Remove a label.".to_owned(),
    };
    TimelineEvent { write: Some(write_view(entry)), ..event(entry.updated_at, now, ("GitHub", ""), words) }
}

fn write_view(entry: &OutboxEntry) -> WriteView {
    let (class, words) = match entry.state {
        OutboxState::Pending => ("warn", "queued"),
        OutboxState::Sent => ("good", "sent"),
        OutboxState::Refused => ("", "not sent"),
        OutboxState::Failed => ("bad", "failed"),
    };
    let attempts = if entry.attempts > 1 { format!(" after {} attempts", entry.attempts) } else { String::new() };
    WriteView {
        state: Badge::new(class, format!("{words}{attempts}")),
        reason: entry.reason.clone(),
        text: written_text(&entry.payload).map(markdown),
    }
}

fn written_text(payload: &Value) -> Option<&str> {
    let fields = payload.as_object()?;
    let own = ["body", "comment"].into_iter().find_map(|name| fields.get(name)?.as_str());
    own.or_else(|| fields.values().find_map(written_text))
}

/// How far apart the times of one close may be: a write without an answer is searched for over some minutes before
/// its result is stored. The store merges two reports within the same time.
pub(crate) const ECHO: SignedDuration = SignedDuration::from_mins(10);

/// What happened on GitHub, each event once: Canonry records its own actions and also gets them from GitHub.
fn people_events(all: &[OutcomeEvent], closes: &[ItemClose], now: Timestamp) -> Vec<TimelineEvent> {
    let is_own = |event: &OutcomeEvent| matches!(event.by, EventBy::Canonry | EventBy::Approved);
    let apart = |one: Timestamp, other: Timestamp| one.duration_until(other).abs();
    let is_result = |event: &OutcomeEvent| {
        let results = closes.iter().filter_map(|close| close.row.result.as_ref());
        is_own(event) && results.into_iter().any(|result| apart(result.at, event.occurred_at) < ECHO)
    };
    let mut told: Vec<&OutcomeEvent> = Vec::new();
    for event in all.iter().filter(|event| !is_result(event)) {
        let is_echo = |before: &&mut &OutcomeEvent| {
            before.kind == event.kind
                && is_own(before)
                && is_own(event)
                && apart(before.occurred_at, event.occurred_at) < ECHO
        };
        match told.iter_mut().rev().find(is_echo) {
            // Keeps the event with more details.
            Some(before) if before.duplicate_of.is_none() => *before = event,
            Some(_) => {}
            None => told.push(event),
        }
    }
    told.into_iter().map(|one| github_event(one, now)).collect()
}

fn github_event(told: &OutcomeEvent, now: Timestamp) -> TimelineEvent {
    let who = match (told.by, &told.actor) {
        (EventBy::Canonry, _) => "Canonry".to_owned(),
        (EventBy::Approved, _) => "Canonry, with a person’s approval,".to_owned(),
        (EventBy::Bot, Some(actor)) => format!("@{actor} (bot)"),
        (EventBy::Bot, None) => "A bot".to_owned(),
        (EventBy::Maintainer, Some(actor)) => format!("@{actor} (maintainer)"),
        (_, Some(actor)) => format!("@{actor}"),
        (_, None) => "Somebody".to_owned(),
    };
    let (badge, did) = match told.kind {
        OutcomeKind::Closed => {
            let how = match (told.state_reason, told.duplicate_of) {
                (_, Some(target)) => format!(" as a duplicate of #{target}"),
                (Some(StateReason::Duplicate), None) => " as a duplicate".to_owned(),
                (Some(StateReason::Completed), None) => " as completed".to_owned(),
                (Some(StateReason::NotPlanned), None) => " as not planned".to_owned(),
                _ => String::new(),
            };
            (("closed", ""), format!("closed it{how}"))
        }
        OutcomeKind::Reopened => (("reopened", "good"), "reopened it".to_owned()),
        OutcomeKind::Labeled => (("labeled", "info"), "added the label “duplicate”".to_owned()),
        OutcomeKind::Unlabeled => (("unlabeled", "info"), "removed the label “duplicate”".to_owned()),
        OutcomeKind::Commented => match told.duplicate_of {
            Some(target) => (("commented", "info"), format!("called it a duplicate of #{target}")),
            None => (("commented", ""), "commented".to_owned()),
        },
    };
    event(told.occurred_at, now, badge, format!("{who} {did}."))
}

/// How an issue was resolved, and what the threshold learned from it.
pub(crate) fn outcome_sentences(stored: &StoredOutcome) -> (String, String) {
    let became = match stored.outcome.outcome {
        IssueResolution::Duplicate { of: Some(target) } => format!("Closed as a duplicate of #{target}."),
        IssueResolution::Duplicate { of: None } => "Closed as a duplicate; of which issue is unknown.".to_owned(),
        IssueResolution::Completed => "Closed as completed.".to_owned(),
        IssueResolution::NotPlanned => "Closed as not planned.".to_owned(),
        IssueResolution::ReopenedDuplicate => "Closed as a duplicate, then reopened by a person.".to_owned(),
        IssueResolution::Unknown => "No outcome yet: nobody resolved it.".to_owned(),
    };
    let level = stored.lesson.level().map(|level| format!(" at {level} %")).unwrap_or_default();
    let taught = match stored.lesson.kind() {
        LessonKind::Confirmed => format!("Canonry’s prediction{level} was right: it supports the threshold."),
        LessonKind::FalsePositive => format!("Canonry’s prediction{level} was wrong: it raises the threshold."),
        LessonKind::Missed => match stored.lesson {
            Lesson::Missed { instead: Some(_) } => {
                format!("Canonry predicted another duplicate{level}: counted as missed, and as wrong at that level.")
            }
            _ => "Canonry had named no duplicate: counted as missed.".to_owned(),
        },
        LessonKind::TrueNegative => "Canonry had named no duplicate, which was right.".to_owned(),
        LessonKind::Unknown => "It changed no threshold.".to_owned(),
    };
    (became, taught)
}

fn ruling_events(
    (ruled, removed_at): &(Override, Option<Timestamp>),
    number: ItemNumber,
    now: Timestamp,
) -> Vec<TimelineEvent> {
    let by = capital(&by(ruled.created_by.as_ref()));
    let other = if ruled.item == number { ruled.other } else { Some(ruled.item) };
    let words = match (ruled.kind, other) {
        (OverrideKind::Duplicate, Some(other)) if ruled.item == number => {
            format!("{by} ruled that it is a duplicate of #{other}.")
        }
        (OverrideKind::Duplicate, Some(other)) => format!("{by} ruled that #{other} is a duplicate of it."),
        (OverrideKind::NotDuplicate, Some(other)) => {
            format!("{by} ruled that it and #{other} are different problems.")
        }
        (OverrideKind::Excluded, Some(other)) if ruled.item == number => {
            format!("{by} excluded it from being closed as a duplicate of #{other}.")
        }
        (OverrideKind::Excluded, Some(other)) => {
            format!("{by} excluded #{other} from being closed as a duplicate of it.")
        }
        _ => format!("{by} ruled that it stays open as the canonical of its cluster."),
    };
    let removed = removed_at.map(|at| event(at, now, ("ruling removed", ""), format!("No longer in force: {words}")));
    let view = RulingView { id: ruled.id, note: ruled.note.clone(), is_in_force: removed_at.is_none() };
    let ruling = TimelineEvent { ruling: Some(view), ..event(ruled.created_at, now, ("ruling", "info"), words) };
    removed.into_iter().chain([ruling]).collect()
}

#[cfg(test)]
mod tests {
    use canonry_domain::{DriftKind, GraceEnd, SkipReason};
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
        assert_eq!(why_it_ended("human_commented"), GraceEnd::HumanCommented.in_words());
        assert_eq!(why_it_ended("maintainer_author"), SkipReason::MaintainerAuthor.in_words());
        assert_eq!(why_it_ended("drift:label_added"), DriftKind::LabelAdded.in_words());
        assert_eq!(why_it_ended("another_word"), "of “another word”");
        assert_eq!(why_it_ended("GitHub answered 403"), "GitHub answered 403");
    }
}
