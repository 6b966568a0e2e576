//! Whose decision counts: a silent edit announces nothing, rulings end only by rules, and plans of people and of
//! grace periods do not interfere.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use canonry_config::{RepoConfig, parse};
use canonry_domain::{
    GraceEnd, ItemNumber, ItemType, OverrideKind, PlanRules, Probability, RowSnapshot, SkipReason, TargetPolicy,
    UndoReason,
};
use canonry_store::{
    BrakeKind, CloseRunId, GraceState, NewOverride, NewPlan, NewPlanRow, ObjectionKind, Representation,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CloseReason, Fault};
use canonry_testkit::on_both_engines;
use canonry_triage::{
    ApplyError, ApplyOptions, EmbedSource, GraceOutcome, GraceStart, PlanOptions, UndoOptions, apply_close,
    begin_announced_graces, begin_grace_by_ruling, cancel_grace, plan_close, undo_close,
};
use serde_json::json;

use crate::grace::brakes::{closed, hear};
use crate::grace::cases::{
    ANNOUNCED, announced, assert_closed, closes, grace, in_grace, is_open, meanwhile, said, sweep, try_sweep,
};
use crate::triage::setting::{ALPHA, REPO, Setting, number, plain};

fn probability(value: f64) -> Probability {
    Probability::new(value).expect("a probability")
}

