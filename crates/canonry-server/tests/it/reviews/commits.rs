//! Commits that come while a review is under way.

use canonry_domain::WriteOrigin;
use canonry_server::{AttemptEnd, ReviewParts};
use canonry_store::{JobScope, ReviewState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::NewPull;
use canonry_testkit::on_both_engines;

use crate::reviews::models::{Gated, model};
use crate::world::review_world::{PLAIN, REMARKABLE, REPO, ReviewWorld};
use crate::world::{As, item, until};

const ON_PUSH: &str = "review: {reviewers: [builtin, llm], triggers: {onSynchronize: true}}";
const NOT_ON_PUSH: &str = "review: {reviewers: [builtin, llm]}";

on_both_engines! {
    async fn what_was_pushed_meanwhile_is_what_is_reviewed(database: TestDatabase) {
        pushed_meanwhile(&database, ON_PUSH).await;
    }

    async fn a_push_that_asks_for_nothing_does_not_lose_the_wish_before_it(database: TestDatabase) {
        pushed_meanwhile(&database, NOT_ON_PUSH).await;
    }

    async fn a_branch_that_is_chosen_meanwhile_is_what_is_reviewed_against(database: TestDatabase) {
        let gate = Gated::new();
        let parts = ReviewParts { llm: Some(model(gate.clone(), None)), command: None };
        let setting = ReviewWorld::with(&database, As::App, NOT_ON_PUSH, parts).await;
        setting.emulator.world().commit(REPO, "next", &[("src/pool.js", Some(REMARKABLE))]);
        setting.emulator.world().commit(REPO, "one", &[("src/depth.js", Some(PLAIN))]);
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        let head = setting.head(number);
        setting.deliver().await;
        assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
        let meanwhile = async {
            until("the model is asked", async || gate.asked() > 0).await;
            setting.meanwhile(|world| world.retarget(REPO, number, "ann", "next"));
            gate.open();
        };
        tokio::join!(setting.work(JobScope::All), meanwhile);
        setting.settle().await;
        let runs = setting.runs(number).await;
        assert!(runs.len() == 2 && runs[0].base != runs[1].base, "{runs:?}");
        let entries = setting.store.outbox().of_item(setting.repo.id, item(number)).await.expect("reads");
        let posts = entries.iter().filter(|entry| entry.source.origin == WriteOrigin::ReviewPost);
        let of_the_last = Some(runs[1].id.get());
        assert!(posts.clone().count() == 1 && posts.clone().all(|post| post.source.record == of_the_last), "only the last is told of");
        assert_eq!((setting.posted(number), setting.conclusion(&head).as_deref()), ((1, 1), Some("neutral")));

        // A check that passes for one base branch does not pass for another before that is reviewed.
        let begun = async || {
            let entries = setting.store.outbox().of_item(setting.repo.id, item(number)).await.expect("reads");
            entries.iter().filter(|entry| entry.key.contains("/check/begin-")).count()
        };
        let before = begun().await;
        setting.meanwhile(|world| world.retarget(REPO, number, "ann", "main"));
        setting.settle().await;
        assert_eq!((setting.runs(number).await.len(), begun().await), (3, before + 1));
        assert_eq!((setting.posted(number), setting.conclusion(&head).as_deref()), ((1, 1), Some("neutral")));
    }

    async fn a_head_that_comes_back_is_reviewed_again(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "review: {triggers: {onSynchronize: true}}").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.settle().await;
        setting.push(number, PLAIN);
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.len(), 2);
        let back = setting.meanwhile(|world| {
            world.force_push_pull(REPO, number, "ann", &[("src/pool.js", Some(REMARKABLE))])
        });
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await.last(), Some(&back));
        assert_eq!(setting.conclusion(&back).as_deref(), Some("neutral"));
        assert_eq!(setting.said(number).len(), 0);
    }
}

/// A review of the first commit waits for its model while a second commit is pushed.
async fn pushed_meanwhile(database: &TestDatabase, settings: &str) {
    let gate = Gated::new();
    let parts = ReviewParts { llm: Some(model(gate.clone(), None)), command: None };
    let setting = ReviewWorld::with(database, As::App, settings, parts).await;
    let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
    let first = setting.head(number);
    setting.deliver().await;
    assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
    let meanwhile = async {
        until("the model is asked", async || gate.asked() > 0).await;
        let second = setting.push(number, &format!("{REMARKABLE}\n{PLAIN}"));
        setting.deliver().await;
        while setting.work(JobScope::Caused).await.is_some() {}
        let states: Vec<_> = setting.runs(number).await.iter().map(|run| run.state).collect();
        assert_eq!(states, [ReviewState::Superseded], "the webhook alone ends it");
        gate.open();
        second
    };
    let (_, second) = tokio::join!(setting.work(JobScope::All), meanwhile);
    setting.settle().await;
    assert_eq!(setting.reviewed(number).await, std::slice::from_ref(&second));
    assert_eq!((setting.posted(number), setting.said(number).len()), ((1, 1), 0));
    let world = setting.emulator.world();
    let about: Vec<_> = world
        .review_comments_by(REPO, number, "canonry[bot]")
        .iter()
        .map(|one| one.original_commit_id.clone())
        .collect();
    assert_eq!(about, std::slice::from_ref(&second));
    drop(world);
    assert_eq!(setting.conclusion(&second).as_deref(), Some("neutral"));
    assert_ne!(setting.checks(&first).first().and_then(|check| check.conclusion.clone()).as_deref(), Some("success"));
}
