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
    /// The branch that it changes; `None` if unknown.
    pub base_branch: Option<String>,
    pub base: FixBase,
}

/// Where a pull request's change lands. Only a change of the default branch fixes a problem for everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FixBase {
    DefaultBranch,
    AnotherBranch,
    /// The base of the pull request or the repository's default branch is unknown.
    Unknown,
}

impl FixBase {
    pub fn of(base: Option<&str>, default_branch: Option<&str>) -> Self {
        match (base, default_branch) {
            (Some(base), Some(default)) if base == default => Self::DefaultBranch,
            (Some(_), Some(_)) => Self::AnotherBranch,
            _ => Self::Unknown,
        }
    }
}

impl FixingPull {
    pub fn new(pull: &Item, default_branch: Option<&str>) -> Self {
        Self {
            number: pull.number,
            title: pull.title.clone(),
            url: pull.url.clone(),
            state: pull.state,
            merged: pull.merged,
            closed_at: pull.closed_at,
            base_branch: pull.base_branch.clone(),
            base: FixBase::of(pull.base_branch.as_deref(), default_branch),
        }
    }

    /// Whether it may have fixed a report: it is merged, later than the report was filed, and surely or possibly into
    /// the default branch.
    fn may_fix(&self, report: &Item) -> bool {
        self.merged
            && self.base != FixBase::AnotherBranch
            && self.closed_at.zip(report.created_at).is_none_or(|(merged, reported)| merged >= reported)
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
    match fixes.iter().filter(|pull| pull.may_fix(report)).max_by_key(|pull| (pull.closed_at, pull.number)) {
        Some(fix) if is_recent(fix.closed_at) => (DraftAnswer::Fixed, Some(fix)),
        Some(fix) => (DraftAnswer::PossibleRegression, Some(fix)),
        None if report.state_reason == Some(StateReason::Completed) && !is_recent(report.closed_at) => {
            (DraftAnswer::PossibleRegression, None)
        }
        None => (DraftAnswer::Reported, None),
    }
}

/// What a report means whose fix is a commit of the default branch without a pull request; `None` if that commit cannot
/// be its fix.
pub fn answer_by_commit(report: &Item, committed_at: Timestamp, now: Timestamp) -> Option<DraftAnswer> {
    let is_closed = report.state == ItemState::Closed
        && !matches!(report.state_reason, Some(StateReason::NotPlanned | StateReason::Duplicate));
    let is_later = report.created_at.is_none_or(|reported| committed_at >= reported);
    if report.item_type != ItemType::Issue || !is_closed || !is_later {
        return None;
    }
    let is_recent = now.duration_since(committed_at) <= RELEASED_WITHIN;
    Some(if is_recent { DraftAnswer::Fixed } else { DraftAnswer::PossibleRegression })
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::{DraftAnswer, FixBase, FixingPull, answer_by_commit, draft_answer};
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
            base_branch: None,
            base: FixBase::Unknown,
        }
    }

    #[test]
    fn a_base_is_compared_with_the_default_branch_only_if_both_are_known() {
        assert_eq!(FixBase::of(Some("main"), Some("main")), FixBase::DefaultBranch);
        assert_eq!(FixBase::of(Some("1.x"), Some("main")), FixBase::AnotherBranch);
        for (base, default) in [(None, Some("main")), (Some("main"), None), (None, None)] {
            assert_eq!(FixBase::of(base, default), FixBase::Unknown);
        }
    }

    #[test]
    fn a_commit_fixes_a_closed_report_that_is_older() {
        let closed = |reason| report(Some((reason, 3)));
        for (report, committed, expected) in [
            (closed(StateReason::Completed), 3, Some(DraftAnswer::Fixed)),
            (closed(StateReason::Completed), 200, Some(DraftAnswer::PossibleRegression)),
            (closed(StateReason::Completed), 500, None),
            (closed(StateReason::NotPlanned), 3, None),
            (report(None), 3, None),
        ] {
            assert_eq!(answer_by_commit(&report, days_ago(committed), now()), expected, "{committed}");
        }
    }

    #[test]
    fn a_fix_of_another_branch_is_no_fix() {
        let closed = report(Some((StateReason::Completed, 3)));
        let on = |base| FixingPull { base, ..pull(7, ItemState::Closed, Some(3)) };
        assert_eq!(answer(&closed, &[on(FixBase::DefaultBranch)]), (DraftAnswer::Fixed, Some(7)));
        assert_eq!(answer(&closed, &[on(FixBase::AnotherBranch)]), (DraftAnswer::Reported, None));
        // The backport came later; the change of the default branch counts.
        let backport = FixingPull { base: FixBase::AnotherBranch, ..pull(8, ItemState::Closed, Some(1)) };
        assert_eq!(answer(&closed, &[on(FixBase::DefaultBranch), backport]), (DraftAnswer::Fixed, Some(7)));
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
