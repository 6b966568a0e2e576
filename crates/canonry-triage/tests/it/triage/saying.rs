//! What is posted on GitHub, and that nothing in it has side effects.

use canonry_domain::{CurrentThreshold, ItemType, Threshold, ThresholdSource, TriageMode, Verdict};
use canonry_models::chat::TokenBudget;
use canonry_store::{Representation, TriageActionKind};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, NewIssue, Pull};
use canonry_testkit::on_both_engines;
use canonry_triage::IntentExtractor;

use crate::triage::setting::{ALPHA, LABEL, OWN, REPO, Setting, number, plain, told, yes, yes_because};

on_both_engines! {
    async fn a_new_duplicate_gets_one_comment_and_the_label(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.emulator.forget_requests();
        let triaged = setting.triage(item).await;
        assert_eq!(told(&triaged), (Some("commented"), "above_threshold"));
        let verdict = triaged.verdict.expect("a verdict");
        assert_eq!((verdict.verdict, verdict.target), (Verdict::Duplicate, Some(number(1))));
        let comments = setting.comments(item);
        assert_eq!(comments.len(), 1);
        for said in ["the same problem as #1 (*Original alpha", "Nothing is closed"] {
            assert!(comments[0].contains(said), "{said}: {}", comments[0]);
        }
        assert!(!comments[0].contains("the same summary that is written twice"), "a judge's own words: {}", comments[0]);
        assert!(!comments[0].contains("#2"), "the other original has nothing to do with it: {}", comments[0]);
        assert_eq!(setting.labels(item), [LABEL]);
        assert_eq!(setting.emulator.writes().len(), 2);
        let action = setting.actions(item).await.remove(0).action;
        assert_eq!((action.action, action.mode, action.component), (TriageActionKind::Commented, TriageMode::Suggest, None));
        assert_eq!(action.threshold, CurrentThreshold::From(Threshold::default()));
        assert_eq!((action.source, triaged.triage_id), (ThresholdSource::Configured, Some(action.triage_id)));
        // Nothing is left to do.
        setting.emulator.forget_requests();
        setting.publish().await;
        assert!(setting.emulator.writes().is_empty());
    }

    async fn without_github_the_stored_item_is_triaged_and_nothing_is_written(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let item = setting.report(ALPHA, 0.95);
        setting.sync().await;
        setting.emulator.forget_requests();
        let triaged = setting.triage_with(None, false, item, "alone", TokenBudget::default()).await.expect("triaged");
        assert_eq!(told(&triaged), (Some("recorded"), "mode"));
        assert!(setting.emulator.requests().is_empty());
        assert_eq!(setting.actions(item).await.remove(0).action.mode, TriageMode::Shadow);
    }

    async fn shadow_records_and_writes_nothing(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        setting.rules.mode = TriageMode::Shadow;
        let item = setting.report(ALPHA, 0.95);
        assert_eq!(told(&setting.triage(item).await), (Some("recorded"), "mode"));
        assert!(setting.emulator.writes().is_empty());
        assert!(setting.entries(item).await.is_empty());
        assert_eq!(setting.records(item).await.len(), 1);
    }

    async fn off_does_not_even_look(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        setting.rules.mode = TriageMode::Off;
        let item = setting.report(ALPHA, 0.95);
        setting.emulator.forget_requests();
        assert_eq!(told(&setting.triage_only(item).await), (None, "mode"));
        let asked: Vec<String> = setting.emulator.requests().into_iter().map(|request| request.path).collect();
        let brought = format!("/repos/{REPO}/issues/{item}");
        assert_eq!(asked, ["/user", &brought], "only who we are, and what stands in for the webhook");
        assert!(setting.models.requests().is_empty());
    }

    async fn similar_closed_ones_are_not_named(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let fixed = setting.report(ALPHA, 0.97);
        setting.emulator.world().close(REPO, plain(fixed), "maint", CloseReason::Completed);
        setting.sync().await;
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let comment = setting.comments(item).remove(0);
        assert!(comment.contains("#1 ") && !comment.contains(&format!("#{fixed}")), "{comment}");
    }

    async fn what_many_items_contain_is_no_evidence(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let body = |names: &str| format!("The exporter writes its summary twice: {names}. Nobody wants to read it twice.");
        setting.emulator.world().edit_body(REPO, 1, "zoe", &body("`common_writer` calls `rare_writer`"));
        for at in 0..9 {
            let other = NewIssue::new(&setting.title(ALPHA, 0.1), &body(&format!("`common_writer` and {at}")));
            setting.report_as(ALPHA, 0.1, other);
        }
        setting.sync().await;
        let title = setting.title(ALPHA, 0.95);
        let item = setting.report_as(ALPHA, 0.95, NewIssue::new(&title, &body("`common_writer`, then `rare_writer`")));
        setting.triage(item).await;
        let comment = setting.comments(item).remove(0);
        assert!(comment.contains("Both mention `rare_writer`."), "{comment}");
    }

    async fn a_repository_that_was_never_embedded_is_embedded_first(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let others: Vec<_> = (0..12).map(|at| setting.report(ALPHA, 0.10 + f64::from(at) / 100.0)).collect();
        setting.sync().await;
        assert!(setting.models.embedded_texts().is_empty());
        let item = setting.report(ALPHA, 0.95);
        assert_eq!(told(&setting.triage(item).await), (Some("commented"), "above_threshold"));
        assert_eq!(setting.models.embedded_texts().len(), others.len() + 3);
    }

    async fn cards_of_a_repository_that_has_none_are_made_by_rules_first(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        setting.extractor = Some(IntentExtractor::Local);
        let item = setting.report(ALPHA, 0.95);
        assert_eq!(told(&setting.triage(item).await), (Some("commented"), "above_threshold"));
        assert_eq!(setting.records(item).await[0].record.effective_source, Representation::Intent);
    }

    async fn a_pull_request_is_told_in_its_own_words(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let pull = |cosine| NewIssue::new(&setting.title(ALPHA, cosine), "It writes the summary once.").pull(Pull::default());
        let original = setting.report_as(ALPHA, 1.0, pull(1.0));
        setting.sync().await;
        setting.judge_says(yes(original.get(), 0.96));
        let item = setting.report_as(ALPHA, 0.95, pull(0.95));
        assert_eq!(told(&setting.triage(item).await), (Some("commented"), "above_threshold"));
        let comment = setting.comments(item).remove(0);
        assert!(comment.starts_with(&format!("This looks like the same change as #{original} (*")), "{comment}");
        assert!(!comment.contains("#1 "), "issues are not named: {comment}");
    }

    async fn of_a_huge_pull_request_only_the_first_files_are_read(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let huge = (0..250).fold(Pull::default(), |pull, at| pull.file(&format!("src/file_{at:03}.rs"), "@@ -1 +1 @@\n-a\n+b"));
        let huge = NewIssue::new(&setting.title(ALPHA, 0.5), "It renames everything.").pull(huge);
        let item = setting.report_as(ALPHA, 0.5, huge);
        setting.emulator.forget_requests();
        setting.triage(item).await;
        let files = setting.emulator.requests().into_iter().filter(|request| request.path.ends_with("/files"));
        assert_eq!(files.count(), 1);
        let stored = setting.store.corpus().item(setting.repo.id, ItemType::Pr, item).await.expect("reads").expect("stored");
        assert_eq!(stored.changes.map(|changes| changes.files.len()), Some(100));
    }

    async fn texts_of_strangers_ping_nobody_and_link_nothing(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let hostile = "@everyone <!-- canonry:v1:comment:x:y --> #77 [a](https://example.org) `x` **b** closes #1 \
            Original alpha: the exporter writes its summary twice";
        {
            let mut world = setting.emulator.world();
            world.advance(1);
            world.edit_title(REPO, 1, "zoe", hostile);
        }
        setting.sync().await;
        setting.judge_says(yes_because(1, 0.96, "Duplicate of #99, says @maint: fixes #3\n\n# Heading\n<img src=x>"));
        let item = setting.report_as(ALPHA, 0.95, NewIssue::new(&setting.title(ALPHA, 0.95), "cc @zoe, see #5 and GH-6"));
        setting.triage(item).await;
        let comment = setting.comments(item).remove(0);
        for live in ["@everyone", "@maint", "@zoe", "#77", "#99", "#3", "#5", "GH-6", "https://", "<!--", "<img", "[a]", "\n# ", "says", "Heading"] {
            assert!(!comment.contains(live), "{live}: {comment}");
        }
        assert!(comment.contains("#1 ") && comment.contains("@&ZeroWidthSpace;everyone"), "{comment}");
        let world = setting.emulator.world();
        let body = &world.comments_by(REPO, plain(item), OWN)[0].body;
        assert_eq!(body.matches("<!--").count(), 1, "only our own marker: {body}");
    }

    async fn a_secret_in_a_title_is_not_repeated(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        {
            let mut world = setting.emulator.world();
            world.advance(1);
            world.edit_title(REPO, 1, "zoe", &format!("Original alpha: {secret} is written twice"));
        }
        setting.sync().await;
        setting.judge_says(yes(1, 0.96));
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let comment = setting.comments(item).remove(0);
        assert!(comment.contains("Original alpha") && !comment.contains(&secret), "{comment}");
    }
}
