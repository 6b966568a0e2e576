//! Tests what must not look like an approval, what comes too late, and what GitHub forbids.

use canonry_config::Reviewer;
use canonry_domain::{ItemType, WriteKey, WriteOrigin};
use canonry_github::outbox::Write;
use canonry_review::reviewers::CommandReviewer;
use canonry_review::{PublicationRecheck, PublicationResult, ReviewerChoice};
use canonry_store::{BrakeKind, OutboxState};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault};
use canonry_testkit::on_both_engines;

use crate::publication::setting::{ALL, REPO, Setting, code, done, finding};

on_both_engines! {
    async fn an_incomplete_review_asks_for_action(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        let broken = ReviewerChoice::Command(CommandReviewer::from_line("false").expect("a program"));
        let report = setting.review_by(&[ReviewerChoice::Builtin, broken], true).await;
        setting.publish(&report).await;
        let (status, conclusion, title) = setting.check().expect("a check run");
        assert_eq!((status.as_str(), conclusion.as_deref()), ("completed", Some("action_required")));
        assert_eq!(title, "No findings, but the review is incomplete: 1 of 2 reviewers had problems");
        let text = setting.check_text();
        assert!(text.starts_with("The review is incomplete: ") && text.contains("Problems:\n\n- false: "), "{text}");
        assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((0, 0), 0));
    }

    async fn a_file_that_nobody_read_asks_for_action(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        setting.emulator.world().push_pull(REPO, setting.number(), "ann", &[("blob.dat", Some("a\0b"))]);
        let report = setting.review_by(&[ReviewerChoice::Builtin], true).await;
        setting.publish(&report).await;
        let (_, conclusion, title) = setting.check().expect("a check run");
        let expected = "No findings, but the review is incomplete: 1 file was not read";
        assert_eq!((conclusion.as_deref(), title.as_str()), (Some("action_required"), expected));
        assert!(setting.check_text().contains("`blob.dat`: it contains NUL bytes"), "{}", setting.check_text());
    }

    async fn without_check_runs_a_comment_says_that_a_review_is_incomplete(database: TestDatabase) {
        let setting = Setting::with_token(database, &code(&[])).await;
        let broken = ReviewerChoice::Command(CommandReviewer::from_line("false").expect("a program"));
        let report = setting.review_by(&[ReviewerChoice::Builtin, broken], true).await;
        assert_eq!(done(&setting.publish(&report).await), (0, true, 0));
        let status = setting.own_comments().remove(0);
        let expected = "**No findings, but the review is incomplete**: 1 of 2 reviewers had problems. Last reviewed commit: `";
        assert!(status.starts_with(expected) && status.contains("Problems:\n\n- false: "), "{status}");
    }

    async fn a_check_run_begins_ends_and_never_dangles(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        let (github, outbox) = (setting.github(), setting.outbox().await);
        let recheck = PublicationRecheck { store: setting.store.clone(), github: github.clone() };
        let publication = setting.publication(&github, &outbox, &recheck);
        let head = |setting: &Setting| setting.emulator.world().pull(REPO, setting.number()).head_sha.parse().expect("an id");
        let first = head(&setting);
        publication.begin(&first, false).await.expect("told");
        assert_eq!(setting.check().expect("a check run").0, "in_progress");
        let writes = setting.emulator.writes().len();
        publication.begin(&first, false).await.expect("told");
        assert_eq!(setting.emulator.writes().len(), writes);
        // A push comes before the review ends.
        setting.push(&code(&[(3, "more();")]));
        publication.begin(&head(&setting), false).await.expect("told");
        let old = setting.emulator.world().get(REPO).check_runs[0].clone();
        assert_eq!((old.head_sha.as_str(), old.conclusion.as_deref()), (first.as_str(), Some("action_required")));
        publication.could_not(&head(&setting), "failed to fetch @mona's <commits>", "1").await.expect("told");
        let (status, conclusion, title) = setting.check().expect("a check run");
        assert_eq!((status.as_str(), conclusion.as_deref(), title.as_str()), ("completed", Some("action_required"), "Not reviewed: the review failed"));
        // The next try succeeds.
        publication.begin(&head(&setting), false).await.expect("told");
        assert_eq!(setting.check().expect("a check run").0, "in_progress");
        let report = setting.review(&[]).await;
        setting.publish(&report).await;
        assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("success"));
        assert_eq!(setting.emulator.world().get(REPO).check_runs.len(), 2);
        // A second start for the same change keeps the conclusion; another change with the same commit starts again.
        publication.begin(&head(&setting), false).await.expect("told");
        assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("success"));
        publication.begin(&head(&setting), true).await.expect("told");
        assert_eq!(setting.check().expect("a check run").0, "in_progress");
        // The pull request is closed before that review ends.
        setting.emulator.world().close(REPO, setting.number(), "ann", CloseReason::Completed);
        for _ in 0..2 {
            publication.leave("the pull request is closed", "It was closed before the review was complete.").await.expect("told");
        }
        let (status, conclusion, title) = setting.check().expect("a check run");
        assert_eq!((status.as_str(), conclusion.as_deref(), title.as_str()), ("completed", Some("action_required"), "Not reviewed: the pull request is closed"));
        let writes = setting.emulator.writes().len();
        publication.leave("the pull request is closed", "It was closed before the review was complete.").await.expect("told");
        assert_eq!(setting.emulator.writes().len(), writes);
    }

    async fn a_reviewer_that_is_demanded_and_missing_is_no_approval(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        let reviewers = [ReviewerChoice::Builtin, ReviewerChoice::Missing(Reviewer::Command)];
        // The second time nothing changed.
        for _ in 0..2 {
            let report = setting.review_by(&reviewers, true).await;
            assert!(report.notes.is_empty(), "{:?}", report.notes);
            setting.publish(&report).await;
            assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("action_required"));
            let text = setting.check_text();
            assert!(text.contains("- command: the settings name this reviewer, but no program is configured"), "{text}");
        }
    }

    async fn a_pause_in_the_middle_holds_everything_back(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, "leak();")])).await;
        let report = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        let (mona, now) = ("mona".parse().expect("a login"), setting.emulator.world().now);
        setting.store.close().set_brake(setting.repo.id, BrakeKind::Pause, Some(&mona), "holidays", now).await.expect("stored");
        let PublicationResult::Waiting { reason, .. } = setting.publish(&report).await else { panic!("something was said") };
        assert_eq!((reason.as_str(), setting.own_reviews(), setting.check()), ("paused", (0, 0), None));
        let now = setting.emulator.world().now;
        setting.store.close().lift_brake(setting.repo.id, BrakeKind::Pause, Some(&mona), now).await.expect("stored");
        setting.emulator.world().advance(3_600);
        assert_eq!(done(&setting.publish(&report).await), (1, true, 0));
    }

    async fn what_is_not_of_a_review_keeps_its_tries(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[])).await;
        let outbox = setting.outbox().await;
        let write = Write::Comment { body: "Hello".to_owned() };
        let key = WriteKey::of_item(WriteOrigin::TriageComment, 1, ItemType::Pr, setting.pull).and(1);
        let entry = outbox.enqueue(setting.repo.id, setting.pull, &key, write).await.expect("stored");
        let report = setting.review(&[]).await;
        let PublicationResult::Waiting { reason, .. } = setting.publish(&report).await else { panic!("it went past the other") };
        assert_eq!(reason, "another write must be sent first: triage:1:pr:1:1");
        let entry = setting.store.outbox().get(entry.id).await.expect("read").expect("stored");
        assert_eq!((entry.state, setting.own_comments().len()), (OutboxState::Pending, 0));
        assert_eq!(entry.attempts, 0);
    }

    async fn what_the_last_review_said_stands_below_a_failure(database: TestDatabase) {
        let setting = Setting::with_token(database, &code(&[])).await;
        let report = setting.review(&[]).await;
        setting.publish(&report).await;
        let said = setting.own_comments().remove(0);
        let (github, outbox) = (setting.github(), setting.outbox().await);
        let recheck = PublicationRecheck { store: setting.store.clone(), github: github.clone() };
        let publication = setting.publication(&github, &outbox, &recheck);
        setting.push(&code(&[(3, "more();")]));
        let head: canonry_domain::review::CommitSha =
            setting.emulator.world().pull(REPO, setting.number()).head_sha.parse().expect("an id");
        for (why, attempt) in [("No answer.", "1"), ("No place.", "2")] {
            publication.could_not(&head, why, attempt).await.expect("told");
        }
        let told = setting.own_comments().remove(0);
        let visible = |text: &str| text.split("<!--").next().map(|text| text.trim_end().to_owned()).expect("a text");
        assert_eq!(told.matches("**Not reviewed**").count(), 1, "{told}");
        assert!(told.contains("`. No place.\n\n"), "{told}");
        assert!(visible(&told).ends_with(&format!("\n\n---\n\nThe last review:\n\n{}", visible(&said))), "{told}");
    }

    async fn a_review_that_may_not_be_posted_is_told_with_the_reason(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, "leak();")])).await;
        let report = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.emulator.fault(Fault::on("POST", "/repos/*/*/pulls/*/reviews").always().answer(403));
        let PublicationResult::Done { inline: 0, wrote_summary: false, refused, .. } = setting.publish(&report).await else {
            panic!("not as expected");
        };
        let why = refused[0].strip_prefix("the review: ").expect("a refusal");
        let text = setting.check_text();
        assert!(!why.is_empty() && text.contains("The review could not be posted: ") && text.contains("- **Major**: Leak · `src/app.js:5`"), "{text}");
        assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("action_required"));
        // Once it is allowed, the findings are inline, and only there.
        setting.emulator.clear_faults();
        assert_eq!(done(&setting.publish(&report).await), (1, true, 0));
        assert!(!setting.check_text().contains("could not be posted"), "{}", setting.check_text());
        assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("neutral"));
    }

    async fn without_check_runs_a_comment_says_what_could_not_be_posted(database: TestDatabase) {
        let setting = Setting::with_token(database, &code(&[(5, "leak();")])).await;
        let report = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.emulator.fault(Fault::on("POST", "/repos/*/*/pulls/*/reviews").always().answer(403));
        let PublicationResult::Done { inline: 0, wrote_summary: true, refused, .. } = setting.publish(&report).await else {
            panic!("not as expected");
        };
        assert_eq!(refused.len(), 1, "{refused:?}");
        let status = setting.own_comments().remove(0);
        assert!(status.contains("The review could not be posted: ") && status.contains("- **Major**: Leak · `src/app.js:5`"), "{status}");
        setting.emulator.clear_faults();
        assert_eq!(done(&setting.publish(&report).await), (1, true, 0));
        let status = setting.own_comments();
        assert!(status.len() == 1 && !status[0].contains("Leak ·"), "{status:?}");
    }

    async fn without_check_runs_a_comment_says_that_there_is_no_review(database: TestDatabase) {
        let setting = Setting::with_token(database, &code(&[])).await;
        let (github, outbox) = (setting.github(), setting.outbox().await);
        let recheck = PublicationRecheck { store: setting.store.clone(), github: github.clone() };
        let publication = setting.publication(&github, &outbox, &recheck);
        let head: canonry_domain::review::CommitSha =
            setting.emulator.world().pull(REPO, setting.number()).head_sha.parse().expect("an id");
        for attempt in ["1", "2"] {
            publication.could_not(&head, "failed to ask @mona for the <commits>", attempt).await.expect("told");
        }
        let told = setting.own_comments();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(&format!("**Not reviewed**: `{}`. ", head.short())), "{}", told[0]);
        assert!(told[0].contains("failed to ask @&ZeroWidthSpace;mona for the &lt;commits&gt;"), "{}", told[0]);
        let report = setting.review(&[]).await;
        assert_eq!(done(&setting.publish(&report).await), (0, true, 0));
        let told = setting.own_comments();
        assert!(told.len() == 1 && told[0].starts_with("**No findings.**"), "{told:?}");
    }

    async fn a_push_in_between_silences_the_review_of_before(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, "leak();")])).await;
        let report = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.push(&code(&[(5, "leak();"), (6, "more();")]));
        assert_eq!(setting.publish(&report).await, PublicationResult::Superseded);
        assert_eq!((setting.own_reviews(), setting.own_comments().len(), setting.check()), ((0, 0), 0, None));
        let second = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        assert_eq!(done(&setting.publish(&second).await), (1, true, 0));
        // The earlier review is published too late.
        assert_eq!(setting.publish(&report).await, PublicationResult::Superseded);
        assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((1, 1), 0));
    }

    async fn on_a_closed_pull_request_nothing_is_said(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, "leak();")])).await;
        let report = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        setting.emulator.world().close(REPO, setting.number(), "ann", CloseReason::Completed);
        let PublicationResult::Done { inline: 0, wrote_summary: false, refused, .. } = setting.publish(&report).await else {
            panic!("something was said");
        };
        assert_eq!(refused, ["the review: closed"]);
        assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((0, 0), 0));
        setting.emulator.world().reopen(REPO, setting.number(), "ann");
        assert_eq!(done(&setting.publish(&report).await), (1, true, 0));
    }

    async fn a_permission_that_is_lost_in_the_middle_is_told_and_can_come_back(database: TestDatabase) {
        let setting = Setting::with_app(database, &ALL, &code(&[(5, "leak();")])).await;
        let report = setting.review(&[finding("Leak", 5, "major", "correctness")]).await;
        let forbidden = Fault::on("POST", "/repos/*/*/check-runs").times(1).answer(403);
        setting.emulator.fault(forbidden);
        let PublicationResult::Done { inline: 1, wrote_summary: true, refused, .. } = setting.publish(&report).await else {
            panic!("not as expected");
        };
        assert!(refused.len() == 1 && refused[0].starts_with("the check run: "), "{refused:?}");
        assert_eq!(done(&setting.publish(&report).await), (1, false, 0));
        assert_eq!((setting.own_reviews(), setting.own_comments().len()), ((1, 1), 0));
        assert_eq!(setting.check().expect("a check run").1.as_deref(), Some("neutral"));
    }
}
