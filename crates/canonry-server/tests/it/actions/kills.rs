//! Runs that are killed, runs at the same time, and comments that the state knows nothing of.

use std::sync::Arc;
use std::time::Duration;

use canonry_server::RunEvent;
use canonry_testkit::github::{NewIssue, State, World};
use jiff::SignedDuration;

use super::two_weeks::{BODY, POOL, pool};
use crate::world::As;
use crate::world::actions_world::ActionsWorld;

fn report(world: &mut World, topic: u64) -> u64 {
    world.advance(60);
    world.open(POOL, "ann", NewIssue::new(&format!("It stops: topic{topic} alike95"), BODY))
}

/// Canonry's comments on an issue, whether it is labelled, and whether it is open.
fn seen(actions: &ActionsWorld, number: u64) -> (usize, bool, bool) {
    let world = actions.emulator.world();
    let issue = world.issue(POOL, number);
    let labelled = issue.labels.iter().any(|label| label == "possible-duplicate");
    (world.comments_by(POOL, number, As::Token.login()).len(), labelled, issue.state == State::Open)
}

/// Starts a run and kills it when GitHub has had so many more requests; `false` if it ended before.
async fn killed_after(actions: &Arc<ActionsWorld>, event: RunEvent, requests: usize) -> bool {
    let before = actions.emulator.requests().len();
    let here = Arc::clone(actions);
    let run = tokio::spawn(async move { here.run("usual", event).await });
    let watching = async {
        while actions.emulator.requests().len() < before + requests && !run.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), watching).await.expect("it goes on");
    let was_killed = !run.is_finished();
    run.abort();
    let _ = run.await;
    was_killed
}

#[tokio::test]
async fn a_killed_run_loses_and_doubles_nothing() {
    let actions = Arc::new(ActionsWorld::new(pool(), POOL).await);
    actions.later(SignedDuration::from_mins(1)).await;
    let mut killed = 0;
    for (topic, requests) in [(0, 0), (1, 2), (2, 4), (3, 5), (4, 6), (5, 8)] {
        let number = report(&mut actions.emulator.world(), topic);
        let events = actions.new_events();
        assert_eq!(events.len(), 1);
        for event in events {
            killed += usize::from(killed_after(&actions, event, requests).await);
        }
        // The machine is gone with the run; the next one knows only the state.
        actions.lose_cache();
        // A run that did not even get the state leaves nothing behind: the nightly sync finds its item.
        let wait = if requests == 0 { SignedDuration::from_hours(25) } else { SignedDuration::from_mins(10) };
        actions.later(wait).await;
        assert_eq!(seen(&actions, number), (1, true, true), "topic {topic}, killed after {requests} requests");
    }
    assert!(killed >= 4, "only {killed} runs were killed");
    // The close itself, killed at each of its steps.
    for requests in [3, 12, 20, 26, 30, 34] {
        actions.emulator.world().now += SignedDuration::from_hours(49);
        let event = actions.schedule();
        killed_after(&actions, event, requests).await;
        actions.lose_cache();
    }
    actions.later(SignedDuration::from_mins(10)).await;
    actions.later(SignedDuration::from_hours(25)).await;
    for number in 7..=12 {
        let (comments, _, open) = seen(&actions, number);
        assert!(!open && comments == 2, "#{number}: {comments} comments, open: {open}");
    }
    actions.emulator.assert_no_unknown_routes();
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
