//! Tests check runs, reactions and conversations on a diff, and what is refused before it is sent.

use canonry_domain::WriteKey;
use canonry_github::outbox::{
    COMMENT_GONE, CheckRunWrite, CheckState, ReactTo, ReactionContent, ReviewWrite, THREAD_FORBIDDEN, THREAD_GONE,
    THREAD_NOT_OURS, Unconditional, Write,
};
use canonry_store::OutboxState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Answer, Fault, Recorded, World};
use canonry_testkit::on_both_engines;

use crate::outbox::setting::{HEAD, OWN, REPO, Setting, id, inline, plain, plain_id, receipt, review, text_of};

fn check_run(external_id: &str, state: CheckState, title: &str) -> Write {
    Write::CheckRun(CheckRunWrite {
        head: HEAD.to_owned(),
        external_id: external_id.to_owned(),
        state,
        title: title.to_owned(),
        summary: "Read 3 files.".to_owned(),
        details_url: Some("https://canonry.example/runs/1".to_owned()),
    })
}

/// The check runs: key, status, conclusion, title.
fn shown(world: &World) -> Vec<(String, String, Option<String>, Option<String>)> {
    let repo = world.repos.iter().find(|repo| repo.full_name() == REPO).expect("the repository");
    let runs = repo.check_runs.iter();
    runs.map(|run| (run.external_id.clone(), run.status.clone(), run.conclusion.clone(), run.title.clone())).collect()
}

