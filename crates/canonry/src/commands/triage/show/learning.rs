//! What `show` prints about learning: what the service did with each record, the outcome, and the lesson.

use canonry_domain::{
    ActionReason, EventBy, IssueResolution, Lesson, OutcomeEvent, OutcomeEvidence, OutcomeKind, Prediction,
    TriageReason,
};
use canonry_store::{OutboxEntry, StoredOutcome, StoredTriageAction, TriageActionKind};

use crate::output::numbers::{percent, threshold};
use crate::output::printable::one_line;
use crate::session::context::Context;

/// What the service decided to do with a record, and why. Whether that reached GitHub is shown with the writes.
pub(crate) fn action_in_words(stored: &StoredTriageAction) -> String {
    let action = &stored.action;
    let decided = match (action.action, &action.reason) {
        (TriageActionKind::Recorded, ActionReason::Rule(TriageReason::Mode)) => {
            format!("no comment: the mode {} does not comment", action.mode)
        }
        (TriageActionKind::Recorded, reason) => format!("no comment: {}", reason.in_words()),
        (TriageActionKind::Commented, ActionReason::Announced { hours }) => {
            format!("decided to announce a close after {hours} hours")
        }
        (
            TriageActionKind::Commented | TriageActionKind::Edited,
            ActionReason::Rule(TriageReason::AskedForDescription),
        ) => "asks the author for a description".to_owned(),
        (TriageActionKind::Commented, _) => "decided to comment and label".to_owned(),
        (TriageActionKind::Edited, _) => "decided to edit the comment".to_owned(),
        (TriageActionKind::Withdrawn, reason) => format!("decided to withdraw the comment: {}", reason.in_words()),
    };
    let of = action
        .component
        .as_ref()
        .map_or_else(String::new, |component| format!(", component {}", one_line(component.as_str())));
    let threshold = threshold(action.threshold);
    format!("{decided} (mode {}, threshold {threshold} {}{of})", action.mode.as_str(), action.source)
}

/// The writes to GitHub about the item, sent or not.
pub(crate) fn writes_in_words(entries: &[OutboxEntry], context: &Context) -> String {
    let mut text = if entries.is_empty() { String::new() } else { "\nWrites to GitHub:\n".to_owned() };
    for entry in entries {
        let reason = entry.reason.as_ref().map_or_else(String::new, |reason| format!(" ({})", one_line(reason)));
        let (kind, state) = (entry.kind.as_str().replace('_', " "), entry.state.as_str());
        text += &format!("  {}  {}: {state}{reason}\n", context.when(entry.updated_at), one_line(&kind));
    }
    text
}

/// The outcome of the issue, and the lesson from it.
pub(crate) fn outcome_in_words(stored: Option<&StoredOutcome>, context: &Context) -> String {
    let Some(stored) = stored else { return String::new() };
    let outcome = &stored.outcome;
    let became = match &outcome.outcome {
        IssueResolution::Duplicate { of: Some(of) } => format!("a duplicate of #{of}"),
        IssueResolution::Duplicate { of: None } => "a duplicate, of an unknown item".to_owned(),
        IssueResolution::Completed => "not a duplicate: completed".to_owned(),
        IssueResolution::NotPlanned => "not a duplicate: not planned".to_owned(),
        IssueResolution::ReopenedDuplicate => "not a duplicate: closed as one, then reopened by a person".to_owned(),
        IssueResolution::Unknown => "unknown".to_owned(),
    };
    let mut text = format!("\nOutcome: {became}");
    let evidence = match outcome.evidence {
        OutcomeEvidence::StateReason => Some("from the close reason"),
        OutcomeEvidence::Label => Some("from the label `duplicate`"),
        OutcomeEvidence::ClosingComment => Some("from a comment at the close"),
        OutcomeEvidence::Body => Some("from its text"),
        OutcomeEvidence::Reopening => Some("from the reopening"),
        OutcomeEvidence::Nothing => None,
    };
    let event = outcome.decided_by.as_ref().filter(|_| context.verbose);
    let about: Vec<String> = evidence
        .map(str::to_owned)
        .into_iter()
        .chain(outcome.at.map(|at| context.when(at)))
        .chain(event.map(|event| format!("event {}", one_line(event))))
        .collect();
    if !about.is_empty() {
        text += &format!(" ({})", about.join(", "));
    }
    text += ".\n";
    if let Some(component) = outcome.component.as_ref().filter(|_| stored.lesson != Lesson::Unknown) {
        text += &format!("  Counts for the component {} too.\n", one_line(component.as_str()));
    }
    text + &lesson_in_words(stored, context)
}

