//! Plans, the results of applying and undoing them, and the close lease, on both engines.

use canonry_domain::{
    EventBy, ItemNumber, ItemRecord, ItemState, ItemType, Login, OutcomeEvent, OutcomeKind, OverrideKind, Probability,
    RecordChange, SkipReason, StateReason, TargetPolicy,
};
use canonry_store::{
    CloseMode, CloseOutcome, CloseResult, CloseRunId, CloseRunRow, NewOverride, NewPlan, NewPlanRow, NotDuplicate,
    Repo, Representation, RowApproval, RowsLeft, Store, StoreError, StoredCloseLease,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::fixtures::{ISSUE, PLAN, at, issues, number, open_with, plan_row, probability, pulls};

const APPLIED: CloseOutcome = CloseOutcome::Applied { objected: false };
const OBJECTED: CloseOutcome = CloseOutcome::Applied { objected: true };

/// A store with the issues 1 to 9 and the pull requests 11 and 12.
async fn open(database: &TestDatabase) -> (Store, Repo) {
    open_with(database, issues(1..=9).chain(pulls(11..=12))).await
}

fn closes(item_type: ItemType, of: i64, target: i64) -> NewPlanRow {
    let (evidence, snapshot) = (json!(["both name sync"]), json!({ "source": { "state": "open" } }));
    NewPlanRow { item_type, evidence, snapshot, ..plan_row(of, target) }
}

fn skips(of: i64, reason: SkipReason) -> NewPlanRow {
    NewPlanRow { target: None, skip: Some(reason), confidence: None, ..closes(ISSUE, of, of) }
}

async fn plan(store: &Store, repo: &Repo, rows: &[NewPlanRow], second: i64) -> CloseRunId {
    let plan = NewPlan { target_policy: TargetPolicy::DirectFallback, min_close: probability(0.9), ..PLAN };
    store.plans().create(repo.id, &plan, rows, at(second)).await.expect("planned")
}

fn result(outcome: CloseOutcome) -> CloseResult<'static> {
    CloseResult { outcome, reason: None, outbox_key: Some("close:1") }
}

async fn rows(store: &Store, run: CloseRunId) -> Vec<CloseRunRow> {
    store.plans().rows(run).await.expect("reads")
}

async fn state(
    store: &Store,
    repo: &Repo,
    item_type: ItemType,
    of: i64,
) -> (ItemState, Option<StateReason>, Option<i64>) {
    let item = store.corpus().item(repo.id, item_type, number(of)).await.expect("reads").expect("known");
    (item.state, item.state_reason, item.duplicate_of.map(ItemNumber::get))
}