on_both_engines! {
    async fn a_check_run_is_made_once_and_then_changed(database: TestDatabase) {
        let setting = Setting::of_app(database).await;
        let pull = setting.open_pull();
        let steps = [
            ("begin", check_run("a", CheckState::InProgress, "Reviewing"), 1),
            ("end", check_run("a", CheckState::Neutral, "2 findings"), 1),
            ("end again", check_run("a", CheckState::Neutral, "2 findings"), 0),
            ("retitled", check_run("a", CheckState::Neutral, "3 findings"), 1),
            ("other", check_run("b", CheckState::ActionRequired, "Could not be reviewed"), 1),
        ];
        for (key, write, sends) in steps {
            let entry = setting.publish(pull, key, write, &Unconditional).await;
            assert_eq!((entry.state, entry.attempts), (OutboxState::Sent, sends), "{key}: {entry:?}");
        }
        let completed = |key: &str, conclusion: &str, title: &str| {
            (key.to_owned(), "completed".to_owned(), Some(conclusion.to_owned()), Some(title.to_owned()))
        };
        let expected = [completed("a", "neutral", "3 findings"), completed("b", "action_required", "Could not be reviewed")];
        assert_eq!(shown(&setting.emulator.world()), expected);
    }

    async fn a_plain_token_makes_no_check_run(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let entry = setting.publish(pull, "begin", check_run("a", CheckState::InProgress, "Reviewing"), &Unconditional).await;
        assert_eq!((entry.state, shown(&setting.emulator.world()).len()), (OutboxState::Refused, 0));
        assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains("403")), "{entry:?}");
    }

    async fn reactions_are_read_then_set(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (pull, review) = setting.reviewed(&["one"]).await;
        let said = setting.emulator.world().comment(REPO, plain(pull), "ann", "@canonry pause");
        setting.emulator.forget_requests();
        for (place, on) in [
            ("comment", ReactTo::IssueComment(id(said))),
            ("line", ReactTo::ReviewComment(review.comments[0].comment)),
            ("item", ReactTo::Item),
        ] {
            for (time, sends) in [("first", 1), ("second", 0)] {
                let write = Write::React { on, content: ReactionContent::PlusOne };
                let entry = setting.publish(pull, &format!("{place} {time}"), write, &Unconditional).await;
                assert_eq!((entry.state, entry.attempts), (OutboxState::Sent, sends), "{place} {time}: {entry:?}");
            }
        }
        assert_eq!(setting.emulator.writes().len(), 3);
        let world = setting.emulator.world();
        let on_line = &world.review_comments_by(REPO, plain(pull), OWN)[0].reactions;
        assert_eq!((on_line.len(), on_line[0].content.as_str()), (1, "+1"));
    }

    async fn an_answer_goes_to_the_conversation_wherever_it_was_asked(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = setting.open_pull();
        let (first, question) = {
            let mut world = setting.emulator.world();
            let first = world.comment_on_line(REPO, plain(pull), "ann", "src/sync.rs", 3, "Hm.");
            let question = world.reply_in_thread(REPO, first, "bob", "@canonry why");
            // The reply will be on the third page.
            for index in 0..210 {
                world.reply_in_thread(REPO, first, "bob", &format!("And {index}?"));
            }
            (first, question)
        };
        setting.emulator.fault(Fault::on("POST", "/**/replies").apply_and_drop());
        let write = Write::Reply { to: id(question), body: "Because.".to_owned() };
        let entry = setting.publish(pull, "mention/1#2/review/3", write, &Unconditional).await;
        assert_eq!((entry.state, entry.attempts), (OutboxState::Sent, 1));
        let world = setting.emulator.world();
        let replies = world.review_comments_by(REPO, plain(pull), OWN);
        assert_eq!((replies.len(), text_of(&replies[0].body).as_str(), replies[0].in_reply_to), (1, "Because.", Some(first)));
    }

    async fn an_edit_keeps_the_markers_and_touches_only_our_own(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (pull, review) = setting.reviewed(&["one"]).await;
        let comment = review.comments[0].comment;
        let marker = |setting: &Setting| {
            let world = setting.emulator.world();
            let body = world.review_comments_by(REPO, plain(pull), OWN)[0].body.clone();
            body[body.find("<!--").expect("a marker")..].to_owned()
        };
        let before = marker(&setting);
        let edit = |comment| Write::EditReviewComment { comment, body: "Fixed in `abc1234`.".to_owned() };
        for (key, sends) in [("edit", 1), ("again", 0)] {
            let entry = setting.publish(pull, key, edit(comment), &Unconditional).await;
            assert_eq!((entry.state, entry.attempts), (OutboxState::Sent, sends), "{entry:?}");
        }
        assert_eq!(marker(&setting), before);
        let text = text_of(&setting.emulator.world().review_comments_by(REPO, plain(pull), OWN)[0].body);
        assert_eq!(text, "Fixed in `abc1234`.");
        // A comment that the token's owner wrote by hand is not ours either.
        for author in ["ann", OWN] {
            let theirs = setting.emulator.world().comment_on_line(REPO, plain(pull), author, "src/sync.rs", 9, "Mine.");
            let entry = setting.publish(pull, &format!("of {author}"), edit(id(theirs)), &Unconditional).await;
            assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some("the comment is not ours")));
        }
        let entry = setting.publish(pull, "gone", edit(id(999_999)), &Unconditional).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some(COMMENT_GONE)));
    }

    async fn a_conversation_is_resolved_where_nobody_else_spoke(database: TestDatabase) {
        let setting = Setting::of_app(database).await;
        let (pull, _) = setting.reviewed(&["earlier"]).await;
        for line in 1..=120 {
            setting.emulator.world().comment_on_line(REPO, plain(pull), "ann", "src/sync.rs", line % 40 + 1, "Hm.");
        }
        let entry = setting.publish(pull, "post", review(&["one", "two", "three"]), &Unconditional).await;
        let comments = receipt(&entry).review.expect("a review").comments;
        let (one, two, three) = (comments[0].comment, comments[1].comment, comments[2].comment);
        setting.emulator.world().reply_in_thread(REPO, plain_id(two), "ann", "I disagree");
        let resolve = |comment| Write::ResolveThread { comment };
        for (key, comment, state, reason) in [
            ("alone", one, OutboxState::Sent, None),
            ("again", one, OutboxState::Sent, None),
            ("answered", two, OutboxState::Refused, Some(THREAD_NOT_OURS)),
        ] {
            let entry = setting.publish(pull, key, resolve(comment), &Unconditional).await;
            assert_eq!((entry.state, entry.reason.as_deref()), (state, reason), "{key}");
        }
        {
            let mut world = setting.emulator.world();
            let resolved: Vec<u64> = world.pull(REPO, plain(pull)).threads.iter()
                .filter(|thread| thread.resolved_by.is_some()).map(|thread| thread.comment).collect();
            assert_eq!(resolved, [plain_id(one)]);
            for installation in &mut world.installations {
                installation.permissions.retain(|area, _| area != "contents");
            }
        }
        let entry = setting.publish(pull, "forbidden", resolve(three), &Unconditional).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some(THREAD_FORBIDDEN)));
        let unknown = setting.publish(pull, "unknown", resolve(id(999_999)), &Unconditional).await;
        assert_eq!((unknown.state, unknown.reason.as_deref()), (OutboxState::Refused, Some(THREAD_GONE)));
    }

    async fn a_conversation_in_which_the_tokens_owner_wrote_by_hand_is_not_ours_alone(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (pull, written) = setting.reviewed(&["one", "two"]).await;
        let (one, two) = (written.comments[0].comment, written.comments[1].comment);
        setting.emulator.world().reply_in_thread(REPO, plain_id(one), OWN, "Keep this open, see #12.");
        let entry = setting.publish(pull, "one", Write::ResolveThread { comment: one }, &Unconditional).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some(THREAD_NOT_OURS)));
        // It is deleted between the read and the mutation.
        let mutates = |request: &Recorded| {
            request.body.as_ref().is_some_and(|body| body["query"].as_str().is_some_and(|query| query.starts_with("mutation")))
        };
        let gone = serde_json::json!({ "data": { "resolveReviewThread": null }, "errors": [
            { "type": "NOT_FOUND", "path": ["resolveReviewThread"], "message": "Could not resolve to a node" },
        ] });
        setting.emulator.fault(Fault::on("POST", "/graphql").when(mutates).answer_with(Answer::ok(gone)));
        let entry = setting.publish(pull, "two", Write::ResolveThread { comment: two }, &Unconditional).await;
        assert_eq!((entry.state, entry.reason.as_deref()), (OutboxState::Refused, Some(THREAD_GONE)));
        let world = setting.emulator.world();
        assert!(world.pull(REPO, plain(pull)).threads.iter().all(|thread| thread.resolved_by.is_none()));
    }

    async fn secrets_and_smuggled_markers_do_not_leave_in_any_text(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (pull, written) = setting.reviewed(&["one"]).await;
        let secret = ["ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
        let copied = setting.emulator.world().review_comments_by(REPO, plain(pull), OWN)[0].body.clone();
        setting.emulator.forget_requests();
        let of = |body: &str, second: &str| {
            let mut comments = vec![inline("one", 1), inline("two", 2)];
            comments[1].body = second.to_owned();
            Write::Review(ReviewWrite { commit: HEAD.to_owned(), body: body.to_owned(), comments, said: vec![] })
        };
        let run = |title: &str, summary: &str, url: &str| {
            let Write::CheckRun(run) = check_run("a", CheckState::Success, title) else { panic!("a run") };
            let (summary, details_url) = (summary.to_owned(), Some(url.to_owned()));
            Write::CheckRun(CheckRunWrite { summary, details_url, ..run })
        };
        let comment = written.comments[0].comment;
        let mut count = 0;
        for (bad, why) in [(&secret, "the text holds a secret (GitHub token)"), (&copied, "a marker of Canonry's")] {
            for write in [
                of(bad, "fine"),
                of("fine", &format!("see {bad}")),
                run(bad, "fine", "fine"),
                run("fine", bad, "fine"),
                run("fine", "fine", bad),
                Write::Reply { to: comment, body: bad.clone() },
                Write::EditReviewComment { comment, body: bad.clone() },
            ] {
                count += 1;
                let entry = setting.publish(pull, &format!("bad {count}"), write, &Unconditional).await;
                assert_eq!(entry.state, OutboxState::Refused, "{entry:?}");
                assert!(entry.reason.as_deref().is_some_and(|reason| reason.contains(why)), "{entry:?}");
                assert!(!entry.payload.to_string().contains(&secret), "{}", entry.payload);
            }
        }
        assert!(setting.emulator.writes().is_empty());
        let long = setting.outbox().await;
        let long = long.enqueue(setting.repo.id, pull, &WriteKey::other("long"), review(&[&"k".repeat(201)])).await;
        assert!(matches!(long, Err(canonry_github::outbox::OutboxError::Key(_))), "{long:?}");
    }
}
