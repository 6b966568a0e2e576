//! Runs that are interrupted, late or early, and a git that fails now and then.

use canonry_server::{RunError, StateError};
use canonry_testkit::github::Fault;
use jiff::SignedDuration;

use super::kills::{report, seen};
use super::two_weeks::{POOL, pool};
use crate::world::As;
use crate::world::actions_world::ActionsWorld;

#[tokio::test]
async fn an_announced_close_is_found_although_the_first_sync_was_interrupted() {
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    let number = report(&mut actions.emulator.world(), 0);
    actions.settle().await;
    assert_eq!(seen(&actions, number), (1, true, true));
    actions.lose_state();
    let (fault, mut gate) = Fault::on("GET", "/**/issues").hold();
    actions.emulator.fault(fault);
    let stopped = actions.run_until("usual", actions.schedule(), Box::pin(gate.arrived())).await.expect("it is saved");
    assert_eq!(stopped.done, None);
    gate.release();
    actions.later(SignedDuration::from_hours(1)).await;
    actions.later(SignedDuration::from_hours(49)).await;
    assert_eq!(seen(&actions, number), (2, true, false));
}

#[tokio::test]
async fn a_push_that_is_refused_a_few_times_loses_no_event() {
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    let answers = || actions.emulator.world().comments_by(POOL, 1, As::Token.login()).len();
    actions.emulator.world().comment(POOL, 1, "maint", "/canonry pause");
    actions.refuse_pushes(3);
    actions.settle().await;
    assert_eq!((answers(), actions.refusals_left()), (1, 0));
    // A token that may not write never will.
    actions.emulator.world().comment(POOL, 1, "maint", "/canonry resume");
    actions.refuse_pushes(100);
    let refused = actions.run("usual", actions.new_events().remove(0)).await.expect_err("refused");
    assert!(matches!(refused, RunError::State(StateError::Git(_))), "{refused}");
    let said = refused.to_string();
    assert!(
        said.contains("pre-receive hook declined") && said.ends_with("check that the token may write contents"),
        "{said}"
    );
    assert_eq!((answers(), actions.refusals_left()), (1, 95));
}

/// The schedule of the workflow and the one of the reactions are both four hours.
#[tokio::test]
async fn a_run_that_comes_a_little_early_does_what_is_nearly_due() {
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    let number = report(&mut actions.emulator.world(), 0);
    actions.settle().await;
    assert_eq!(seen(&actions, number), (1, true, true));
    let reads = |minutes| {
        actions.emulator.forget_requests();
        let actions = &actions;
        async move {
            actions.later(SignedDuration::from_mins(minutes)).await;
            let requests = actions.emulator.requests();
            requests.iter().filter(|request| request.path.ends_with("/reactions")).count()
        }
    };
    assert_eq!(reads(60).await, 0);
    assert_ne!(reads(155).await, 0);
}
