//! Tells an agent what to do with an answer.

use canonry_domain::{DraftAnswer, ItemState, ItemType, Verdict};
use canonry_triage::{DraftReport, FixSummary, KnownFixes};

/// From this confidence on, a pull request that does not name the issue is named in the advice. Whether the issue is fixed at
/// all is not known here.
const LIKELY: f64 = 0.5;

pub(crate) fn on_draft(report: &DraftReport, is_change: bool) -> String {
    let (open_it, kind) = if is_change { ("open the pull request", "pull request") } else { ("file it", "issue") };
    let Some(item) = &report.item else { return on_unknown(report, open_it, kind) };
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
        (DraftAnswer::Fixed, Some(fix), _) => on_merged(fix),
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

/// Without a match. To file is only advised where enough is known.
fn on_unknown(report: &DraftReport, open_it: &str, kind: &str) -> String {
    let nothing = "Nothing similar is known";
    let gaps: Vec<String> = report.data_gap(kind).into_iter().chain(report.changes_gap()).collect();
    match (report.similar.is_empty(), gaps.is_empty()) {
        _ if report.stats.compared == 0 => format!("{} Search GitHub before you {open_it}.", gaps.join(" ")),
        (true, true) => format!("{nothing}; {open_it}."),
        (true, false) => {
            format!("{nothing}, but that may be wrong. {} Search GitHub before you {open_it}.", gaps.join(" "))
        }
        (false, _) => {
            let read = format!("No item is surely the same. Read the similar ones with get_item before you {open_it}.");
            std::iter::once(read).chain(gaps).collect::<Vec<_>>().join(" ")
        }
    }
}

/// A merged fix. Only a change of the default branch is called one.
fn on_merged(fix: &FixSummary) -> String {
    let (number, is_proven) = (fix.number, fix.on_default_branch == Some(true));
    match (fix.confidence.is_some(), is_proven) {
        (false, true) => {
            format!("Pull request #{number} fixes it and is merged; try the default branch or the next release.")
        }
        (false, false) => format!(
            "Pull request #{number} says that it fixes it and is merged, into which branch is unknown; check whether the default branch has it."
        ),
        (true, true) => {
            format!(
                "Pull request #{number} is merged and probably fixed it, without naming it; try the default branch."
            )
        }
        (true, false) => format!(
            "Pull request #{number} is merged, into which branch is unknown, and may have fixed it without naming it; check whether the default branch has it."
        ),
    }
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

#[cfg(test)]
mod tests {
    use canonry_triage::DraftReport;
    use serde_json::{Value, json};

    use super::on_draft;

    /// A report with these fields instead of those of "new".
    fn report(changed: Value) -> DraftReport {
        let mut report = json!({
            "stats": { "compared": 4, "embedded": 4 }, "answer": "new", "verdict": "not_duplicate", "confidence": null, "reason": "none",
            "item": null, "matched": null, "fix": null, "evidence": [], "explanation": null, "same_lines": false, "similar": [],
            "lacks_changes": false, "synced_at": "2026-11-19T10:00:00Z",
        });
        let Value::Object(changed) = changed else { panic!("changes are an object") };
        report.as_object_mut().expect("an object").extend(changed);
        serde_json::from_value(report).expect("a report of an earlier version")
    }

    #[test]
    fn to_file_is_advised_only_where_enough_is_known() {
        for (changed, is_change, expected) in [
            (json!({}), false, "Nothing similar is known; file it."),
            (
                json!({ "stats": { "compared": 0, "embedded": 0 }, "synced_at": null }),
                false,
                "Nothing is known yet: there is no issue to compare with. Run `canonry sync` first. Search GitHub before you file it.",
            ),
            (
                json!({ "stats": { "compared": 0, "embedded": 0 } }),
                true,
                "Nothing is known yet: there is no pull request to compare with. Search GitHub before you open the pull request.",
            ),
            (
                json!({ "synced_at": null }),
                false,
                "Nothing similar is known, but that may be wrong. The repository was never synced, so issues may be missing. Run `canonry sync` first. Search GitHub before you file it.",
            ),
            (
                json!({ "stats": { "compared": 4, "embedded": 0 } }),
                false,
                "Nothing similar is known, but that may be wrong. Only words were compared: nothing is embedded yet. Run `canonry embed` first. Search GitHub before you file it.",
            ),
            (
                json!({ "without_changes": 3 }),
                true,
                "Nothing similar is known, but that may be wrong. 3 similar pull requests have no stored changes; whether they make the same change is unknown. `canonry sync` fetches the changes of open pull requests, and of those closed in the last 90 days. Search GitHub before you open the pull request.",
            ),
        ] {
            assert_eq!(on_draft(&report(changed.clone()), is_change), expected, "{changed}");
        }
    }

    #[test]
    fn a_fix_is_certain_only_on_the_default_branch() {
        let fixed = |on_default_branch: Value| {
            let item = json!({ "number": 1, "type": "issue", "title": "It stops", "state": "closed", "merged": false, "draft": false });
            let fix = json!({
                "number": 6, "title": "Go on", "state": "closed", "merged": true, "merged_at": null, "url": null, "base_branch": null,
                "on_default_branch": on_default_branch, "released_in": null, "confidence": null, "evidence": [],
            });
            on_draft(&report(json!({ "answer": "fixed", "verdict": "duplicate", "item": item, "fix": fix })), false)
        };
        assert_eq!(
            fixed(json!(true)),
            "Do not file it: #1 is the same. Pull request #6 fixes it and is merged; try the default branch or the next release."
        );
        assert_eq!(
            fixed(Value::Null),
            "Do not file it: #1 is the same. Pull request #6 says that it fixes it and is merged, into which branch is unknown; check whether the default branch has it."
        );
    }
}