/// A sweep that was killed after the closing comment and before the close.
async fn begun(setting: &Setting) -> ItemNumber {
    let item = announced(setting).await;
    setting.later(73);
    for points in 0..60 {
        let passed = AtomicUsize::new(0);
        let checkpoint = move |_| match passed.fetch_add(1, Ordering::SeqCst) {
            passed if passed < points => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let (github, outbox) = (setting.github(), setting.outbox().await.with_checkpoint(Arc::new(checkpoint)));
        assert!(try_sweep(setting, &github, &outbox).await.is_err(), "killed after {points} points");
        setting.emulator.forget_requests();
        setting.later(1);
        assert!(is_open(setting, item), "after {points} points");
        if setting.comments(item).len() == 2 {
            return item;
        }
    }
    panic!("no comment is ever written");
}

/// A person's plan that closes an item as a duplicate of the first original.
async fn plan_of(setting: &Setting, item: ItemNumber) -> CloseRunId {
    let (store, repo) = (&setting.store, setting.repo.id);
    let read = async |number| store.corpus().item(repo, ItemType::Issue, number).await.expect("reads").expect("known");
    let snapshot = RowSnapshot::of(&read(item).await, &read(number(1)).await);
    let row = NewPlanRow {
        item_type: ItemType::Issue,
        number: item,
        target: Some(number(1)),
        skip: None,
        confidence: Some(probability(0.96)),
        evidence: json!({}),
        snapshot: serde_json::to_value(snapshot).expect("plain data"),
    };
    let new = NewPlan {
        representation: Representation::Raw,
        target_policy: TargetPolicy::CanonicalOnly,
        min_close: probability(0.9),
        config_hash: "",
        run_id: "a person's",
    };
    store.plans().create(repo, &new, &[row], setting.now()).await.expect("stored")
}

/// Why a full plan skips an item.
async fn skipped(setting: &Setting, item: ItemNumber) -> Option<SkipReason> {
    let rules =
        PlanRules { min_close: probability(0.9), policy: TargetPolicy::CanonicalOnly, protected_labels: Vec::new() };
    let options = PlanOptions {
        item_type: None,
        source: EmbedSource::Raw,
        rules,
        dry_run: true,
        config_hash: String::new(),
        run_id: setting.run_id(),
    };
    let planned = plan_close(&setting.store, &setting.repo, None, &options, setting.now()).await.expect("planned");
    let row = planned.rows.into_iter().find(|row| row.number == item);
    row.expect("a row").skip
}

async fn rule(setting: &Setting, item: ItemNumber) {
    let ruled = NewOverride {
        item_type: ItemType::Issue,
        kind: OverrideKind::Duplicate,
        item,
        other: Some(number(1)),
        note: None,
        by: None,
    };
    setting.store.duplicates().add_override(setting.repo.id, ruled, setting.now()).await.expect("ruled");
}

on_both_engines! {
    async fn an_edited_comment_announces_nothing(database: TestDatabase) {
        let mut setting = in_grace(database).await;
        let rules = setting.rules.grace.take();
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        assert!(!said(&setting, item).contains(ANNOUNCED));
        setting.rules.grace = rules;
        meanwhile(&setting, |world| world.comment(REPO, plain(item), "ann", "No, mine is different."));
        setting.later(48);
        setting.edit_title(item, &setting.title(ALPHA, 0.97));
        setting.triage(item).await;
        begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
        assert!(!said(&setting, item).contains(ANNOUNCED), "{}", said(&setting, item));
        let graces = setting.store.close().graces_of_item(setting.repo.id, ItemType::Issue, item).await.expect("reads");
        assert_eq!(graces, []);
    }

    async fn an_old_comment_may_become_an_objection(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = setting.report(ALPHA, 0.95);
        // The original has the same number of comments.
        setting.emulator.world().comment(REPO, 1, "bob", "Me too.");
        let comment = setting.emulator.world().comment(REPO, plain(item), "eve", "Me too.");
        setting.later(1);
        setting.sync().await;
        setting.triage(item).await;
        begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
        meanwhile(&setting, |world| world.edit_comment(REPO, comment, "eve", "Sorry, mine is another thing."));
        setting.later(71);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(GraceEnd::HumanCommented))]);
        assert_eq!(closes(&setting, item), 0);
    }

    async fn a_ruling_ends_by_rules_alone_and_that_is_told(database: TestDatabase) {
        let setting = in_grace(database).await;
        let earlier = announced(&setting).await;
        let item = setting.report(ALPHA, 0.95);
        setting.sync().await;
        rule(&setting, item).await;
        setting.later(73);
        let (store, repo, outbox, now) = (&setting.store, &setting.repo, setting.outbox().await, setting.now());
        let by = "maint".parse().expect("a login");
        let begun = begin_grace_by_ruling(store, Some(&outbox), repo, ItemType::Issue, item, number(1), &by, now);
        assert_eq!(begun.await.expect("begun"), GraceStart::Yes);
        let waiting = store.close().waiting_graces(Some(repo.id)).await.expect("reads");
        let order: Vec<ItemNumber> = waiting.iter().map(|grace| grace.number).collect();
        assert_eq!(order, [item, earlier], "a maintainer waits for it");
        for end in [GraceEnd::HumanCommented, GraceEnd::Assigned, GraceEnd::LinkedPull] {
            let ended = cancel_grace(store, Some(&outbox), repo, ItemType::Issue, item, end, now).await.expect("asked");
            assert!(!ended, "{end}");
        }
        meanwhile(&setting, |world| world.label(REPO, plain(item), "maint", "security"));
        let swept = sweep(&setting).await;
        assert_eq!(swept[0], (item, GraceOutcome::Cancelled(GraceEnd::Protected)));
        sweep(&setting).await;
        let told = ["Not closed, because it has a protected label."];
        assert_eq!(setting.comments(item), told);
    }

    async fn what_has_begun_belongs_to_its_sweep(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (store, repo) = (&setting.store, &setting.repo);
        let item = begun(&setting).await;
        let plan = grace(&setting, item).await.plan;
        let (github, outbox) = (setting.github(), setting.outbox().await);
        let config = parse("");
        let options =
            ApplyOptions { plan: plan.expect("a plan"), approved_only: false, config: &config, run_id: "by hand", most_rows: None, ordered_at: jiff::Timestamp::MAX };
        let refused = apply_close(store, &github, &outbox, repo, options, &mut |_| {}).await;
        let Err(ApplyError::Refused(words)) = refused else { panic!("{refused:?}") };
        assert!(words.contains(&format!("belongs to the announced close of #{item}")), "{words}");
        // A pause between the first check and the close.
        let (fault, mut gate) = Fault::on("GET", "/repos/*/*").hold();
        setting.emulator.fault(fault);
        let pausing = async {
            gate.arrived().await;
            store.close().set_brake(repo.id, BrakeKind::Pause, None, "holidays", setting.now()).await.expect("paused");
            gate.release();
        };
        let (swept, ()) = tokio::join!(try_sweep(&setting, &github, &outbox), pausing);
        let swept = swept.expect("swept");
        assert!(matches!(&swept[..], [(_, GraceOutcome::Waiting(words))] if words.contains("paused")), "{swept:?}");
        assert_eq!(grace(&setting, item).await.plan, plan, "it goes on behind what was said");
        store.close().lift_brake(repo.id, BrakeKind::Pause, None, setting.now()).await.expect("lifted");
        setting.later(1);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert_closed(&setting, item, "after the pause");
    }

    async fn plans_know_of_graces(database: TestDatabase) {
        let setting = in_grace(database).await;
        // An item that was judged, and objected to at the last moment.
        let objected = begun(&setting).await;
        let comment = setting.comment_id(objected);
        meanwhile(&setting, |world| world.react_to_comment(REPO, comment, "eve", "-1"));
        sweep(&setting).await;
        assert_eq!(grace(&setting, objected).await.reason.as_deref(), Some("reaction"));
        assert_eq!(skipped(&setting, objected).await, Some(SkipReason::Objected));
        meanwhile(&setting, |world| world.close(REPO, plain(objected), "maint", CloseReason::NotPlanned));
        setting.sync().await;
        let item = announced(&setting).await;
        rule(&setting, item).await;
        assert_eq!(skipped(&setting, item).await, Some(SkipReason::InGrace));
    }

    async fn what_a_maintainer_called_off_is_not_planned_again_until_one_says_so(database: TestDatabase) {
        let setting = in_grace(database).await;
        let (store, repo, outbox) = (&setting.store, &setting.repo, setting.outbox().await);
        let item = announced(&setting).await;
        // The ruling about the pair is older than the cancellation.
        rule(&setting, item).await;
        setting.later(1);
        let (end, now) = (GraceEnd::CalledOff, setting.now());
        let ended = cancel_grace(store, Some(&outbox), repo, ItemType::Issue, item, end, now).await.expect("asked");
        assert!(ended);
        assert_eq!(skipped(&setting, item).await, Some(SkipReason::Objected));
        setting.later(1);
        rule(&setting, item).await;
        assert_eq!(skipped(&setting, item).await, None, "a maintainer says so");
    }

    async fn graces_know_of_plans(database: TestDatabase) {
        let setting = in_grace(database).await;
        let store = &setting.store;
        // A person excluded it from their plan.
        let item = announced(&setting).await;
        let plan = plan_of(&setting, item).await;
        let now = setting.now();
        store.plans().set_approved(plan, ItemType::Issue, &[item], Some(false), None, now).await.expect("noted");
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Cancelled(GraceEnd::Superseded))]);
        // A person closed it with their plan: the comment is not edited.
        let item = announced(&setting).await;
        setting.sync().await;
        let plan = plan_of(&setting, item).await;
        let (github, outbox, config) = (setting.github(), setting.outbox().await, parse(""));
        let options = ApplyOptions { plan, approved_only: false, config: &config, run_id: "by hand", most_rows: None, ordered_at: jiff::Timestamp::MAX };
        apply_close(store, &github, &outbox, &setting.repo, options, &mut |_| {}).await.expect("applied");
        assert!(!is_open(&setting, item));
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert!(said(&setting, item).contains(ANNOUNCED));
        // The plan of a grace period does not make a person's plan outdated.
        let item = announced(&setting).await;
        let plan = plan_of(&setting, item).await;
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert!(grace(&setting, item).await.plan > Some(plan));
        assert_eq!(store.plans().newer_of_items(plan).await.expect("reads"), None);
    }

    async fn an_undo_at_the_command_line_is_an_objection(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = closed(&setting).await;
        let run = grace(&setting, item).await.plan.expect("a plan");
        assert_eq!(grace(&setting, item).await.state, GraceState::Closed);
        let (github, outbox, config) = (setting.github(), setting.outbox().await, RepoConfig::default());
        let options = UndoOptions {
            run, item: Some(item), reason: UndoReason::NotDuplicate, note: None, by: None, config: &config, run_id: "by hand", most_rows: None,
        };
        undo_close(&setting.store, &github, &outbox, &setting.repo, options, &mut |_| {}).await.expect("undone");
        assert_eq!(hear(&setting).await, 1);
        assert_eq!(hear(&setting).await, 0, "once");
        let objections = setting.store.close().objections(setting.repo.id).await.expect("reads");
        assert_eq!((objections[0].number, objections[0].kind), (item, ObjectionKind::Undone));
    }
}
