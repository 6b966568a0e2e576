//! A new issue that repeats a closed one: its problem is fixed already, or it is back.

use jiff::Timestamp;

use crate::{
    DraftAnswer, FixBase, FixingPull, Item, ItemNumber, ItemType, Probability, ReleaseVersion, Similarity,
    draft_answer, text_enum,
};

text_enum! {
    /// What a closed report with the same problem means for a new issue.
    pub enum FixKind: "a kind of fix" {
        /// The report was filed before the fix reached its users.
        Fixed = "fixed",
        /// The report is about a version, or a time, that has the fix.
        PossibleRegression = "possible_regression",
    }
}

/// A closed report with the same problem as a new issue, and the merged pull request that fixed it. It is no duplicate:
/// nothing is closed or labelled because of it.
#[derive(Debug, Clone, PartialEq)]
pub struct FixMatch {
    pub kind: FixKind,
    pub report: ItemNumber,
    /// How similar the two reports are; thresholds compare this value.
    pub score: Similarity,
    /// The judge's confidence that the problem is the same.
    pub confidence: Option<Probability>,
    /// The pull request.
    pub fix: ItemNumber,
    pub merged_at: Timestamp,
    /// The first release that contains the fix, if known.
    pub release: Option<String>,
}

/// The release that a fix came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FixRelease {
    /// The first release that contains it.
    First(String),
    /// The repository makes releases, and none of them contains it.
    NotYet,
    Unknown,
}

impl FixRelease {
    /// The first release, if it is known.
    pub fn name(self) -> Option<String> {
        match self {
            Self::First(tag) => Some(tag),
            Self::NotYet | Self::Unknown => None,
        }
    }
}

/// What the closed report means for an issue that was filed at `filed_at`, and the pull request that fixed it. A fix
/// with an unknown base counts here, so that the caller can find out; see [`is_proven_fix`].
pub fn fix_of_report<'a>(
    report: &Item,
    fixes: &'a [FixingPull],
    filed_at: Timestamp,
) -> Option<(FixKind, &'a FixingPull)> {
    if report.item_type != ItemType::Issue {
        return None;
    }
    match draft_answer(Some(report), fixes, filed_at) {
        (DraftAnswer::Fixed, Some(fix)) => Some((FixKind::Fixed, fix)),
        (DraftAnswer::PossibleRegression, Some(fix)) => Some((FixKind::PossibleRegression, fix)),
        _ => None,
    }
}

/// Whether a comment may name the pull request as a fix: it was merged into the default branch, at a known time after
/// the report was filed.
pub fn is_proven_fix(fix: &FixingPull, report: &Item) -> bool {
    let is_later = fix.closed_at.zip(report.created_at).is_some_and(|(merged, reported)| merged >= reported);
    fix.merged && fix.base == FixBase::DefaultBranch && is_later
}

