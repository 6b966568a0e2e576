//! Temporary failures: they are reported, never taken for a review, and the review is made once they are over.

use canonry_domain::{WriteKey, WriteKind};
use canonry_github::outbox::{Close, CloseAs, Write};
use canonry_server::AttemptEnd;
use canonry_store::{JobCaps, JobScope, NewOutboxEntry, OutboxState, ReviewState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewPull};
use canonry_testkit::on_both_engines;

use crate::world::review_world::{PLAIN, REMARKABLE, ReviewWorld};
use crate::world::{As, TOKEN, item};

on_both_engines! {
    async fn a_review_that_git_keeps_from_being_made_is_told_and_made_later(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        setting.emulator.fault(Fault::on("GET", "/*/*/info/refs").always().answer(503));
        let number = setting.open("ann", "one", PLAIN, NewPull::new("Fill the pool"));
        let head = setting.head(number);
        assert_eq!(setting.work_off().await, [AttemptEnd::Done, AttemptEnd::Retried]);
        assert_eq!(setting.conclusion(&head).as_deref(), Some("action_required"));
        let check = setting.checks(&head).remove(0);
        let told = format!("{} {}", check.title.unwrap_or_default(), check.summary.unwrap_or_default());
        assert!(told.starts_with("Not reviewed: ") && told.contains("could not fetch the commits"), "{told}");
        assert_eq!(setting.runs(number).await.len(), 0, "nothing was claimed");

        setting.emulator.clear_faults();
        setting.settle().await;
        assert_eq!(setting.reviewed(number).await, std::slice::from_ref(&head));
        assert_eq!(setting.conclusion(&head).as_deref(), Some("success"));
        assert_eq!(setting.said(number).len(), 0);
    }

    async fn a_review_that_is_given_up_is_never_green_and_can_be_asked_for(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        setting.emulator.fault(Fault::on("GET", "/*/*/info/refs").always().answer(503));
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        let head = setting.head(number);
        let ended = setting.settle().await;
        assert_eq!(ended.last(), Some(&AttemptEnd::Dead));
        assert_eq!(setting.conclusion(&head).as_deref(), Some("action_required"));

        setting.emulator.clear_faults();
        let check = setting.checks(&head)[0].id;
        setting.meanwhile(|world| world.rerequest_check_run(crate::world::review_world::REPO, check, "ann"));
        setting.settle().await;
        assert_eq!((setting.posted(number), setting.conclusion(&head).as_deref()), ((1, 1), Some("neutral")));
    }

    async fn a_review_that_cannot_be_published_is_given_up_aloud(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/pulls/*/files").always().answer(403));
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        let head = setting.head(number);
        setting.deliver().await;
        assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
        assert_eq!(setting.work(JobScope::All).await, Some(AttemptEnd::Retried));
        assert_eq!(setting.checks(&head)[0].status, "in_progress");
        assert_eq!(setting.settle().await.last(), Some(&AttemptEnd::Dead));
        let check = setting.checks(&head).remove(0);
        assert_eq!(check.conclusion.as_deref(), Some("action_required"));
        assert!(check.summary.as_deref().is_some_and(|said| said.contains("failed too often")), "{check:?}");
    }

    async fn a_review_that_kills_its_workers_is_given_up_aloud(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/pulls/*/files").times(1).answer(403));
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        let head = setting.head(number);
        setting.deliver().await;
        assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
        assert_eq!(setting.work(JobScope::All).await, Some(AttemptEnd::Retried));
        for killed in ["two", "three"] {
            setting.emulator.world().advance(3_600);
            let (now, caps) = (setting.clock.now(), JobCaps { per_repo: 4, in_all: 8 });
            let until = now + jiff::SignedDuration::from_secs(20);
            let leased = setting.store.jobs().lease(killed, caps, JobScope::All, now, until).await.expect("reads");
            assert!(leased.is_some(), "{killed}");
        }
        setting.emulator.world().advance(3_600);
        assert_eq!(setting.work(JobScope::All).await, Some(AttemptEnd::Dead));
        let check = setting.checks(&head).remove(0);
        assert_eq!(check.conclusion.as_deref(), Some("action_required"));
        assert!(check.summary.as_deref().is_some_and(|said| said.contains("tries finished")), "{check:?}");
    }

    async fn reviews_that_are_switched_off_in_the_middle_end_their_check(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        setting.emulator.fault(Fault::on("GET", "/repos/*/*/pulls/*/files").times(1).answer(403));
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.work_off().await;
        let head = setting.head(number);
        assert_eq!(setting.checks(&head)[0].status, "in_progress");
        let off = "triage: {mode: off}\nreview: {enabled: false}";
        setting.meanwhile(|world| world.push(crate::world::review_world::REPO, "main", "maint", ".canonry.yml", off));
        setting.settle().await;
        assert_eq!(setting.conclusion(&head).as_deref(), Some("action_required"));
    }

    async fn a_close_that_somebody_else_sees_through_loses_no_try(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        let (comment, comment_if_refused) = ("Closing.".to_owned(), "Not closed.".to_owned());
        let close = Write::Close(Close { close_as: CloseAs::Pull, comment, comment_if_refused });
        let new = NewOutboxEntry {
            repo: setting.repo.id,
            number: item(number),
            kind: WriteKind::Close,
            key: &WriteKey::other("close/1"),
            payload: &serde_json::to_value(close).expect("a value"),
            refused: None,
        };
        let owed = setting.store.outbox().enqueue(&new, setting.clock.now()).await.expect("stored").id;
        for _ in 0..4 {
            setting.work_off().await;
            setting.emulator.world().advance(7_200);
        }
        let entries = setting.store.outbox().of_item(setting.repo.id, item(number)).await.expect("reads");
        let entry = entries.into_iter().find(|entry| entry.id == owed).expect("there");
        assert_eq!((entry.state, entry.attempts), (OutboxState::Pending, 0), "{:?}", entry.reason);
    }

    async fn no_secret_is_told_when_git_refuses(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::Token, "").await;
        setting.emulator.fault(Fault::on("GET", "/*/*/info/refs").always().answer(403));
        let number = setting.open("ann", "one", PLAIN, NewPull::new("Fill the pool"));
        setting.work_off().await;
        let waiting = setting.waiting().await;
        let error = waiting.iter().find_map(|job| job.error.clone()).expect("it failed");
        assert!(error.contains("fetch the commits"), "{error}");
        // Without checks the conversation says it.
        let said = setting.said(number);
        assert!(said.len() == 1 && said[0].starts_with("**Not reviewed**"), "{said:?}");
        for text in setting.emulator.bodies_sent().iter().chain([&error]) {
            assert!(!text.contains(TOKEN) && !text.contains("Basic "), "{text}");
        }
        setting.emulator.clear_faults();
        setting.settle().await;
        let said = setting.said(number);
        assert!(said.len() == 1 && said[0].starts_with("**No findings.**"), "{said:?}");
    }

    async fn a_publication_that_github_interrupts_goes_on(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        // The answer to the review is lost, and then nothing answers for a while.
        setting.emulator.fault(Fault::on("POST", "/repos/*/*/pulls/*/reviews").apply_and_drop());
        setting.emulator.fault(Fault::on("POST", "/repos/*/*/pulls/*/reviews/*/events").times(2).answer(502));
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.settle().await;
        assert_eq!((setting.posted(number), setting.said(number).len()), ((1, 1), 0));
        assert_eq!(setting.conclusion(&setting.head(number)).as_deref(), Some("neutral"));
        let states: Vec<_> = setting.runs(number).await.iter().map(|run| run.state).collect();
        assert_eq!(states, [ReviewState::Completed], "the review itself is made once");
    }

    async fn what_was_closed_in_the_middle_and_opened_again_gets_its_review(database: TestDatabase) {
        let setting = ReviewWorld::new(&database, As::App, "").await;
        let number = setting.open("ann", "one", REMARKABLE, NewPull::new("Fill the pool"));
        setting.deliver().await;
        assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
        // Closed between the review and its publication.
        setting.emulator.fault(Fault::on("POST", "/repos/*/*/pulls/*/reviews").times(50).answer(502));
        assert_ne!(setting.work(JobScope::All).await, Some(AttemptEnd::Done));
        use canonry_testkit::github::CloseReason;
        setting.meanwhile(|world| world.close(crate::world::review_world::REPO, number, "ann", CloseReason::Completed));
        setting.emulator.clear_faults();
        setting.settle().await;
        assert_eq!(setting.posted(number), (0, 0));
        let check = setting.checks(&setting.head(number)).remove(0);
        assert_eq!(check.conclusion.as_deref(), Some("action_required"), "it is in progress no more");
        assert!(check.summary.as_deref().is_some_and(|said| said.contains("closed")), "{check:?}");
        setting.meanwhile(|world| world.reopen(crate::world::review_world::REPO, number, "ann"));
        setting.settle().await;
        assert_eq!(setting.posted(number), (1, 1));
        assert_eq!(setting.conclusion(&setting.head(number)).as_deref(), Some("neutral"));
    }
}
