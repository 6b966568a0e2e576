//! What people decide and order during an apply: an excluded row is never closed after that, and an undo of the whole
//! plan ends its apply, however many orders came after it.

use canonry_domain::{ItemType, UndoReason};
use canonry_server::{ApplyOrder, UndoOrder, closing_jobs_of, is_being_applied, queue_apply, queue_undo};
use canonry_store::{BrakeKind, JobCaps, JobEnd, JobId, JobLease, JobScope, JobState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault, Permission};
use canonry_testkit::on_both_engines;
use canonry_triage::closes_begun;
use futures_util::future::join_all;
use jiff::SignedDuration;

use crate::world::close_world::{CloseWorld, MAINTAINER, OWN, REPO, maintainer, plain};

const DONE: (JobState, Option<String>) = (JobState::Done, None);

/// Makes the next job fail for the last time.
async fn given_up(setting: &CloseWorld) -> JobId {
    let (store, now) = (&setting.store, setting.now());
    let caps = JobCaps { per_repo: 9, in_all: 9 };
    let until = now + SignedDuration::from_mins(5);
    let job = store.jobs().lease("unlucky", caps, JobScope::All, now, until).await.expect("reads").expect("due");
    let lease = JobLease { id: job.id, owner: "unlucky" };
    assert!(store.jobs().end(lease, JobEnd::Dead("GitHub was away"), now).await.expect("ended"));
    job.id
}