impl FixKind {
    /// The kind by the versions, if both are known: they say more than the dates. What is in no release has reached
    /// nobody who uses one.
    pub fn by_version(self, release: &FixRelease, reported: Option<&ReleaseVersion>) -> Self {
        let first = match release {
            FixRelease::First(tag) => ReleaseVersion::of_tag(tag),
            FixRelease::NotYet => return Self::Fixed,
            FixRelease::Unknown => None,
        };
        match (first, reported) {
            (Some(first), Some(reported)) if *reported >= first => Self::PossibleRegression,
            (Some(_), Some(_)) => Self::Fixed,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use proptest::prelude::{Just, Strategy, any, prop_assert, prop_oneof, proptest};

    use super::{FixKind, FixRelease, fix_of_report, is_proven_fix};
    use crate::{
        FixBase, FixingPull, Item, ItemNumber, ItemRecord, ItemState, ItemType, ReleaseVersion, StateReason,
        merge_record,
    };

    fn day(days: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * (1_000 + days))
    }

    fn number(number: i64) -> ItemNumber {
        ItemNumber::new(number).expect("positive")
    }

    fn report(state: ItemState, reason: Option<StateReason>) -> Item {
        let closed_at = (state == ItemState::Closed).then(|| day(0));
        let record = ItemRecord {
            state: Some(state),
            state_reason: Some(reason),
            closed_at: Some(closed_at),
            created_at: Some(day(-100)),
            ..ItemRecord::new(ItemType::Issue, number(1), "It stops")
        };
        merge_record(None, record).item
    }

    fn pull(merged: Option<i64>, base: FixBase) -> FixingPull {
        FixingPull {
            number: number(7),
            title: "Let it go on".to_owned(),
            url: None,
            state: ItemState::Closed,
            merged: merged.is_some(),
            closed_at: merged.map(day),
            base_branch: None,
            base,
        }
    }

    #[test]
    fn a_fix_is_new_or_old_when_the_issue_is_filed() {
        use FixBase::{AnotherBranch, DefaultBranch, Unknown};
        let closed = report(ItemState::Closed, Some(StateReason::Completed));
        for (merged, base, filed, expected) in [
            (Some(0), DefaultBranch, 10, Some((FixKind::Fixed, true))),
            (Some(0), DefaultBranch, 100, Some((FixKind::PossibleRegression, true))),
            // Merged after the new issue was filed.
            (Some(0), DefaultBranch, -5, Some((FixKind::Fixed, true))),
            (Some(0), Unknown, 10, Some((FixKind::Fixed, false))),
            (Some(0), AnotherBranch, 10, None),
            // Merged before the first report.
            (Some(-101), DefaultBranch, 10, None),
            (None, DefaultBranch, 10, None),
        ] {
            let fixes = [pull(merged, base)];
            let found =
                fix_of_report(&closed, &fixes, day(filed)).map(|(kind, fix)| (kind, is_proven_fix(fix, &closed)));
            assert_eq!(found, expected, "{merged:?} {base:?} {filed}");
        }
        for (state, reason) in [
            (ItemState::Open, None),
            (ItemState::Closed, Some(StateReason::NotPlanned)),
            (ItemState::Closed, Some(StateReason::Duplicate)),
        ] {
            assert_eq!(fix_of_report(&report(state, reason), &[pull(Some(0), DefaultBranch)], day(10)), None);
        }
        assert_eq!(fix_of_report(&closed, &[], day(100)), None, "closed without a fix is not called fixed");
    }

    #[test]
    fn versions_say_more_than_dates() {
        let reported = |version: &str| ReleaseVersion::of_tag(version);
        for (kind, release, version, expected) in [
            (FixKind::Fixed, Some("v1.4"), Some("1.4.0"), FixKind::PossibleRegression),
            (FixKind::Fixed, Some("v1.4"), Some("1.10"), FixKind::PossibleRegression),
            (FixKind::PossibleRegression, Some("v1.4"), Some("1.3.9"), FixKind::Fixed),
            (FixKind::PossibleRegression, Some("v1.4"), None, FixKind::PossibleRegression),
            (FixKind::Fixed, None, Some("1.5"), FixKind::Fixed),
            (FixKind::PossibleRegression, None, Some("1.5"), FixKind::PossibleRegression),
            (FixKind::Fixed, Some("nightly"), Some("1.5"), FixKind::Fixed),
        ] {
            let of = release.map_or(FixRelease::Unknown, |tag| FixRelease::First(tag.to_owned()));
            let found = kind.by_version(&of, version.and_then(reported).as_ref());
            assert_eq!(found, expected, "{kind} {release:?} {version:?}");
        }
        for kind in FixKind::ALL {
            for version in [None, Some("1.5")] {
                let found = kind.by_version(&FixRelease::NotYet, version.and_then(reported).as_ref());
                assert_eq!(found, FixKind::Fixed, "what is in no release cannot have failed in one");
            }
        }
    }

    fn bases() -> impl Strategy<Value = FixBase> {
        prop_oneof![Just(FixBase::DefaultBranch), Just(FixBase::AnotherBranch), Just(FixBase::Unknown)]
    }

    proptest! {
        /// Nothing but a change that was merged into the default branch after the report is ever named as its fix.
        #[test]
        fn a_proven_fix_is_merged_later_into_the_default_branch(
            pulls in proptest::collection::vec((any::<bool>(), -300..300_i64, bases()), 0..6), filed in -300..300_i64
        ) {
            let closed = report(ItemState::Closed, Some(StateReason::Completed));
            let of = |(merged, at, base): (bool, i64, FixBase)| pull(merged.then_some(at), base);
            let fixes: Vec<FixingPull> = pulls.into_iter().map(of).collect();
            if let Some((_, fix)) = fix_of_report(&closed, &fixes, day(filed)) {
                prop_assert!(fix.merged && fix.base != FixBase::AnotherBranch && fix.closed_at >= Some(day(-100)));
                let proven = is_proven_fix(fix, &closed);
                prop_assert!(proven == (fix.base == FixBase::DefaultBranch));
            }
        }
    }
}
