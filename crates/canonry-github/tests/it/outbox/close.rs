//! Tests the order of a close, and what happens if it does not succeed.

use std::sync::atomic::{AtomicUsize, Ordering};

use canonry_domain::{ItemNumber, WriteKey};
use canonry_github::GitHubError;
use canonry_github::outbox::{Act, Recheck, RecheckError, Ruling, Unconditional};
use canonry_store::{OutboxEntry, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault, Late};
use canonry_testkit::on_both_engines;
use futures_util::future::{BoxFuture, ready};
use jiff::SignedDuration;

use crate::outbox::setting::{CLOSING, NOT_CLOSING, REPO, Setting, close, plain, receipt};

/// Refuses one act.
struct RefusesAt(Act);

impl Recheck for RefusesAt {
    fn recheck<'a>(&'a self, _: &'a OutboxEntry, act: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        let ruling = match act == self.0 {
            true => Ruling::Refuse { reason: "drift:target_closed".to_owned() },
            false => Ruling::Proceed,
        };
        Box::pin(ready(Ok(ruling)))
    }
}

/// Fails this many times.
struct Fails(AtomicUsize);

impl Recheck for Fails {
    fn recheck<'a>(&'a self, _: &'a OutboxEntry, _: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        Box::pin(ready(if left.is_ok() { Err("the store is away".into()) } else { Ok(Ruling::Proceed) }))
    }
}

/// Fails this many times with GitHub's limit, or an outage; the limit lasts a minute.
struct Meets(AtomicUsize, GitHubError);

impl Recheck for Meets {
    fn recheck<'a>(&'a self, _: &'a OutboxEntry, _: Act) -> BoxFuture<'a, Result<Ruling, RecheckError>> {
        let left = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        Box::pin(ready(if left.is_ok() { Err(self.1.clone().into()) } else { Ok(Ruling::Proceed) }))
    }
}

fn patch() -> Fault {
    Fault::on("PATCH", "/repos/*/*/issues/*")
}

async fn closed_under(setting: &Setting, recheck: &dyn Recheck) -> (ItemNumber, OutboxEntry) {
    let item = setting.open_issue();
    let entry = setting.publish(item, &format!("close {item}"), close(setting), recheck).await;
    (item, entry)
}

on_both_engines! {
    async fn a_check_that_refuses_at_once_leaves_no_trace(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (_, entry) = closed_under(&setting, &RefusesAt(Act::Comment)).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some("drift:target_closed")));
        assert!(setting.emulator.writes().is_empty());
    }

    async fn a_check_that_fails_blocks_until_it_does_not(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (item, entry) = closed_under(&setting, &Fails(AtomicUsize::new(3))).await;
        assert_eq!((entry.state, setting.closes(item)), (OutboxState::Sent, (1, true)));
        setting.emulator.forget_requests();
        let (_, entry) = closed_under(&setting, &Fails(AtomicUsize::new(usize::MAX))).await;
        assert!(setting.emulator.writes().is_empty());
        // Half an hour's pause is longer than a caller waits; the write fails later.
        assert_eq!(entry.state, OutboxState::Pending);
        assert_eq!(entry.reason.as_deref(), Some("the check before sending failed: the store is away"));
    }

    async fn a_check_that_meets_a_limit_or_an_outage_is_no_try(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let until = setting.emulator.world().now + SignedDuration::from_secs(60);
        let away = GitHubError::Network { host: "api.github.com".to_owned(), detail: "no route".to_owned() };
        for met in [GitHubError::RateLimited { until }, away] {
            // Twelve are more than the allowed tries.
            let meets = Meets(AtomicUsize::new(12), met);
            let (item, entry) = closed_under(&setting, &meets).await;
            let entry = setting.see_through(&entry, &meets).await;
            assert_eq!((entry.state, setting.closes(item)), (OutboxState::Sent, (1, true)), "{entry:?}");
        }
        assert!(setting.emulator.world().now >= until);
    }

    async fn a_check_that_refuses_after_the_comment_corrects_it(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (item, entry) = closed_under(&setting, &RefusesAt(Act::Set)).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some("drift:target_closed")));
        assert_eq!((setting.own_comments(item), setting.closes(item)), (vec![NOT_CLOSING.to_owned()], (0, false)));
    }

    async fn a_close_that_github_refuses_corrects_the_comment(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for status in [403, 404, 410, 422] {
            setting.emulator.fault(patch().answer(status));
            let (item, entry) = closed_under(&setting, &Unconditional).await;
            assert_eq!(entry.state, OutboxState::Refused);
            assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains(&status.to_string())), "{entry:?}");
            assert_eq!((setting.own_comments(item), setting.closes(item)), (vec![NOT_CLOSING.to_owned()], (0, false)));
        }
    }

    async fn an_item_that_somebody_closed_is_left_alone(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        setting.emulator.world().close(REPO, plain(item), "ann", CloseReason::Completed);
        let entry = setting.publish(item, "close", close(&setting), &Unconditional).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some("drift:source_closed")));
        assert!(setting.emulator.writes().is_empty());
    }

    async fn a_close_without_an_answer_that_was_carried_out_is_sent(database: TestDatabase) {
        let setting = Setting::new(database).await;
        setting.emulator.fault(patch().apply_and_drop());
        let (item, entry) = closed_under(&setting, &Unconditional).await;
        assert_eq!((entry.state, receipt(&entry).objected), (OutboxState::Sent, false));
        assert_eq!((setting.own_comments(item), setting.closes(item)), (vec![CLOSING.to_owned()], (1, true)));
        assert_eq!(setting.emulator.writes().len(), 2);
    }

    async fn a_reopening_before_we_knew_is_an_objection(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        setting.emulator.fault(patch().apply_and_drop());
        let outbox = setting.outbox().await;
        let entry = outbox.enqueue(setting.repo.id, item, &WriteKey::other("close"), close(&setting)).await.expect("stored");
        // Runs until the close is in doubt and waits for its minute.
        let next = outbox.publish_due(&Unconditional).await.expect("worked on").expect("waits");
        {
            let mut world = setting.emulator.world();
            world.advance(5);
            world.reopen(REPO, plain(item), "ann");
            world.now = world.now.max(next);
        }
        let entry = outbox.publish(entry.id, &Unconditional).await.expect("worked on");
        assert_eq!((entry.state, receipt(&entry).objected), (OutboxState::Sent, true));
        assert_eq!((setting.own_comments(item), setting.closes(item)), (vec![CLOSING.to_owned()], (1, false)));
        assert_eq!(setting.emulator.writes().len(), 2);
    }

    async fn a_close_of_long_ago_is_not_taken_for_this_one(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        {
            let mut world = setting.emulator.world();
            world.close(REPO, plain(item), crate::outbox::setting::OWN, CloseReason::Completed);
            world.advance(60);
            world.reopen(REPO, plain(item), "ann");
            world.advance(86_400);
        }
        setting.emulator.fault(patch().drop_connection());
        let entry = setting.publish(item, "close", close(&setting), &Unconditional).await;
        assert_eq!((entry.state, receipt(&entry).objected), (OutboxState::Sent, false));
        assert_eq!(setting.closes(item), (2, true));
    }

    async fn a_close_that_comes_late_is_seen(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for requests in 1..=6 {
            setting.emulator.fault(patch().drop_and_apply_late(Late::AfterRequests(requests)));
            let (item, entry) = closed_under(&setting, &Unconditional).await;
            assert_eq!((entry.state, receipt(&entry).objected), (OutboxState::Sent, false));
            assert_eq!((setting.own_comments(item), setting.closes(item)), (vec![CLOSING.to_owned()], (1, true)));
        }
    }
}
