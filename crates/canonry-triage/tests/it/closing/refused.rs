//! Runs that are not plans, and plans that a safety rule forbids.

use canonry_domain::{ItemType, OverrideKind, UndoReason};
use canonry_store::{CloseRunId, NewOverride, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{ApplyError, UndoError};

use crate::closing::setting::{Setting, told};

#[track_caller]
fn refused(result: Result<canonry_triage::CloseReport, ApplyError>) -> String {
    match result {
        Err(ApplyError::Refused(words)) => words,
        other => panic!("{other:?}"),
    }
}

fn no_plan(result: Result<canonry_triage::CloseReport, ApplyError>) -> String {
    match result {
        Err(ApplyError::NotAPlan(words)) => words,
        other => panic!("{other:?}"),
    }
}

on_both_engines! {
    async fn only_plans_of_this_repository_are_applied(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(1);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        let unknown = CloseRunId::new(plan.get() + 40);
        assert!(no_plan(setting.try_apply(unknown, false).await).contains("there is no plan"));
        setting.apply(plan).await;
        let applied = setting.store.plans().applied_closes(setting.repo.id, ItemType::Issue).await.expect("reads")[0].apply_run_id;
        let words = no_plan(setting.try_apply(applied, false).await);
        assert!(words.contains(&format!("the apply of plan {plan}")), "{words}");
        let now = setting.emulator.world().now;
        let name = "acme/attic".parse().expect("a name");
        setting.repo = setting.store.repos().ensure(&name, now).await.expect("stored");
        assert!(no_plan(setting.try_apply(plan, false).await).contains("acme/attic"));
        let Err(UndoError::NothingToUndo(words)) = setting.try_undo(plan, None, UndoReason::Other).await else {
            panic!("another repository's plan was undone");
        };
        assert!(words.contains("acme/attic"), "{words}");
    }

    async fn an_old_plan_is_refused(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(1);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        setting.later(7 * 24 * 3600 + 1);
        assert!(refused(setting.try_apply(plan, false).await).contains("older than 7 days"));
        setting.assert_untouched(duplicates[0], "an old plan");
    }

    async fn a_plan_behind_a_newer_one_or_an_override_is_refused(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(2);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        let newer = setting.plan(&[(duplicates[0], original)]).await;
        assert!(refused(setting.try_apply(plan, false).await).contains(&format!("plan {newer} is newer")));
        setting.later(5);
        let ruled = NewOverride {
            item_type: ItemType::Issue,
            kind: OverrideKind::NotDuplicate,
            item: duplicates[0],
            other: Some(original),
            note: None,
            by: None,
        };
        let now = setting.emulator.world().now;
        setting.store.duplicates().add_override(setting.repo.id, ruled, now).await.expect("ruled");
        assert!(refused(setting.try_apply(newer, false).await).contains("override"));
        setting.assert_untouched(duplicates[0], "refused");
    }

    async fn nothing_is_closed_by_guesses(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(1);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        for mistake in ["close: {protectedLabels: 7}\n", "triage: {mode: perhaps}\n", "close: ["] {
            setting = setting.with_config(mistake);
            assert!(refused(setting.try_apply(plan, false).await).contains("so nothing is closed"), "{mistake}");
        }
        setting.assert_untouched(duplicates[0], "unreadable settings");
        setting = setting.with_config("");
        assert_eq!(told(&setting.apply(plan).await), [format!("#{} applied", duplicates[0])]);
    }

    async fn without_maintainers_nothing_is_closed(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        let now = setting.emulator.world().now;
        let attic = setting.store.repos().ensure(&"acme/attic".parse().expect("a name"), now).await.expect("stored");
        setting.repo = attic;
        let plan = setting.store_plan(&[]).await;
        let why = refused(setting.try_apply(plan, false).await);
        assert!(why.contains("`canonry maintainers refresh --repo acme/attic`"), "{why}");
        assert!(why.contains("`canonry maintainers set --repo acme/attic LOGIN…`"), "{why}");
    }

    async fn a_refused_plan_takes_back_what_an_interrupted_run_announced(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for points in 0..14 {
            let (original, duplicates) = setting.cluster(2);
            let plan = setting.plan(&[(duplicates[0], original), (duplicates[1], original)]).await;
            let github = setting.github();
            let outbox = setting.outbox_until(&github, points).await;
            setting.apply_with(&github, &outbox, plan, false).await.expect_err("killed");
            setting.later(8 * 24 * 3600);
            refused(setting.try_apply(plan, false).await);
            let shown = setting.shown(duplicates[0]);
            let context = format!("killed after {points} points: {shown:?}");
            let key = format!("close:{plan}:issue:{}", duplicates[0]);
            let entry = setting.store.outbox().of_key(&key).await.expect("reads").expect("begun");
            assert_ne!(entry.state, OutboxState::Pending, "{context}");
            let says_closing = shown.comments.iter().any(|comment| comment.starts_with("Closed"));
            assert_eq!(says_closing, !shown.open, "{context}");
            if shown.open {
                setting.assert_untouched(duplicates[1], &context);
            } else {
                setting.assert_closed(duplicates[0], original, &context);
                setting.assert_back_link(original, &duplicates[..1], &context);
            }
        }
    }

    async fn excluding_a_row_takes_back_what_was_announced_for_it(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(1);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        let github = setting.github();
        // After the comment, before the close.
        let outbox = setting.outbox_until(&github, 7).await;
        setting.apply_with(&github, &outbox, plan, false).await.expect_err("killed");
        let now = setting.emulator.world().now;
        setting.store.plans().set_approved(plan, ItemType::Issue, &duplicates, Some(false), None, now).await.expect("noted");
        assert_eq!(told(&setting.apply(plan).await), [""; 0]);
        let shown = setting.shown(duplicates[0]);
        assert_eq!((shown.open, shown.comments.len()), (true, 1));
        assert!(!shown.comments[0].starts_with("Closed"), "{shown:?}");
    }
}