on_both_engines! {
    async fn a_plan_is_made_approved_applied_and_undone(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let planned = [closes(ISSUE, 2, 1), closes(ISSUE, 3, 1), closes(ISSUE, 4, 1), skips(5, SkipReason::Pinned), closes(ItemType::Pr, 12, 11)];
        let id = plan(&store, &repo, &planned, 0).await;
        let run = store.plans().run(id).await.expect("reads").expect("there");
        assert_eq!((run.mode, run.plan_id, run.target_policy), (CloseMode::Plan, None, TargetPolicy::DirectFallback));
        assert_eq!((&run.repo, run.min_close.get(), run.config_hash.as_str(), run.run_id.as_str()), (&repo, 0.9, "c", "planning"));
        assert_eq!((run.created_at, run.finished_at), (at(0), None));
        let stored = rows(&store, id).await;
        assert_eq!(stored.iter().map(|row| row.number.get()).collect::<Vec<_>>(), [2, 3, 4, 5, 12]);
        assert_eq!((stored[0].target, stored[0].skip, stored[0].approved), (Some(number(1)), None, None));
        assert_eq!((&stored[0].evidence, &stored[0].snapshot), (&planned[0].evidence, &planned[0].snapshot));
        assert_eq!((stored[3].target, stored[3].skip, &stored[3].result), (None, Some(SkipReason::Pinned), &None));

        // Decisions count only for rows that close.
        let approve = async |numbers: &[i64], word, second| {
            let numbers: Vec<_> = numbers.iter().copied().map(number).collect();
            store.plans().set_approved(id, ISSUE, &numbers, word, None, at(second)).await.expect("noted")
        };
        assert_eq!(approve(&[2, 3, 5, 9, 12], Some(true), 1).await, 2);
        assert_eq!(approve(&[3], None, 2).await, 1);
        assert_eq!(approve(&[4], Some(false), 2).await, 1);
        let words: Vec<_> = rows(&store, id).await.iter().map(|row| (row.approved, row.approved_at)).collect();
        assert_eq!(words[..4], [(Some(true), Some(at(1))), (None, None), (Some(false), Some(at(2))), (None, None)]);

        // However often it is begun, it is one run.
        assert_eq!(store.plans().apply_of(id).await.expect("reads"), None);
        let apply = store.plans().begin_apply(id, "applying", at(3)).await.expect("begun").expect("a plan");
        assert_eq!(store.plans().apply_of(id).await.expect("reads"), Some(apply.clone()));
        assert_eq!((apply.mode, apply.plan_id, apply.run_id.as_str()), (CloseMode::Apply, Some(id), "applying"));
        assert_eq!(store.plans().begin_apply(id, "again", at(9)).await.expect("begun"), Some(apply.clone()));
        let copied = rows(&store, apply.id).await;
        assert_eq!(copied, rows(&store, id).await);

        // A result is written once, with the item's state.
        let record = async |of: i64, outcome, second| {
            store.plans().record_close_result(apply.id, ISSUE, number(of), result(outcome), at(second)).await.expect("recorded")
        };
        assert!(record(2, APPLIED, 4).await);
        assert_eq!(state(&store, &repo, ISSUE, 2).await, (ItemState::Closed, Some(StateReason::Duplicate), Some(1)));
        assert!(!record(2, APPLIED, 5).await);
        assert!(!record(2, CloseOutcome::Failed, 5).await);
        assert!(record(3, OBJECTED, 5).await);
        assert_eq!(state(&store, &repo, ISSUE, 3).await, (ItemState::Open, None, None));
        let drifted = CloseResult { outcome: CloseOutcome::Skipped, reason: Some("drift:source_edited"), outbox_key: None };
        assert!(store.plans().record_close_result(apply.id, ISSUE, number(4), drifted, at(5)).await.expect("recorded"));
        assert!(store.plans().record_close_result(apply.id, ItemType::Pr, number(12), result(APPLIED), at(6)).await.expect("recorded"));
        assert_eq!(state(&store, &repo, ItemType::Pr, 12).await, (ItemState::Closed, None, Some(11)));
        for (run, of) in [(apply.id, 5), (apply.id, 9), (id, 4), (CloseRunId::new(999), 2)] {
            let recorded = store.plans().record_close_result(run, ISSUE, number(of), result(APPLIED), at(6)).await.expect("asked");
            assert!(!recorded, "{run} {of}");
        }
        let ended = rows(&store, apply.id).await;
        let told = |of: usize| ended[of].result.as_ref().map(|told| (told.outcome, told.reason.as_deref(), told.outbox_key.as_deref(), told.at));
        assert_eq!(told(0), Some((APPLIED, None, Some("close:1"), at(4))));
        assert_eq!(told(1), Some((OBJECTED, None, Some("close:1"), at(5))));
        assert_eq!(told(2), Some((CloseOutcome::Skipped, Some("drift:source_edited"), None, at(5))));
        assert_eq!((told(3), rows(&store, id).await[0].result.clone()), (None, None));

        // Rows with a result cannot be decided any more.
        assert_eq!(approve(&[2, 3, 4], Some(true), 7).await, 0);
        store.plans().finish_run(apply.id, at(8)).await.expect("finished");
        store.plans().finish_run(apply.id, at(99)).await.expect("finished");
        assert_eq!(store.plans().begin_apply(id, "again", at(9)).await.expect("begun").expect("a plan").finished_at, Some(at(8)));

        // First an undo of one item; an unfinished undo is continued.
        let undo = store.plans().begin_undo(id, Some(&[(ISSUE, number(2)), (ISSUE, number(4))]), "undoing", at(10)).await.expect("begun").expect("a plan");
        assert_eq!((undo.mode, undo.plan_id), (CloseMode::Undo, Some(id)));
        assert_eq!(rows(&store, undo.id).await.iter().map(|row| row.number.get()).collect::<Vec<_>>(), [2]);
        let again = store.plans().begin_undo(id, None, "again", at(11)).await.expect("begun").expect("a plan");
        assert_eq!((again.id, rows(&store, undo.id).await.len()), (undo.id, 3));

        let ruling = Some(NotDuplicate { note: Some("another device"), by: None });
        let back = async |item_type, of: i64, outcome, ruling| {
            store.plans().record_undo_result(undo.id, item_type, number(of), result(outcome), ruling, at(12)).await.expect("recorded")
        };
        assert!(back(ISSUE, 2, APPLIED, ruling).await);
        assert!(!back(ISSUE, 2, APPLIED, ruling).await);
        assert!(back(ItemType::Pr, 12, APPLIED, None).await);
        assert!(back(ISSUE, 3, CloseOutcome::Skipped, None).await);
        assert!(!back(ISSUE, 4, APPLIED, ruling).await, "it was never closed");
        assert!(!store.plans().record_undo_result(apply.id, ISSUE, number(4), result(APPLIED), ruling, at(12)).await.expect("asked"));
        assert_eq!(state(&store, &repo, ISSUE, 2).await, (ItemState::Open, Some(StateReason::Reopened), None));
        assert_eq!(state(&store, &repo, ItemType::Pr, 12).await, (ItemState::Open, None, None));
        let rulings = store.duplicates().overrides(repo.id, None).await.expect("reads");
        assert_eq!(rulings.iter().map(|one| (one.kind, one.item, one.other, one.note.as_deref())).collect::<Vec<_>>(),
            [
                (OverrideKind::Excluded, number(4), Some(number(1)), None),
                (OverrideKind::NotDuplicate, number(2), Some(number(1)), Some("another device")),
            ]);
        store.plans().finish_run(undo.id, at(13)).await.expect("finished");
        let rest = store.plans().begin_undo(id, None, "later", at(14)).await.expect("begun").expect("a plan");
        assert_ne!(rest.id, undo.id);
        assert_eq!(rows(&store, rest.id).await.iter().map(|row| row.number.get()).collect::<Vec<_>>(), [3]);

        // The whole history is stored.
        let history = store.plans().applied_closes(repo.id, ISSUE).await.expect("reads");
        let told: Vec<_> = history.iter().map(|one| (one.number.get(), one.target.get(), one.approved, one.objected, one.undone_at)).collect();
        assert_eq!(told, [(2, 1, Some(true), false, Some(at(12))), (3, 1, None, true, None)]);
        assert_eq!((history[0].plan_id, history[0].apply_run_id, history[0].applied_at), (id, apply.id, at(4)));
        assert_eq!((history[0].reversed_at(), history[1].reversed_at()), (Some(at(12)), Some(at(5))));
        assert_eq!(store.plans().applied_closes(repo.id, ItemType::Pr).await.expect("reads").len(), 1);
        assert_eq!(store.plans().closes_since(repo.id, at(0)).await.expect("counted"), 2);
        assert_eq!(store.plans().closes_since(repo.id, at(6)).await.expect("counted"), 1);
        assert_eq!(store.plans().closes_since(repo.id, at(7)).await.expect("counted"), 0);
    }

    async fn a_sync_that_sees_our_own_close_finds_nothing_new(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let id = plan(&store, &repo, &[closes(ISSUE, 2, 1)], 0).await;
        let apply = store.plans().begin_apply(id, "applying", at(1)).await.expect("begun").expect("a plan");
        assert!(store.plans().record_close_result(apply.id, ISSUE, number(2), result(APPLIED), at(2)).await.expect("recorded"));
        let seen = ItemRecord {
            state: Some(ItemState::Closed),
            state_reason: Some(Some(StateReason::Duplicate)),
            closed_at: Some(Some(at(3))),
            updated_at: Some(at(3)),
            synced_at: Some(at(4)),
            ..ItemRecord::new(ISSUE, number(2), "Issue 2")
        };
        let taken = store.corpus().upsert_items(&repo, vec![seen], at(4)).await.expect("taken in");
        assert_eq!(taken.changes, [RecordChange::Updated { content: false }]);
        let told = store.learning().outcome_events(repo.id, number(2)).await.expect("reads");
        let told: Vec<_> = told.iter().map(|event| (event.delivery_id.as_str(), event.by, event.duplicate_of)).collect();
        assert_eq!(told, [(format!("apply:{}#2", apply.id.get()).as_str(), EventBy::Canonry, Some(number(1)))]);
    }

    async fn many_who_apply_a_plan_share_one_run(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let id = plan(&store, &repo, &[closes(ISSUE, 2, 1), closes(ISSUE, 3, 1)], 0).await;
        let workers: Vec<_> = (0..6).map(|worker| {
            let store = store.clone();
            tokio::spawn(async move {
                let run = store.plans().begin_apply(id, &format!("worker {worker}"), at(1)).await.expect("begun").expect("a plan");
                let mut recorded = 0;
                for of in [2, 3] {
                    let outcome = if worker % 2 == 0 { APPLIED } else { CloseOutcome::Failed };
                    recorded += usize::from(store.plans().record_close_result(run.id, ISSUE, number(of), result(outcome), at(2)).await.expect("asked"));
                }
                let undo = store.plans().begin_undo(id, None, "undo", at(3)).await.expect("begun").expect("a plan");
                (run.id, undo.id, recorded)
            })
        }).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.push(worker.await.expect("works"));
        }
        assert!(all.iter().all(|one| (one.0, one.1) == (all[0].0, all[0].1)), "{all:?}");
        assert_eq!(all.iter().map(|one| one.2).sum::<usize>(), 2);
        assert_eq!(rows(&store, all[0].0).await.len(), 2);
    }

    async fn a_word_given_while_a_plan_is_applied_is_heard(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let id = plan(&store, &repo, &[closes(ISSUE, 2, 1), closes(ISSUE, 3, 1)], 0).await;
        let apply = store.plans().begin_apply(id, "applying", at(1)).await.expect("begun").expect("a plan");
        assert!(store.plans().record_close_result(apply.id, ISSUE, number(2), result(APPLIED), at(2)).await.expect("recorded"));
        assert_eq!(store.plans().set_approved(id, ISSUE, &[number(2), number(3)], Some(false), None, at(3)).await.expect("noted"), 1);
        for run in [id, apply.id] {
            let words: Vec<_> = rows(&store, run).await.iter().map(|row| row.approved).collect();
            assert_eq!(words, [None, Some(false)]);
        }
        let word = async |run, of| store.plans().approval_of_row(run, ISSUE, number(of)).await;
        assert_eq!((word(id, 2).await.expect("reads"), word(id, 3).await.expect("reads")), (None, Some(false)));
        for (run, of) in [(id, 4), (CloseRunId::new(999), 3)] {
            assert!(matches!(word(run, of).await, Err(StoreError::Database(_))), "no row has no word: {run} #{of}");
        }
        // An apply run is not a plan to be reviewed, applied or undone.
        assert_eq!(store.plans().set_approved(apply.id, ISSUE, &[number(3)], Some(true), None, at(4)).await.expect("asked"), 0);
        for none in [apply.id, CloseRunId::new(999)] {
            assert_eq!(store.plans().begin_apply(none, "x", at(4)).await.expect("asked"), None);
            assert_eq!(store.plans().begin_undo(none, None, "x", at(4)).await.expect("asked"), None);
        }
        assert_eq!(store.plans().run(CloseRunId::new(999)).await.expect("reads"), None);
    }

    async fn a_plan_was_undone_when_nothing_of_it_is_left(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let id = plan(&store, &repo, &[closes(ISSUE, 2, 1), closes(ISSUE, 3, 1), closes(ISSUE, 4, 1)], 0).await;
        let undone = async |since| store.plans().was_undone_since(id, at(since)).await.expect("reads");
        let apply = store.plans().begin_apply(id, "applying", at(1)).await.expect("begun").expect("a plan");
        assert!(!undone(0).await, "nothing was closed");
        for of in [2, 3] {
            assert!(store.plans().record_close_result(apply.id, ISSUE, number(of), result(APPLIED), at(2)).await.expect("recorded"));
        }
        let undo = store.plans().begin_undo(id, None, "undoing", at(3)).await.expect("begun").expect("a plan");
        assert!(!undone(0).await);
        assert!(store.plans().record_undo_result(undo.id, ISSUE, number(2), result(APPLIED), None, at(4)).await.expect("recorded"));
        assert!(!undone(0).await, "one is left");
        // Another person closed it since: it still counts as handled.
        let left = CloseResult { outcome: CloseOutcome::Skipped, reason: Some("not_our_close"), outbox_key: None };
        assert!(store.plans().record_undo_result(undo.id, ISSUE, number(3), left, None, at(5)).await.expect("recorded"));
        assert_eq!((undone(0).await, undone(4).await, undone(5).await), (true, true, false));
        assert!(store.plans().record_close_result(apply.id, ISSUE, number(4), result(APPLIED), at(6)).await.expect("recorded"));
        assert!(!undone(0).await, "more was closed");
    }

    async fn a_plan_ages_by_newer_plans_and_overrides_of_its_items(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let rule = async |item: i64, other: i64, second| {
            let new = NewOverride { item_type: ISSUE, kind: OverrideKind::NotDuplicate, item: number(item), other: Some(number(other)), note: None, by: None };
            store.duplicates().add_override(repo.id, new, at(second)).await.expect("added").id
        };
        let before = rule(2, 9, 0).await;
        let old = plan(&store, &repo, &[closes(ISSUE, 2, 1), skips(5, SkipReason::NotOpen)], 10).await;
        let newer_plan = async |of| store.plans().newer_of_items(of).await.expect("reads");
        let newer_override = async |of| store.plans().rows_left(of).await.expect("reads").newest_ruling;
        // A plan that closes other items for the same target, or contains items that this plan only skips, does not
        // matter.
        plan(&store, &repo, &[closes(ISSUE, 3, 1), closes(ISSUE, 5, 6)], 11).await;
        rule(5, 6, 11).await;
        assert_eq!((newer_plan(old).await, newer_override(old).await), (None, None));
        let target_closes = plan(&store, &repo, &[closes(ISSUE, 1, 7)], 12).await;
        assert_eq!(newer_plan(old).await, Some(target_closes));
        let onto_source = plan(&store, &repo, &[closes(ISSUE, 8, 2)], 13).await;
        assert_eq!(newer_plan(old).await, Some(onto_source));
        let again = plan(&store, &repo, &[skips(2, SkipReason::Pinned)], 14).await;
        assert_eq!((newer_plan(old).await, newer_plan(again).await), (Some(again), None));

        assert!(store.duplicates().remove_override(repo.id, before, at(15)).await.expect("removed"));
        assert_eq!(newer_override(old).await, Some(before), "a ruling that was taken back counts too");
        let about_target = rule(7, 1, 16).await;
        assert_eq!(newer_override(old).await, Some(about_target));
    }

    async fn a_ruling_touches_its_cluster_and_an_exclusion_nothing_but_its_row(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let rows = [closes(ISSUE, 2, 1), closes(ISSUE, 3, 1), closes(ISSUE, 5, 4), closes(ISSUE, 6, 4)];
        let id = plan(&store, &repo, &rows, 0).await;
        let mona = "mona".parse().expect("a login");
        let say = async |of: i64, word, second| {
            store.plans().set_approved(id, ISSUE, &[number(of)], word, Some(&mona), at(second)).await.expect("noted")
        };
        say(6, Some(true), 1).await;
        say(5, Some(false), 1).await;
        let left = async || store.plans().rows_left(id).await.expect("reads");
        assert_eq!(left().await, RowsLeft { approved: 1, unapproved: 2, ruled_since: 0, newest_ruling: None });
        let rulings = async || store.duplicates().overrides(repo.id, None).await.expect("reads");
        let ruled = rulings().await;
        assert_eq!(ruled.len(), 1);
        assert_eq!(
            (ruled[0].kind, ruled[0].item, ruled[0].other, ruled[0].created_by.as_ref(), ruled[0].created_at),
            (OverrideKind::Excluded, number(5), Some(number(4)), Some(&mona), at(1))
        );
        let new = NewOverride { item_type: ISSUE, kind: OverrideKind::NotDuplicate, item: number(2), other: Some(number(1)), note: None, by: None };
        let apart = store.duplicates().add_override(repo.id, new, at(2)).await.expect("added").id;
        let touched = store.plans().targets_ruled_since(id).await.expect("reads");
        assert_eq!(touched.into_iter().collect::<Vec<_>>(), [((ISSUE, number(1)), apart)]);
        assert_eq!(left().await, RowsLeft { approved: 1, unapproved: 0, ruled_since: 2, newest_ruling: Some(apart) });

        // An exclusion given twice needs one removal; every other decision lifts it.
        say(5, Some(false), 3).await;
        assert_eq!(rulings().await.iter().filter(|ruled| ruled.kind == OverrideKind::Excluded).count(), 1);
        for word in [None, Some(true)] {
            say(5, Some(false), 4).await;
            say(5, word, 5).await;
            assert!(rulings().await.iter().all(|ruled| ruled.kind != OverrideKind::Excluded), "{word:?}");
        }
    }

    async fn a_plan_keeps_words_and_a_lifted_exclusion_closes_its_row(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let new = NewPlan {
            representation: Representation::Raw,
            target_policy: TargetPolicy::CanonicalOnly,
            min_close: Probability::ONE,
            config_hash: "c",
            run_id: "r",
        };
        let mona: Login = "mona".parse().expect("a login");
        let word = |approved| RowApproval { approved, by: Some(mona.clone()), at: at(0) };
        let excluded = NewPlanRow { skip: Some(SkipReason::Excluded), ..closes(ISSUE, 3, 1) };
        let words = [((ISSUE, number(2)), word(true)), ((ISSUE, number(3)), word(false))].into();
        let rows = [closes(ISSUE, 2, 1), excluded];
        let id = store.plans().create_keeping_approvals(repo.id, &new, &rows, &words, at(1)).await.expect("written");
        let rows = async || {
            let rows = store.plans().rows(id).await.expect("reads").into_iter();
            rows.map(|row| (row.number.get(), row.skip, row.approved, row.approved_by)).collect::<Vec<_>>()
        };
        let mona = Some(mona);
        assert_eq!(rows().await, [
            (2, None, Some(true), mona.clone()),
            (3, Some(SkipReason::Excluded), Some(false), mona.clone()),
        ]);
        let approvals = store.plans().standing_approvals(repo.id, ISSUE).await.expect("reads");
        assert_eq!(approvals.keys().map(|of| of.get()).collect::<Vec<_>>(), [2]);
        // A reset of all decisions resets those of this plan; an exclusion is lifted by item number.
        assert_eq!(store.plans().set_all_approved(id, None, None, None, at(2)).await.expect("noted"), 1);
        assert_eq!(rows().await[1], (3, Some(SkipReason::Excluded), Some(false), mona.clone()));
        assert_eq!(store.plans().set_approved(id, ISSUE, &[number(3)], Some(true), mona.as_ref(), at(3)).await.expect("noted"), 1);
        assert_eq!(rows().await, [(2, None, None, None), (3, None, Some(true), mona)]);
    }

    async fn a_plan_with_an_unknown_item_is_not_written(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let new = NewPlan {
            representation: Representation::Raw,
            target_policy: TargetPolicy::CanonicalOnly,
            min_close: Probability::ONE,
            config_hash: "c",
            run_id: "r",
        };
        for row in [closes(ISSUE, 2, 99), closes(ISSUE, 99, 2), closes(ISSUE, 11, 2)] {
            let error = store.plans().create(repo.id, &new, &[closes(ISSUE, 3, 1), row], at(0)).await.expect_err("unknown");
            assert!(matches!(error, StoreError::UnknownItem { item_type: ISSUE, .. }), "{error}");
        }
        let error = store.plans().create(repo.id, &new, &[closes(ISSUE, 2, 2)], at(0)).await.expect_err("onto itself");
        assert!(matches!(error, StoreError::Database(_)), "{error}");
        let empty = store.plans().create(repo.id, &new, &[], at(0)).await.expect("written");
        assert_eq!(store.plans().rows(empty).await.expect("reads"), []);
        assert_eq!(store.plans().newer_of_items(empty).await.expect("reads"), None);
    }

    async fn one_at_a_time_has_the_lease(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), at(0)).await.expect("created");
        let take = async |repo: &Repo, owner: &str, now, until| {
            store.close().take_lease(repo.id, owner, at(now), at(until)).await.expect("asked")
        };
        assert_eq!(store.close().lease(repo.id).await.expect("reads"), None);
        assert!(take(&repo, "a", 0, 60).await);
        assert!(!take(&repo, "b", 59, 120).await);
        assert!(take(&other, "b", 0, 60).await, "each repository has its own");
        assert!(take(&repo, "a", 30, 90).await, "one's own is kept for longer");
        assert!(!take(&repo, "b", 89, 150).await);
        assert!(take(&repo, "b", 90, 150).await, "one that ended is taken over");
        assert!(!take(&repo, "a", 91, 150).await);
        store.close().release_lease(repo.id, "a").await.expect("nothing of its own");
        assert_eq!(store.close().lease(repo.id).await.expect("reads"), Some(StoredCloseLease { owner: "b".to_owned(), until: at(150) }));
        store.close().release_lease(repo.id, "b").await.expect("given back");
        let takers: Vec<_> = (0..6).map(|taker| {
            let (store, repo) = (store.clone(), repo.id);
            tokio::spawn(async move { store.close().take_lease(repo, &format!("taker {taker}"), at(92), at(150)).await.expect("asked") })
        }).collect();
        let mut taken = 0;
        for taker in takers {
            taken += usize::from(taker.await.expect("runs"));
        }
        assert_eq!(taken, 1);
    }

    async fn what_was_opened_again_is_told(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let event = |of: i64, kind, second| OutcomeEvent {
            delivery_id: format!("{of} {second}"),
            number: number(of),
            kind,
            state_reason: None,
            actor: None,
            by: EventBy::Unknown,
            duplicate_of: None,
            in_body: None,
            comment: None,
            labels: None,
            cluster: Vec::new(),
            occurred_at: at(second),
        };
        let events = [
            event(3, OutcomeKind::Reopened, 5), event(3, OutcomeKind::Closed, 6), event(3, OutcomeKind::Reopened, 7),
            event(2, OutcomeKind::Closed, 8), event(1, OutcomeKind::Reopened, 1),
        ];
        store.learning().record_outcome_events(repo.id, &events, at(9)).await.expect("recorded");
        assert_eq!(store.learning().reopened_numbers(repo.id).await.expect("reads"), [(number(1), at(1)), (number(3), at(7))]);
    }
}
