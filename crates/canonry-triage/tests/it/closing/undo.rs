//! Undoing closes.

use canonry_domain::{ItemState, ItemType, OverrideKind, StateReason, UndoReason};
use canonry_store::CloseRunId;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault};
use canonry_testkit::on_both_engines;
use canonry_triage::{RowResult, UndoError, UndoOptions, undo_close};

use crate::closing::setting::{REPO, Setting, counts, plain, told};

async fn closed(
    setting: &Setting,
    duplicates: usize,
) -> (CloseRunId, canonry_domain::ItemNumber, Vec<canonry_domain::ItemNumber>) {
    let (original, duplicates) = setting.cluster(duplicates);
    let pairs: Vec<_> = duplicates.iter().map(|duplicate| (*duplicate, original)).collect();
    let plan = setting.plan(&pairs).await;
    setting.apply(plan).await;
    setting.later(60);
    (plan, original, duplicates)
}

on_both_engines! {
    /// Conformance 32, up to the plan.
    async fn an_undo_reopens_says_why_and_rules_the_pair_apart(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (plan, original, duplicates) = closed(&setting, 2).await;
        let github = setting.github();
        let outbox = setting.outbox(&github).await;
        let options = UndoOptions {
            run: plan,
            item: Some(duplicates[0]),
            reason: UndoReason::NotDuplicate,
            note: Some("Mine is about #7, @ann."),
            by: None,
            config: &setting.config.config,
            run_id: "undo", most_rows: None,
        };
        let mut rows = Vec::new();
        let mut on_row = |row: &canonry_triage::ReportedRow| rows.push(row.number);
        let report = undo_close(&setting.store, &github, &outbox, &setting.repo, options, &mut on_row).await;
        let report = report.expect("undone");
        assert_eq!((counts(&report), told(&report), rows), ((1, 1, 0, 0), vec![format!("#{} applied", duplicates[0])], vec![duplicates[0]]));
        let shown = setting.shown(duplicates[0]);
        assert_eq!((shown.open, shown.closes, shown.labels.len(), shown.comments.len()), (true, 1, 0, 2));
        let words = format!("Reopened: this is not the same problem as #{original}.");
        assert!(shown.comments[1].starts_with(&words), "{shown:?}");
        assert!(shown.comments[1].ends_with("> Mine is about \\#&ZeroWidthSpace;7, @&ZeroWidthSpace;ann."), "{shown:?}");
        setting.assert_closed(duplicates[1], original, "the other one stays");
        setting.assert_back_link(original, &duplicates[1..], "what stays");
        let ruled = setting.store.duplicates().overrides(setting.repo.id, Some(ItemType::Issue)).await.expect("reads");
        let ruled: Vec<_> = ruled.iter().map(|ruled| (ruled.kind, ruled.item, ruled.other)).collect();
        assert_eq!(ruled, [(OverrideKind::NotDuplicate, duplicates[0], Some(original))]);
        let stored = setting.item(duplicates[0]).await;
        assert_eq!((stored.state, stored.state_reason), (ItemState::Open, Some(StateReason::Reopened)));

        setting.emulator.forget_requests();
        let again = setting.try_undo(plan, Some(duplicates[0]), UndoReason::NotDuplicate).await.expect("undone");
        assert_eq!((counts(&again), told(&again)), ((0, 0, 0, 0), vec![format!("#{} already_undone", duplicates[0])]));
        let asked: Vec<String> = setting.emulator.requests().into_iter().map(|request| request.path).collect();
        assert_eq!(asked, ["/user"], "only who we are");
        let rest = setting.undo(plan).await;
        assert_eq!(told(&rest), [format!("#{} already_undone", duplicates[0]), format!("#{} applied", duplicates[1])]);
    }

    async fn only_not_duplicate_rules_anything(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for reason in [UndoReason::WrongTarget, UndoReason::Other] {
            let (plan, _, duplicates) = closed(&setting, 1).await;
            let applied = setting.store.plans().applied_closes(setting.repo.id, ItemType::Issue).await.expect("reads");
            let run = applied.iter().find(|close| close.plan_id == plan).expect("applied").apply_run_id;
            // The run that applied the plan can be named as well.
            let report = setting.try_undo(run, None, reason).await.expect("undone");
            assert_eq!(told(&report), [format!("#{} applied", duplicates[0])]);
            assert!(setting.shown(duplicates[0]).open);
        }
        assert_eq!(setting.store.duplicates().overrides(setting.repo.id, None).await.expect("reads"), []);
    }

    async fn pull_requests_are_reopened_too(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicate) = (setting.open_pull("Mend the sync"), setting.open_pull("Mend the sync, too"));
        let plan = setting.plan(&[(duplicate, original)]).await;
        setting.apply(plan).await;
        assert_eq!(told(&setting.undo(plan).await), [format!("#{duplicate} applied")]);
        let shown = setting.shown(duplicate);
        assert_eq!((shown.open, shown.labels.len()), (true, 0));
        assert!(shown.comments[1].contains("this is not the same change as"), "{shown:?}");
    }

    async fn what_somebody_reopened_is_recorded_and_left_alone(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (plan, _, duplicates) = closed(&setting, 2).await;
        setting.emulator.world().reopen(REPO, plain(duplicates[0]), "ann");
        setting.emulator.forget_requests();
        let report = setting.undo(plan).await;
        assert_eq!(told(&report), [format!("#{} skipped already_open", duplicates[0]), format!("#{} applied", duplicates[1])]);
        assert_eq!(setting.shown(duplicates[0]).comments.len(), 1);
        assert_eq!(setting.item(duplicates[0]).await.state, ItemState::Open);
        let ruled = setting.store.duplicates().overrides(setting.repo.id, None).await.expect("reads");
        assert_eq!(ruled.len(), 2);
        let again = setting.undo(plan).await;
        assert!(again.rows.iter().all(|row| row.result == RowResult::AlreadyUndone), "{again:?}");
    }

    async fn what_somebody_else_closed_again_stays_closed(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (plan, _, duplicates) = closed(&setting, 2).await;
        {
            let mut world = setting.emulator.world();
            world.reopen(REPO, plain(duplicates[0]), "ann");
            world.advance(5);
            world.close(REPO, plain(duplicates[0]), "maint", CloseReason::NotPlanned);
        }
        let report = setting.undo(plan).await;
        assert_eq!(told(&report), [format!("#{} skipped not_our_close", duplicates[0]), format!("#{} applied", duplicates[1])]);
        assert!(!setting.shown(duplicates[0]).open);
        let ruled = setting.store.duplicates().overrides(setting.repo.id, None).await.expect("reads");
        assert_eq!(ruled.len(), 1);
    }

    async fn refusals_are_told_and_can_be_tried_again(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for status in [403, 404, 410, 422, 451] {
            let (plan, original, duplicates) = closed(&setting, 2).await;
            let path = format!("/repos/*/*/issues/{}", duplicates[0]);
            setting.emulator.fault(Fault::on("PATCH", &path).answer(status));
            let report = setting.undo(plan).await;
            assert_eq!(counts(&report), (2, 1, 0, 1), "{status}: {report:?}");
            assert!(report.rows[0].reason.as_deref().is_some_and(|reason| reason.contains(&status.to_string())), "{report:?}");
            setting.assert_closed(duplicates[0], original, "refused");
            let again = setting.undo(plan).await;
            assert_eq!(told(&again), [format!("#{} applied", duplicates[0]), format!("#{} already_undone", duplicates[1])]);
            assert!(setting.shown(duplicates[0]).open);
            setting.next_hour();
            setting.later(24 * 3600);
        }
    }

    async fn a_comment_that_is_refused_is_told_and_the_reopening_stands(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (plan, _, duplicates) = closed(&setting, 1).await;
        setting.emulator.fault(Fault::on("POST", &format!("/repos/*/*/issues/{}/comments", duplicates[0])).answer(403));
        let report = setting.undo(plan).await;
        assert_eq!(report.rows[0].result, RowResult::Applied);
        assert!(report.rows[0].reason.as_deref().is_some_and(|reason| reason.contains("the comment")), "{report:?}");
        assert!(setting.shown(duplicates[0]).open);
    }

    async fn nothing_applied_is_nothing_to_undo(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(2);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        let nothing = |result: Result<_, UndoError>| match result {
            Err(UndoError::NothingToUndo(words)) => words,
            other => panic!("{other:?}"),
        };
        assert!(nothing(setting.try_undo(plan, None, UndoReason::Other).await).contains("has closed nothing"));
        setting.apply(plan).await;
        let other = Some(duplicates[1]);
        let words = nothing(setting.try_undo(plan, other, UndoReason::Other).await);
        assert!(words.contains(&format!("no #{}", duplicates[1])), "{words}");
        let unknown = CloseRunId::new(plan.get() + 99);
        assert!(nothing(setting.try_undo(unknown, None, UndoReason::Other).await).contains("there is no run"));
    }

    async fn an_interrupted_apply_is_undone_as_a_whole(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for points in 0..60 {
            let (original, duplicates) = setting.cluster(2);
            let plan = setting.plan(&[(duplicates[0], original), (duplicates[1], original)]).await;
            let github = setting.github();
            let outbox = setting.outbox_until(&github, points).await;
            let whole = setting.apply_with(&github, &outbox, plan, false).await.is_ok();
            let context = format!("killed after {points} points");
            match setting.try_undo(plan, None, UndoReason::Other).await {
                Ok(report) => assert_eq!(report.failed, 0, "{context}: {report:?}"),
                Err(UndoError::NothingToUndo(_)) => {}
                Err(error) => panic!("{context}: {error}"),
            }
            for duplicate in duplicates {
                let shown = setting.shown(duplicate);
                assert_eq!((shown.open, shown.labels.len()), (true, 0), "{context}: {shown:?}");
                let announced = shown.comments.iter().filter(|comment| comment.starts_with("Closed")).count();
                assert_eq!((announced, announced), (shown.closes, shown.comments.len().saturating_sub(1).min(shown.closes)), "{context}: {shown:?}");
            }
            setting.next_hour();
            setting.later(24 * 3600);
            if whole {
                return;
            }
        }
        panic!("it does not end");
    }
}