fn lesson_in_words(stored: &StoredOutcome, context: &Context) -> String {
    let named = |prediction: &Prediction| format!("#{} at {}", prediction.target, percent(prediction.score.get()));
    let lesson = match &stored.lesson {
        Lesson::Confirmed { prediction } => format!("right, {}", named(prediction)),
        Lesson::FalsePositive { prediction } => format!("wrong, {}", named(prediction)),
        Lesson::Missed { instead: Some(prediction) } => format!("missed; {} was named instead", named(prediction)),
        Lesson::Missed { instead: None } => "missed, no duplicate was named".to_owned(),
        Lesson::TrueNegative => "right, no duplicate was named".to_owned(),
        Lesson::Unknown => "not counted".to_owned(),
    };
    let by_reactions = stored.outcome.outcome == IssueResolution::Unknown && stored.lesson != Lesson::Unknown;
    let source = if by_reactions { " (from reactions to the comment)" } else { "" };
    match stored.triage_id {
        Some(id) if context.verbose => format!("  The prediction was {lesson}{source}; triage record {id}.\n"),
        Some(_) => format!("  The prediction was {lesson}{source}.\n"),
        None => "  There was no prediction before this outcome.\n".to_owned(),
    }
}

/// Every event; those that do not count are marked.
pub(crate) fn events_in_words(events: &[OutcomeEvent], context: &Context) -> String {
    let mut text = if events.is_empty() { String::new() } else { "\nOn GitHub:\n".to_owned() };
    for event in events {
        text += &format!("  {}  {}\n", context.when(event.occurred_at), event_in_words(event));
    }
    text
}

fn event_in_words(event: &OutcomeEvent) -> String {
    let mut words = match event.kind {
        OutcomeKind::Labeled => "label `duplicate` added".to_owned(),
        OutcomeKind::Unlabeled => "label `duplicate` removed".to_owned(),
        kind => kind.to_string(),
    };
    if let Some(reason) = event.state_reason {
        words += &format!(" as {}", reason.as_str().replace('_', " "));
    }
    match (event.kind, event.duplicate_of) {
        (OutcomeKind::Commented, Some(target)) => words += &format!(" \"duplicate of #{target}\""),
        (OutcomeKind::Commented, None) => words += ", no longer naming a target",
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
        (Some(who), EventBy::Bot) => words += &format!(" by {who} (a bot, not counted)"),
        (Some(who), EventBy::Unknown) => words += &format!(" by {who}"),
        (_, EventBy::Canonry) => words += " by Canonry (not counted)",
        (_, EventBy::Approved) => words += " by Canonry, approved by a person",
        (None, EventBy::Bot) => words += " by a bot (not counted)",
        (None, EventBy::Person | EventBy::Maintainer | EventBy::Unknown) => {}
    }
    words
}

#[cfg(test)]
mod tests {
    use canonry_domain::{CurrentThreshold, Threshold, ThresholdSource, TriageMode};
    use canonry_store::{StoredTriageAction, TriageAction, TriageActionKind};
    use jiff::Timestamp;

    use super::action_in_words;

    #[test]
    fn what_was_decided_is_said_with_its_reason() {
        for (action, reason, expected) in [
            (TriageActionKind::Commented, "above_threshold", "decided to comment and label"),
            (TriageActionKind::Commented, "grace:72", "decided to announce a close after 72 hours"),
            (TriageActionKind::Commented, "asked_for_description", "asks the author for a description"),
            (TriageActionKind::Edited, "above_threshold", "decided to edit the comment"),
            (
                TriageActionKind::Withdrawn,
                "no_longer_predicted",
                "decided to withdraw the comment: the match has changed",
            ),
            (TriageActionKind::Recorded, "mode", "no comment: the mode suggest does not comment"),
            (TriageActionKind::Recorded, "of_another_version", "no comment: of another version"),
        ] {
            let stored = StoredTriageAction {
                action: TriageAction {
                    triage_id: 1,
                    mode: TriageMode::Suggest,
                    component: None,
                    threshold: CurrentThreshold::From(Threshold::default()),
                    source: ThresholdSource::Configured,
                    action,
                    reason: reason.parse().expect("any text"),
                    comment_key: None,
                },
                created_at: Timestamp::UNIX_EPOCH,
            };
            let said = action_in_words(&stored);
            assert_eq!(said, format!("{expected} (mode suggest, threshold 85 % configured)"));
        }
    }
}
