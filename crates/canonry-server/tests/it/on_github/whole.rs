//! People reject a pattern, Canonry reports that it hides it, and a maintainer clears that.

use canonry_server::{Scheduler, Schedules};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::NewPull;
use jiff::SignedDuration;

use crate::on_github::outbound::assert_clean;
use crate::world::As;
use crate::world::review_world::{REPO, ReviewWorld};

const SETTINGS: &str = "feedback: {autoSuppress: {enabled: true}}";
const TITLE: &str = "Debugging code is left in";
const CODE: &str = "export function fill(pool) {\n  debugger;\n  return pool;\n}\n";

/// A pull request with the line in question, and its review.
async fn opened(setting: &ReviewWorld, by: &str, branch: &str) -> u64 {
    let number = setting.meanwhile(|world| {
        world.commit(REPO, branch, &[(&format!("src/{branch}.js"), Some(CODE))]);
        world.open_pull(REPO, by, branch, NewPull::new(&format!("Fill the pool: {branch}")))
    });
    setting.settle().await;
    number
}

fn comment(setting: &ReviewWorld, number: u64) -> u64 {
    let world = setting.emulator.world();
    let said = world.review_comments_by(REPO, number, setting.who.login());
    assert!(said.len() == 1 && said[0].body.contains(TITLE), "{said:?}");
    said[0].id
}

/// The next time that reactions are counted.
async fn next_round(setting: &ReviewWorld) {
    setting.meanwhile(|world| world.now += SignedDuration::from_hours(5));
    let (store, clock) = (setting.store.clone(), std::sync::Arc::clone(&setting.clock));
    Scheduler { store, clock, schedules: Schedules::App }.tick().await.expect("ticks");
    setting.settle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_people_on_two_pull_requests_are_heard_on_the_third_until_a_maintainer_clears_it() {
    let database = TestDatabase::sqlite();
    let setting = ReviewWorld::new(&database, As::App, SETTINGS).await;
    for login in ["cleo", "dora"] {
        setting.emulator.world().user(login);
    }
    let (first, second) = (opened(&setting, "ann", "east").await, opened(&setting, "ben", "west").await);
    for (number, by) in [(first, "ben"), (first, "cleo"), (second, "dora")] {
        let said = comment(&setting, number);
        setting.meanwhile(|world| world.react_to_review_comment(REPO, said, by, "-1"));
    }
    next_round(&setting).await;
    let third = opened(&setting, "ann", "north").await;
    assert_eq!(setting.posted(third), (0, 0), "nothing at a line");
    assert!(setting.check_text(third).contains("1 pattern auto-suppressed based on prior feedback"));

    // Every person may ask for the status, and only a maintainer clears.
    for (by, asked) in [
        ("cleo", "/canonry feedback status"),
        ("cleo", "/canonry feedback list"),
        ("ann", "/canonry feedback clear"),
        ("maint", "/canonry feedback clear"),
        ("cleo", "/canonry feedback list"),
    ] {
        setting.meanwhile(|world| world.comment(REPO, third, by, asked));
        setting.settle().await;
    }
    insta::assert_snapshot!(setting.emulator.world().conversation(REPO, third), @"
    # Fill the pool: north (open, by ann)

    ## check Canonry on d9c0b9b: success
    No findings shown; 1 finding hidden
    - Full review: no earlier review.
    - 1 of 1 changed file read, 4 lines.
    - Reviewers: builtin (1 finding).
    - 1 finding hidden: 1 by feedback.
    - 1 pattern auto-suppressed based on prior feedback.

    | severity | shown | hidden |
    |---|--:|--:|
    | medium | 0 | 1 |

    ## cleo commented
    /canonry feedback status

    ## canonry[bot] commented
    People reacted to 1 pattern: 1 pattern auto-suppressed based on prior feedback. A pattern is hidden once 3 people reject it on 2 pull requests. Critical findings and major ones about security or correctness are never hidden.

    ## cleo commented
    /canonry feedback list

    ## canonry[bot] commented
    | Pattern | Title | 👍 | 👎 | Rejected on | State |
    |---|---|--:|--:|---|---|
    | `fp-35a30138` | Debugging code is left in | 0 | 3 | 2 pull requests | hidden |

    A pattern is hidden once 3 people reject it on 2 pull requests. Critical findings and major ones about security or correctness are never hidden.

    ## ann commented
    /canonry feedback clear

    ## canonry[bot] commented
    Only maintainers can use `feedback clear` here.

    ## maint commented
    /canonry feedback clear

    ## canonry[bot] commented
    Cleared by `maint`: reactions to 1 pattern; only new reactions count. `/canonry feedback restore` undoes it.

    ## cleo commented
    /canonry feedback list

    ## canonry[bot] commented
    No reactions to findings count here yet.
    ");

    let fourth = opened(&setting, "ann", "south").await;
    comment(&setting, fourth);
    assert!(!setting.check_text(fourth).contains("auto-suppressed"));
    // A requested review shows it on the pull request where it was hidden.
    setting.meanwhile(|world| world.comment(REPO, third, "ann", "/canonry review"));
    setting.settle().await;
    comment(&setting, third);
    // The old thumbs are still there, and no longer count.
    next_round(&setting).await;
    let fifth = opened(&setting, "ann", "deep").await;
    comment(&setting, fifth);
    assert_clean(&setting.emulator);
}