on_both_engines! {
    async fn what_is_excluded_during_an_apply_and_between_its_parts_stays_open(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, original, duplicates) = setting.plan(15).await;
        setting.approve(plan, &duplicates).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: maintainer() };
        let job = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        assert!(is_being_applied(store, repo, plan).await.expect("reads"));
        let exclude = async |at: usize| {
            let noted = store.plans().set_approved(plan, ItemType::Issue, &[duplicates[at]], Some(false), None, setting.now()).await;
            assert_eq!(noted.expect("noted"), 1);
        };
        // While the first row is being written, a person excludes a later one.
        let comments = format!("/repos/*/*/issues/{}/comments", duplicates[0]);
        let (fault, mut gate) = Fault::on("POST", &comments).hold_answer();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            exclude(9).await;
            gate.release();
        };
        tokio::join!(setting.one_try(), person);
        let waiting = setting.job(job).await;
        assert_eq!((waiting.state, waiting.error.as_deref()), (JobState::Queued, Some("4 rows left")));
        exclude(12).await;
        setting.work().await;
        assert_eq!(setting.ended(job).await, DONE);
        assert!(!is_being_applied(store, repo, plan).await.expect("reads"));
        let left: Vec<_> = [9, 12].map(|at| duplicates[at]).into();
        setting.assert_untouched(&left, "excluded");
        let closed: Vec<_> = duplicates.iter().copied().filter(|number| !left.contains(number)).collect();
        setting.assert_closed(&closed, "the others");
        assert_eq!(setting.shown(original).comments, 1, "one back-link");
    }

    async fn a_stop_leaves_every_row_behind_the_present_one(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(3).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: maintainer() };
        let job = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        let comments = format!("/repos/*/*/issues/{}/comments", duplicates[0]);
        let (fault, mut gate) = Fault::on("POST", &comments).hold_answer();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            store.plans().stop_apply(plan, maintainer().as_ref(), setting.now()).await.expect("stopped");
            gate.release();
        };
        tokio::join!(setting.one_try(), person);
        setting.work().await;
        let (state, told) = setting.ended(job).await;
        assert!(state == JobState::Done && told.as_deref().is_some_and(|told| told.contains("was stopped by maint")), "{told:?}");
        setting.assert_closed(&duplicates[..1], "it was under way");
        setting.assert_untouched(&duplicates[1..], "stopped");
        assert!(!is_being_applied(store, repo, plan).await.expect("reads"));
        // The same order again continues.
        setting.next_hour();
        let again = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        assert_eq!(setting.ended(again).await, DONE);
        setting.assert_closed(&duplicates, "ordered again");
    }

    async fn whoever_orders_the_same_at_once_orders_it_once(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(2).await;
        let (other, ..) = setting.plan(1).await;
        let (store, repo, now) = (&setting.store, &setting.repo, setting.now());
        let apply = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: maintainer() };
        let queued = join_all((0..8).map(|_| queue_apply(store, repo, &apply, now))).await;
        let queued: Vec<JobId> = queued.into_iter().filter_map(|job| job.expect("reads")).collect();
        assert_eq!(queued.len(), 1, "{queued:?}");
        let others = ApplyOrder { plan: other, ..apply.clone() };
        assert!(queue_apply(store, repo, &others, now).await.expect("reads").is_some(), "of another plan");
        let undo = UndoOrder { plan, item: None, reason: UndoReason::Other, note: None, by: None };
        let queued = join_all((0..8).map(|_| queue_undo(store, repo, &undo, now))).await;
        assert_eq!(queued.into_iter().filter(|job| job.as_ref().expect("reads").is_some()).count(), 1);
        let one = UndoOrder { item: Some((ItemType::Issue, duplicates[0])), ..undo };
        assert!(queue_undo(store, repo, &one, now).await.expect("reads").is_some(), "of one item");
        assert_eq!(queue_undo(store, repo, &one, now).await.expect("reads"), None);
    }

    async fn an_apply_is_not_gone_on_with_whose_plan_was_undone(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (store, repo) = (&setting.store, &setting.repo);
        for thrown_away in [false, true] {
            setting.next_hour();
            let (plan, _, duplicates) = setting.plan(22).await;
            setting.approve(plan, &duplicates).await;
            let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: None };
            let apply = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
            setting.one_try().await;
            assert_eq!(given_up(&setting).await, apply);
            setting.emulator.world().advance(60);
            let undo = UndoOrder { plan, item: None, reason: UndoReason::Other, note: None, by: None };
            let undone = queue_undo(store, repo, &undo, setting.now()).await.expect("reads").expect("queued");
            setting.work().await;
            assert_eq!(setting.ended(undone).await, DONE);
            // More orders than a search of the latest would find.
            for number in &duplicates {
                let one = UndoOrder { item: Some((ItemType::Issue, *number)), ..undo.clone() };
                queue_undo(store, repo, &one, setting.now()).await.expect("reads").expect("queued");
            }
            setting.work().await;
            let mut words = format!("plan {plan} was undone; nothing more of it is closed");
            if thrown_away {
                store.maintenance().prune(setting.now() + SignedDuration::from_hours(1), 1_000).await.expect("thrown away");
                assert_eq!(store.jobs().get(undone).await.expect("reads"), None);
                words = format!("plan {plan} is being undone; nothing more of it is closed");
            }
            assert!(store.jobs().requeue(apply, setting.now()).await.expect("queued"));
            let told = closing_jobs_of(store, repo, plan).await.expect("reads");
            assert!(told.iter().any(|job| job.id == apply), "what goes on is told, whatever came after it");
            setting.work().await;
            assert_eq!(setting.ended(apply).await, (JobState::Done, Some(words)));
            for number in &duplicates {
                assert!(setting.shown(*number).open, "#{number}");
            }
        }
    }

    async fn a_pause_in_the_middle_begins_nothing_more_and_what_had_begun_is_taken_back(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (plan, _, duplicates) = setting.plan(4).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: None };
        let job = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        let comments = format!("/repos/*/*/issues/{}/comments", duplicates[1]);
        let (fault, mut gate) = Fault::on("POST", &comments).hold_answer();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            let by = maintainer();
            store.close().set_brake(repo.id, BrakeKind::Pause, by.as_ref(), "wait", setting.now()).await.expect("set");
            gate.release();
        };
        tokio::join!(setting.work(), person);
        let (state, told) = setting.ended(job).await;
        assert!(state == JobState::Done && told.as_ref().is_some_and(|told| told.contains("is paused by maint")), "{told:?}");
        setting.assert_closed(&duplicates[..1], "before the pause");
        let begun = setting.shown(duplicates[1]);
        assert_eq!((begun.open, begun.comments), (true, 1), "{begun:?}");
        setting.assert_untouched(&duplicates[2..], "behind the pause");
        assert_eq!(closes_begun(store, repo, plan).await.expect("reads"), 1, "nothing else waits to be sent");

        // Resumed after the plan has expired, its apply cancels the unfinished close.
        store.close().lift_brake(repo.id, BrakeKind::Pause, None, setting.now()).await.expect("lifted");
        setting.emulator.world().now += SignedDuration::from_hours(8 * 24);
        let order = ApplyOrder { approved_only: true, ..order };
        let again = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        let told = setting.ended(again).await.1.expect("told");
        assert!(told.contains("is older than 7 days"), "{told}");
        let shown = setting.shown(duplicates[1]);
        let said = setting.emulator.world().comments_by(REPO, plain(duplicates[1]), OWN)[0].body.clone();
        assert!(shown.open && shown.comments == 1 && !said.starts_with("Closed"), "{said}");
        assert_eq!(closes_begun(store, repo, plan).await.expect("reads"), 0);
    }

    async fn an_undo_tells_what_it_could_not_open_and_ends_the_apply_all_the_same(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let (plan, _, duplicates) = setting.plan(12).await;
        setting.approve(plan, &duplicates).await;
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: None };
        let apply = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.one_try().await;
        setting.emulator.fault(Fault::on("PATCH", &format!("/repos/*/*/issues/{}", duplicates[0])).answer(403));
        {
            let mut world = setting.emulator.world();
            world.advance(60);
            world.reopen(REPO, plain(duplicates[1]), "ann");
            world.reopen(REPO, plain(duplicates[2]), "ann");
            world.advance(60);
            world.close(REPO, plain(duplicates[2]), MAINTAINER, CloseReason::NotPlanned);
        }
        let undo = UndoOrder { plan, item: None, reason: UndoReason::Other, note: None, by: None };
        let undone = queue_undo(store, repo, &undo, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        let (state, told) = setting.ended(undone).await;
        let told = told.expect("told");
        assert_eq!(state, JobState::Done);
        assert!(told.starts_with(&format!("not reopened: #{} (", duplicates[0])) && told.contains("403"), "{told}");
        assert!(told.ends_with(&format!(", #{} (not_our_close)", duplicates[2])), "what is open already is no matter: {told}");
        let open: Vec<bool> = duplicates.iter().map(|number| setting.shown(*number).open).collect();
        assert_eq!(open, [&[false, true, false][..], &[true; 9]].concat());
        let words = format!("plan {plan} is being undone; nothing more of it is closed");
        assert_eq!(setting.ended(apply).await, (JobState::Done, Some(words)));
        setting.assert_untouched(&duplicates[10..], "behind the first part");

        // Ordered again, the undo reopens what GitHub refused, and reports again the item that another person closed.
        setting.emulator.world().advance(60);
        let again = queue_undo(store, repo, &undo, setting.now()).await.expect("reads").expect("queued");
        setting.work().await;
        let words = format!("not reopened: #{} (not_our_close)", duplicates[2]);
        assert_eq!(setting.ended(again).await, (JobState::Done, Some(words)));
        assert!(setting.shown(duplicates[0]).open);
    }

    async fn an_undo_that_was_refused_ends_nothing_and_one_that_was_given_up_does(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let (plan, _, duplicates) = setting.plan(12).await;
        setting.approve(plan, &duplicates).await;
        let order = ApplyOrder { plan, approved_only: false, only_takes_back: false, by: None };
        let apply = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.one_try().await;
        let undo = UndoOrder { plan, item: None, reason: UndoReason::Other, note: None, by: maintainer() };
        let refused = queue_undo(store, repo, &undo, setting.now()).await.expect("reads").expect("queued");
        setting.emulator.world().collaborator(REPO, MAINTAINER, Permission::Read);
        setting.work().await;
        let told = setting.ended(refused).await.1.expect("told");
        assert!(told.starts_with("maint may no longer push"), "{told}");
        assert_eq!(setting.ended(apply).await, DONE);
        setting.assert_closed(&duplicates, "nobody undid it");

        let (plan, _, duplicates) = setting.plan(12).await;
        setting.approve(plan, &duplicates).await;
        let order = ApplyOrder { plan, ..order };
        let apply = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
        setting.one_try().await;
        // The apply waits a moment for the undo, which changes nothing.
        let undo = UndoOrder { plan, by: None, ..undo };
        let undo = queue_undo(store, repo, &undo, setting.now()).await.expect("reads").expect("queued");
        setting.one_try().await;
        assert_eq!(setting.job(apply).await.error.as_deref(), Some("an undo goes first"));
        assert_eq!(given_up(&setting).await, undo);
        setting.work().await;
        let words = format!("plan {plan} is being undone (job {undo} failed); nothing more of it is closed");
        assert_eq!(setting.ended(apply).await, (JobState::Done, Some(words)));
        setting.assert_untouched(&duplicates[10..], "behind the first part");
    }
}
