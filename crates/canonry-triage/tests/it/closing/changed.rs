//! What has changed since the plan, and what a plan cannot see: the row is skipped, the others continue.

use canonry_domain::{ItemNumber, ItemType, OverrideKind};
use canonry_store::{CloseRunId, NewOverride};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault, NewIssue, Permission, Pull, World};
use canonry_testkit::on_both_engines;

use crate::closing::setting::{REPO, Setting, counts, plain, told};

type Change = fn(&mut World, source: u64, target: u64);

/// Every kind of drift, and every reason that only GitHub shows, one at a time.
const CHANGES: [(&str, Change); 22] = [
    ("drift:source_edited", |world, source, _| world.edit_body(REPO, source, "ann", "It stops, but only on Mondays.")),
    ("drift:source_edited", |world, source, _| world.edit_title(REPO, source, "ann", "Sync is slow")),
    ("drift:source_closed", |world, source, _| world.close(REPO, source, "ann", CloseReason::Completed)),
    ("drift:source_reopened", |world, source, _| {
        world.close(REPO, source, "ann", CloseReason::Completed);
        world.advance(1);
        world.reopen(REPO, source, "ann");
    }),
    ("drift:source_reopened", |world, source, _| {
        world.close(REPO, source, "stale[bot]", CloseReason::NotPlanned);
        world.reopen(REPO, source, "stale[bot]");
    }),
    ("drift:source_assigned", |world, source, _| world.assign(REPO, source, "maint", "zoe")),
    ("drift:source_locked", |world, source, _| world.lock(REPO, source, "maint", None)),
    ("drift:human_commented", |world, source, _| {
        world.comment(REPO, source, "ann", "This is something else.");
    }),
    ("drift:label_added", |world, source, _| world.label(REPO, source, "maint", "needs-info")),
    ("drift:label_added", |world, source, _| world.label(REPO, source, "maint", "duplicate")),
    ("protected_label", |world, source, _| world.label(REPO, source, "maint", "Security")),
    ("drift:target_closed", |world, _, target| world.close(REPO, target, "maint", CloseReason::Completed)),
    ("drift:target_edited", |world, _, target| world.edit_body(REPO, target, "ann", "Never mind, it was the cable.")),
    ("drift:target_gone", |world, _, target| world.delete(REPO, target, "maint")),
    ("drift:target_gone", |world, _, target| world.convert_to_discussion(REPO, target, "maint")),
    ("drift:target_gone", |world, _, target| {
        world.transfer(REPO, target, "maint", "acme/attic");
    }),
    ("in_progress", |world, source, _| {
        let milestone = world.milestone(REPO, "1.0");
        world.set_milestone(REPO, source, "maint", Some(milestone));
    }),
    ("in_progress", |world, source, _| {
        let body = format!("Fixes #{source}.");
        world.open(REPO, "zoe", NewIssue::new("Mend it", &body).pull(Pull::default()));
    }),
    ("pinned", |world, source, _| world.pin(REPO, source, "maint", true)),
    ("uncertain_maintainer_identity", |world, _, _| {
        world.users.remove("ann");
    }),
    ("drift:human_commented", |world, source, _| {
        // The account of the token, but not through the outbox.
        world.comment(REPO, source, crate::closing::setting::OWN, "I wrote this by hand.");
    }),
    ("drift:source_closed", |world, source, target| {
        world.close(REPO, source, "maint", CloseReason::NotPlanned);
        world.close(REPO, target, "maint", CloseReason::NotPlanned);
    }),
];

/// Changes that do not count.
const HARMLESS: [Change; 7] = [
    |world, source, _| {
        let body = format!("See #{source}.");
        world.open(REPO, "zoe", NewIssue::new("Mend something else", &body).pull(Pull::default()));
    },
    |world, source, _| {
        let body = format!("Fixes #{source}.");
        let pull = world.open(REPO, "zoe", NewIssue::new("Mend it", &body).pull(Pull::default()));
        world.close(REPO, pull, "zoe", CloseReason::NotPlanned);
    },
    |world, source, _| {
        world.pin(REPO, source, "maint", true);
        world.pin(REPO, source, "maint", false);
    },
    |world, source, _| {
        world.lock(REPO, source, "maint", None);
        world.unlock(REPO, source, "maint");
    },
    |world, source, _| {
        world.react(REPO, source, "zoe", "+1");
    },
    |world, _, target| world.label(REPO, target, "maint", "security"),
    |world, _, target| {
        world.comment(REPO, target, "zoe", "A comment on the canonical.");
    },
];

