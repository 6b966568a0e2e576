//! Tests the ends of threads: resolved, edited if resolving is forbidden, left alone if people wrote in them.

use canonry_domain::review::{DismissalKind, Dismisser, RETIRED_SUMMARY};
use canonry_domain::{WriteKey, WriteOrigin};
use canonry_github::outbox::{Unconditional, Write};
use canonry_store::PostedThreadState;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Answer, Fault, ReviewComment};
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::publication::setting::{ALL, REPO, Setting, code, done, finding};

const LEAK: &str = "leak(file);";

async fn settled(setting: &Setting) -> Vec<Option<PostedThreadState>> {
    let posted = setting.store.findings().posted_on_pull(setting.repo.id, setting.pull).await.expect("read");
    posted.into_iter().map(|row| row.settled).collect()
}

fn resolved(setting: &Setting) -> Vec<bool> {
    setting.emulator.world().pull(REPO, setting.number()).threads.iter().map(|one| one.resolved_by.is_some()).collect()
}

fn bodies(setting: &Setting) -> Vec<String> {
    let world = setting.emulator.world();
    let body = |one: &&ReviewComment| one.body.clone();
    world.review_comments_by(REPO, setting.number(), setting.own).iter().map(body).collect()
}

on_both_engines! {
    async fn a_fixed_finding_ends_its_thread(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, LEAK)])).await;
        let first = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.publish(&first).await;
        assert_eq!((settled(&setting).await, resolved(&setting)), (vec![None], vec![false]));
        setting.push(&code(&[]));
        let second = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 1));
        assert_eq!((settled(&setting).await, resolved(&setting)), (vec![Some(PostedThreadState::Resolved)], vec![true]));
        // The finding comes back: it is posted again, and not in the resolved thread.
        setting.push(&code(&[(5, LEAK)]));
        let third = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        assert_eq!(done(&setting.publish(&third).await), (1, true, 0));
        assert_eq!(resolved(&setting), [true, false]);
        assert!(bodies(&setting)[1].contains("This was fixed before and is back."), "{:?}", bodies(&setting));
    }

    async fn where_threads_may_not_be_resolved_the_comment_says_so(database: TestDatabase) {
        let areas = ["issues", "pull_requests", "checks"];
        let setting = Setting::with_app(database, &areas, &code(&[(5, LEAK)])).await;
        let first = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.publish(&first).await;
        let before = bodies(&setting).remove(0);
        let head = setting.push(&code(&[]));
        let second = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 1));
        assert_eq!((settled(&setting).await, resolved(&setting)), (vec![Some(PostedThreadState::Edited)], vec![false]));
        let after = bodies(&setting).remove(0);
        assert!(after.starts_with(&format!("Fixed in `{}`.\n\n**Leak**\n\n", &head[..7])), "{after}");
        let marker = |body: &str| body.rsplit("<!--").next().map(str::to_owned);
        assert_eq!(marker(&after), marker(&before));
    }

    async fn a_thread_in_which_people_speak_is_theirs(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, LEAK)])).await;
        let first = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.publish(&first).await;
        let comment = setting.comment_about("Leak");
        setting.emulator.world().reply_in_thread(REPO, comment, "ann", "Is it?");
        setting.push(&code(&[]));
        let second = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 1));
        assert_eq!((settled(&setting).await, resolved(&setting)), (vec![Some(PostedThreadState::Left)], vec![false]));
        let told = setting.check_text();
        assert!(told.contains("- **Fixed**: Leak"), "{told}");
    }

    async fn a_comment_that_somebody_deleted_is_left_alone(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, LEAK)])).await;
        let first = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.publish(&first).await;
        {
            let mut world = setting.emulator.world();
            let (number, repo) = (setting.number(), world.get_mut(REPO));
            let item = repo.issues.get_mut(&number).expect("a pull request");
            let pull = item.pull.as_mut().expect("a pull request");
            pull.review_comments.clear();
            pull.threads.clear();
        }
        setting.push(&code(&[]));
        let second = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 1));
        assert_eq!(settled(&setting).await, [Some(PostedThreadState::Left)]);
    }

    async fn the_check_does_not_wait_for_conversations_that_cannot_be_read(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, LEAK)])).await;
        let first = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.publish(&first).await;
        setting.push(&code(&[]));
        let unknown = json!({"errors": [{"message": "Field 'fullDatabaseId' doesn't exist"}]});
        setting.emulator.fault(Fault::on("POST", "/graphql").always().answer_with(Answer::json(200, unknown)));
        let second = setting.review(&[]).await;
        let before = setting.emulator.world().now;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 1));
        assert!(setting.emulator.world().now.duration_since(before).as_mins() < 5);
        assert_eq!(settled(&setting).await, [Some(PostedThreadState::Edited)]);
        let written: Vec<String> = setting.emulator.writes().iter().map(|write| write.path.clone()).collect();
        let last = |part: &str| written.iter().rposition(|path| path.contains(part)).expect("written");
        assert!(last("/check-runs") < last("/pulls/comments/"), "{written:?}");
    }

    async fn a_grave_finding_whose_author_resolved_the_thread_stays_in_sight(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, LEAK)])).await;
        let leak = finding("Leak", 5, "critical", "security");
        let first = setting.review(std::slice::from_ref(&leak)).await;
        setting.publish(&first).await;
        let (id, ann, now) = (first.findings[0].id.expect("stored"), "ann".parse().expect("a login"), setting.emulator.world().now);
        let said = setting.store.findings().dismiss(id, first.review, DismissalKind::Resolved, Dismisser::Author, &ann, now).await;
        assert!(said.expect("stored"));
        setting.push(&code(&[(5, LEAK), (9, "more();")]));
        let second = setting.review(&[leak]).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 0));
        let told = setting.check_text();
        let expected = "Still open, although their threads are resolved; only a maintainer can dismiss these:\n\n- **Critical**: Leak · `src/app.js:5` · since";
        assert!(told.contains(expected), "{told}");
        assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("failure"));
    }

    async fn what_is_said_late_and_what_is_hidden_is_told_as_it_is(database: TestDatabase) {
        let mut setting = Setting::with_app(database, &ALL, &code(&[(5, LEAK), (9, "typo();"), (12, "noise();")])).await;
        setting.settings.review.max_comments = 1;
        let typo = finding("Typo in a name", 9, "minor", "style");
        let noise = finding("Noise on the wire", 12, "minor", "style");
        let first = setting.review(&[finding("Leak", 5, "medium", "correctness"), typo.clone(), noise.clone()]).await;
        assert_eq!(done(&setting.publish(&first).await), (1, true, 0));
        // The finding without room is posted now that there is room, and the other one is suppressed.
        setting.settings.review.suppressions =
            serde_json::from_value(json!(["Noise on the wire"])).expect("a pattern");
        setting.push(&code(&[(9, "typo();"), (12, "noise();")]));
        let second = setting.review(&[typo, noise]).await;
        assert_eq!(done(&setting.publish(&second).await), (1, true, 1));
        let comment = bodies(&setting).remove(1);
        assert!(comment.contains("Typo in a name") && !comment.contains("posted before"), "{comment}");
        let told = &setting.own_bodies()[1];
        assert!(told.starts_with("**1 finding**: 1 minor. Since the last review: 1 fixed, 1 still open.\n"), "{told}");
        assert!(told.contains("1 finding hidden: 1 by pattern") && !told.contains(": Noise on the wire ·"), "{told}");
    }

    async fn a_summary_comment_of_an_earlier_version_is_ended_once(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, LEAK)])).await;
        let first = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        // The summary comment that an earlier version wrote beside its review.
        let outbox = setting.outbox().await;
        let github_id = setting.repo.github_id.expect("identified");
        let run = first.review.expect("stored").get();
        let key = WriteKey::on_github(WriteOrigin::ReviewSummary, github_id, setting.pull, format!("{run}-0")).with_record(run);
        let summary = Write::Comment { body: "**1 finding: 1 major.** Last reviewed commit: `abc1234`.".to_owned() };
        let entry = outbox.enqueue(setting.repo.id, setting.pull, &key, summary).await.expect("stored");
        outbox.publish(entry.id, &Unconditional).await.expect("sent");
        assert_eq!(done(&setting.publish(&first).await), (1, true, 0));
        assert!(setting.own_comments()[0].starts_with(RETIRED_SUMMARY), "{:?}", setting.own_comments());
        let writes = setting.emulator.writes().len();
        assert_eq!(done(&setting.publish(&first).await), (1, false, 0));
        assert_eq!(setting.emulator.writes().len(), writes);
        // After it is deleted, it is not written again.
        let comment = setting.emulator.world().comments_by(REPO, setting.number(), setting.own)[0].id;
        setting.emulator.world().delete_comment(REPO, comment, "mona");
        setting.push(&code(&[]));
        let second = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&second).await), (0, false, 1));
        assert_eq!(setting.own_comments().len(), 0);
    }

    async fn a_status_comment_that_somebody_deleted_is_written_anew_with_the_next_review(database: TestDatabase) {
        let setting = Setting::with_token(database, &code(&[])).await;
        let first = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&first).await), (0, true, 0));
        let comment = setting.emulator.world().comments_by(REPO, setting.number(), setting.own)[0].id;
        setting.emulator.world().delete_comment(REPO, comment, "mona");
        assert_eq!(done(&setting.publish(&first).await), (0, false, 0));
        setting.push(&code(&[(3, "more();")]));
        let second = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&second).await), (0, true, 0));
        assert_eq!(setting.own_comments().len(), 1);
    }
}
