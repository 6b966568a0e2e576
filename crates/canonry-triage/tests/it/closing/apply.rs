//! Applies a plan when nothing prevents it.

use canonry_domain::{ItemState, ItemType, SkipReason, scan_shown_secrets};
use canonry_store::NewPlanRow;
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewIssue};
use canonry_testkit::on_both_engines;
use canonry_testkit::secrets::sample_secrets;
use canonry_triage::{ApplyError, ClosingError};

use crate::closing::setting::{OWN, REPO, Setting, counts, plain, told};

on_both_engines! {
    /// Conformance 29 and 30.
    async fn close_rows_are_closed_and_skip_rows_are_not_and_a_second_time_changes_nothing(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(2);
        setting.sync().await;
        let close = setting.row(duplicates[0], original).await;
        let skip = NewPlanRow {
            skip: Some(SkipReason::LowConfidence),
            ..setting.row(duplicates[1], original).await
        };
        let plan = setting.store_plan(&[close, skip]).await;
        setting.emulator.forget_requests();
        let report = setting.apply(plan).await;
        assert_eq!((counts(&report), told(&report)), ((1, 1, 0, 0), vec![format!("#{} applied", duplicates[0])]));
        assert!(report.remarks.is_empty(), "{report:?}");
        setting.assert_closed(duplicates[0], original, "applied");
        setting.assert_untouched(duplicates[1], "a skip row");
        setting.assert_back_link(original, &duplicates[..1], "applied");
        let closes = setting.emulator.writes().into_iter().filter(|write| write.method == "PATCH").count();
        assert_eq!((closes, setting.emulator.writes().len()), (1, 4));
        let stored = setting.item(duplicates[0]).await;
        assert_eq!((stored.state, stored.duplicate_of), (ItemState::Closed, Some(original)));
        let run = setting.store.plans().applied_closes(setting.repo.id, ItemType::Issue).await.expect("reads").remove(0);
        let run = setting.store.plans().run(run.apply_run_id).await.expect("reads").expect("recorded");
        assert!(run.finished_at.is_some());

        setting.emulator.forget_requests();
        let again = setting.apply(plan).await;
        assert_eq!((counts(&again), told(&again)), ((0, 0, 0, 0), vec![format!("#{} already_applied", duplicates[0])]));
        let asked: Vec<String> = setting.emulator.requests().into_iter().map(|request| request.path).collect();
        assert_eq!(asked, ["/user"], "only who we are");
    }

    async fn a_secret_in_the_originals_title_is_not_posted(database: TestDatabase) {
        let mut setting = Setting::new(database).await;
        setting.config.config.close.max_per_day = 100;
        setting.config.config.close.message = Some("See {target}: {title}".to_owned());
        for (at, secret) in sample_secrets().into_iter().enumerate() {
            let (before, after) = secret.split_at(secret.len() / 2);
            // Unchanged, or split by invisible characters.
            let secret = match at % 3 {
                0 => secret.clone(),
                1 => format!("{before}\u{200b}{after}"),
                _ => secret.replace('_', "\\_"),
            };
            let title = format!("Sync stops with {secret} in it");
            let original = {
                let mut world = setting.emulator.world();
                crate::closing::setting::number(world.open(REPO, "ann", NewIssue::new(&title, "It stops.")))
            };
            let duplicate = setting.open("Sync stops too");
            let plan = setting.plan(&[(duplicate, original)]).await;
            let report = setting.apply(plan).await;
            assert_eq!(told(&report), [format!("#{duplicate} applied")], "{title}");
            let comment = setting.shown(duplicate).comments.remove(0);
            assert!(comment.contains("redacted"), "{comment}");
            assert_eq!(scan_shown_secrets(&comment), [], "{comment}");
        }
    }

    async fn the_comment_names_the_target_and_what_both_share(database: TestDatabase) {
        let setting = Setting::new(database).await.with_config("close: {message: '{target}: {title}. {evidence}'}\n");
        let original = {
            let mut world = setting.emulator.world();
            let hostile = "Sync stops @everyone <!-- x --> #12 [a](https://example.org)";
            crate::closing::setting::number(world.open(REPO, "ann", NewIssue::new(hostile, "It stops.")))
        };
        let duplicate = setting.open("Sync stops too");
        let plan = setting.plan(&[(duplicate, original)]).await;
        setting.apply(plan).await;
        let comment = setting.shown(duplicate).comments.remove(0);
        assert!(comment.starts_with(&format!("#{original}: Sync stops @&ZeroWidthSpace;everyone")), "{comment}");
        // No service receives commands here, so the comment names none.
        assert!(comment.contains("Both mention `E0599`.") && comment.contains("or ask a maintainer to."), "{comment}");
        // The original's title mentions nobody, links nothing and hides nothing.
        for meant in ["Sync stops", "@&ZeroWidthSpace;everyone", "&lt;!-- x --&gt;"] {
            assert!(comment.contains(meant), "{meant}: {comment}");
        }
        for live in ["@everyone", "<!--", "#12", "https://"] {
            assert!(!comment.contains(live), "{live}: {comment}");
        }
    }

    async fn a_template_of_the_repositorys_own_is_used(database: TestDatabase) {
        let setting =
            Setting::new(database).await.with_config("close: {message: 'See {target}, {title}. {objection}'}\n");
        let (original, duplicates) = setting.cluster(1);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        setting.apply(plan).await;
        let comment = setting.shown(duplicates[0]).comments.remove(0);
        assert!(comment.starts_with(&format!("See #{original}, Sync stops. **Wrong?** Reopen it")), "{comment}");
    }

    async fn pull_requests_are_closed_without_a_reason_and_in_their_own_words(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicate) = (setting.open_pull("Mend the sync"), setting.open_pull("Mend the sync, too"));
        let plan = setting.plan(&[(duplicate, original)]).await;
        setting.emulator.forget_requests();
        assert_eq!(told(&setting.apply(plan).await), [format!("#{duplicate} applied")]);
        setting.assert_closed(duplicate, original, "a pull request");
        let writes = setting.emulator.writes();
        let patch = writes.iter().find(|write| write.method == "PATCH").expect("a close");
        assert_eq!(patch.body, Some(serde_json::json!({ "state": "closed" })));
        let comment = setting.shown(duplicate).comments.remove(0);
        assert!(comment.starts_with(&format!("Closed as a duplicate; please continue in #{original}.\n\nBoth mention `E0599`.")), "{comment}");
        let back_link = setting.shown(original).comments;
        assert_eq!(back_link, [format!("Closed as duplicates of this pull request:\n\n- #{duplicate}")]);
    }

    async fn rows_that_people_excluded_or_did_not_approve_are_left_out(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(3);
        let pairs: Vec<_> = duplicates.iter().map(|duplicate| (*duplicate, original)).collect();
        let plan = setting.plan(&pairs).await;
        let now = setting.emulator.world().now;
        for (item, word) in [(0, true), (1, false)] {
            let named = [duplicates[item]];
            setting.store.plans().set_approved(plan, ItemType::Issue, &named, Some(word), None, now).await.expect("noted");
        }
        let approved = setting.try_apply(plan, true).await.expect("applied");
        assert_eq!(told(&approved), [format!("#{} applied", duplicates[0])]);
        let rest = setting.apply(plan).await;
        assert_eq!(told(&rest), [format!("#{} already_applied", duplicates[0]), format!("#{} applied", duplicates[2])]);
        setting.assert_untouched(duplicates[1], "excluded");
        setting.assert_back_link(original, &[duplicates[0], duplicates[2]], "both runs");
    }

    async fn so_many_a_day_are_closed_without_approval_and_the_rest_the_next_day(database: TestDatabase) {
        let setting = Setting::new(database).await.with_config("close: {maxPerDay: 2}\n");
        let (original, duplicates) = setting.cluster(4);
        let pairs: Vec<_> = duplicates.iter().map(|duplicate| (*duplicate, original)).collect();
        let plan = setting.plan(&pairs).await;
        let now = setting.emulator.world().now;
        setting.store.plans().set_approved(plan, ItemType::Issue, &duplicates[3..], Some(true), None, now).await.expect("noted");
        let first = setting.apply(plan).await;
        assert_eq!(counts(&first), (4, 3, 1, 0));
        assert_eq!(told(&first)[2], format!("#{} skipped daily_limit", duplicates[2]));
        setting.assert_untouched(duplicates[2], "the limit");
        // The same limit applies to another plan of the same day.
        let (other, others) = setting.cluster(1);
        let second = setting.plan(&[(others[0], other)]).await;
        assert_eq!(told(&setting.apply(second).await), [format!("#{} skipped daily_limit", others[0])]);
        setting.later(24 * 3600 + 60);
        let next_day = setting.apply(plan).await;
        assert_eq!(told(&next_day)[2], format!("#{} applied", duplicates[2]));
        setting.assert_closed(duplicates[2], original, "the next day");
        setting.assert_back_link(original, &duplicates, "the next day");
    }

    async fn a_close_that_somebody_took_back_before_we_knew_is_an_objection(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(2);
        let plan = setting.plan(&[(duplicates[0], original), (duplicates[1], original)]).await;
        let path = format!("/repos/*/*/issues/{}", duplicates[0]);
        setting.emulator.fault(Fault::on("PATCH", &path).apply_and_drop());
        // The first check whether the close has worked finds the item open again.
        let (fault, mut gate) = Fault::on("GET", &path).nth(6).hold();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            setting.emulator.world().reopen(REPO, plain(duplicates[0]), "ann");
            gate.release();
        };
        let (report, ()) = tokio::join!(setting.apply(plan), person);
        assert_eq!(counts(&report), (2, 2, 0, 0));
        assert!(report.rows[0].reason.as_deref().is_some_and(|reason| reason.contains("reopened it")), "{report:?}");
        let shown = setting.shown(duplicates[0]);
        assert_eq!((shown.open, shown.closes, shown.comments.len(), shown.labels.len()), (true, 1, 1, 0));
        let closes = setting.store.plans().applied_closes(setting.repo.id, ItemType::Issue).await.expect("reads");
        assert_eq!(closes.iter().filter(|close| close.objected).map(|close| close.number).collect::<Vec<_>>(), [duplicates[0]]);
        setting.assert_closed(duplicates[1], original, "the other row");
        setting.assert_back_link(original, &duplicates[1..], "what stands");
        let again = setting.apply(plan).await;
        assert_eq!(again.applied, 0);
        assert!(setting.shown(duplicates[0]).open);
    }

    async fn our_own_label_and_comments_of_bots_are_no_changes(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(1);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        {
            let mut world = setting.emulator.world();
            world.label(REPO, plain(duplicates[0]), OWN, "possible-duplicate");
            world.comment(REPO, plain(duplicates[0]), "stale[bot]", "Still here?");
            world.comment(REPO, plain(original), "zoe", "On the original people may speak.");
        }
        assert_eq!(told(&setting.apply(plan).await), [format!("#{} applied", duplicates[0])]);
        setting.assert_closed(duplicates[0], original, "nothing that matters");
    }

    async fn a_renamed_repository_is_followed_and_another_one_under_its_name_is_not(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (original, duplicates) = setting.cluster(2);
        let plan = setting.plan(&[(duplicates[0], original)]).await;
        let second = setting.plan(&[(duplicates[1], original)]).await;
        setting.emulator.world().rename_repo(REPO, "acme/gadgets", "maint");
        assert_eq!(told(&setting.apply(plan).await), [format!("#{} applied", duplicates[0])]);
        {
            let mut world = setting.emulator.world();
            world.rename_repo("acme/gadgets", "acme/gizmos", "maint");
            world.repo("acme/gadgets");
            world.collaborator("acme/gadgets", OWN, canonry_testkit::github::Permission::Write);
        }
        let stored = setting.store.repos().list().await.expect("reads");
        let mut setting = setting;
        setting.repo = stored.into_iter().find(|repo| repo.id == setting.repo.id).expect("known");
        assert_eq!(setting.repo.name.to_string(), "acme/gadgets");
        setting.emulator.forget_requests();
        let result = setting.try_apply(second, false).await;
        let Err(ApplyError::Ended(ClosingError::Identify(error))) = result else { panic!("{result:?}") };
        assert!(error.to_string().contains("is not the repository"), "{error}");
        assert!(setting.emulator.writes().is_empty());
    }
}
