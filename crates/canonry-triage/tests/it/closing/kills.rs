//! Apply and undo are killed at every point and at every wait, and started again.

use canonry_domain::{ItemNumber, ItemType, UndoReason};
use canonry_store::CloseRunId;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{ArmedFault, Fault, Late, Recorded};
use canonry_testkit::on_both_engines;
use canonry_triage::{ApplyError, CloseReport, ClosingError, RowResult, UndoError};

use crate::closing::setting::Setting;
use crate::ending::{soaking, until};

/// A longer run is considered endless.
const MOST_POINTS: usize = 200;

/// A plan that closes two items, one of which is the canonical of an earlier close.
struct Case {
    plan: CloseRunId,
    original: ItemNumber,
    duplicates: [ItemNumber; 2],
    earlier: ItemNumber,
}

impl Case {
    async fn new(setting: &Setting) -> Self {
        setting.emulator.clear_faults();
        setting.next_hour();
        setting.later(24 * 3600);
        let (old, earlier) = setting.cluster(1);
        let first = setting.plan(&[(earlier[0], old)]).await;
        assert_eq!(setting.apply(first).await.applied, 1);
        setting.later(60);
        let (original, new) = setting.cluster(1);
        let duplicates = [old, new[0]];
        let plan = setting.plan(&duplicates.map(|duplicate| (duplicate, original))).await;
        Self { plan, original, duplicates, earlier: earlier[0] }
    }

    async fn check_applied(&self, setting: &Setting, report: &CloseReport, context: &str) {
        assert!(report.remarks.is_empty(), "{context}: {report:?}");
        for row in &report.rows {
            let done = matches!(row.result, RowResult::Applied | RowResult::AlreadyApplied);
            assert!(done && row.reason.is_none(), "{context}: {report:?}");
        }
        assert_eq!(report.rows.len(), 2, "{context}");
        for duplicate in &self.duplicates[1..] {
            setting.assert_closed(*duplicate, self.original, context);
        }
        let old = setting.shown(self.duplicates[0]);
        assert_eq!(
            (old.open, old.closes, old.comments.len(), old.labels.len()),
            (false, 1, 2, 1),
            "{context}: {old:?}"
        );
        let earlier = setting.shown(self.earlier);
        let expected = format!("Closed as a duplicate; please follow #{}. It replaces", self.original);
        assert_eq!((earlier.closes, earlier.comments.len()), (1, 1), "{context}");
        assert!(earlier.comments[0].starts_with(&expected), "{context}: {earlier:?}");
        let mut all = vec![self.earlier];
        all.extend(self.duplicates);
        all.sort_unstable();
        setting.assert_back_link(self.original, &all, context);
        let stored = setting.store.plans().applied_closes(setting.repo.id, ItemType::Issue).await.expect("reads");
        let stored = stored.iter().filter(|close| close.plan_id == self.plan).count();
        assert_eq!(stored, 2, "{context}: what is recorded is what GitHub shows");
    }

    async fn check_undone(&self, setting: &Setting, report: &CloseReport, context: &str) {
        assert!(report.remarks.is_empty(), "{context}: {report:?}");
        for row in &report.rows {
            let done = matches!(row.result, RowResult::Applied | RowResult::AlreadyUndone);
            assert!(done && row.reason.is_none(), "{context}: {report:?}");
        }
        for duplicate in &self.duplicates[1..] {
            let shown = setting.shown(*duplicate);
            let counted = (shown.open, shown.closes, shown.comments.len(), shown.labels.len());
            assert_eq!(counted, (true, 1, 2, 0), "{context}: {shown:?}");
            assert!(shown.comments[1].starts_with("Reopened"), "{context}: {shown:?}");
        }
        let earlier = setting.shown(self.earlier);
        let expected = format!("Closed as a duplicate; please follow #{}", self.duplicates[0]);
        assert!(!earlier.open && earlier.comments[0].starts_with(&expected), "{context}: {earlier:?}");
        let nothing = "No issue is closed as a duplicate of this one any more.";
        assert_eq!(setting.shown(self.original).comments, [nothing], "{context}");
        let stored = setting.store.plans().applied_closes(setting.repo.id, ItemType::Issue).await.expect("reads");
        let mut stored = stored.iter().filter(|close| close.plan_id == self.plan);
        assert!(stored.all(|close| close.undone_at.is_some()), "{context}");
        let ruled = setting.store.duplicates().overrides(setting.repo.id, None).await.expect("reads");
        let ruled = ruled.iter().filter(|ruled| ruled.other == Some(self.original)).count();
        assert_eq!(ruled, 2, "{context}: each pair is ruled apart once");
    }
}

