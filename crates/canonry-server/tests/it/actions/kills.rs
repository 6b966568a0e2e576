//! Runs that are killed, runs at the same time, and comments that the state knows nothing of.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use canonry_server::RunError;
use canonry_testkit::github::{Fault, NewIssue, State, World};
use jiff::SignedDuration;

use super::two_weeks::{BODY, POOL, pool};
use crate::world::As;
use crate::world::actions_world::ActionsWorld;
use crate::world::interrupted::until;
use crate::world::triage_world::ORIGINALS;

pub(super) fn report(world: &mut World, topic: u64) -> u64 {
    world.advance(60);
    world.open(POOL, "ann", NewIssue::new(&format!("It stops: topic{topic} alike95"), BODY))
}

/// Canonry's comments on an issue, whether it is labelled, and whether it is open.
pub(super) fn seen(actions: &ActionsWorld, number: u64) -> (usize, bool, bool) {
    let world = actions.emulator.world();
    let issue = world.issue(POOL, number);
    let labelled = issue.labels.iter().any(|label| label == "possible-duplicate");
    (world.comments_by(POOL, number, As::Token.login()).len(), labelled, issue.state == State::Open)
}

/// A run is dropped at one of its waits, spread over all of them: before it has the state, while it works, in the middle of
/// a write, of the copy or of the push. The next run, on another machine, ends what it began.
#[tokio::test]
async fn a_run_that_is_killed_at_any_wait_loses_and_doubles_nothing() {
    let cases: usize = if std::env::var_os("CANONRY_SOAK").is_some() { 60 } else { 12 };
    let mut world = pool();
    for topic in ORIGINALS..=cases as u64 {
        let title = format!("The tide stops: topic{topic}");
        world.open(POOL, "maint", NewIssue::new(&title, "It stops, and this is where it is looked into."));
    }
    let actions = ActionsWorld::new(world, POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    let (mut waits, mut unknown) = ([usize::MAX; 2], 0);
    for case in 0..=cases {
        // First a complete run, which counts the waits.
        let at = |waits: usize| if case == 0 { waits } else { waits * (case - 1) / cases };
        let context = format!("case {case}, ended at {:?} of {waits:?}", waits.map(at));
        let number = report(&mut actions.emulator.world(), case as u64);
        let event = actions.new_events().remove(0);
        let opened = until(actions.run("usual", event), at(waits[0])).await;
        let is_known = case == 0 || actions.waiting_events() > 0;
        actions.lose_cache();
        actions.later(SignedDuration::from_mins(10)).await;
        if !is_known && seen(&actions, number).0 == 0 {
            // The run ended before it got the state, so nobody knows of its event: the nightly sync finds its item.
            unknown += 1;
            actions.later(SignedDuration::from_hours(25)).await;
        }
        assert_eq!(seen(&actions, number), (1, true, true), "{context}");

        actions.emulator.world().now += SignedDuration::from_hours(49);
        let closed = until(actions.run("usual", actions.schedule()), at(waits[1])).await;
        actions.lose_cache();
        actions.later(SignedDuration::from_mins(10)).await;
        let (comments, _, open) = seen(&actions, number);
        assert_eq!((comments, open), (2, false), "{context}");
        assert_eq!(actions.waiting_events(), 0, "{context}");
        if case == 0 {
            waits = [opened, closed];
        }
    }
    assert!(unknown * 2 < cases, "most runs ended before they had the state: {unknown} of {cases}");
    actions.emulator.assert_no_unknown_routes();
}

/// An event with which every run is killed does not stop the runs for ever, and no other event is dropped with it.
#[tokio::test]
async fn an_event_that_no_run_survives_is_dropped_alone() {
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    report(&mut actions.emulator.world(), 0);
    let killer = actions.new_events().remove(0);
    // A command, which only its event knows of.
    actions.emulator.world().comment(POOL, 1, "maint", "/canonry pause");
    let command = actions.new_events().remove(0);
    let mut next = killer;
    for run in 0..4 {
        let (fault, mut gate) = Fault::on("GET", "/**").hold();
        actions.emulator.fault(fault);
        let here = actions.run("usual", next);
        tokio::select! {
            ended = here => panic!("run {run} asks GitHub: {ended:?}"),
            () = gate.arrived() => {}
        }
        assert_eq!(actions.waiting_events(), if run == 0 { 1 } else { 2 }, "{run}");
        gate.release();
        next = if run == 0 { command.clone() } else { actions.schedule() };
        actions.emulator.world().now += SignedDuration::from_mins(10);
    }
    actions.later(SignedDuration::from_mins(10)).await;
    assert_eq!(actions.waiting_events(), 0);
    assert_eq!(actions.emulator.world().comments_by(POOL, 1, As::Token.login()).len(), 1, "the pause is answered");
    assert_eq!(seen(&actions, 7), (0, false, true), "the pause is in force");
}

/// Runs that fail before they work, such as without a model's key, drop no event.
#[tokio::test]
async fn runs_that_cannot_begin_drop_nothing() {
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    actions.emulator.world().comment(POOL, 1, "maint", "/canonry pause");
    let mut event = actions.new_events().remove(0);
    actions.is_broken.store(true, Ordering::Relaxed);
    for _ in 0..5 {
        let failed = actions.run("usual", event).await.expect_err("no key");
        assert!(matches!(failed, RunError::Service(_)), "{failed}");
        event = actions.schedule();
    }
    assert_eq!(actions.waiting_events(), 1, "a schedule is not worth keeping");
    actions.is_broken.store(false, Ordering::Relaxed);
    actions.later(SignedDuration::from_mins(10)).await;
    assert_eq!(actions.emulator.world().comments_by(POOL, 1, As::Token.login()).len(), 1, "the pause is answered");
}

#[tokio::test]
async fn a_run_that_is_stopped_during_its_first_sync_keeps_its_event() {
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.emulator.world().comment(POOL, 1, "maint", "/canonry pause");
    let event = actions.new_events().pop().expect("the comment");
    let (fault, mut gate) = Fault::on("GET", "/**").hold();
    actions.emulator.fault(fault);
    let stopped = actions.run_until("usual", event, Box::pin(gate.arrived())).await.expect("it is saved");
    assert_eq!(stopped.done, None);
    gate.release();
    actions.later(SignedDuration::from_mins(10)).await;
    assert_eq!(actions.emulator.world().comments_by(POOL, 1, As::Token.login()).len(), 1, "the pause is answered");
}

/// Whoever cannot renew its lease stops before another run has the state.
#[tokio::test]
async fn a_run_whose_lease_ends_stops() {
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    let number = report(&mut actions.emulator.world(), 0);
    let event = actions.new_events().remove(0);
    let (fault, mut gate) = Fault::on("POST", "/**/comments").hold();
    actions.emulator.fault(fault);
    let run = actions.run("usual", event);
    let cut_off = async {
        gate.arrived().await;
        actions.hide_state(true);
        actions.emulator.world().now += SignedDuration::from_mins(3);
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = tokio::time::timeout(std::time::Duration::from_secs(60), run) => ended.expect("it does not go on"),
        () = cut_off => unreachable!("it waits for ever"),
    };
    assert!(matches!(ended, Err(RunError::LeaseLost)), "{ended:?}");
    gate.release();
    actions.hide_state(false);
    actions.later(SignedDuration::from_mins(10)).await;
    assert_eq!(seen(&actions, number), (1, true, true));
}

/// A maintainer deletes an issue because of what it says. Everybody can fetch the state of a public repository.
#[tokio::test]
async fn what_is_deleted_on_github_is_in_no_file_of_a_run() {
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    let number = {
        let mut world = actions.emulator.world();
        world.advance(60);
        let body = format!("{BODY}\n\nThe password is `hunter2`.");
        world.open(POOL, "ann", NewIssue::new("It stops: topic0 alike95 hunter2", &body))
    };
    actions.settle().await;
    assert_eq!(seen(&actions, number), (1, true, true));
    assert!(actions.state_says("hunter2"), "what everybody can read on GitHub");
    assert!(!actions.cache_says("hunter2"), "a cache outlives what is deleted, and has no texts");
    actions.emulator.world().delete(POOL, number, "maint");
    actions.settle().await;
    assert!(!actions.state_says("hunter2") && !actions.cache_says("hunter2"));
    // The rest works on.
    let other = report(&mut actions.emulator.world(), 1);
    actions.settle().await;
    assert_eq!(seen(&actions, other), (1, true, true));
}

#[tokio::test]
async fn two_runs_at_once_take_turns() {
    let actions = Arc::new(ActionsWorld::new(pool(), POOL).await);
    actions.later(SignedDuration::from_mins(1)).await;
    let numbers = [0, 1, 2].map(|topic| report(&mut actions.emulator.world(), topic));
    let mut runs = Vec::new();
    for (at, event) in actions.new_events().into_iter().enumerate() {
        let here = Arc::clone(&actions);
        runs.push(tokio::spawn(async move { here.run(&format!("machine-{at}"), event).await }));
    }
    assert_eq!(runs.len(), 3);
    for run in runs {
        run.await.expect("no panic").expect("runs");
    }
    for number in numbers {
        assert_eq!(seen(&actions, number), (1, true, true), "#{number}");
    }
    // A run that is started again by hand handles its event once.
    let number = report(&mut actions.emulator.world(), 3);
    let event = actions.new_events().remove(0);
    for machine in ["one", "two"] {
        actions.run(machine, event.clone()).await.expect("runs");
    }
    assert_eq!(seen(&actions, number), (1, true, true));
}

#[tokio::test]
async fn an_announcement_of_another_target_is_left_alone() {
    let actions = Arc::new(ActionsWorld::new(pool(), POOL).await);
    actions.later(SignedDuration::from_mins(1)).await;
    let number = report(&mut actions.emulator.world(), 0);
    actions.settle().await;
    assert_eq!(seen(&actions, number), (1, true, true));
    // The state is lost, and the comment on GitHub names another issue than the verdict would now.
    {
        let mut world = actions.emulator.world();
        let comment = world.comments_by(POOL, number, As::Token.login())[0].id;
        let body = world.comments_by(POOL, number, As::Token.login())[0].body.replace("#1", "#2");
        world.get_mut(POOL).comments.get_mut(&comment).expect("there").body = body;
    }
    actions.lose_state();
    for _ in 0..4 {
        actions.later(SignedDuration::from_hours(25)).await;
    }
    assert_eq!(seen(&actions, number), (1, true, true), "nobody could object to a close as a duplicate of #1");
}
