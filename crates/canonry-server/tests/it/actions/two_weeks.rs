//! Two weeks of runs beside two weeks of the service: after every event, people see the same on GitHub.

use canonry_store::MaintainerSource;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewIssue, State, World};
use jiff::SignedDuration;

use crate::world::As;
use crate::world::actions_world::ActionsWorld;
use crate::world::triage_world::{OWN, TriageWorld, world};

pub(super) const POOL: &str = "tide/pool";
const SETTINGS: &str = "triage: {mode: grace}\nclose: {graceHours: 48, maxPerDay: 10}\nreview: {enabled: false}\n";
pub(super) const BODY: &str =
    "It stops with an error in the middle of the night and never comes back, whatever we try in the morning.";

/// The repository with its settings on the default branch.
pub(super) fn pool() -> World {
    let mut world = world(&[POOL]);
    world.push(POOL, "main", "maint", ".canonry.yml", SETTINGS);
    world
}

/// What a person sees on one issue: its state, whether it is labelled, and Canonry's comments.
type Seen = (u64, bool, bool, Vec<String>);

/// Comments without their markers and dates, which differ between two accounts and two clocks.
fn seen(world: &World, own: &str) -> Vec<Seen> {
    let plain = |body: &str| {
        let text = body.split("<!-- canonry:").next().unwrap_or_default().trim();
        match text.split_once("**closed on ").and_then(|(before, rest)| Some((before, rest.split_once("**")?.1))) {
            Some((before, after)) => format!("{before}**closed on …**{after}"),
            None => text.to_owned(),
        }
    };
    let numbers = 1..=world.get(POOL).issues.len() as u64;
    let seen = numbers.map(|number| {
        let issue = world.issue(POOL, number);
        let comments = world.comments_by(POOL, number, own).iter().map(|comment| plain(&comment.body)).collect();
        let labelled = issue.labels.iter().any(|label| label == "possible-duplicate");
        (number, issue.state == State::Open, labelled, comments)
    });
    seen.collect()
}

enum Step {
    /// Somebody does something.
    People(fn(&mut World)),
    /// Time passes, and then the schedule runs.
    Hours(i64),
    /// Time passes, people do something, and the runs of the schedule and of these events begin at once.
    AtOnce(i64, fn(&mut World)),
    /// Time passes, and Actions' schedule does not run.
    HoursWithoutRun(i64),
    LoseCache,
    LoseState,
}

fn report(world: &mut World, topic: u64) {
    world.open(POOL, "ann", NewIssue::new(&format!("It stops: topic{topic} alike95"), BODY));
}

