//! What is known about a draft before it is filed: reported, in progress, fixed, a possible regression, or new.

use jiff::{SignedDuration, Timestamp};

use crate::{Item, ItemNumber, ItemState, ItemType, StateReason, text_enum};

text_enum! {
    /// The answer to "is this already reported?".
    #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
    pub enum DraftAnswer: "an answer" {
        /// An item describes the same problem.
        Reported = "reported",
        /// An open pull request says that it fixes the reported problem.
        InProgress = "in_progress",
        /// A pull request that fixes the reported problem was merged lately.
        Fixed = "fixed",
        /// The reported problem was fixed or closed as completed, and has had the time to reach its users.
        PossibleRegression = "possible_regression",
        /// No item describes the same problem.
        New = "new",
    }
}

/// A pull request that says that it fixes an issue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixingPull {
    pub number: ItemNumber,
    pub title: String,
    pub url: Option<String>,
    pub state: ItemState,
    pub merged: bool,
    pub closed_at: Option<Timestamp>,
}

impl From<&Item> for FixingPull {
    fn from(pull: &Item) -> Self {
        Self {
            number: pull.number,
            title: pull.title.clone(),
            url: pull.url.clone(),
            state: pull.state,
            merged: pull.merged,
            closed_at: pull.closed_at,
        }
    }
}

/// How long a fix may need to reach a reporter. Until then the report is of a version without the fix; later the fix
/// may not have worked. Not measured: releases are not known here, and most projects make one in two months.
const RELEASED_WITHIN: SignedDuration = SignedDuration::from_hours(24 * 60);

/// What the report that matches a draft means for it, and the pull request that the answer is about.
pub fn draft_answer<'a>(
    report: Option<&Item>,
    fixes: &'a [FixingPull],
    now: Timestamp,
) -> (DraftAnswer, Option<&'a FixingPull>) {
    let Some(report) = report else { return (DraftAnswer::New, None) };
    // A change is compared with changes: the report is the pull request itself.
    if report.item_type == ItemType::Pr {
        return match (report.state, report.merged) {
            (ItemState::Open, _) => (DraftAnswer::InProgress, None),
            (ItemState::Closed, true) => (DraftAnswer::Fixed, None),
            (ItemState::Closed, false) => (DraftAnswer::Reported, None),
        };
    }
    let is_recent = |at: Option<Timestamp>| at.is_none_or(|at| now.duration_since(at) <= RELEASED_WITHIN);
    if let Some(open) = fixes.iter().rev().find(|pull| pull.state == ItemState::Open) {
        return (DraftAnswer::InProgress, Some(open));
    }
    if report.state == ItemState::Open
        || matches!(report.state_reason, Some(StateReason::NotPlanned | StateReason::Duplicate))
    {
        return (DraftAnswer::Reported, None);
    }
    // A change from before the report cannot be its fix.
    let is_later = |pull: &&FixingPull| {
        pull.merged && pull.closed_at.zip(report.created_at).is_none_or(|(merged, reported)| merged >= reported)
    };
    match fixes.iter().filter(is_later).max_by_key(|pull| (pull.closed_at, pull.number)) {
        Some(fix) if is_recent(fix.closed_at) => (DraftAnswer::Fixed, Some(fix)),
        Some(fix) => (DraftAnswer::PossibleRegression, Some(fix)),
        None if report.state_reason == Some(StateReason::Completed) && !is_recent(report.closed_at) => {
            (DraftAnswer::PossibleRegression, None)
        }
        None => (DraftAnswer::Reported, None),
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{DraftAnswer, FixingPull, draft_answer};
    use crate::{Item, ItemNumber, ItemRecord, ItemState, ItemType, StateReason, merge_record};

    fn now() -> Timestamp {
        "2026-05-14T12:00:00Z".parse().expect("valid")
    }

    fn days_ago(days: i64) -> Timestamp {
        now() - SignedDuration::from_hours(24 * days)
    }

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn report(closed: Option<(StateReason, i64)>) -> Item {
        let record = ItemRecord {
            state: Some(if closed.is_some() { ItemState::Closed } else { ItemState::Open }),
            state_reason: Some(closed.map(|(reason, _)| reason)),
            closed_at: Some(closed.map(|(_, days)| days_ago(days))),
            created_at: Some(days_ago(400)),
            ..ItemRecord::new(ItemType::Issue, number(1), "It stops")
        };
        merge_record(None, record).item
    }

    fn pull(of: i64, state: ItemState, merged: Option<i64>) -> FixingPull {
        FixingPull {
            number: number(of),
            title: "Fix it".to_owned(),
            url: None,
            state,
            merged: merged.is_some(),
            closed_at: merged.map(days_ago),
        }
    }

    fn answer(report: &Item, fixes: &[FixingPull]) -> (DraftAnswer, Option<i64>) {
        let (answer, pull) = draft_answer(Some(report), fixes, now());
        (answer, pull.map(|pull| pull.number.get()))
    }

    #[test]
    fn a_draft_that_matches_nothing_is_new() {
        assert_eq!(draft_answer(None, &[pull(9, ItemState::Open, None)], now()), (DraftAnswer::New, None));
    }

    #[test]
    fn the_answer_follows_from_the_report_and_its_fixes() {
        use DraftAnswer::{Fixed, InProgress, PossibleRegression, Reported};
        use StateReason::{Completed, Duplicate, NotPlanned};
        let (open, abandoned) = (pull(5, ItemState::Open, None), pull(6, ItemState::Closed, None));
        let merged = |days| pull(7, ItemState::Closed, Some(days));
        for (closed, fixes, expected) in [
            (None, vec![], (Reported, None)),
            (None, vec![abandoned.clone()], (Reported, None)),
            (None, vec![abandoned.clone(), open.clone()], (InProgress, Some(5))),
            // Reopened after a merged fix: the report stands.
            (None, vec![merged(3)], (Reported, None)),
            (Some((NotPlanned, 3)), vec![], (Reported, None)),
            (Some((Duplicate, 300)), vec![merged(300)], (Reported, None)),
            (Some((Completed, 3)), vec![merged(3)], (Fixed, Some(7))),
            (Some((Completed, 200)), vec![merged(200)], (PossibleRegression, Some(7))),
            (Some((Completed, 200)), vec![merged(200), open], (InProgress, Some(5))),
            // Merged before the problem was reported.
            (Some((Completed, 3)), vec![merged(500)], (Reported, None)),
            // "Fixed" needs a merged change.
            (Some((Completed, 3)), vec![abandoned], (Reported, None)),
            (Some((Completed, 200)), vec![], (PossibleRegression, None)),
        ] {
            assert_eq!(answer(&report(closed), &fixes), expected, "{closed:?} {fixes:?}");
        }
    }

    #[test]
    fn a_change_is_in_progress_or_merged_where_its_twin_is() {
        for (state, merged, expected) in [
            (ItemState::Open, false, DraftAnswer::InProgress),
            (ItemState::Closed, true, DraftAnswer::Fixed),
            (ItemState::Closed, false, DraftAnswer::Reported),
        ] {
            let twin = Item { item_type: ItemType::Pr, state, merged, ..report(None) };
            assert_eq!(answer(&twin, &[]), (expected, None));
        }
    }

    #[test]
    fn of_several_merged_fixes_the_last_counts() {
        let fixes = [pull(8, ItemState::Closed, Some(10)), pull(9, ItemState::Closed, Some(300))];
        assert_eq!(answer(&report(Some((StateReason::Completed, 10))), &fixes), (DraftAnswer::Fixed, Some(8)));
    }
}
