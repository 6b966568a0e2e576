//! What is announced and what is not, how it is closed, and that no person's decision is overruled.

use canonry_domain::{
    BoilerplateLearner, DecisionOrigin, DecisionStatus, ItemNumber, ItemType, OverrideKind, UndoReason, Verdict,
};
use canonry_store::{GraceState, NewOverride, ObjectionKind, StoredBoilerplate};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Fault, NewIssue};
use canonry_testkit::on_both_engines;
use canonry_triage::{
    GraceOutcome, GraceStart, IndexCache, UndoneLast, begin_announced_graces, begin_grace_by_ruling, undo_last_close,
};

use crate::grace::cases::{
    ANNOUNCED, announced, assert_closed, closes, grace, in_grace, is_open, meanwhile, said, sweep, sweep_by_index,
    sweep_with_hosted_model, try_sweep,
};
use crate::triage::setting::{ALPHA, BETA, LABEL, ONCE, REPO, Setting, no, number, plain, yes, yes_because};

async fn undo(setting: &Setting, item: ItemNumber, reason: UndoReason) -> UndoneLast {
    let (github, outbox) = (setting.github(), setting.outbox().await);
    let by = "maint".parse().expect("a login");
    let undone =
        undo_last_close(&setting.store, &github, &outbox, &setting.repo, ItemType::Issue, item, &by, reason, "canonry");
    undone.await.expect("undone")
}

