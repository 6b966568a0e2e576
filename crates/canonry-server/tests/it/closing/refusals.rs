//! Orders that are refused, and the reasons they show.

use canonry_domain::UndoReason;
use canonry_server::{ApplyOrder, PlanOrder, UndoOrder, queue_apply, queue_cancel_grace, queue_plan, queue_undo};
use canonry_store::{BrakeKind, JobState, RepoAccess};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Permission};
use canonry_testkit::on_both_engines;

use crate::world::close_world::{CloseWorld, MAINTAINER, REPO, maintainer, plain};

on_both_engines! {
    async fn nothing_is_closed_that_a_rule_forbids(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(3).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let ordered = async |order: &ApplyOrder, words: &str| {
            let job = queue_apply(store, repo, order, setting.now()).await.expect("reads").expect("queued");
            setting.work().await;
            let (state, told) = setting.ended(job).await;
            let told = told.unwrap_or_default();
            assert!(state == JobState::Done && told.contains(words), "{words}: {state:?} {told}");
            setting.assert_untouched(&duplicates, words);
        };
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: maintainer() };

        let by = maintainer();
        store.close().set_brake(repo.id, BrakeKind::Pause, by.as_ref(), "holidays", setting.now()).await.expect("set");
        ordered(&order, "is paused by maint").await;
        store.close().lift_brake(repo.id, BrakeKind::Pause, None, setting.now()).await.expect("lifted");

        setting.emulator.world().collaborator(REPO, MAINTAINER, Permission::Read);
        ordered(&order, "maint may no longer push to acme/widgets").await;
        setting.emulator.world().collaborator(REPO, MAINTAINER, Permission::Maintain);

        let stranger = ApplyOrder { by: Some("ann".parse().expect("a login")), ..order.clone() };
        ordered(&stranger, "ann may no longer push to acme/widgets").await;

        let nothing = ApplyOrder { plan: canonry_store::CloseRunId::new(9_999), ..order.clone() };
        ordered(&nothing, "there is no plan 9999").await;

        store.repos().set_access(repo.id, RepoAccess::Suspended, setting.now()).await.expect("stored");
        ordered(&order, "acme/widgets is suspended").await;
        store.repos().set_access(repo.id, RepoAccess::Active, setting.now()).await.expect("stored");

        setting.settings("close: {minClose: certainly}\n");
        store.repos().expire_settings(repo.id).await.expect("forgotten");
        ordered(&order, "the section `close` of the repository's settings has a mistake").await;
        setting.settings("");
        store.repos().expire_settings(repo.id).await.expect("forgotten");

        setting.emulator.world().now += jiff::SignedDuration::from_hours(8 * 24);
        ordered(&order, "is older than 7 days").await;
        assert!(setting.emulator.writes().is_empty());
    }

    async fn an_order_is_for_the_repository_of_its_id_and_for_no_other_of_the_name(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(1).await;
        let former = canonry_store::Repo { github_id: Some(canonry_domain::GithubId(424_242)), ..setting.repo.clone() };
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: None };
        let job = queue_apply(&setting.store, &former, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        let words = "the repository is no longer in the database".to_owned();
        assert_eq!(setting.ended(job).await, (JobState::Done, Some(words)));
        setting.assert_untouched(&duplicates, "another repository's");
    }

    async fn what_drifted_and_what_is_too_much_for_a_day_is_left_alone(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        setting.settings("close: {maxPerDay: 2}\n");
        let (plan, _, duplicates) = setting.plan(4).await;
        setting.emulator.world().comment(REPO, plain(duplicates[0]), "ann", "Mine is another one.");
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: None };
        let job = queue_apply(&setting.store, &setting.repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        let (state, words) = setting.ended(job).await;
        let words = words.expect("told");
        assert_eq!(state, JobState::Done);
        assert!(words.starts_with("1 rows wait: at most 2 items a day"), "{words}");
        setting.assert_closed(&duplicates[1..3], "the day's two");
        assert!(setting.shown(duplicates[0]).open && setting.shown(duplicates[3]).open);
        let run = setting.store.plans().apply_of(plan).await.expect("reads").expect("begun");
        let rows = setting.store.plans().rows(run.id).await.expect("reads");
        let drifted = rows.iter().find(|row| row.number == duplicates[0]).and_then(|row| row.result.clone());
        assert_eq!(drifted.and_then(|result| result.reason).as_deref(), Some("drift:human_commented"));
        // The next day the same order continues.
        setting.emulator.world().now += jiff::SignedDuration::from_hours(25);
        let again = queue_apply(&setting.store, &setting.repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        assert_eq!(setting.ended(again).await, (JobState::Done, None));
        setting.assert_closed(&duplicates[1..], "the rest");
    }

    async fn an_undo_goes_first_and_ends_the_apply_of_its_plan(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(15).await;
        setting.approve(plan, &duplicates).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: None };
        let apply = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        // Only the first part.
        setting.one_try().await;
        let waiting = setting.job(apply).await;
        assert_eq!((waiting.state, waiting.error.as_deref()), (JobState::Queued, Some("5 rows left")));
        setting.assert_closed(&duplicates[..10], "the first part");
        let order = UndoOrder { plan, item: None, reason: UndoReason::Other, note: None, by: maintainer() };
        let undo = queue_undo(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        assert_eq!(setting.ended(undo).await, (JobState::Done, None));
        let words = format!("plan {plan} was undone; nothing more of it is closed");
        assert_eq!(setting.ended(apply).await, (JobState::Done, Some(words)));
        for number in &duplicates {
            assert!(setting.shown(*number).open, "#{number}");
        }
        setting.assert_untouched(&duplicates[10..], "never begun");
    }

    async fn who_lost_access_orders_nothing_else_either(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(1).await;
        let (store, repo) = (&setting.store, &setting.repo);
        setting.emulator.world().collaborator(REPO, MAINTAINER, Permission::Triage);
        let by = maintainer();
        let now = setting.now();
        let reason = UndoReason::Other;
        let undo = UndoOrder { plan, item: None, reason, note: None, by: by.clone() };
        let planned = PlanOrder { item_type: None, min_close: None, policy: None, by: by.clone() };
        let jobs = [
            queue_undo(store, repo, &undo, now).await.expect("reads").expect("queued"),
            queue_plan(store, repo, &planned, now).await.expect("queued"),
            canonry_server::queue_canonicalize(store, repo, None, by.as_ref(), now).await.expect("queued"),
            queue_cancel_grace(store, repo, canonry_domain::ItemType::Issue, duplicates[0], by.as_ref(), now)
                .await
                .expect("queued"),
        ];
        setting.work().await;
        for job in jobs {
            let words = "maint may no longer push to acme/widgets; nothing was done";
            assert_eq!(setting.ended(job).await, (JobState::Done, Some(words.to_owned())));
        }
        // The operator may give the order, and the job reports that there is nothing to do.
        let undo = UndoOrder { by: None, ..undo };
        let undo = queue_undo(store, repo, &undo, now).await.expect("reads").expect("queued");
        let grace = queue_cancel_grace(store, repo, canonry_domain::ItemType::Issue, duplicates[0], None, now).await;
        let grace = grace.expect("queued");
        setting.work().await;
        assert_eq!(setting.ended(undo).await.1, Some(format!("plan {plan} has closed nothing")));
        let told = setting.ended(grace).await.1.expect("told");
        assert!(told.starts_with("no announced close of #"), "{told}");
        assert!(setting.emulator.writes().is_empty());
    }

    async fn what_somebody_closed_meanwhile_is_left_to_them(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(2).await;
        setting.emulator.world().close(REPO, plain(duplicates[0]), "maint", CloseReason::Completed);
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: maintainer() };
        let job = queue_apply(&setting.store, &setting.repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        assert_eq!(setting.ended(job).await, (JobState::Done, None));
        assert_eq!((setting.shown(duplicates[0]).closes, setting.shown(duplicates[0]).comments), (0, 0));
        setting.assert_closed(&duplicates[1..], "the other");
    }
}
