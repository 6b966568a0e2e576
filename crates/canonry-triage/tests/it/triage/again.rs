//! The same item again: edited, withdrawn, deleted, interrupted. There is one comment per item.

use canonry_domain::{
    CurrentThreshold, ItemType, Threshold, ThresholdSource, TriageMode, TriageReason, WriteKey, WriteOrigin,
};
use canonry_github::outbox::{Close, CloseAs, Write};
use canonry_store::{TriageAction, TriageActionKind};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault};
use canonry_testkit::on_both_engines;
use canonry_triage::TriageRecheck;

use crate::triage::setting::{ALPHA, BETA, LABEL, OWN, REPO, Setting, no, plain, told, yes};

on_both_engines! {
    async fn the_same_run_again_does_nothing_again(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        let first = setting.try_triage(item, "once").await.expect("triaged");
        let questions = setting.models.requests().len();
        let again = setting.try_triage(item, "once").await.expect("triaged");
        assert_eq!(again, first);
        setting.publish().await;
        assert_eq!(setting.try_triage(item, "once").await.expect("triaged"), first);
        setting.publish().await;
        assert_eq!(setting.models.requests().len(), questions, "no model is asked again");
        assert_eq!((setting.comments(item).len(), setting.records(item).await.len()), (1, 1));
        assert_eq!(setting.entries(item).await, ["comment sent", "label sent"]);
    }

    async fn a_run_that_was_killed_after_its_record_is_carried_on(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        let recorded = setting.detect_only(item, "killed").await;
        let asked = setting.models.requests().len();
        let triaged = setting.try_triage(item, "killed").await.expect("triaged");
        assert_eq!((triaged.triage_id, told(&triaged)), (Some(recorded), (Some("commented"), "above_threshold")));
        assert_eq!(setting.models.requests().len(), asked, "what is recorded is not judged again");
        setting.publish().await;
        assert_eq!((setting.comments(item).len(), setting.records(item).await.len()), (1, 1));
    }

    async fn a_run_that_was_killed_names_the_same_as_one_that_was_not(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let whole = setting.report(ALPHA, 0.95);
        setting.triage(whole).await;
        let expected = setting.comments(whole);
        // It would be nearer to the next report than the original.
        setting.emulator.world().close(REPO, plain(whole), "maint", CloseReason::Completed);
        setting.sync().await;
        let item = setting.report(ALPHA, 0.95);
        setting.detect_only(item, "killed").await;
        setting.try_triage(item, "killed").await.expect("triaged");
        setting.publish().await;
        assert_eq!(setting.comments(item), expected);
    }

    async fn a_run_that_was_killed_after_its_decision_or_its_first_write_is_carried_on(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for (cosine, comment_was_stored) in [(0.95, false), (0.96, true)] {
            let item = setting.report(ALPHA, cosine);
            let triage_id = setting.detect_only(item, "killed").await;
            let repo = setting.repo.id.get();
            let key = WriteKey::of_item(WriteOrigin::TriageComment, repo, ItemType::Issue, item).and(1).with_record(1);
            let decision = TriageAction {
                triage_id,
                mode: TriageMode::Suggest,
                component: None,
                threshold: CurrentThreshold::From(Threshold::default()),
                source: ThresholdSource::Configured,
                action: TriageActionKind::Commented,
                reason: TriageReason::AboveThreshold.into(),
                comment_key: Some(key.text.clone()),
            };
            setting.store.duplicates().record_triage_action(&decision, setting.now()).await.expect("stored");
            if comment_was_stored {
                let body = "Stored before the kill.".to_owned();
                let outbox = setting.outbox().await;
                outbox.enqueue(setting.repo.id, item, &key, Write::Comment { body }).await.expect("stored");
            }
            let triaged = setting.try_triage(item, "killed").await.expect("triaged");
            assert_eq!(told(&triaged), (Some("commented"), "above_threshold"));
            setting.publish().await;
            let comments = setting.comments(item);
            assert_eq!((comments.len(), comments[0] == "Stored before the kill."), (1, comment_was_stored));
            assert_eq!(setting.entries(item).await, ["comment sent", "label sent"]);
        }
    }

    async fn an_earlier_run_that_comes_back_undoes_nothing(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.try_triage(item, "first").await.expect("triaged");
        setting.publish().await;
        setting.edit_title(item, "Something else altogether");
        assert_eq!(told(&setting.triage(item).await).0, Some("withdrawn"));
        let before = setting.entries(item).await;
        let first = setting.try_triage(item, "first").await.expect("triaged");
        assert_eq!(told(&first).0, Some("commented"), "that is what it did");
        setting.publish().await;
        assert_eq!(setting.entries(item).await, before);
        assert!(setting.labels(item).is_empty());
    }

    async fn an_edited_issue_edits_the_comment_and_only_when_it_says_something_else(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        setting.emulator.forget_requests();
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "said_already"));
        assert!(setting.emulator.writes().is_empty());

        setting.edit_title(item, &setting.title(BETA, 0.93));
        setting.judge_says(yes(2, 0.96));
        assert_eq!(told(&setting.triage(item).await), (Some("edited"), "above_threshold"));
        let comments = setting.comments(item);
        assert!(comments.len() == 1 && comments[0].contains("the same problem as #2 (*Original beta"), "{comments:?}");
        assert_eq!(setting.emulator.writes().len(), 1, "the label is there");
        assert_eq!(setting.labels(item), [LABEL]);
    }

    async fn what_no_longer_looks_like_a_duplicate_is_taken_back_and_may_come_again(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        setting.edit_title(item, "Something else altogether");
        assert_eq!(told(&setting.triage(item).await), (Some("withdrawn"), "no_longer_predicted"));
        let comments = setting.comments(item);
        assert!(comments.len() == 1 && comments[0].contains("no longer looks like the same problem as #1"), "{comments:?}");
        assert!(setting.labels(item).is_empty());
        // Still no duplicate: there is nothing more to withdraw.
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "not_duplicate"));

        setting.edit_title(item, &setting.title(ALPHA, 0.95));
        assert_eq!(told(&setting.triage(item).await), (Some("edited"), "above_threshold"));
        let comments = setting.comments(item);
        assert!(comments.len() == 1 && comments[0].contains("the same problem as #1 "), "{comments:?}");
        assert_eq!(setting.labels(item), [LABEL], "we took it off, so that we set it again");
    }

    async fn a_label_that_people_took_off_stays_off(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        setting.emulator.world().unlabel(REPO, plain(item), "maint", LABEL);
        setting.edit_title(item, "Something else altogether");
        assert_eq!(told(&setting.triage(item).await).0, Some("withdrawn"));
        setting.edit_title(item, &setting.title(ALPHA, 0.95));
        assert_eq!(told(&setting.triage(item).await).0, Some("edited"));
        assert!(setting.labels(item).is_empty());
    }

    async fn a_repository_that_fell_back_to_shadow_is_left_as_it_is(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        setting.rules.mode = TriageMode::Shadow;
        setting.edit_title(item, "Something else altogether");
        setting.emulator.forget_requests();
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "mode"));
        assert!(setting.emulator.writes().is_empty());
    }

    async fn a_deleted_comment_comes_back_only_for_another_target_after_the_cooldown(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let comment = setting.comment_id(item);
        setting.emulator.world().delete_comment(REPO, comment, "maint");
        // The edit finds that the comment is gone.
        setting.edit_title(item, &setting.title(ALPHA, 0.96));
        // Less sure than before, which changes the text.
        setting.judge_says(yes(1, 0.90));
        assert_eq!(told(&setting.triage(item).await).0, Some("edited"));
        assert_eq!(setting.entries(item).await.last().map(String::as_str), Some("edit_comment refused the comment is gone"));
        setting.later(48);
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "comment_deleted"));
        setting.edit_title(item, &setting.title(BETA, 0.95));
        setting.judge_says(yes(2, 0.96));
        assert_eq!(told(&setting.triage(item).await), (Some("commented"), "above_threshold"));
        let comments = setting.comments(item);
        assert!(comments.len() == 1 && comments[0].contains("the same problem as #2 "), "{comments:?}");
    }

    async fn within_the_cooldown_a_deleted_comment_does_not_come_back_at_all(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let comment = setting.comment_id(item);
        setting.emulator.world().delete_comment(REPO, comment, "maint");
        setting.edit_title(item, &setting.title(BETA, 0.95));
        setting.judge_says(yes(2, 0.96));
        assert_eq!(told(&setting.triage(item).await).0, Some("edited"));
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "cooldown"));
        assert!(setting.comments(item).is_empty());
        setting.later(48);
        assert_eq!(told(&setting.triage(item).await).0, Some("commented"), "nobody has read of that target");
        assert_eq!(setting.comments(item).len(), 1);
    }

    async fn a_comment_whose_answer_was_lost_is_not_written_twice(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        let fault = Fault::on("POST", "/repos/*/*/issues/*/comments").apply_and_drop();
        let lost = setting.emulator.fault(fault);
        setting.triage(item).await;
        assert_eq!(lost.hits(), 1);
        assert_eq!((setting.comments(item).len(), setting.labels(item)), (1, vec![LABEL.to_owned()]));
    }

    async fn several_publishers_at_once_write_each_thing_once(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let items: Vec<_> = (0..4).map(|at| setting.report(ALPHA, 0.95 + f64::from(at) / 100.0)).collect();
        for item in &items {
            // Each may be compared with an earlier report instead of the original; that does not matter here.
            setting.triage_only(*item).await;
        }
        let publisher = || async {
            let outbox = setting.outbox().await;
            let recheck = TriageRecheck::new(setting.store.clone(), setting.github());
            while outbox.publish_unattended(&recheck).await.expect("published") {}
        };
        tokio::join!(publisher(), publisher(), publisher());
        setting.publish().await;
        for item in &items {
            assert_eq!((setting.comments(*item).len(), setting.labels(*item)), (1, vec![LABEL.to_owned()]), "#{item}");
        }
    }

    async fn a_comment_that_is_overtaken_before_it_was_sent_is_never_sent(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage_only(item).await;
        setting.edit_title(item, "Something else altogether");
        setting.judge_says(no());
        let withdrawn = setting.triage_only(item).await;
        assert_eq!(withdrawn.action, Some(TriageActionKind::Withdrawn));
        setting.publish().await;
        assert_eq!(setting.emulator.world().comments_by(REPO, plain(item), OWN).len(), 0);
        assert!(setting.labels(item).is_empty());
        assert_eq!(setting.entries(item).await[0], "comment refused withdrawn");
    }

    async fn a_close_that_waits_holds_the_comment_back_and_is_never_carried_out(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        let outbox = setting.outbox().await;
        let close = Close { close_as: CloseAs::Pull, comment: "Closing.".into(), comment_if_refused: "Not closing.".into() };
        let key = WriteKey::of_item(WriteOrigin::Close, 1, ItemType::Issue, item).with_record(1);
        outbox.enqueue(setting.repo.id, item, &key, Write::Close(close)).await.expect("stored");
        setting.triage(item).await;
        assert!(setting.comments(item).is_empty());
        assert_eq!(setting.entries(item).await, ["close pending", "comment pending", "label pending"]);
        // A person closes it by hand; we post nothing.
        setting.emulator.world().close(REPO, plain(item), "maint", CloseReason::NotPlanned);
        setting.publish().await;
        assert!(setting.comments(item).is_empty());
    }
}
