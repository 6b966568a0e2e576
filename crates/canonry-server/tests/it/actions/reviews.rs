//! Reviews by runs: what the service does, and nothing lost or said twice when a run is killed.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewPull, World};
use jiff::SignedDuration;

use super::two_weeks::POOL;
use crate::feedback::reviewed::{LEFTOVER, LEFTOVER_LINE, key_line};
use crate::world::actions_world::ActionsWorld;
use crate::world::review_world::{PLAIN, REMARKABLE, ReviewWorld};
use crate::world::triage_world::world;
use crate::world::{As, SECRET, TOKEN, WorldBuilder};

const SETTINGS: &str = "triage: {mode: off}\nreview: {enabled: true, triggers: {onSynchronize: true}}\n";
/// The first number that no issue has.
const FIRST: u64 = 7;

fn code() -> World {
    let mut world = world(&[POOL]);
    world.push(POOL, "main", "maint", ".canonry.yml", SETTINGS);
    world
}

fn open(world: &mut World, by: &str, branch: &str, text: &str) {
    world.commit(POOL, branch, &[("src/pool.js", Some(text))]);
    world.open_pull(POOL, by, branch, NewPull::new("Fill the pool"));
}

fn push(world: &mut World, path: &str, text: &str) {
    world.push_pull(POOL, FIRST, "ann", &[(path, Some(text))]);
}

type Step = (&'static str, fn(&mut World));

const STEPS: [Step; 6] = [
    ("a change with a finding", |world| open(world, "ann", "one", REMARKABLE)),
    ("a push that fixes it", |world| push(world, "src/pool.js", PLAIN)),
    ("a push with another finding", |world| push(world, "src/tide.js", &format!("first();\n{LEFTOVER_LINE}"))),
    ("a maintainer rejects it", |world| {
        let comments = world.review_comments_by(POOL, FIRST, As::Token.login());
        let last = comments.last().expect("a finding").id;
        world.reply_in_thread(POOL, last, "maint", "/canonry not useful");
    }),
    ("a push elsewhere", |world| push(world, "src/ebb.js", PLAIN)),
    ("a change without findings", |world| open(world, "ben", "two", PLAIN)),
];

/// What a person sees, without the names of commits, which differ.
fn seen(world: &World) -> String {
    let pulls = (FIRST..=world.get(POOL).issues.len() as u64).map(|number| world.conversation(POOL, number));
    let text: String = pulls.collect();
    let plain = |word: &str| {
        let name = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_commit = name.len() >= 7 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_commit { word.replace(name, "(commit)") } else { word.to_owned() }
    };
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()).map(plain).collect()
}

#[tokio::test]
async fn runs_review_like_the_service() {
    let database = TestDatabase::sqlite();
    let service = ReviewWorld::on(&database, As::Token, WorldBuilder::new(As::Token), |webhooks| {
        let mut world = code();
        world.rate.limit = 1_000_000;
        world.token(TOKEN, As::Token.login());
        world.collaborator(POOL, As::Token.login(), canonry_testkit::github::Permission::Write);
        world.send_webhooks_to(webhooks, SECRET);
        world
    });
    let service = service.await;
    let actions = ActionsWorld::new(code(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    for (what, act) in STEPS {
        service.meanwhile(act);
        service.settle().await;
        {
            let mut world = actions.emulator.world();
            world.advance(60);
            act(&mut world);
        }
        actions.settle().await;
        assert_eq!(seen(&actions.emulator.world()), seen(&service.emulator.world()), "after: {what}");
    }
    let said = seen(&actions.emulator.world());
    assert!(said.contains(LEFTOVER), "the story tests nothing: {said}");
    actions.emulator.assert_no_unknown_routes();
}

/// A run is killed right after it posted something of this kind, and the author pushes another text. The next run knows
/// nothing of the first review.
async fn pushed_after_a_kill(posted: &str, first: &str, second: &str, is_forced: bool) -> (ActionsWorld, String) {
    let actions = ActionsWorld::new(code(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    open(&mut actions.emulator.world(), "ann", "one", first);
    let event = actions.new_events().remove(0);
    let (fault, mut gate) = Fault::on("POST", posted).hold_answer();
    actions.emulator.fault(fault);
    tokio::select! {
        ended = actions.run("usual", event) => panic!("it posts: {ended:?}"),
        () = gate.arrived() => {}
    }
    gate.release();
    assert_eq!(actions.waiting_events(), 1);
    actions.lose_cache();
    let head = {
        let mut world = actions.emulator.world();
        world.now += SignedDuration::from_mins(10);
        let files = [("src/pool.js", Some(second))];
        match is_forced {
            true => world.force_push_pull(POOL, FIRST, "ann", &files),
            false => world.push_pull(POOL, FIRST, "ann", &files),
        }
    };
    actions.settle().await;
    actions.later(SignedDuration::from_mins(10)).await;
    assert_eq!(actions.waiting_events(), 0);
    (actions, head)
}

#[tokio::test]
async fn a_review_of_another_head_is_not_taken_for_the_next_one() {
    for is_forced in [false, true] {
        let second = format!("first();\n{}last();\n", key_line());
        let (actions, _) = pushed_after_a_kill("/**/reviews/*/events", REMARKABLE, &second, is_forced).await;
        let world = actions.emulator.world();
        let said = world.review_comments_by(POOL, FIRST, As::Token.login());
        let keys = said.iter().filter(|comment| comment.body.contains("AWS")).count();
        assert_eq!((world.reviews_by(POOL, FIRST, As::Token.login()).len(), keys), (2, 1), "{said:?}");
    }
}

#[tokio::test]
async fn the_status_of_another_head_is_edited() {
    let text = "export const depth = 4;\n";
    let (actions, head) = pushed_after_a_kill("/**/issues/*/comments", PLAIN, text, false).await;
    let world = actions.emulator.world();
    let said = world.comments_by(POOL, FIRST, As::Token.login());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].body.contains(&head[..7]), "{}: {}", head, said[0].body);
}