/// A row that the change affects, and one that it does not.
fn rows(setting: &Setting) -> (ItemNumber, ItemNumber, ItemNumber, ItemNumber) {
    let (target, source) = (setting.open("Sync stops"), setting.open("Sync stops too"));
    let (other_target, other) = (setting.open("Export hangs"), setting.open("Export hangs, too"));
    (source, target, other, other_target)
}

/// A person approves or excludes a row, and the store confirms it.
async fn say(setting: &Setting, plan: CloseRunId, item: ItemNumber, word: Option<bool>) {
    let now = setting.emulator.world().now;
    let noted = setting.store.plans().set_approved(plan, ItemType::Issue, &[item], word, None, now).await;
    assert_eq!(noted.expect("stored"), 1);
}

on_both_engines! {
    async fn every_change_skips_its_row_and_the_others_go_on(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for (index, (expected, change)) in CHANGES.iter().enumerate() {
            setting.emulator.world().user("ann");
            let (source, target, other, other_target) = rows(&setting);
            let context = format!("{expected}, change {index}");
            // The author of the other row is an account that stays.
            setting.emulator.world().get_mut(REPO).issues.get_mut(&plain(other)).expect("open").author = "zoe".to_owned();
            let plan = setting.plan(&[(source, target), (other, other_target)]).await;
            change(&mut setting.emulator.world(), plain(source), plain(target));
            setting.later(3);
            setting.emulator.forget_requests();
            let report = setting.apply(plan).await;
            assert_eq!(told(&report), [format!("#{source} skipped {expected}"), format!("#{other} applied")], "{context}");
            assert_eq!(counts(&report), (2, 1, 1, 0), "{context}");
            setting.assert_untouched(source, &context);
            setting.assert_closed(other, other_target, &context);
            setting.next_hour();
            setting.later(24 * 3600);
        }
    }

    async fn what_does_not_matter_keeps_no_row(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for (index, change) in HARMLESS.iter().enumerate() {
            let (target, source) = (setting.open("Sync stops"), setting.open("Sync stops too"));
            let plan = setting.plan(&[(source, target)]).await;
            change(&mut setting.emulator.world(), plain(source), plain(target));
            assert_eq!(told(&setting.apply(plan).await), [format!("#{source} applied")], "change {index}");
            setting.next_hour();
        }
    }

    async fn somebody_who_became_a_maintainer_keeps_their_items(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (source, target, other, other_target) = rows(&setting);
        {
            let mut world = setting.emulator.world();
            world.get_mut(REPO).issues.get_mut(&plain(source)).expect("open").author = "zoe".to_owned();
            world.collaborator(REPO, "zoe", Permission::Write);
        }
        let plan = setting.plan(&[(source, target), (other, other_target)]).await;
        let maintainers = ["maint", "zoe"].map(|login| login.parse().expect("a login"));
        let set = canonry_store::MaintainerSource::Set;
        setting.store.repos().set_maintainers(setting.repo.id, set, &maintainers, setting.emulator.world().now).await.expect("stored");
        let report = setting.apply(plan).await;
        assert_eq!(told(&report), [format!("#{source} skipped drift:maintainer_changed"), format!("#{other} applied")]);
    }

    async fn what_a_person_reopened_long_ago_stays_open_unless_somebody_says_so(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (source, target, other, other_target) = rows(&setting);
        for item in [source, other] {
            let mut world = setting.emulator.world();
            world.close(REPO, plain(item), "maint", CloseReason::NotPlanned);
            world.advance(1);
            world.reopen(REPO, plain(item), "ann");
        }
        setting.later(3600);
        let duplicate = NewOverride {
            item_type: canonry_domain::ItemType::Issue,
            kind: OverrideKind::Duplicate,
            item: other,
            other: Some(other_target),
            note: None,
            by: None,
        };
        setting.sync().await;
        let now = setting.emulator.world().now;
        setting.store.duplicates().add_override(setting.repo.id, duplicate, now).await.expect("ruled");
        setting.later(1);
        let plan = setting.plan(&[(source, target), (other, other_target)]).await;
        let report = setting.apply(plan).await;
        assert_eq!(told(&report), [format!("#{source} skipped human_reopened"), format!("#{other} applied")]);
        setting.assert_untouched(source, "reopened");
    }

    async fn a_ruling_in_the_middle_of_a_run_keeps_its_row(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (source, target, other, other_target) = rows(&setting);
        let plan = setting.plan(&[(source, target), (other, other_target)]).await;
        let apart = NewOverride {
            item_type: canonry_domain::ItemType::Issue,
            kind: OverrideKind::NotDuplicate,
            item: target,
            other: Some(source),
            note: None,
            by: None,
        };
        let (fault, mut gate) = Fault::on("GET", &format!("/repos/*/*/issues/{source}/timeline")).hold();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            let now = setting.emulator.world().now;
            setting.store.duplicates().add_override(setting.repo.id, apart, now).await.expect("ruled");
            gate.release();
        };
        let (report, ()) = tokio::join!(setting.apply(plan), person);
        assert_eq!(told(&report), [format!("#{source} skipped conflicting_override"), format!("#{other} applied")]);
        setting.assert_untouched(source, "ruled apart");
    }

    async fn a_row_that_is_left_out_while_another_is_closed_is_not_begun(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (source, target, other, other_target) = rows(&setting);
        let plan = setting.plan(&[(source, target), (other, other_target)]).await;
        let (fault, mut gate) = Fault::on("POST", &format!("/repos/*/*/issues/{source}/comments")).hold_answer();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            say(&setting, plan, other, Some(false)).await;
            gate.release();
        };
        let (report, ()) = tokio::join!(setting.apply(plan), person);
        assert_eq!(told(&report), [format!("#{source} applied")]);
        setting.assert_closed(source, target, "the one before it");
        setting.assert_untouched(other, "excluded");
        // A row that was never begun can still be closed if people change their mind.
        say(&setting, plan, other, None).await;
        let report = setting.apply(plan).await;
        assert_eq!(told(&report), [format!("#{source} already_applied"), format!("#{other} applied")]);
    }

    async fn a_row_that_is_left_out_during_its_last_look_is_not_closed(database: TestDatabase) {
        let setting = Setting::new(database).await;
        for (approved_only, word, why) in [(false, Some(false), "excluded"), (true, None, "not approved")] {
            setting.next_hour();
            let (source, target, other, other_target) = rows(&setting);
            let plan = setting.plan(&[(source, target), (other, other_target)]).await;
            for item in [source, other] {
                say(&setting, plan, item, Some(true)).await;
            }
            let (fault, mut gate) = Fault::on("GET", &format!("/repos/*/*/issues/{source}/timeline")).hold();
            setting.emulator.fault(fault);
            let person = async {
                gate.arrived().await;
                say(&setting, plan, source, word).await;
                gate.release();
            };
            let (report, ()) = tokio::join!(setting.try_apply(plan, approved_only), person);
            let expected = [format!("#{source} skipped withdrawn: {why}"), format!("#{other} applied")];
            assert_eq!(told(&report.expect("applied")), expected);
            setting.assert_untouched(source, why);
        }
    }

    async fn a_row_that_is_left_out_behind_its_comment_stays_open_and_its_comment_says_so(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (source, target, other, other_target) = rows(&setting);
        let plan = setting.plan(&[(source, target), (other, other_target)]).await;
        let (fault, mut gate) = Fault::on("POST", &format!("/repos/*/*/issues/{source}/comments")).hold_answer();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            say(&setting, plan, source, Some(false)).await;
            gate.release();
        };
        let (report, ()) = tokio::join!(setting.apply(plan), person);
        assert_eq!(told(&report), [format!("#{source} skipped withdrawn: excluded"), format!("#{other} applied")]);
        let shown = setting.shown(source);
        assert_eq!((shown.open, shown.closes, shown.labels.len(), shown.comments.len()), (true, 0, 0, 1));
        assert!(!shown.comments[0].starts_with("Closed"), "the comment says that it stays open: {shown:?}");
        assert!(setting.shown(target).comments.is_empty());
    }

    async fn a_comment_between_our_comment_and_the_close_stops_the_close(database: TestDatabase) {
        let setting = Setting::new(database).await;
        let (source, target, other, other_target) = rows(&setting);
        let plan = setting.plan(&[(source, target), (other, other_target)]).await;
        let comments = format!("/repos/*/*/issues/{source}/comments");
        let (fault, mut gate) = Fault::on("POST", &comments).hold_answer();
        setting.emulator.fault(fault);
        let person = async {
            gate.arrived().await;
            setting.emulator.world().comment(REPO, plain(source), "ann", "No, it is not!");
            gate.release();
        };
        let (report, ()) = tokio::join!(setting.apply(plan), person);
        assert_eq!(told(&report), [format!("#{source} skipped drift:human_commented"), format!("#{other} applied")]);
        let shown = setting.shown(source);
        assert_eq!((shown.open, shown.closes, shown.labels.len()), (true, 0, 0));
        assert_eq!(shown.comments.len(), 1);
        assert!(!shown.comments[0].starts_with("Closed"), "the comment says that it stays open: {shown:?}");
        setting.assert_back_link(other_target, &[other], "the other row");
        assert!(setting.shown(target).comments.is_empty());
    }
}
