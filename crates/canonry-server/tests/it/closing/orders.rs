//! An order is carried out once and completely.

use canonry_domain::{ItemType, OverrideKind, Probability, UndoReason};
use canonry_server::{
    ApplyOrder, ConsoleOrder, PlanOrder, UndoOrder, closing_jobs_of, last_closing_job, queue_apply, queue_canonicalize,
    queue_plan, queue_sync, queue_undo,
};
use canonry_store::{JobState, Representation};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{Statement, rule_pair};

use crate::world::close_world::{CloseWorld, REPO, maintainer, plain};

const DONE: (JobState, Option<String>) = (JobState::Done, None);

on_both_engines! {
    async fn a_plan_of_many_rows_is_carried_out_in_parts_and_undone_again(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        // The mode decides what Canonry does by itself, not what a person may order.
        setting.settings("triage: {mode: off}\n");
        let (plan, original, duplicates) = setting.plan(23).await;
        setting.approve(plan, &duplicates).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let order = ApplyOrder { plan, approved_only: true, only_takes_back: false, by: maintainer() };
        let job = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        assert_eq!(setting.work().await, 3, "ten rows at a time");
        assert_eq!(setting.ended(job).await, DONE);
        setting.assert_closed(&duplicates, "applied");
        assert_eq!(setting.shown(original).comments, 1, "one back-link");
        let run = store.plans().apply_of(plan).await.expect("reads").expect("begun");
        assert!(run.finished_at.is_some() && run.run_id.starts_with("console-"), "{run:?}");
        // Ordered again by a person with an old page: nothing more is written.
        let writes = setting.emulator.writes().len();
        let again = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        assert_eq!((setting.ended(again).await, setting.emulator.writes().len()), (DONE, writes));

        setting.next_hour();
        let one = Some((ItemType::Issue, duplicates[3]));
        let reason = UndoReason::WrongTarget;
        let order = UndoOrder { plan, item: one, reason, note: Some("It is the other one.".to_owned()), by: maintainer() };
        let undo = queue_undo(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        assert_eq!(setting.ended(undo).await, DONE);
        let shown = setting.shown(duplicates[3]);
        assert_eq!((shown.open, shown.comments, shown.labels.len()), (true, 2, 0), "{shown:?}");
        let said = setting.emulator.world().comments_by(REPO, plain(duplicates[3]), "canonry-bot")[1].body.clone();
        assert!(said.contains("> It is the other one.") && said.contains("> Requested by maint."), "{said}");
        assert!(store.duplicates().overrides(repo.id, None).await.expect("reads").is_empty(), "only not-duplicate rules");

        let order = UndoOrder { plan, item: None, reason: UndoReason::NotDuplicate, note: None, by: maintainer() };
        let rest = queue_undo(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        assert_eq!(setting.work().await, 3, "ten items at a time");
        assert_eq!(setting.ended(rest).await, DONE);
        for number in &duplicates {
            let shown = setting.shown(*number);
            assert_eq!((shown.open, shown.closes, shown.comments), (true, 1, 2), "#{number} {shown:?}");
        }
        let ruled = store.duplicates().overrides(repo.id, None).await.expect("reads");
        assert!(ruled.iter().all(|ruled| ruled.created_by == maintainer()) && ruled.len() == 22, "{ruled:?}");

        let told: Vec<_> = closing_jobs_of(store, repo, plan).await.expect("reads");
        let ids: Vec<_> = told.iter().map(|job| job.id).collect();
        assert_eq!(ids, [rest, undo, again, job]);
        assert_eq!(ConsoleOrder::of(&told[0]), Some(ConsoleOrder::Undo(order)));
        assert_eq!(last_closing_job(store, repo).await.expect("reads").map(|job| job.id), Some(rest));
        setting.emulator.assert_no_unknown_routes();
    }

    async fn plans_and_clusters_are_what_the_commands_make(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (_, original, duplicates) = setting.plan(2).await;
        let (store, repo) = (&setting.store, &setting.repo);
        for duplicate in &duplicates {
            let said = Statement { note: None, by: None };
            let ruled = rule_pair(store, repo, ItemType::Issue, OverrideKind::Duplicate, (*duplicate, original), said, setting.now()).await;
            ruled.expect("ruled");
        }
        let clusters = queue_canonicalize(store, repo, None, maintainer().as_ref(), setting.now()).await.expect("queued");
        setting.work().await;
        assert_eq!(setting.ended(clusters).await, DONE);
        let canonicals = store.duplicates().canonicals(repo.id, ItemType::Issue, Representation::Raw).await.expect("reads");
        assert_eq!(canonicals.len(), 3);
        assert!(canonicals.values().all(|canonical| *canonical == original), "{canonicals:?}");

        setting.emulator.world().advance(60);
        let min_close = Probability::new(0.97).ok();
        let order = PlanOrder { item_type: Some(ItemType::Issue), min_close, policy: None, by: None };
        let planned = queue_plan(store, repo, &order, setting.now()).await.expect("queued");
        setting.work().await;
        assert_eq!(setting.ended(planned).await, DONE);
        let run_id = setting.job(planned).await.payload["run_id"].as_str().expect("fixed").to_owned();
        let plan = store.plans().of_run(repo.id, &run_id).await.expect("reads").expect("made");
        let rows = store.plans().rows(plan).await.expect("reads");
        let closes: Vec<_> = rows.iter().filter(|row| row.skip.is_none()).map(|row| (row.number, row.target)).collect();
        assert_eq!(closes, duplicates.iter().map(|number| (*number, Some(original))).collect::<Vec<_>>());
        let made = store.plans().run(plan).await.expect("reads").expect("there");
        assert_eq!((made.min_close, setting.emulator.writes().len()), (min_close.expect("valid"), 0));

        let first = queue_sync(store, repo, setting.now()).await.expect("queued");
        assert!(first.is_some());
        assert_eq!(queue_sync(store, repo, setting.now()).await.expect("reads"), None, "one waits already");
    }
}
