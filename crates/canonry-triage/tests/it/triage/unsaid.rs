//! When nothing is posted: the item was excluded, closed, locked or moved meanwhile, or no judge answered.

use canonry_domain::{GoneReason, TriageReason};
use canonry_models::chat::TokenBudget;
use canonry_store::RepoAccess;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{self, Answer, CloseReason, NewIssue};
use canonry_testkit::models::Fault;
use canonry_testkit::on_both_engines;
use canonry_triage::TriageError;

use crate::triage::setting::{ALPHA, BETA, LABEL, REPO, Setting, plain, told, yes};

on_both_engines! {
    async fn excluded_and_closed_items_are_not_looked_at(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        setting.rules.exclude_labels = vec!["Security".to_owned()];
        let excluded = NewIssue::new(&setting.title(ALPHA, 0.95), "It stops.").label("security");
        let excluded = setting.report_as(ALPHA, 0.95, excluded);
        let closed = setting.report(ALPHA, 0.96);
        setting.emulator.world().close(REPO, plain(closed), "ann", CloseReason::Completed);
        let deleted = setting.report(ALPHA, 0.97);
        setting.sync().await;
        setting.emulator.world().delete(REPO, plain(deleted), "maint");
        setting.store.corpus().mark_gone(setting.repo.id, deleted, GoneReason::Deleted, setting.now()).await.expect("stored");
        for (item, why) in [(excluded, "excluded_label"), (closed, "closed"), (deleted, "gone")] {
            assert_eq!(told(&setting.triage(item).await), (None, why));
            assert!(setting.records(item).await.is_empty() && setting.entries(item).await.is_empty(), "#{item}");
        }
        assert!(setting.models.requests().is_empty());
    }

    async fn what_changes_before_it_is_sent_is_refused_in_a_word(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let stored = "triage: {mode: suggest, excludeLabels: [security]}\n";
        setting.store.repos().write_settings(setting.repo.id, Some(stored), setting.now()).await.expect("stored");
        let mut items = Vec::new();
        for cosine in [0.95, 0.96, 0.97, 0.98, 0.99] {
            items.push(setting.report(ALPHA, cosine));
            setting.triage_only(items[items.len() - 1]).await;
        }
        {
            let mut world = setting.emulator.world();
            world.close(REPO, plain(items[0]), "ann", CloseReason::Completed);
            world.lock(REPO, plain(items[1]), "maint", None);
            world.label(REPO, plain(items[2]), "maint", "Security");
            world.delete(REPO, plain(items[3]), "maint");
        }
        setting.publish().await;
        for (item, why) in items.iter().zip(["closed", "locked", "excluded_label", "gone"]) {
            let entries = setting.entries(*item).await;
            assert_eq!(entries[0], format!("comment refused {why}"));
            assert!(entries[1].starts_with("label refused"), "{entries:?}");
        }
        assert_eq!(setting.entries(items[4]).await, ["comment sent", "label sent"]);
        assert_eq!(setting.labels(items[4]), [LABEL]);
    }

    async fn a_mode_or_an_access_that_was_taken_away_is_respected_at_the_last_moment(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (one, other) = (setting.report(ALPHA, 0.95), setting.report(ALPHA, 0.96));
        setting.triage_only(one).await;
        let shadow = Some("triage: {mode: shadow}\n");
        setting.store.repos().write_settings(setting.repo.id, shadow, setting.now()).await.expect("stored");
        setting.publish().await;
        assert_eq!(setting.entries(one).await, ["comment refused mode", "label refused mode"]);
        setting.triage_only(other).await;
        setting.store.repos().set_access(setting.repo.id, RepoAccess::Suspended, setting.now()).await.expect("stored");
        setting.publish().await;
        assert_eq!(setting.entries(other).await, ["comment refused no_access", "label refused no_access"]);
    }

    async fn another_text_for_a_comment_is_held_back_like_the_comment(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let stored = "triage: {mode: suggest, excludeLabels: [security]}\n";
        setting.store.repos().write_settings(setting.repo.id, Some(stored), setting.now()).await.expect("stored");
        setting.emulator.world().get_mut(REPO).file(".canonry.yml", stored);
        let (closed, excluded, withdrawn) =
            (setting.report(ALPHA, 0.95), setting.report(ALPHA, 0.96), setting.report(ALPHA, 0.97));
        for item in [closed, excluded, withdrawn] {
            setting.triage(item).await;
            assert_eq!(setting.entries(item).await, ["comment sent", "label sent"]);
        }
        for item in [closed, excluded] {
            setting.edit_title(item, &setting.title(BETA, 0.95));
        }
        setting.judge_says(yes(2, 0.96));
        assert_eq!(told(&setting.triage_only(closed).await).0, Some("edited"));
        assert_eq!(told(&setting.triage_only(excluded).await).0, Some("edited"));
        setting.edit_title(withdrawn, "Something else altogether");
        assert_eq!(told(&setting.triage_only(withdrawn).await).0, Some("withdrawn"));
        {
            let mut world = setting.emulator.world();
            world.close(REPO, plain(closed), "maint", CloseReason::Completed);
            world.label(REPO, plain(excluded), "maint", "Security");
            world.close(REPO, plain(withdrawn), "maint", CloseReason::Completed);
        }
        setting.publish().await;
        assert_eq!(setting.entries(closed).await[2..], ["edit_comment refused closed"]);
        assert_eq!(setting.entries(excluded).await[2..], ["edit_comment refused excluded_label"]);
        assert_eq!(setting.entries(withdrawn).await[2..], ["edit_comment sent", "unlabel sent"]);
        assert!(setting.comments(withdrawn)[0].contains("no longer looks like the same problem as #1"));
    }

    async fn settings_that_a_push_has_changed_are_read_before_anything_is_said(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (suggest, shadow) = ("triage: {mode: suggest}\n", "triage: {mode: shadow}\n");
        setting.store.repos().write_settings(setting.repo.id, Some(suggest), setting.now()).await.expect("stored");
        let (one, other) = (setting.report(ALPHA, 0.95), setting.report(ALPHA, 0.96));
        setting.triage_only(one).await;
        setting.emulator.world().get_mut(REPO).file(".canonry.yml", shadow);
        setting.store.repos().expire_settings(setting.repo.id).await.expect("stored");
        // As long as GitHub does not answer, nothing is posted, and this does not count as an attempt to write.
        let contents = "/repos/*/*/contents/*";
        let down = setting.emulator.fault(github::Fault::on("GET", contents).always().answer(503));
        setting.publish().await;
        assert!(down.hits() > 0);
        let entries = setting.entries(one).await;
        assert!(entries[0].starts_with("comment pending the check before sending failed"), "{entries:?}");
        setting.emulator.clear_faults();
        setting.later(1);
        setting.publish().await;
        assert_eq!(setting.entries(one).await, ["comment refused mode", "label refused mode"]);
        let kept = setting.store.repos().settings(setting.repo.id).await.expect("reads").expect("kept");
        assert_eq!(kept.text.as_deref(), Some(shadow));
        // Settings with a mistake do not comment either.
        setting.triage_only(other).await;
        setting.emulator.world().get_mut(REPO).file(".canonry.yml", "triage: {mode: suggest, maxCandidates: 99}\n");
        setting.store.repos().expire_settings(setting.repo.id).await.expect("stored");
        setting.publish().await;
        assert_eq!(setting.entries(other).await, ["comment refused mode", "label refused mode"]);
    }

    async fn a_limit_that_the_last_look_meets_is_waited_for(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage_only(item).await;
        let limited = Answer::message(403, "You have exceeded a secondary rate limit").header("retry-after", "900");
        let limit = setting.emulator.fault(github::Fault::on("GET", "/repos/*/*/issues/*").times(12).answer_with(limited));
        for _ in 0..10 {
            setting.publish().await;
        }
        assert_eq!(limit.hits(), 12, "more often than anything may go wrong");
        assert_eq!(setting.entries(item).await, ["comment sent", "label sent"]);
    }

    async fn a_renamed_repository_is_found_under_its_new_name(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage_only(item).await;
        setting.emulator.world().rename_repo(REPO, "acme/gadgets", "maint");
        setting.publish().await;
        assert_eq!(setting.entries(item).await, ["comment sent", "label sent"]);
        assert_eq!(setting.emulator.world().comments("acme/gadgets", plain(item)).len(), 1);
    }

    async fn a_judge_that_fails_is_asked_again_and_nothing_is_posted(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.judge_says("not JSON".to_owned());
        for tries in 1..=2 {
            let failed = setting.try_triage(item, "job-1").await.expect_err("no usable answer");
            assert!(matches!(failed, TriageError::JudgeFailed { .. }), "{failed}");
            assert_eq!(setting.records(item).await.len(), tries, "each try is recorded");
        }
        assert!(setting.entries(item).await.is_empty() && setting.actions(item).await.is_empty());
        setting.models.fault_when("", Fault::Status { status: 401, retry_after: None });
        assert!(setting.try_triage(item, "job-1").await.is_err());
        setting.models.clear_faults();
        setting.judge_says(crate::triage::setting::yes(1, 0.96));
        let triaged = setting.try_triage(item, "job-1").await.expect("triaged");
        assert_eq!(told(&triaged), (Some("commented"), "above_threshold"));
    }

    async fn without_prices_a_limited_model_is_not_asked_and_the_reason_is_recorded(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        let outbox = setting.outbox().await;
        let budget = TokenBudget::up_to(5.0, None);
        let triaged = setting.triage_with(Some(&outbox), true, item, "job-1", budget).await.expect("triaged");
        assert_eq!(told(&triaged), (Some("recorded"), "no_prices"));
        assert!(setting.entries(item).await.is_empty());
        assert!(setting.models.requests().iter().all(|request| request.path == "/embeddings"), "nobody is paid");
        assert_eq!(setting.store.duplicates().last_triage_reason(setting.repo.id).await.expect("reads"), Some(TriageReason::NoPrices.into()));
    }

    async fn a_used_up_budget_is_recorded_and_nothing_is_posted(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        let outbox = setting.outbox().await;
        for _ in 0..2 {
            let budget = TokenBudget::up_to(0.0, None);
            let triaged = setting.triage_with(Some(&outbox), true, item, "job-1", budget).await.expect("triaged");
            assert_eq!(told(&triaged), (Some("recorded"), "over_budget"));
        }
        assert_eq!(setting.records(item).await.len(), 1);
        assert!(setting.entries(item).await.is_empty());
        assert!(setting.models.requests().iter().all(|request| request.path == "/embeddings"));
    }
}
