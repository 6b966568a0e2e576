//! Tests each kind of write without faults, and what is refused before it is sent.

use canonry_domain::WriteKey;
use canonry_github::outbox::{Close, CloseAs, OutboxError, Unconditional, Write};
use canonry_store::OutboxState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewIssue, Pull, SecondaryLimit, State};
use canonry_testkit::on_both_engines;
use jiff::SignedDuration;

use crate::outbox::setting::{CLOSING, OWN, REPO, Setting, close, comment, number, plain, receipt};

on_both_engines! {
    async fn a_comment_is_written_edited_and_deleted(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        let written = setting.publish(item, "hello", comment("Hello @\u{200b}ann"), &Unconditional).await;
        assert_eq!((written.state, written.attempts), (OutboxState::Sent, 1));
        let id = receipt(&written).comment.expect("a comment").id.0;
        assert_eq!(setting.emulator.world().comments(REPO, plain(item))[0].id, u64::try_from(id).expect("positive"));
        assert_eq!(setting.own_comments(item), ["Hello @\u{200b}ann"]);
        let before = setting.emulator.world().comments(REPO, plain(item))[0].body.clone();

        let edit = |body: &str| Write::EditComment { comment_key: "hello".to_owned(), body: body.to_owned() };
        let edited = setting.publish(item, "edit 1", edit("Bye"), &Unconditional).await;
        assert_eq!((edited.state, setting.own_comments(item)), (OutboxState::Sent, vec!["Bye".to_owned()]));
        let after = setting.emulator.world().comments(REPO, plain(item))[0].body.clone();
        assert_eq!(after.split_once("<!--").map(|(_, marker)| marker), before.split_once("<!--").map(|(_, marker)| marker));
        let again = setting.publish(item, "edit 2", edit("Bye"), &Unconditional).await;
        assert!(receipt(&again).already);
        assert_eq!(again.attempts, 0);

        let delete = Write::DeleteComment { comment_key: "hello".to_owned() };
        let deleted = setting.publish(item, "delete", delete, &Unconditional).await;
        assert_eq!((deleted.state, setting.own_comments(item).len()), (OutboxState::Sent, 0));
        let late = setting.publish(item, "edit 3", edit("Hello?"), &Unconditional).await;
        assert_eq!((late.state, late.reason.as_deref()), (OutboxState::Refused, Some("the comment is gone")));
        let unknown = Write::EditComment { comment_key: "nobody's".to_owned(), body: "x".to_owned() };
        let unknown = setting.publish(item, "edit 4", unknown, &Unconditional).await;
        assert_eq!(unknown.reason.as_deref(), Some("the comment was never written"));
    }

    async fn a_key_is_written_once_whatever_is_asked(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        for _ in 0..3 {
            let entry = setting.publish(item, "once", comment("Hello"), &Unconditional).await;
            assert_eq!(entry.state, OutboxState::Sent);
        }
        assert_eq!(setting.own_comments(item), ["Hello"]);
        assert_eq!(setting.emulator.writes().len(), 1);
    }

    async fn labels_and_states_are_read_then_set(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        let label = || Write::Label { name: "possible-duplicate".to_owned() };
        let unlabel = || Write::Unlabel { name: "Possible-Duplicate".to_owned() };
        for (key, write, sends) in [
            ("l1", label(), 1), ("l2", label(), 0), ("u1", unlabel(), 1), ("u2", unlabel(), 0), ("r1", Write::Reopen, 0),
        ] {
            let entry = setting.publish(item, key, write, &Unconditional).await;
            assert_eq!((entry.state, entry.attempts, receipt(&entry).already), (OutboxState::Sent, sends, sends == 0), "{key}");
        }
        assert!(setting.emulator.world().issue(REPO, plain(item)).labels.is_empty());
        setting.emulator.world().close(REPO, plain(item), "ann", CloseReason::Completed);
        let entry = setting.publish(item, "r2", Write::Reopen, &Unconditional).await;
        assert_eq!((entry.state, setting.emulator.world().issue(REPO, plain(item)).state), (OutboxState::Sent, State::Open));
    }

    async fn closes_speak_first_and_pull_requests_close_without_a_reason(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        let entry = setting.publish(item, "close", close(&setting), &Unconditional).await;
        assert_eq!((entry.state, entry.attempts), (OutboxState::Sent, 2));
        assert!(receipt(&entry).comment.is_some());
        assert_eq!((setting.own_comments(item), setting.closes(item)), (vec![CLOSING.to_owned()], (1, true)));
        let writes: Vec<String> = setting.emulator.writes().iter().map(|write| write.method.clone()).collect();
        assert_eq!(writes, ["POST", "PATCH"]);
        {
            let world = setting.emulator.world();
            let issue = world.issue(REPO, plain(item));
            assert_eq!((issue.state_reason.as_deref(), issue.duplicate_of), (Some("duplicate"), Some(world.issue(REPO, 1).id)));
        }
        let pull = number(setting.emulator.world().open(REPO, "ann", NewIssue::new("Fix", "").pull(Pull::default())));
        let write = Write::Close(Close {
            close_as: CloseAs::Pull, comment: CLOSING.to_owned(), comment_if_refused: String::new(),
        });
        let entry = setting.publish(pull, "close pull", write, &Unconditional).await;
        assert_eq!((entry.state, setting.closes(pull)), (OutboxState::Sent, (1, true)));
        let patch = setting.emulator.writes().pop().expect("a write");
        assert_eq!(patch.body, Some(serde_json::json!({ "state": "closed" })));
    }

    async fn secrets_do_not_leave_and_are_not_kept(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        let secret = ["ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
        for (key, write) in [
            ("comment", comment(&format!("Use {secret}"))),
            ("label", Write::Label { name: secret.clone() }),
            ("close", Write::Close(Close { close_as: CloseAs::Pull, comment: "Closing".to_owned(), comment_if_refused: secret.clone() })),
        ] {
            let entry = setting.publish(item, key, write, &Unconditional).await;
            assert_eq!(entry.state, OutboxState::Refused);
            assert_eq!(entry.reason.as_deref(), Some("the text holds a secret (GitHub token)"));
            assert!(!entry.payload.to_string().contains(&secret), "{}", entry.payload);
        }
        assert!(setting.emulator.writes().is_empty());
    }

    async fn smuggled_markers_do_not_leave(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.open_issue();
        setting.publish(item, "first", comment("Hello"), &Unconditional).await;
        let quoted = setting.emulator.world().comments(REPO, plain(item))[0].body.clone();
        let entry = setting.publish(item, "second", comment(&quoted), &Unconditional).await;
        assert_eq!(entry.state, OutboxState::Refused);
        assert_eq!(setting.own_comments(item), ["Hello"]);
        let outbox = setting.outbox().await;
        let long = outbox.enqueue(setting.repo.id, item, &WriteKey::other(&"k".repeat(201)), comment("Hello")).await;
        assert!(matches!(long, Err(OutboxError::Key(_))), "{long:?}");
    }

    async fn the_pace_is_kept_and_every_write_arrives(database: TestDatabase) {
        let setting = Setting::new(database).await;
        setting.emulator.world().rate.secondary = Some(SecondaryLimit::default());
        let outbox = setting.outbox().await;
        let begin = setting.emulator.world().now;
        for index in 0..170 {
            let item = setting.open_issue();
            outbox.enqueue(setting.repo.id, item, &WriteKey::other(&format!("hello {index}")), comment("Hello")).await.expect("stored");
        }
        while let Some(next) = outbox.publish_due(&Unconditional).await.expect("worked on") {
            let mut world = setting.emulator.world();
            world.now = world.now.max(next);
        }
        let writes = setting.emulator.writes();
        assert_eq!((writes.len(), writes.iter().filter(|write| write.status == Some(201)).count()), (170, 170));
        let took = setting.emulator.world().now.duration_since(begin);
        assert!(took >= SignedDuration::from_mins(2) && took < SignedDuration::from_mins(3), "{took}");
        assert_eq!(writes[0].user.as_deref(), Some(OWN));
    }
}
