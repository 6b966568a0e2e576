//! Plans that are applied and undone a few rows at a time, by one run after the other.

use canonry_domain::ItemNumber;
use canonry_github::outbox::OutboxError;
use canonry_store::{BrakeKind, CloseRunId};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::Fault;
use canonry_testkit::on_both_engines;
use canonry_triage::{ApplyError, CloseReport, ClosingError, RowResult, UndoError};

use crate::closing::setting::{REPO, Setting, plain};
use crate::ending::soaking;

/// A longer run is considered endless.
const MOST_POINTS: usize = 200;

/// Three duplicates of one item and one of another, and the plan that closes them.
struct Case {
    plan: CloseRunId,
    originals: [ItemNumber; 2],
    duplicates: [ItemNumber; 4],
}

impl Case {
    async fn new(setting: &Setting) -> Self {
        setting.next_hour();
        setting.later(24 * 3600);
        let (first, duplicates) = setting.cluster(3);
        let (second, other) = setting.cluster(1);
        let duplicates = [duplicates[0], duplicates[1], duplicates[2], other[0]];
        let pairs: Vec<_> = duplicates.into_iter().zip([first, first, first, second]).collect();
        Self { plan: setting.plan(&pairs).await, originals: [first, second], duplicates }
    }

    fn check_applied(&self, setting: &Setting, context: &str) {
        let [first, second] = self.originals;
        for (duplicate, original) in self.duplicates.into_iter().zip([first, first, first, second]) {
            setting.assert_closed(duplicate, original, context);
        }
        setting.assert_back_link(first, &self.duplicates[..3], context);
        setting.assert_back_link(second, &self.duplicates[3..], context);
    }

    fn check_undone(&self, setting: &Setting, context: &str) {
        for duplicate in self.duplicates {
            let shown = setting.shown(duplicate);
            let counted = (shown.open, shown.closes, shown.comments.len(), shown.labels.len());
            assert_eq!(counted, (true, 1, 2, 0), "{context}: {shown:?}");
        }
        for original in self.originals {
            let nothing = "No issue is closed as a duplicate of this one any more.";
            assert_eq!(setting.shown(original).comments, [nothing], "{context}");
        }
    }
}

on_both_engines! {
    async fn a_stop_is_heeded_before_the_next_row(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let case = Case::new(&setting).await;
        let github = setting.github();
        let outbox = setting.outbox(&github).await;
        let first = setting.apply_part(&github, &outbox, case.plan, 1).await.expect("applied");
        assert_eq!((first.applied, first.unreached), (1, 3));
        let mona = "mona".parse().expect("a login");
        setting.store.plans().stop_apply(case.plan, Some(&mona), github.now()).await.expect("stopped");
        match setting.apply_part(&github, &outbox, case.plan, 4).await {
            Err(ApplyError::Refused(words)) => assert!(words.contains("was stopped by mona"), "{words}"),
            other => panic!("{other:?}"),
        }
        assert!(setting.shown(case.duplicates[1]).open);
        // An apply that is requested after that continues.
        setting.apply(case.plan).await;
        case.check_applied(&setting, "ordered again");
    }
}

/// Applies parts of two rows until nothing is left; the first part is killed at its `points`-th point. Returns
/// whether it was.
async fn apply_in_parts(setting: &Setting, plan: CloseRunId, points: usize, context: &str) -> bool {
    let github = setting.github();
    let outbox = setting.outbox_until(&github, points).await;
    let killed = match setting.apply_part(&github, &outbox, plan, 2).await {
        Ok(_) => false,
        Err(ApplyError::Ended(ClosingError::Outbox(OutboxError::Stopped(_)))) => true,
        Err(error) => panic!("{context}: {error}"),
    };
    for part in 0.. {
        assert!(part < 10, "{context}: it does not end");
        let outbox = setting.outbox(&github).await;
        let report = setting.apply_part(&github, &outbox, plan, 2).await.expect("applied");
        assert!(report.attempted <= 2 && report.remarks.is_empty(), "{context}: {report:?}");
        if report.unreached == 0 {
            break;
        }
        let unended = setting.store.plans().apply_of(plan).await.expect("reads").expect("begun");
        assert_eq!(unended.finished_at, None, "{context}: something is left");
    }
    killed
}

async fn undo_in_parts(setting: &Setting, plan: CloseRunId, points: usize, context: &str) -> bool {
    let github = setting.github();
    let outbox = setting.outbox_until(&github, points).await;
    let killed = match setting.undo_part(&github, &outbox, plan, 2).await {
        Ok(_) => false,
        Err(UndoError::Ended(ClosingError::Outbox(OutboxError::Stopped(_)))) => true,
        Err(error) => panic!("{context}: {error}"),
    };
    for part in 0.. {
        assert!(part < 10, "{context}: it does not end");
        let outbox = setting.outbox(&github).await;
        let report = setting.undo_part(&github, &outbox, plan, 2).await.expect("undone");
        assert!(report.attempted <= 2 && report.remarks.is_empty(), "{context}: {report:?}");
        if report.unreached == 0 {
            break;
        }
    }
    killed
}

