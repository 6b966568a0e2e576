//! A job that is interrupted anywhere, and run again by another process.

use canonry_domain::UndoReason;
use canonry_server::{ApplyOrder, JobHandler, LeasedJob, PlanOrder, UndoOrder, queue_apply, queue_plan, queue_undo};
use canonry_store::{JobId, JobState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::world::close_world::{CloseWorld, maintainer};
use crate::world::interrupted::until;

/// The number of places at which a job is interrupted.
const CASES: usize = 12;

/// A process runs a job without a lease, as one that lost it, and is killed; then another process runs the job.
async fn killed_and_done_again(setting: &CloseWorld, job: JobId, polls: usize, context: &str) -> usize {
    let service = setting.service().await;
    let work = LeasedJob { job: setting.job(job).await, delivery: None };
    let polled = until(service.handle(&work), polls).await;
    setting.work().await;
    let (state, words) = setting.ended(job).await;
    assert_eq!((state, words.as_deref()), (JobState::Done, None), "{context}");
    polled
}

on_both_engines! {
    async fn an_order_survives_an_end_at_any_wait(database: TestDatabase) {
        let setting = CloseWorld::new(database).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let mut waits = [usize::MAX; 3];
        for case in 0..=CASES {
            // First a complete run, which counts the waits; then interruptions spread over all of them.
            let at = |waits: usize| if case == 0 { waits } else { waits * (case - 1) / CASES };
            let context = format!("case {case}, ended at {:?} of {waits:?}", waits.map(at));
            setting.next_hour();
            setting.emulator.world().advance(24 * 3_600);
            let (plan, original, duplicates) = setting.plan(3).await;
            setting.approve(plan, &duplicates).await;
            let order = ApplyOrder { plan, approved_only: true, only_takes_back: false, by: maintainer() };
            let job = queue_apply(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
            let applied = killed_and_done_again(&setting, job, at(waits[0]), &context).await;
            setting.assert_closed(&duplicates, &context);
            assert_eq!(setting.shown(original).comments, 1, "{context}: one back-link");

            setting.next_hour();
            let order = UndoOrder { plan, item: None, reason: UndoReason::Other, note: None, by: maintainer() };
            let job = queue_undo(store, repo, &order, setting.now()).await.expect("reads").expect("queued");
            let undone = killed_and_done_again(&setting, job, at(waits[1]), &context).await;
            for number in &duplicates {
                let shown = setting.shown(*number);
                let counted = (shown.open, shown.closes, shown.comments, shown.labels.len());
                assert_eq!(counted, (true, 1, 2, 0), "{context}: #{number} {shown:?}");
            }

            let order = PlanOrder { item_type: None, min_close: None, policy: None, by: maintainer() };
            let job = queue_plan(store, repo, &order, setting.now()).await.expect("queued");
            let planned = killed_and_done_again(&setting, job, at(waits[2]), &context).await;
            let run_id = setting.job(job).await.payload["run_id"].as_str().expect("fixed").to_owned();
            assert_eq!(setting.plans_of(&run_id).await, 1, "{context}: one plan, however often it is made");
            if case == 0 {
                waits = [applied, undone, planned];
            }
        }
    }
}