/// A fault in addition to the kill.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    None,
    ApplyAndDrop(usize),
    ApplyLate(usize),
}

impl Trouble {
    fn fault(self) -> Option<ArmedFault> {
        let write = |nth| Fault::on("*", "/repos/**").when(Recorded::is_write).nth(nth);
        match self {
            Self::None => None,
            Self::ApplyAndDrop(nth) => Some(write(nth).apply_and_drop()),
            Self::ApplyLate(nth) => Some(write(nth).drop_and_apply_late(Late::AfterRequests(2))),
        }
    }
}

fn troubles() -> Vec<Trouble> {
    let mut troubles = vec![Trouble::None];
    if soaking() {
        troubles.extend((1..=12).flat_map(|nth| [Trouble::ApplyAndDrop(nth), Trouble::ApplyLate(nth)]));
    }
    troubles
}

fn stopped_apply(result: Result<CloseReport, ApplyError>) -> Option<CloseReport> {
    match result {
        Ok(report) => Some(report),
        Err(ApplyError::Ended(ClosingError::Outbox(canonry_github::outbox::OutboxError::Stopped(_)))) => None,
        Err(error) => panic!("{error}"),
    }
}

fn stopped_undo(result: Result<CloseReport, UndoError>) -> Option<CloseReport> {
    match result {
        Ok(report) => Some(report),
        Err(UndoError::Ended(ClosingError::Outbox(canonry_github::outbox::OutboxError::Stopped(_)))) => None,
        Err(error) => panic!("{error}"),
    }
}

on_both_engines! {
    async fn an_apply_survives_a_kill_at_every_point(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for trouble in troubles() {
            for points in 0..MOST_POINTS {
                let context = format!("{trouble:?}, killed after {points} points");
                let case = Case::new(&setting).await;
                trouble.fault().map(|fault| setting.emulator.fault(fault));
                let github = setting.github();
                let outbox = setting.outbox_until(&github, points).await;
                let whole = stopped_apply(setting.apply_with(&github, &outbox, case.plan, false).await);
                let survived = whole.is_none();
                let report = match whole {
                    Some(report) => report,
                    None => setting.apply(case.plan).await,
                };
                case.check_applied(&setting, &report, &context).await;
                if !survived {
                    break;
                }
                assert!(points + 1 < MOST_POINTS, "{context}: it does not end");
            }
        }
    }

    async fn an_undo_survives_a_kill_at_every_point(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for trouble in troubles() {
            for points in 0..MOST_POINTS {
                let context = format!("{trouble:?}, killed after {points} points");
                let case = Case::new(&setting).await;
                assert_eq!(setting.apply(case.plan).await.applied, 2, "{context}");
                setting.next_hour();
                trouble.fault().map(|fault| setting.emulator.fault(fault));
                let github = setting.github();
                let outbox = setting.outbox_until(&github, points).await;
                let reason = UndoReason::NotDuplicate;
                let whole = stopped_undo(setting.undo_with(&github, &outbox, case.plan, None, reason).await);
                let survived = whole.is_none();
                let report = match whole {
                    Some(report) => report,
                    None => setting.undo(case.plan).await,
                };
                case.check_undone(&setting, &report, &context).await;
                if !survived {
                    break;
                }
                assert!(points + 1 < MOST_POINTS, "{context}: it does not end");
            }
        }
    }

    async fn apply_and_undo_survive_an_end_at_any_wait(database: TestDatabase) {
        let setting = Setting::new(database).await;
        // A complete run first: it shows how many waits there are. Then kills all over it.
        let (mut waits, cases) = ((usize::MAX, usize::MAX), if soaking() { 500 } else { 10 });
        for case_number in 0..=cases {
            let at = |waits: usize| if case_number == 0 { waits } else { waits * (case_number - 1) / cases };
            let context = format!("case {case_number}, ended at wait {} or {} of {waits:?}", at(waits.0), at(waits.1));
            let case = Case::new(&setting).await;
            let process = setting.another_process().await;
            let (applied, applying) = until(process.apply(case.plan), at(waits.0)).await;
            let report = match applied {
                Some(report) => report.expect("applied"),
                None => setting.apply(case.plan).await,
            };
            case.check_applied(&setting, &report, &context).await;
            setting.next_hour();
            let reason = UndoReason::NotDuplicate;
            let process = setting.another_process().await;
            let (undone, undoing) = until(process.undo(case.plan, reason), at(waits.1)).await;
            let report = match undone {
                Some(report) => report.expect("undone"),
                None => setting.undo(case.plan).await,
            };
            case.check_undone(&setting, &report, &context).await;
            if case_number == 0 {
                waits = (applying, undoing);
            }
        }
    }
}