on_both_engines! {
    async fn parts_make_a_whole_wherever_one_is_killed(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (mut applying, mut undoing) = (true, true);
        for points in (0..MOST_POINTS).step_by(if soaking() { 1 } else { 3 }) {
            let context = format!("killed after {points} points");
            let case = Case::new(&setting).await;
            applying = apply_in_parts(&setting, case.plan, points, &context).await;
            case.check_applied(&setting, &context);
            let run = setting.store.plans().apply_of(case.plan).await.expect("reads").expect("begun");
            assert!(run.finished_at.is_some(), "{context}");
            setting.next_hour();
            undoing = undo_in_parts(&setting, case.plan, points, &context).await;
            case.check_undone(&setting, &context);
            assert_eq!(setting.store.plans().running_undo(case.plan).await.expect("reads"), None, "{context}");
            if !applying && !undoing {
                break;
            }
        }
        assert!(!applying && !undoing, "it does not end");
    }

    async fn what_waits_for_another_day_takes_no_part_of_it(database: TestDatabase) {
        let setting = Setting::new(database).await.with_config("close: {maxPerDay: 1}");
        let case = Case::new(&setting).await;
        let approved = case.duplicates[3];
        let now = setting.emulator.world().now;
        let (store, plan) = (&setting.store, case.plan);
        let issue = canonry_domain::ItemType::Issue;
        store.plans().set_approved(plan, issue, &[approved], Some(true), None, now).await.expect("stored");
        let github = setting.github();
        let outbox = setting.outbox(&github).await;
        let report: CloseReport = setting.apply_part(&github, &outbox, plan, 2).await.expect("applied");
        let told = (report.applied, report.over_daily_limit, report.unreached, report.pending, report.failing);
        assert_eq!(told, (2, 2, 0, 0, 0), "{report:?}");
        setting.assert_closed(approved, case.originals[1], "a person approved it");
    }

    async fn a_pause_in_the_middle_tells_what_was_done_and_the_next_run_does_the_rest(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let case = Case::new(&setting).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let now = setting.emulator.world().now;
        let comments = format!("/repos/*/*/issues/{}/comments", case.duplicates[1]);
        let (fault, mut gate) = Fault::on("POST", &comments).hold_answer();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            store.close().set_brake(repo.id, BrakeKind::Pause, None, "holidays", now).await.expect("paused");
            gate.release();
        };
        let (report, ()) = tokio::join!(setting.apply(case.plan), person);
        assert_eq!((report.applied, report.unreached), (1, 2), "{report:?}");
        assert!(report.remarks.iter().any(|remark| remark.contains("paused")), "{report:?}");
        setting.assert_untouched(case.duplicates[3], "behind the pause");
        let refused = setting.try_apply(case.plan, false).await.expect_err("paused");
        assert!(matches!(&refused, ApplyError::Refused(words) if words.contains("paused")), "{refused:?}");
        store.close().lift_brake(repo.id, BrakeKind::Pause, None, now).await.expect("lifted");
        // A close that has begun is checked again after a while.
        setting.later(3600);
        setting.apply(case.plan).await;
        case.check_applied(&setting, "after the pause");
    }

    async fn what_cannot_be_opened_is_not_tried_for_ever(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let case = Case::new(&setting).await;
        setting.apply(case.plan).await;
        setting.later(60);
        for duplicate in &case.duplicates[..2] {
            let number = plain(*duplicate);
            let mut world = setting.emulator.world();
            world.reopen(REPO, number, "ann");
            world.advance(60);
            world.close(REPO, number, "maint", canonry_testkit::github::CloseReason::Completed);
        }
        let github = setting.github();
        let mut results = Vec::new();
        for part in 0.. {
            assert!(part < 10, "it does not end");
            let outbox = setting.outbox(&github).await;
            let report = setting.undo_part(&github, &outbox, case.plan, 1).await.expect("undone");
            results.push((report.attempted, report.unreached));
            if report.unreached == 0 {
                let kept = report.rows.iter().filter(|row| row.result == RowResult::Skipped).count();
                assert_eq!(kept, 2, "{report:?}");
                break;
            }
        }
        assert_eq!(results, [(1, 3), (1, 2), (1, 1), (1, 0)]);
        for duplicate in &case.duplicates[2..] {
            assert!(setting.shown(*duplicate).open, "#{duplicate}");
        }
    }
}
