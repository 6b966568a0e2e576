//! Tells an agent what to do with an answer.

use canonry_domain::{DraftAnswer, ItemState, ItemType, Verdict};
use canonry_triage::{DraftReport, KnownFixes};

/// From this confidence on, a pull request that does not name the issue is named in the advice. Whether the issue is fixed at
/// all is not known here.
const LIKELY: f64 = 0.5;

pub(crate) fn on_draft(report: &DraftReport, is_change: bool) -> String {
    let open_it = if is_change { "open the pull request" } else { "file it" };
    let Some(item) = &report.item else {
        return match report.similar.is_empty() {
            true => format!("Nothing similar is known; {open_it}."),
            false => format!("No item is surely the same. Read the similar ones with get_item before you {open_it}."),
        };
    };
    let number = item.number;
    let sure = match report.verdict {
        Verdict::Duplicate => format!("Do not {open_it}: #{number} is the same."),
        Verdict::MaybeDuplicate | Verdict::NotDuplicate => {
            format!("Read #{number} with get_item first: it is probably the same.")
        }
    };
    let then = match (report.answer, &report.fix, item.item_type) {
        (DraftAnswer::InProgress, Some(fix), _) => format!("Pull request #{} is already open for it.", fix.number),
        (DraftAnswer::InProgress, None, _) => "That pull request is open; help there instead.".to_owned(),
        (DraftAnswer::Fixed, Some(fix), _) if fix.confidence.is_some() => {
            format!(
                "Pull request #{} is merged and probably fixed it, without naming it; try the default branch.",
                fix.number
            )
        }
        (DraftAnswer::Fixed, Some(fix), _) => {
            format!("Pull request #{} fixes it and is merged; try the default branch or the next release.", fix.number)
        }
        (DraftAnswer::Fixed, None, _) => "It is merged already.".to_owned(),
        (DraftAnswer::PossibleRegression, _, _) => {
            return format!(
                "#{number} describes the same problem and was closed as completed. If it happens in the newest version, file it and name #{number}."
            );
        }
        (_, _, ItemType::Issue) if item.state == ItemState::Open => {
            format!("Add what is new as a comment on #{number}.")
        }
        _ => format!("Read why #{number} was closed."),
    };
    format!("{sure} {then}")
}

pub(crate) fn on_fixes(known: &KnownFixes) -> String {
    let (number, fixes) = (known.issue.number, &known.fixes);
    if let Some(merged) = fixes.iter().rev().find(|fix| fix.merged) {
        let of = merged.number;
        return format!(
            "Pull request #{of} says that it fixes #{number} or a duplicate of it and is merged; check it before you start."
        );
    }
    if let Some(open) = fixes.iter().find(|fix| fix.state == ItemState::Open) {
        return format!("Pull request #{} for #{number} is open; do not open a second one.", open.number);
    }
    if let Some(likely) = known.likely.first().filter(|likely| likely.confidence.is_some_and(|sure| sure >= LIKELY)) {
        let of = likely.number;
        return format!("Pull request #{of} is merged and may have fixed #{number}; try the problem again first.");
    }
    match fixes.is_empty() {
        true => format!("No pull request says that it fixes #{number}."),
        false => format!("Every pull request for #{number} was closed without a merge; read why before you start."),
    }
}
