//! Tests answers that do not come, come late, or refuse; listings that lag; limits; renames.

use std::time::Duration;

use canonry_domain::WriteKey;
use canonry_github::outbox::{Outbox, Unconditional};
use canonry_github::{Auth, ClientOptions, GitHub, Secret};
use canonry_store::{OutboxEntry, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Age, Answer, Fault, Late};
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::outbox::setting::{OWN, REPO, Setting, TOKEN, comment, plain, receipt};
use canonry_testworld::WorldClock;

fn post() -> Fault {
    Fault::on("POST", "/repos/*/*/issues/*/comments")
}

fn list() -> Fault {
    Fault::on("GET", "/repos/*/*/issues/*/comments")
}

/// Publishes a comment on a new issue and asserts that it is there exactly once.
async fn arrives_once(setting: &Setting, what: &str) -> OutboxEntry {
    let item = setting.open_issue();
    let entry = setting.publish(item, what, comment("Hello"), &Unconditional).await;
    let entry = setting.see_through(&entry, &Unconditional).await;
    assert_eq!((entry.state, setting.own_comments(item)), (OutboxState::Sent, vec!["Hello".to_owned()]), "{what}");
    let id = receipt(&entry).comment.expect("a comment").id.0;
    let there = setting.emulator.world().comments(REPO, plain(item))[0].id;
    assert_eq!(u64::try_from(id).expect("positive"), there, "{what}");
    setting.emulator.clear_faults();
    entry
}

