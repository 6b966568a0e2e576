//! Which events cause a review and which do not, each with its stored result.

use canonry_store::{DeliveryState, ReviewState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewPull, World};
use canonry_testkit::on_both_engines;

use crate::world::As;
use crate::world::review_world::{PLAIN, REMARKABLE, REPO, ReviewWorld};

fn done() -> (DeliveryState, String) {
    (DeliveryState::Done, String::new())
}

/// The result of a webhook about an existing pull request that caused no review.
fn not_reviewed(why: &str) -> (DeliveryState, String) {
    (DeliveryState::Ignored, format!("stored, not reviewed: {why}"))
}

fn new_not_reviewed(why: &str) -> (DeliveryState, String) {
    (DeliveryState::Ignored, format!("triage is off in this repository; not reviewed: {why}"))
}

on_both_engines! {
    async fn a_pull_request_is_reviewed_when_it_is_opened_or_made_ready(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let first = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.settle().await;
        assert_eq!(setting.reviewed(first).await, [setting.head(first)]);
        assert_eq!((setting.posted(first), setting.said(first).len()), ((1, 1), 0));
        assert_eq!(setting.conclusion(&setting.head(first)).as_deref(), Some("neutral"));

        // A draft is not reviewed until it is ready.
        setting.emulator.world().commit(REPO, "two", &[("src/pool.js", Some(PLAIN))]);
        let mut second = 0;
        let draft = NewPull { draft: true, ..NewPull::new("Deepen the pool") };
        let told = setting.tell(|world| second = world.open_pull(REPO, "ann", "two", draft)).await;
        assert_eq!(told, new_not_reviewed("it is a draft"));
        assert_eq!(setting.tell(|world| world.ready_for_review(REPO, second, "ann")).await, done());
        setting.settle().await;
        assert_eq!(setting.reviewed(second).await, [setting.head(second)]);
        assert_eq!(setting.conclusion(&setting.head(second)).as_deref(), Some("success"));
        assert_eq!((setting.posted(second), setting.said(second).len()), ((0, 0), 0));
        setting.emulator.assert_no_unknown_routes();
    }

    async fn a_push_is_reviewed_where_the_settings_want_that(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.open("ann", "one", PLAIN, NewPull::new("Fill the pool"));
        setting.settle().await;
        let text = [("src/pool.js", Some(REMARKABLE))];
        let told = setting.tell(|world| drop(world.push_pull(REPO, number, "ann", &text))).await;
        assert_eq!(told, not_reviewed("review.triggers does not name this occasion"));
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.len(), 1);
        // A push without a review does not block a later request.
        assert_eq!(setting.tell(|world| world.request_review(REPO, number, "ann", "canonry[bot]")).await, done());
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.last(), Some(&setting.head(number)));
        assert_eq!(setting.posted(number), (1, 1));
    }

    async fn with_the_trigger_each_push_is_reviewed_once(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "review: {triggers: {onSynchronize: true}}").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.settle().await;
        let first = setting.head(number);
        let second = setting.push(number, &format!("{REMARKABLE}\n{PLAIN}"));
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await, [first, second.clone()]);
        // A posted finding is not repeated.
        assert_eq!((setting.posted(number), setting.said(number).len()), ((1, 1), 0));
        assert_eq!(setting.conclusion(&second).as_deref(), Some("neutral"));
        // The same webhooks once more.
        let before = setting.emulator.writes().len();
        let guids: Vec<String> = setting.emulator.world().deliveries.iter().map(|one| one.guid.clone()).collect();
        for guid in guids {
            setting.emulator.world().redeliver(&guid);
        }
        setting.settle().await;
        assert_eq!((setting.reviewed(number).await.len(), setting.emulator.writes().len()), (2, before));
    }

    async fn who_asks_gets_a_review_of_what_was_reviewed_before(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::Token, "").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.settle().await;
        assert_eq!(setting.tell(|world| world.request_review(REPO, number, "ann", "ben")).await, done());
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.len(), 1, "it was ben who was asked");
        let told = setting.tell(|world| world.request_review(REPO, number, "ci[bot]", As::Token.login())).await;
        assert_eq!(told, not_reviewed("a bot asked for it"));
        assert_eq!(setting.tell(|world| world.request_review(REPO, number, "ann", As::Token.login())).await, done());
        setting.settle().await;
        let runs = setting.runs(number).await;
        assert_eq!(runs.iter().map(|run| run.requested).collect::<Vec<_>>(), [false, true]);
        // Without check runs, a comment answers the person who asked.
        assert_eq!((setting.posted(number), setting.said(number).len()), ((1, 1), 1));
    }

    async fn a_draft_is_reviewed_for_who_asks(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::Token, "").await;
        let draft = NewPull { draft: true, ..NewPull::new("Fill the pool") };
        let number = setting.open("ann", "one", REMARKABLE, draft);
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.len(), 0);
        setting.tell(|world| world.request_review(REPO, number, "ann", As::Token.login())).await;
        setting.settle().await;
        assert_eq!(setting.posted(number), (1, 1));
    }

    async fn what_is_opened_again_is_reviewed_unless_it_was(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.meanwhile(|world| world.close(REPO, number, "ann", CloseReason::Completed));
        setting.settle().await;
        assert_eq!((setting.runs(number).await.len(), setting.posted(number)), (0, (0, 0)));
        assert_eq!(setting.tell(|world| world.reopen(REPO, number, "ann")).await, done());
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await, [setting.head(number)]);
        assert_eq!(setting.posted(number), (1, 1));
        let before = setting.emulator.writes().len();
        setting.meanwhile(|world| world.close(REPO, number, "ann", CloseReason::Completed));
        setting.settle().await;
        setting.meanwhile(|world| world.reopen(REPO, number, "ann"));
        setting.settle().await;
        assert_eq!((setting.runs(number).await.len(), setting.emulator.writes().len()), (1, before));
    }

    async fn another_base_makes_another_change(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.settle().await;
        // The other branch already has the same line.
        setting.emulator.world().commit(REPO, "next", &[("src/pool.js", Some(REMARKABLE))]);
        assert_eq!(setting.tell(|world| world.retarget(REPO, number, "ann", "next")).await, done());
        setting.settle().await;
        let runs = setting.runs(number).await;
        assert_eq!(runs.len(), 2);
        assert!(runs[0].head == runs[1].head && runs[0].base != runs[1].base, "{runs:?}");
        // A pull request that was never reviewed is not reviewed again.
        let draft = NewPull { draft: true, ..NewPull::new("Deepen the pool") };
        let other = setting.open("ann", "two", PLAIN, draft);
        setting.settle().await;
        let told = setting.tell(|world| world.retarget(REPO, other, "ann", "next")).await;
        assert_eq!(told, not_reviewed("it was not reviewed before its base changed"));
        // An edit of the title is not a change of the base.
        assert_ne!(setting.tell(|world| world.edit_title(REPO, number, "ann", "Fill it")).await.0, DeliveryState::Dead);
        setting.settle().await;
        assert_eq!(setting.runs(number).await.len(), 2);
    }

    async fn another_base_is_never_lost(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        setting.emulator.world().commit(REPO, "next", &[("src/pool.js", Some(REMARKABLE))]);
        setting.emulator.world().commit(REPO, "one", &[("src/depth.js", Some(PLAIN))]);
        let number = setting.open("ann", "one", REMARKABLE, NewPull { base: Some("next".to_owned()), ..NewPull::new("Fill the pool") });
        setting.settle().await;
        let head = setting.head(number);
        assert_eq!(setting.reviewed(number).await.len(), 1);
        // As a draft.
        setting.meanwhile(|world| world.convert_to_draft(REPO, number, "ann"));
        setting.settle().await;
        assert_eq!(setting.tell(|world| world.retarget(REPO, number, "ann", "main")).await, done());
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.len(), 2);
        // While paused.
        setting.meanwhile(|world| world.ready_for_review(REPO, number, "ann"));
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.len(), 2, "nothing came since");
        setting.pause().await;
        setting.meanwhile(|world| world.retarget(REPO, number, "ann", "next"));
        setting.work_off().await;
        assert_eq!(setting.reviewed(number).await.len(), 2);
        setting.resume().await;
        setting.settle().await;
        assert_eq!((setting.reviewed(number).await.len(), setting.conclusion(&head).as_deref()), (3, Some("neutral")));
        // With settings that cannot be parsed.
        setting.meanwhile(|world| world.push(REPO, "main", "maint", ".canonry.yml", "- nonsense"));
        setting.settle().await;
        setting.meanwhile(|world| world.retarget(REPO, number, "ann", "main"));
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.len(), 4);
        assert_ne!(setting.conclusion(&head).as_deref(), Some("success"));
    }

    async fn whose_pull_requests_are_left_alone(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "review: {skipAuthors: ['Renovate[bot]', BEN]}").await;
        for (branch, by, why) in [
            ("one", "renovate[bot]", Some("review.skipAuthors names its author")),
            ("two", "ben", Some("review.skipAuthors names its author")),
            ("three", "canonry[bot]", Some("Canonry wrote it itself")),
            // A bot's code is reviewed like any other.
            ("four", "dependabot[bot]", None),
        ] {
            setting.emulator.world().commit(REPO, branch, &[("src/pool.js", Some(REMARKABLE))]);
            let mut number = 0;
            let (state, reason) = setting.tell(|world| number = world.open_pull(REPO, by, branch, NewPull::new(branch))).await;
            setting.settle().await;
            match why {
                Some(why) => {
                    assert_eq!(state, DeliveryState::Ignored, "{by}");
                    assert!(reason.ends_with(&format!("not reviewed: {why}")), "{by}: {reason}");
                    assert_eq!((setting.runs(number).await.len(), setting.said(number).len()), (0, 0), "{by}");
                }
                None => {
                    assert_eq!((state, setting.posted(number)), (DeliveryState::Done, (1, 1)), "{by}");
                }
            }
        }
    }

    async fn a_repository_that_wants_no_reviews_has_none(database: TestDatabase) {
        has_none(&database, "review: {enabled: false}", "review.enabled is false").await;
    }

    async fn a_repository_that_wants_none_of_new_ones_has_none(database: TestDatabase) {
        has_none(&database, "review: {triggers: {onOpened: false}}", "review.triggers does not name this occasion").await;
    }

    async fn settings_that_make_no_sense_ask_for_nothing(database: TestDatabase) {
        has_none(&database, "- nonsense", ".canonry.yml has a mistake, so its `review` section does not count").await;
    }

    async fn settings_of_reviews_with_a_mistake_ask_for_nothing(database: TestDatabase) {
        let mistaken = "review: {enabled: true, maxComments: 99}";
        has_none(&database, mistaken, ".canonry.yml has a mistake, so its `review` section does not count").await;
    }

    async fn a_check_that_is_asked_for_again_runs_again(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.settle().await;
        let head = setting.head(number);
        let check = setting.checks(&head)[0].id;
        let told = setting.tell(|world| world.rerequest_check_run(REPO, check, "ci[bot]")).await;
        assert_eq!(told, (DeliveryState::Ignored, "not reviewed again: a bot asked for it".to_owned()));
        assert_eq!(setting.tell(|world| world.rerequest_check_run(REPO, check, "ann")).await, done());
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await, [head.clone(), head.clone()]);
        assert_eq!(setting.tell(|world| world.rerequest_check_suite(REPO, &head, "ann")).await, done());
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.len(), 3);
        assert_eq!((setting.posted(number), setting.said(number).len()), ((1, 1), 0));
        assert_eq!(setting.conclusion(&head).as_deref(), Some("neutral"));
    }

    async fn the_check_of_a_fork_finds_its_pull_request(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.meanwhile(|world| {
            world.commit(REPO, "mallory:fix", &[("src/pool.js", Some(REMARKABLE))]);
            let new = NewPull { fork: Some("mallory".to_owned()), ..NewPull::new("Fill the pool") };
            world.open_pull(REPO, "mallory", "fix", new)
        });
        setting.settle().await;
        let head = setting.head(number);
        for suite in [false, true] {
            let before = setting.reviewed(number).await.len();
            let told = setting.tell(|world| match suite {
                true => world.rerequest_check_suite(REPO, &head, "maint"),
                false => {
                    let check = world.get(REPO).check_runs[0].id;
                    world.rerequest_check_run(REPO, check, "maint");
                }
            });
            assert_eq!(told.await, done());
            setting.settle().await;
            assert_eq!(setting.reviewed(number).await.len(), before + 1);
        }
    }

    async fn the_settings_are_those_of_the_default_branch(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let hostile = "triage: {mode: grace}\nreview: {enabled: false, skipPaths: ['**'], minConfidence: 100, \
            suppressions: ['*', 'debug'], skipAuthors: [mallory], severity: {minLevel: critical}}\nclose: {minClose: 0.5}\n";
        let number = setting.meanwhile(|world| {
            let files = [(".canonry.yml", Some(hostile)), ("src/pool.js", Some(REMARKABLE))];
            world.commit(REPO, "mallory:fix", &files);
            let new = NewPull { fork: Some("mallory".to_owned()), ..NewPull::new("Fill the pool") };
            world.open_pull(REPO, "mallory", "fix", new)
        });
        setting.settle().await;
        assert_eq!(setting.posted(number), (1, 1));
        assert_eq!(setting.conclusion(&setting.head(number)).as_deref(), Some("neutral"));
        let runs = setting.runs(number).await;
        assert_eq!(runs.iter().map(|run| run.state).collect::<Vec<_>>(), [ReviewState::Completed]);
    }
}

/// A new pull request is not reviewed, for this reason.
async fn has_none(database: &TestDatabase, settings: &str, why: &str) {
    let setting = ReviewWorld::new(database, As::App, settings).await;
    setting.emulator.world().commit(REPO, "one", &[("src/pool.js", Some(REMARKABLE))]);
    let mut number = 0;
    let open = |world: &mut World| number = world.open_pull(REPO, "ann", "one", NewPull::new("Fill the pool"));
    let (state, reason) = setting.tell(open).await;
    assert!(state != DeliveryState::Dead && (reason.is_empty() || reason.ends_with(why)), "{state:?}: {reason}");
    setting.settle().await;
    assert_eq!((setting.runs(number).await.len(), setting.said(number).len()), (0, 0));
}
