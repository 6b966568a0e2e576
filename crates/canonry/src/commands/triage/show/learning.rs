//! What `show` tells about learning: what the service did with each record, what became of the issue, and the lesson.

use canonry_domain::{EventBy, IssueResolution, Lesson, OutcomeEvent, OutcomeEvidence, OutcomeKind, Prediction};
use canonry_store::{OutboxEntry, StoredOutcome, StoredTriageAction, TriageActionKind};

use crate::output::printable::one_line;

/// What the service made of a record, and why, on one line. Whether it came to GitHub, the writes tell.
pub(crate) fn action_in_words(stored: &StoredTriageAction) -> String {
    let action = &stored.action;
    let made = match action.action {
        TriageActionKind::Recorded => format!("nothing is said: {}", why_silent(&action.reason)),
        TriageActionKind::Commented => "to be said with a comment and a label".to_owned(),
        TriageActionKind::Edited => "to be said by editing the comment".to_owned(),
        TriageActionKind::Withdrawn => "the comment is to be taken back".to_owned(),
    };
    let of = action
        .component
        .as_ref()
        .map_or_else(String::new, |component| format!(", component {}", one_line(component.as_str())));
    format!("{made} (mode {}, threshold {} {}{of})", action.mode.as_str(), action.threshold, action.source)
}

/// The reasons are words of rules; a reason that is none of them stands for itself.
fn why_silent(reason: &str) -> String {
    match reason {
        "mode" => "the repository's mode does not want it".to_owned(),
        "not_duplicate" => "there is nothing to say".to_owned(),
        "no_score" => "the target has no score".to_owned(),
        "below_threshold" => "the score is below the threshold".to_owned(),
        "fallen_silent" => "Canonry has fallen silent here, see `canonry thresholds`".to_owned(),
        "said_already" => "the comment says so already".to_owned(),
        "comment_deleted" => "people deleted the comment that said so".to_owned(),
        "over_budget" => "the money for models is spent, so that no judge was asked".to_owned(),
        "no_prices" => "a budget is set, but the model's prices are not, so that no judge was asked".to_owned(),
        "cooldown" => "the last comment is too young for another one".to_owned(),
        other => one_line(&other.replace('_', " ")),
    }
}

/// What went to GitHub about the item, or did not.
pub(crate) fn writes_in_words(entries: &[OutboxEntry]) -> String {
    let mut text = if entries.is_empty() { String::new() } else { "\nWhat Canonry wrote:\n".to_owned() };
    for entry in entries {
        let reason = entry.reason.as_ref().map_or_else(String::new, |reason| format!(" ({})", one_line(reason)));
        let kind = entry.kind.as_str().replace('_', " ");
        text += &format!("  {}  {}: {}{reason}\n", entry.updated_at, one_line(&kind), entry.state.as_str());
    }
    text
}

/// What became of the issue, and what that taught.
pub(crate) fn outcome_in_words(stored: Option<&StoredOutcome>) -> String {
    let Some(stored) = stored else { return String::new() };
    let outcome = &stored.outcome;
    let became = match &outcome.outcome {
        IssueResolution::Duplicate { of: Some(of) } => format!("a duplicate of #{of}"),
        IssueResolution::Duplicate { of: None } => "a duplicate, nobody says of what".to_owned(),
        IssueResolution::Completed => "no duplicate: it was completed".to_owned(),
        IssueResolution::NotPlanned => "no duplicate: it is not planned".to_owned(),
        IssueResolution::ReopenedDuplicate => {
            "no duplicate: it was closed as one, and a person opened it again".to_owned()
        }
        IssueResolution::Unknown => "not known".to_owned(),
    };
    let mut text = format!("\nWhat it turned out to be: {became}");
    let evidence = match outcome.evidence {
        OutcomeEvidence::StateReason => Some("by the reason it was closed with"),
        OutcomeEvidence::Label => Some("by the label `duplicate`"),
        OutcomeEvidence::ClosingComment => Some("by a comment at its closing"),
        OutcomeEvidence::Body => Some("by its own text"),
        OutcomeEvidence::Reopening => Some("by its reopening"),
        OutcomeEvidence::Nothing => None,
    };
    let about: Vec<String> = evidence
        .map(str::to_owned)
        .into_iter()
        .chain(outcome.at.map(|at| at.to_string()))
        .chain(outcome.decided_by.as_ref().map(|event| format!("event {}", one_line(event))))
        .collect();
    if !about.is_empty() {
        text += &format!(" ({})", about.join(", "));
    }
    text += ".\n";
    if let Some(component) = outcome.component.as_ref().filter(|_| stored.lesson != Lesson::Unknown) {
        text += &format!("  It counts for the component {} too.\n", one_line(component.as_str()));
    }
    text + &lesson_in_words(stored)
}