/// Issues 1 to 6 are the originals of topics 0 to 5.
const STEPS: [(&str, Step); 30] = [
    (
        "two duplicates are reported at once",
        Step::AtOnce(0, |world| {
            report(world, 0);
            report(world, 1);
        }),
    ),
    (
        "somebody comments on the second",
        Step::People(|world| {
            world.comment(POOL, 8, "ben", "Ours stops at noon.");
        }),
    ),
    ("a day", Step::Hours(24)),
    (
        "something new is reported",
        Step::People(|world| {
            world.open(POOL, "cleo", NewIssue::new("The moon is late", "It rises an hour after the almanac says so."));
        }),
    ),
    ("the grace of the first is over", Step::Hours(25)),
    ("its author reopens it", Step::People(|world| world.reopen(POOL, 7, "ann"))),
    (
        "a maintainer asks why",
        Step::People(|world| {
            world.comment(POOL, 7, "maint", "/canonry why");
        }),
    ),
    ("half a day", Step::Hours(12)),
    ("the cache is lost", Step::LoseCache),
    ("a third duplicate", Step::People(|world| report(world, 2))),
    ("half a day later", Step::Hours(12)),
    (
        "its author disagrees",
        Step::People(|world| {
            world.comment(POOL, 10, "ann", "/canonry not a duplicate");
        }),
    ),
    ("two days", Step::Hours(48)),
    ("a fourth duplicate", Step::People(|world| report(world, 3))),
    ("some hours", Step::Hours(6)),
    (
        "somebody asks about it",
        Step::People(|world| {
            world.comment(POOL, 9, "maint", "/canonry why");
        }),
    ),
    ("the state is lost", Step::LoseState),
    ("a few hours later", Step::Hours(6)),
    ("its grace is over all the same", Step::Hours(48)),
    ("a fifth duplicate", Step::People(|world| report(world, 4))),
    ("the schedule does not run for a day", Step::HoursWithoutRun(24)),
    (
        "another report",
        Step::People(|world| {
            world.open(POOL, "ben", NewIssue::new("The harbour is too deep", "Ships do not reach the ground there."));
        }),
    ),
    (
        "the rest of its grace, and a maintainer closes another report by hand",
        Step::AtOnce(30, |world| {
            let original = world.issue(POOL, 1).id;
            world.close(POOL, 7, "maint", CloseReason::Duplicate(Some(original)));
        }),
    ),
    ("a day passes", Step::Hours(24)),
    ("a sixth duplicate", Step::People(|world| report(world, 5))),
    (
        "👎",
        Step::People(|world| {
            let own = if world.comments_by(POOL, 14, OWN).is_empty() { As::Token.login() } else { OWN };
            let comment = world.comments_by(POOL, 14, own).first().expect("it was announced").id;
            world.react_to_comment(POOL, comment, "ann", "-1");
        }),
    ),
    ("its grace would be over", Step::Hours(50)),
    (
        "a maintainer undoes a close",
        Step::People(|world| {
            world.comment(POOL, 11, "maint", "/canonry undo");
        }),
    ),
    ("a day after", Step::Hours(24)),
    ("the last day", Step::Hours(24)),
];

#[tokio::test]
async fn runs_and_the_service_do_the_same() {
    let service = TriageWorld::with(TestDatabase::sqlite(), pool()).await;
    service.settle().await;
    let repo = service.repo(POOL).await.id;
    let maintainers = ["maint".parse().expect("a login")];
    let now = service.emulator.world().now;
    service.store.repos().set_maintainers(repo, MaintainerSource::Set, &maintainers, now).await.expect("stored");
    let actions = ActionsWorld::new(pool(), POOL).await;
    actions.later(SignedDuration::from_mins(1)).await;
    for (what, step) in STEPS {
        match step {
            Step::People(act) => {
                service.meanwhile(act);
                service.settle().await;
                {
                    let mut world = actions.emulator.world();
                    world.advance(60);
                    act(&mut world);
                }
                actions.settle().await;
            }
            Step::Hours(hours) => {
                service.later(SignedDuration::from_hours(hours)).await;
                actions.later(SignedDuration::from_hours(hours)).await;
            }
            Step::AtOnce(hours, act) => {
                service.later(SignedDuration::from_hours(hours)).await;
                service.meanwhile(act);
                service.settle().await;
                {
                    let mut world = actions.emulator.world();
                    world.now += SignedDuration::from_hours(hours);
                    world.advance(60);
                    act(&mut world);
                }
                actions.at_once().await;
            }
            Step::HoursWithoutRun(hours) => {
                service.later(SignedDuration::from_hours(hours)).await;
                actions.emulator.world().now += SignedDuration::from_hours(hours);
            }
            Step::LoseCache => actions.lose_cache(),
            Step::LoseState => actions.lose_state(),
        }
        let (by_service, by_runs) =
            (seen(&service.emulator.world(), OWN), seen(&actions.emulator.world(), As::Token.login()));
        assert_eq!(by_runs, by_service, "after: {what}");
    }
    let closed = seen(&actions.emulator.world(), As::Token.login()).iter().filter(|(_, open, ..)| !open).count();
    assert!(closed >= 2, "nothing was closed, so the story tests nothing");
    actions.emulator.assert_no_unknown_routes();
    service.stop().await;
}