on_both_engines! {
    async fn a_comment_without_an_answer_stands_there_once(database: TestDatabase) {
        let setting = Setting::new(database).await;
        setting.emulator.fault(post().apply_and_drop());
        assert_eq!(arrives_once(&setting, "applied and dropped").await.attempts, 1);
        setting.emulator.fault(post().apply_and_answer(502));
        assert_eq!(arrives_once(&setting, "applied, 502").await.attempts, 1);
        setting.emulator.fault(post().truncate());
        assert_eq!(arrives_once(&setting, "half an answer").await.attempts, 1);
        setting.emulator.fault(post().drop_connection());
        assert_eq!(arrives_once(&setting, "dropped").await.attempts, 2);
        setting.emulator.fault(post().times(3).answer(500));
        assert_eq!(arrives_once(&setting, "three times 500").await.attempts, 4);
        for requests in 1..=5 {
            setting.emulator.fault(post().drop_and_apply_late(Late::AfterRequests(requests)));
            arrives_once(&setting, &format!("applied after {requests} requests")).await;
        }
    }

    async fn listings_may_lag(database: TestDatabase) {
        let setting = Setting::new(database).await;
        setting.emulator.fault(post().apply_and_drop());
        setting.emulator.fault(list().stale(Age::Changes(1)));
        assert_eq!(arrives_once(&setting, "the first look is stale").await.attempts, 1);
        // Both reads are stale: it is sent again, and the newer twin is deleted.
        setting.emulator.fault(post().apply_and_drop());
        setting.emulator.fault(list().times(2).stale(Age::Changes(1)));
        let entry = arrives_once(&setting, "both looks are stale").await;
        assert_eq!(entry.attempts, 3);
        // The read after the second send is stale too.
        setting.emulator.fault(post().apply_and_drop());
        setting.emulator.fault(list().times(3).stale(Age::Changes(1)));
        arrives_once(&setting, "three looks are stale").await;
    }

    async fn deleting_the_twin_may_go_wrong_as_well(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let delete = || Fault::on("DELETE", "/repos/*/*/issues/comments/*");
        for fault in [delete().apply_and_drop(), delete().times(2).drop_connection(), delete().answer(500), delete().answer(401)] {
            setting.emulator.fault(post().apply_and_drop());
            setting.emulator.fault(list().times(2).stale(Age::Changes(1)));
            setting.emulator.fault(fault);
            let requests = setting.emulator.requests().len();
            arrives_once(&setting, &format!("twin {requests}")).await;
        }
    }

    async fn refusals_are_told_in_githubs_words(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for status in [403, 404, 410, 422] {
            setting.emulator.fault(post().answer(status));
            let item = setting.open_issue();
            let entry = setting.publish(item, &format!("refused {status}"), comment("Hello"), &Unconditional).await;
            assert_eq!((entry.state, setting.own_comments(item).len()), (OutboxState::Refused, 0));
            let reason = format!("GitHub refuses the write (status {status}: The emulator was told to fail)");
            assert_eq!(entry.reason, Some(reason));
        }
        let item = setting.open_issue();
        setting.emulator.world().delete(REPO, plain(item), "ann");
        let entry = setting.publish(item, "deleted", comment("Hello"), &Unconditional).await;
        assert_eq!(entry.state, OutboxState::Refused);
    }

    async fn a_limit_is_waited_for(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let limited = Answer::message(403, "You have exceeded a secondary rate limit").header("retry-after", "90");
        setting.emulator.fault(post().times(3).answer_with(limited));
        let begin = setting.emulator.world().now;
        let entry = arrives_once(&setting, "limited").await;
        assert_eq!(entry.attempts, 4);
        assert!(setting.emulator.world().now.duration_since(begin) >= SignedDuration::from_secs(270));
    }

    async fn a_wait_that_is_too_long_leaves_it_pending(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let limited = Answer::message(403, "You have exceeded a secondary rate limit").header("retry-after", "3600");
        setting.emulator.fault(post().answer_with(limited));
        let item = setting.open_issue();
        let entry = setting.publish(item, "hour", comment("Hello"), &Unconditional).await;
        assert_eq!((entry.state, setting.own_comments(item).len()), (OutboxState::Pending, 0));
        assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains("rate limit")), "{entry:?}");
        setting.emulator.world().advance(3600);
        let entry = setting.publish(item, "hour", comment("Hello"), &Unconditional).await;
        assert_eq!((entry.state, setting.own_comments(item).len()), (OutboxState::Sent, 1));
    }

    async fn an_outage_without_end_is_given_up_only_after_a_look(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        setting.emulator.fault(post().always().drop_connection());
        let entry = setting.publish(item, "outage", comment("Hello"), &Unconditional).await;
        assert_eq!((entry.state, entry.attempts, setting.own_comments(item).len()), (OutboxState::Failed, 8, 0));
        let last = setting.emulator.requests().pop().expect("requests");
        assert_eq!(last.method, "GET");
    }

    async fn a_token_that_is_replaced_loses_no_write(database: TestDatabase) {
        let setting = Setting::new(database).await;
        // More often than the allowed tries: a new token may take a while.
        setting.emulator.fault(post().times(12).answer(401));
        arrives_once(&setting, "revoked for a while").await;
    }

    async fn an_outage_of_days_before_sending_is_given_up_with_its_reason(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        setting.emulator.fault(post().always().answer(401));
        let begin = setting.emulator.world().now;
        let mut entry = setting.publish(item, "revoked", comment("Hello"), &Unconditional).await;
        for _ in 0..300 {
            if entry.state != OutboxState::Pending {
                break;
            }
            setting.emulator.world().advance(1_800);
            entry = setting.publish(item, "revoked", comment("Hello"), &Unconditional).await;
        }
        assert_eq!((entry.state, setting.own_comments(item).len()), (OutboxState::Failed, 0));
        assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains("401")), "{entry:?}");
        let lasted = setting.emulator.world().now.duration_since(begin);
        assert!((72..75).contains(&lasted.as_hours()), "{lasted}");
    }

    async fn a_renamed_repository_still_gets_its_writes(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (one, two) = (setting.open_issue(), setting.open_issue());
        let outbox = setting.outbox().await;
        let said = outbox.enqueue(setting.repo.id, one, &WriteKey::other("comment"), comment("Hello")).await.expect("stored");
        let closed = outbox.enqueue(setting.repo.id, two, &WriteKey::other("close"), crate::outbox::setting::close(&setting)).await.expect("stored");
        setting.emulator.world().rename_repo(REPO, "acme/gadgets", "ann");
        for entry in [said, closed] {
            let entry = outbox.publish(entry.id, &Unconditional).await.expect("worked on");
            assert_eq!((entry.state, entry.repo.name.to_string().as_str()), (OutboxState::Sent, "acme/gadgets"));
        }
        assert_eq!(setting.emulator.world().comments_by("acme/gadgets", plain(one), OWN).len(), 1);
    }

    async fn a_transferred_issue_is_not_followed(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        {
            let mut world = setting.emulator.world();
            world.repo("acme/other");
            world.transfer(REPO, plain(item), "ann", "acme/other");
        }
        let entry = setting.publish(item, "close", crate::outbox::setting::close(&setting), &Unconditional).await;
        assert_eq!(entry.state, OutboxState::Refused);
        assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains("acme/other")), "{entry:?}");
    }

    async fn markers_of_others_do_not_count(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        setting.publish(item, "hello", comment("Hello"), &Unconditional).await;
        // A person copies our comment and deletes it; then the same text is sent to another item.
        let other = setting.open_issue();
        let body = setting.emulator.world().comments(REPO, plain(item))[0].body.clone();
        let forged = body.replace("hello", "forged");
        setting.emulator.world().comment(REPO, plain(other), "ann", &body);
        setting.emulator.world().comment(REPO, plain(other), OWN, &forged);
        setting.emulator.fault(post().drop_connection());
        let outbox = setting.outbox().await;
        let entry = outbox.enqueue(setting.repo.id, other, &WriteKey::other("forged"), comment("Bye")).await.expect("stored");
        let entry = outbox.publish(entry.id, &Unconditional).await.expect("worked on");
        assert_eq!((entry.state, entry.attempts), (OutboxState::Sent, 2));
        assert_eq!(setting.emulator.world().comments(REPO, plain(other)).len(), 3);
    }

    async fn an_answer_that_takes_too_long_is_no_answer(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let options = ClientOptions {
            api: setting.emulator.url().parse().expect("a URL"),
            clock: std::sync::Arc::new(WorldClock(std::sync::Arc::clone(&setting.emulator))),
            request_timeout: Duration::from_millis(400),
            ..ClientOptions::new(Auth::Token(Secret::new(TOKEN)))
        };
        let github = GitHub::new(options).expect("a client");
        let outbox = Outbox::open(setting.store.clone(), github, [7; 32]).await.expect("an outbox");
        let item = setting.open_issue();
        let (fault, gate) = post().hold_answer();
        setting.emulator.fault(fault);
        let entry = outbox.enqueue(setting.repo.id, item, &WriteKey::other("slow"), comment("Hello")).await.expect("stored");
        let entry = outbox.publish(entry.id, &Unconditional).await.expect("worked on");
        gate.release();
        assert_eq!((entry.state, entry.attempts, setting.own_comments(item).len()), (OutboxState::Sent, 1, 1));
    }
}