fn lesson_in_words(stored: &StoredOutcome) -> String {
    let said = |prediction: &Prediction| format!("#{} with {:.4}", prediction.target, prediction.score.get());
    let taught = match &stored.lesson {
        Lesson::Confirmed { prediction } => format!("confirmed, {} was right", said(prediction)),
        Lesson::FalsePositive { prediction } => format!("false positive, {} was wrong", said(prediction)),
        Lesson::Missed { instead: Some(prediction) } => {
            format!("missed, {} was named instead and counts as wrong", said(prediction))
        }
        Lesson::Missed { instead: None } => "missed, nothing was named".to_owned(),
        Lesson::TrueNegative => "true negative, rightly nothing was named".to_owned(),
        Lesson::Unknown => "nothing".to_owned(),
    };
    let by_reactions = stored.outcome.outcome == IssueResolution::Unknown && stored.lesson != Lesson::Unknown;
    let source = if by_reactions { ", by people's reactions to the comment" } else { "" };
    match stored.triage_id {
        Some(id) => format!("  What it taught about triage record {id}: {taught}{source}.\n"),
        None => "  It taught nothing: no triage record was made before it.\n".to_owned(),
    }
}

/// Every event, and which of them are no evidence by themselves.
pub(crate) fn events_in_words(events: &[OutcomeEvent]) -> String {
    let mut text = if events.is_empty() { String::new() } else { "\nWhat people did:\n".to_owned() };
    for event in events {
        text += &format!("  {}  {}\n", event.occurred_at, event_in_words(event));
    }
    text
}

fn event_in_words(event: &OutcomeEvent) -> String {
    let mut words = match event.kind {
        OutcomeKind::Labeled => "labelled duplicate".to_owned(),
        OutcomeKind::Unlabeled => "label duplicate removed".to_owned(),
        kind => kind.to_string(),
    };
    if let Some(reason) = event.state_reason {
        words += &format!(" as {}", reason.as_str().replace('_', " "));
    }
    match (event.kind, event.duplicate_of) {
        (OutcomeKind::Commented, Some(target)) => words += &format!(" \"duplicate of #{target}\""),
        (OutcomeKind::Commented, None) => words += " and names no target any more",
        (_, Some(target)) => words += &format!(" of #{target}"),
        (_, None) => {}
    }
    if let Some(target) = event.in_body {
        words += &format!(" (its text names #{target})");
    }
    let who = event.actor.as_ref().map(|actor| one_line(actor.as_str()));
    match (who, event.by) {
        (Some(who), EventBy::Person) => words += &format!(" by {who}"),
        (Some(who), EventBy::Maintainer) => words += &format!(" by {who}, a maintainer"),
        (Some(who), EventBy::Bot) => words += &format!(" by {who}, a bot: no evidence"),
        (Some(who), EventBy::Unknown) => words += &format!(" by {who}"),
        (_, EventBy::Canonry) => words += " by Canonry itself: no evidence",
        (_, EventBy::Approved) => words += " by Canonry, which a person approved",
        (None, EventBy::Bot) => words += " by a bot: no evidence",
        (None, EventBy::Person | EventBy::Maintainer | EventBy::Unknown) => {}
    }
    words
}