on_both_engines! {
    /// A template is learned during the grace period: the announced item turns out to be an unfilled form.
    async fn an_unfilled_template_is_not_closed_when_its_time_is_over(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        let (store, repo) = (&setting.store, setting.repo.id);
        let stored = store.corpus().item(repo, ItemType::Issue, item).await.expect("reads").expect("an item");
        let mut learner = BoilerplateLearner::default();
        for at in 1..=12 {
            let author = format!("user{at}").parse().expect("a login");
            learner.read(number(at), Some(&author), &stored.title, &format!("### What happened\n\n{}", stored.body));
        }
        let texts = store.corpus().count_texts(repo, ItemType::Issue).await.expect("counts");
        let learned = StoredBoilerplate { boilerplate: learner.learn(), texts };
        store.corpus().write_boilerplate(repo, ItemType::Issue, &learned, &[], 0, setting.now()).await.expect("writes");
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Refused("no_content".to_owned()))]);
        assert!(is_open(&setting, item) && closes(&setting, item) == 0);
    }

    /// A model that says yes in one order only announces nothing: the same pair with the two exchanged is another question.
    async fn a_verdict_that_a_second_reading_does_not_confirm_announces_nothing(database: TestDatabase) {
        let setting = in_grace(database).await;
        setting.judge_says(yes_because(1, 0.96, ONCE));
        let item = setting.report(ALPHA, 0.95);
        setting.triage(item).await;
        let record = setting.records(item).await.remove(0).record;
        assert_eq!(
            (record.verdict, record.reason.as_str()),
            (Verdict::MaybeDuplicate, "online_strict_guardrail:second_reading")
        );
        assert!(!said(&setting, item).contains(ANNOUNCED), "{}", said(&setting, item));
        // Confirmed, it is announced.
        setting.judge_says(yes(1, 0.96));
        announced(&setting).await;
    }

    async fn a_close_needs_a_second_reading_too(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.judge_says(yes_because(1, 0.96, ONCE));
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Refused("second_reading".to_owned()))]);
        assert!(is_open(&setting, item) && closes(&setting, item) == 0);
    }

    /// What is announced and rests on a model's answer alone is not closed, and the comment says why.
    async fn a_close_by_a_model_needs_evidence_in_both_texts(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.later(73);
        let swept = sweep_with_hosted_model(&setting).await;
        assert_eq!(swept, [(item, GraceOutcome::Refused("no_shared_evidence".to_owned()))]);
        assert!(is_open(&setting, item) && closes(&setting, item) == 0);
        let said = said(&setting, item);
        assert!(said.contains("the two texts share no error, stack frame or name in code"), "{said}");
    }

    /// The index tells which evidence many items contain: not every text is read for each pair.
    async fn due_closes_are_judged_by_the_index_in_memory(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.later(73);
        let indexes = IndexCache::with_default_room();
        assert_eq!(sweep_by_index(&setting, &indexes).await, [(item, GraceOutcome::Closed)]);
        assert_closed(&setting, item, "by the index");
        assert_eq!(indexes.loads(), 1);
    }

    async fn from_the_suggestion_to_the_close_and_back(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        let began = grace(&setting, item).await;
        assert_eq!(began.due_at.duration_since(began.began_at).as_hours(), 72);
        // The comment names the real end of the grace period.
        let named = began.due_at.strftime("**closed on %-d %b, %H:%M UTC**").to_string();
        assert!(said(&setting, item).contains(&named), "{}", said(&setting, item));
        insta::assert_snapshot!(said(&setting, item), @"
        This looks like the same problem as #1 (*Original alpha: the exporter writes its summary twice*), so it will be **closed on 18 Jan, 12:00 UTC**.

        **Not the same?** 👎 this comment or reply, and it stays open. If it is the same, please add your details to #1.
        ");
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert_closed(&setting, item, "nobody objected");
        let closing = setting.comments(item).remove(1);
        insta::assert_snapshot!(closing, @"
        Closed as a duplicate; please follow #1 (*Original alpha: the exporter writes its summary twice*).

        **Wrong?** Reopen it, or comment `/canonry not a duplicate` (its author or a maintainer). Canonry will not close it again.
        ");
        let decisions = setting.store.judge().decisions_of(setting.repo.id, ItemType::Issue, item).await.expect("reads");
        let decided: Vec<_> = decisions.iter().map(|one| (one.origin, one.status, one.target)).collect();
        assert_eq!(decided, [(DecisionOrigin::Online, DecisionStatus::Accepted, Some(number(1)))]);
        let plan = grace(&setting, item).await.plan.expect("a plan");
        assert_eq!(setting.store.plans().rows(plan).await.expect("reads").len(), 1, "a plan of one row");
        assert_eq!(sweep(&setting).await, [], "that is all");

        assert_eq!(undo(&setting, item, UndoReason::NotDuplicate).await, UndoneLast::Reopened);
        assert!(is_open(&setting, item));
        assert_eq!(undo(&setting, item, UndoReason::NotDuplicate).await, UndoneLast::AlreadyOpen);
        let objections = setting.store.close().objections(setting.repo.id).await.expect("reads");
        let kinds: Vec<_> = objections.iter().map(|one| (one.number, one.kind)).collect();
        assert_eq!(kinds, [(item, ObjectionKind::NotADuplicate)], "noted once");
        // After an edit it is triaged again. It gets a suggestion, but never an announcement.
        setting.later(48);
        setting.edit_title(item, &setting.title(ALPHA, 0.97));
        setting.triage(item).await;
        begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
        assert!(!said(&setting, item).contains(ANNOUNCED), "{}", said(&setting, item));
        setting.later(24 * 7);
        assert_eq!(sweep(&setting).await, []);
        assert_eq!((is_open(&setting, item), closes(&setting, item)), (true, 1));
        assert_eq!(undo(&setting, number(2), UndoReason::Other).await, UndoneLast::Nothing);
    }

    async fn only_sure_duplicates_of_strangers_are_announced(database: TestDatabase) {
        let mut setting = in_grace(database).await;
        let mut plainly = Vec::new();
        let label = |setting: &Setting, label: &str| NewIssue::new(&setting.title(ALPHA, 0.95), LONG).label(label);
        plainly.push(setting.report_as(ALPHA, 0.95, label(&setting, "security")));
        plainly.push(setting.report_as(ALPHA, 0.95, NewIssue::new("Twice, case 0-0.95", "It does it twice.")));
        let mine = { setting.emulator.world().open(REPO, "maint", NewIssue::new(&setting.title(ALPHA, 0.95), LONG)) };
        plainly.push(number(mine));
        let assigned = setting.report(ALPHA, 0.95);
        setting.emulator.world().assign(REPO, plain(assigned), "ann", "ann");
        plainly.push(assigned);
        let reopened = setting.report(ALPHA, 0.95);
        {
            let mut world = setting.emulator.world();
            world.close(REPO, plain(reopened), "ann", canonry_testkit::github::CloseReason::NotPlanned);
            world.reopen(REPO, plain(reopened), "ann");
        }
        plainly.push(reopened);
        // Sure enough to be called a duplicate, but the repository requires more.
        if let Some(grace) = &mut setting.rules.grace {
            grace.min_close = canonry_domain::Probability::new(0.97).expect("a probability");
        }
        plainly.push(setting.report(ALPHA, 0.95));
        for item in &plainly[..5] {
            setting.judge_says(yes(1, 0.99));
            setting.triage(*item).await;
        }
        setting.judge_says(yes(1, 0.96));
        setting.triage(plainly[5]).await;
        begin_announced_graces(&setting.store, None, setting.now()).await.expect("begun");
        for item in plainly {
            let text = said(&setting, item);
            assert!(text.contains("Nothing is closed because of it."), "#{item}: {text}");
            let graces = setting.store.close().graces_of_item(setting.repo.id, ItemType::Issue, item).await.expect("reads");
            assert_eq!(graces, [], "#{item}");
        }
    }

    async fn a_second_look_may_refuse(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.judge_says(no());
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Refused("model_not_duplicate".to_owned()))]);
        assert!(is_open(&setting, item));
        assert!(said(&setting, item).starts_with("**Close cancelled**, because a recheck was not sure enough."), "{}", said(&setting, item));
        assert_eq!(grace(&setting, item).await.state, GraceState::Refused);
        setting.judge_says(yes(1, 0.96));
        setting.later(24 * 7);
        assert_eq!(sweep(&setting).await, [], "it is not asked again until it says yes");

        // The judge does not answer: the close waits for it.
        let item = announced(&setting).await;
        setting.judge_says("It depends.".to_owned());
        setting.later(73);
        let waits = GraceOutcome::Waiting("no_answer_of_the_judge".to_owned());
        assert_eq!(sweep(&setting).await, [(item, waits)]);
        setting.judge_says(yes(1, 0.96));
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
    }

    async fn what_a_person_reopened_is_never_closed_again(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.later(73);
        sweep(&setting).await;
        assert_closed(&setting, item, "nobody objected");
        meanwhile(&setting, |world| world.reopen(REPO, plain(item), "ann"));
        setting.sync().await;
        for (title, hours) in [(0.96, 24), (0.97, 100), (0.98, 100)] {
            setting.edit_title(item, &setting.title(ALPHA, title));
            setting.triage(item).await;
            setting.later(hours);
            assert_eq!(sweep(&setting).await, []);
        }
        assert_eq!((is_open(&setting, item), closes(&setting, item)), (true, 1));
        // A maintainer's ruling is different.
        let by = "maint".parse().expect("a login");
        let outbox = setting.outbox().await;
        let (repo, now) = (&setting.repo, setting.now());
        let ruled = NewOverride {
            item_type: ItemType::Issue, kind: OverrideKind::Duplicate, item, other: Some(number(1)), note: None,
            by: None,
        };
        setting.store.duplicates().add_override(repo.id, ruled, now).await.expect("ruled");
        let begun = begin_grace_by_ruling(
            &setting.store, Some(&outbox), repo, ItemType::Issue, item, number(1), &by, now,
        );
        assert_eq!(begun.await.expect("begun"), GraceStart::Yes);
        setting.later(1);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert_eq!(closes(&setting, item), 2);
    }

    async fn a_ruling_takes_the_place_of_what_was_announced(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        let by = "maint".parse().expect("a login");
        let outbox = setting.outbox().await;
        meanwhile(&setting, |world| world.comment(REPO, plain(item), "maint", "/canonry duplicate of #2"));
        setting.sync().await;
        let (repo, now) = (&setting.repo, setting.now());
        let ruled = NewOverride {
            item_type: ItemType::Issue, kind: OverrideKind::Duplicate, item, other: Some(number(2)), note: None,
            by: None,
        };
        setting.store.duplicates().add_override(repo.id, ruled, now).await.expect("ruled");
        let begun = begin_grace_by_ruling(
            &setting.store, Some(&outbox), repo, ItemType::Issue, item, number(2), &by, now,
        );
        assert_eq!(begun.await.expect("begun"), GraceStart::Yes);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert!(setting.comments(item)[1].starts_with("Closed as a duplicate; please follow #2"), "{:?}", setting.comments(item));
        assert!(said(&setting, item).starts_with("**Close cancelled**, because a maintainer decided about it."));
        assert_eq!(closes(&setting, item), 1);
        assert_eq!(setting.store.plans().closes_since(repo.id, now).await.expect("reads"), 0, "a person approved it");
    }

    async fn somebody_is_quicker_than_the_close(database: TestDatabase) {
        // Between the closing comment and the close itself.
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.later(73);
        let (fault, mut gate) = Fault::on("PATCH", &format!("/repos/*/*/issues/{item}")).hold();
        let (reactions, mut before_close) =
            Fault::on("GET", "/repos/*/*/issues/comments/*/reactions").nth(4).hold();
        setting.emulator.fault(fault);
        setting.emulator.fault(reactions);
        let (github, outbox) = (setting.github(), setting.outbox().await);
        let objecting = async {
            before_close.arrived().await;
            let comment = setting.comment_id(item);
            setting.emulator.world().react_to_comment(REPO, comment, "eve", "-1");
            before_close.release();
        };
        let (swept, ()) = tokio::join!(try_sweep(&setting, &github, &outbox), objecting);
        let ended = GraceOutcome::Cancelled(canonry_domain::GraceEnd::Reaction);
        assert_eq!(swept.expect("swept"), [(item, ended)]);
        assert_eq!((is_open(&setting, item), closes(&setting, item)), (true, 0));
        let comments = setting.comments(item);
        assert!(comments[1].contains("stays open"), "{comments:?}");
        assert!(tokio::time::timeout(std::time::Duration::from_millis(1), gate.arrived()).await.is_err());
    }

    async fn two_sweeps_at_once_close_once(database: TestDatabase) {
        let setting = in_grace(database).await;
        let item = announced(&setting).await;
        setting.later(73);
        let (one, two) = (setting.github(), setting.github());
        let (first, second) = (setting.outbox().await, setting.outbox().await);
        let (first, second) = tokio::join!(try_sweep(&setting, &one, &first), try_sweep(&setting, &two, &second));
        let outcomes: Vec<_> = [first.expect("swept"), second.expect("swept")].concat();
        assert!(outcomes.iter().any(|(_, outcome)| *outcome == GraceOutcome::Closed), "{outcomes:?}");
        assert_closed(&setting, item, "at once");
        assert_eq!(sweep(&setting).await, []);
        assert_eq!(grace(&setting, item).await.state, GraceState::Closed);
        assert!(setting.labels(item).contains(&LABEL.to_owned()));
    }

    async fn no_other_row_slips_in(database: TestDatabase) {
        let setting = in_grace(database).await;
        // A pair that a person ruled, which a full plan would close.
        let other = setting.report(BETA, 0.95);
        setting.sync().await;
        let ruled = NewOverride {
            item_type: ItemType::Issue, kind: OverrideKind::Duplicate, item: other, other: Some(number(2)), note: None,
            by: None,
        };
        setting.store.duplicates().add_override(setting.repo.id, ruled, setting.now()).await.expect("ruled");
        let item = announced(&setting).await;
        setting.later(73);
        assert_eq!(sweep(&setting).await, [(item, GraceOutcome::Closed)]);
        assert!(is_open(&setting, other));
        assert_closed(&setting, item, "alone");
    }
}

const LONG: &str = "After the change of last week the exporter writes its summary twice to the console, once at the start and \
    once at the end of each run.";
