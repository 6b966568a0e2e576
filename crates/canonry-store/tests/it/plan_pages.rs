//! Pages of plans, and the people who decided about their rows, on both engines.

use canonry_domain::{ContentVersion, ItemType, OverrideKind, SkipReason};
use canonry_store::{
    CloseOutcome, CloseResult, CloseRunId, NewGrace, NewOverride, NewPlanRow, NotDuplicate, PlanOrigin, PlanRowFilter,
    PlanSummary, PlanTotals, Repo, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::fixtures::{ISSUE, PLAN, at, issues, login, number, open_with, plan_row};

const APPLIED: CloseOutcome = CloseOutcome::Applied { objected: false };

async fn open(database: &TestDatabase) -> (Store, Repo) {
    open_with(database, issues(1..=20)).await
}

fn skips(of: i64, target: Option<i64>, reason: SkipReason) -> NewPlanRow {
    NewPlanRow { target: target.map(number), skip: Some(reason), confidence: None, ..plan_row(of, of) }
}

async fn plan(store: &Store, repo: &Repo, rows: &[NewPlanRow], second: i64) -> CloseRunId {
    store.plans().create(repo.id, &PLAN, rows, at(second)).await.expect("planned")
}

async fn summary(store: &Store, repo: &Repo, plan: CloseRunId) -> PlanSummary {
    store.plans().summary(repo.id, plan).await.expect("reads").expect("a plan")
}

/// Returns the rows of all pages, two per page.
async fn paged(store: &Store, plan: &PlanSummary, filter: PlanRowFilter) -> Vec<i64> {
    let mut seen = Vec::new();
    let mut after = None;
    for _ in 0..20 {
        let page = store.plans().rows_page(plan, filter, after, 2).await.expect("reads");
        let Some(last) = page.last() else { return seen };
        after = Some((last.row.item_type, last.row.number));
        seen.extend(page.iter().map(|row| row.row.number.get()));
    }
    panic!("the pages never end: {seen:?}");
}

on_both_engines! {
    async fn rows_are_paged_by_target_and_filtered(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let rows = [
            plan_row(9, 2), plan_row(4, 1), plan_row(5, 1), plan_row(3, 2),
            skips(7, Some(1), SkipReason::Pinned), skips(8, None, SkipReason::NotOpen), skips(10, Some(2), SkipReason::Pinned),
        ];
        let id = plan(&store, &repo, &rows, 0).await;
        let ann = login("ann");
        store.plans().set_approved(id, ISSUE, &[number(4), number(9)], Some(true), Some(&ann), at(1)).await.expect("noted");
        store.plans().set_approved(id, ISSUE, &[number(5)], Some(false), None, at(2)).await.expect("noted");
        let plan = summary(&store, &repo, id).await;
        assert_eq!(paged(&store, &plan, PlanRowFilter::All).await, [8, 4, 5, 7, 3, 9, 10]);
        assert_eq!(paged(&store, &plan, PlanRowFilter::Closes).await, [4, 5, 3, 9]);
        assert_eq!(paged(&store, &plan, PlanRowFilter::Undecided).await, [3]);
        assert_eq!(paged(&store, &plan, PlanRowFilter::Approved).await, [4, 9]);
        assert_eq!(paged(&store, &plan, PlanRowFilter::Excluded).await, [5]);
        assert_eq!(paged(&store, &plan, PlanRowFilter::Skips).await, [8, 7, 10]);
        assert_eq!(paged(&store, &plan, PlanRowFilter::SkippedFor(SkipReason::Pinned)).await, [7, 10]);
        assert_eq!(paged(&store, &plan, PlanRowFilter::Ended).await, [0_i64; 0]);
        assert_eq!(plan.totals, PlanTotals {
            closes: 4,
            skips: [(SkipReason::Pinned, 2), (SkipReason::NotOpen, 1)].into(),
            approved: 2, excluded: 1, left: 3, left_approved: 2,
            ..PlanTotals::default()
        });
        assert_eq!((plan.totals.undecided(), plan.totals.skips(), plan.totals.ended()), (1, 3, 0));

        // The row before another one, whether or not that one passes the filter.
        let before = async |filter: PlanRowFilter, of: i64| {
            let row = store.plans().row_before(&plan, filter, ISSUE, number(of)).await.expect("reads");
            row.map(|(item_type, number)| (item_type, number.get()))
        };
        assert_eq!(before(PlanRowFilter::All, 8).await, None);
        assert_eq!(before(PlanRowFilter::All, 3).await, Some((ISSUE, 7)));
        assert_eq!(before(PlanRowFilter::Closes, 3).await, Some((ISSUE, 5)));
        assert_eq!(before(PlanRowFilter::Closes, 10).await, Some((ISSUE, 9)));
        assert_eq!(before(PlanRowFilter::SkippedFor(SkipReason::Pinned), 10).await, Some((ISSUE, 7)));
        assert_eq!(before(PlanRowFilter::All, 19).await, None, "no row of the plan");

        // The author of a decision, until the decision is reset.
        let said = async |of: i64| {
            let row = store.plans().row(&plan, ISSUE, number(of)).await.expect("reads").expect("a row").row;
            (row.approved, row.approved_by, row.approved_at)
        };
        assert_eq!(said(4).await, (Some(true), Some(ann.clone()), Some(at(1))));
        assert_eq!(said(5).await, (Some(false), None, Some(at(2))));
        store.plans().set_approved(id, ISSUE, &[number(4)], None, Some(&ann), at(3)).await.expect("noted");
        assert_eq!(said(4).await, (None, None, None));
        assert_eq!(store.plans().row(&plan, ItemType::Pr, number(4)).await.expect("reads"), None);

        // A decision about all rows changes only undecided ones; a reset of all leaves none decided.
        let all = async |word, second| store.plans().set_all_approved(id, None, word, Some(&ann), at(second)).await.expect("noted");
        assert_eq!((all(Some(false), 4).await, said(3).await, said(5).await), (2, (Some(false), Some(ann.clone()), Some(at(4))), (Some(false), None, Some(at(2)))));
        assert_eq!((all(None, 5).await, all(None, 6).await), (4, 0));
        let of_pulls = store.plans().set_all_approved(id, Some(ItemType::Pr), Some(true), Some(&ann), at(7)).await;
        assert_eq!((of_pulls.expect("noted"), said(4).await), (0, (None, None, None)));
        assert_eq!(paged(&store, &plan, PlanRowFilter::Undecided).await, [4, 5, 3, 9]);
    }

    async fn a_plan_tells_what_applying_and_undoing_it_did(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let rows = [plan_row(4, 1), plan_row(5, 1), plan_row(6, 1), plan_row(7, 1), plan_row(8, 1)];
        let id = plan(&store, &repo, &rows, 0).await;
        let ann = login("ann");
        store.plans().set_approved(id, ISSUE, &[number(4)], Some(true), Some(&ann), at(1)).await.expect("noted");
        store.plans().set_approved(id, ISSUE, &[number(8)], Some(false), Some(&ann), at(1)).await.expect("noted");
        let apply = store.plans().begin_apply(id, "applying", at(2)).await.expect("begun").expect("a plan").id;
        for (of, outcome) in [(4, APPLIED), (5, CloseOutcome::Applied { objected: true }), (6, CloseOutcome::Skipped)] {
            let result = CloseResult { outcome, reason: Some("so"), outbox_key: None };
            assert!(store.plans().record_close_result(apply, ISSUE, number(of), result, at(3)).await.expect("recorded"));
        }
        let undo = store.plans().begin_undo(id, Some(&[(ISSUE, number(4))]), "undoing", at(4)).await.expect("begun").expect("a plan").id;
        let result = CloseResult { outcome: APPLIED, reason: None, outbox_key: None };
        let ruling = Some(NotDuplicate { note: None, by: Some(&ann) });
        assert!(store.plans().record_undo_result(undo, ISSUE, number(4), result, ruling, at(5)).await.expect("recorded"));

        let plan = summary(&store, &repo, id).await;
        assert_eq!((plan.apply.as_ref().map(|run| run.id), plan.undos.iter().map(|run| run.id).collect::<Vec<_>>()), (Some(apply), vec![undo]));
        assert_eq!(plan.totals, PlanTotals {
            closes: 5, approved: 1, excluded: 1, left: 1, left_approved: 0,
            applied: 2, objected: 1, skipped: 1, undone: 1,
            ..PlanTotals::default()
        });
        assert_eq!((plan.totals.ended(), plan.totals.can_be_undone()), (3, 1));
        assert_eq!(paged(&store, &plan, PlanRowFilter::Ended).await, [4, 5, 6]);
        assert_eq!(paged(&store, &plan, PlanRowFilter::Undecided).await, [7]);
        let undone = store.plans().row(&plan, ISSUE, number(4)).await.expect("reads").expect("a row");
        assert_eq!((undone.undone_at, undone.row.approved_by), (Some(at(5)), Some(ann.clone())));
        let closed = store.plans().row(&plan, ISSUE, number(5)).await.expect("reads").expect("a row");
        assert_eq!((closed.undone_at, closed.row.result.map(|result| result.outcome)), (None, Some(CloseOutcome::Applied { objected: true })));
        // An apply run is not a plan, and a plan of another repository is not found.
        assert_eq!(store.plans().summary(repo.id, apply).await.expect("reads"), None);
        let other = store.repos().ensure(&"tide/lake".parse().expect("valid"), at(0)).await.expect("created");
        assert_eq!(store.plans().summary(other.id, id).await.expect("reads"), None);

        // Rulings keep their author too.
        let rulings = store.duplicates().overrides(repo.id, None).await.expect("reads");
        assert_eq!(rulings.iter().map(|ruled| (ruled.kind, ruled.created_by.clone())).collect::<Vec<_>>(), [
            (OverrideKind::Excluded, Some(ann.clone())),
            (OverrideKind::NotDuplicate, Some(ann.clone())),
        ]);
        let new = NewOverride { item_type: ISSUE, kind: OverrideKind::Canonical, item: number(1), other: None, note: None, by: None };
        assert_eq!(store.duplicates().add_override(repo.id, new, at(6)).await.expect("added").created_by, None);
        let ever = store.duplicates().overrides_ever(repo.id, ISSUE, number(4)).await.expect("reads");
        assert_eq!(ever[0].0.created_by, Some(ann));
    }

    async fn plans_are_listed_newest_first_and_those_of_graces_apart(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let mut made = Vec::new();
        for second in 0..5 {
            made.push(plan(&store, &repo, &[plan_row(4, 1), skips(5, Some(1), SkipReason::Pinned)], second).await);
        }
        store.plans().begin_apply(made[3], "applying", at(9)).await.expect("begun").expect("a plan");
        let grace = NewGrace {
            item_type: ISSUE,
            number: number(6),
            target: number(1),
            triage_id: None,
            comment_key: None,
            approved_by: None,
            content_version: ContentVersion::FIRST,
            began_at: at(0),
            due_at: at(1),
        };
        assert!(store.close().begin_grace(repo.id, &grace).await.expect("begun"));
        let waiting = store.close().waiting_grace(repo.id, ISSUE, number(6)).await.expect("reads").expect("waits");
        let of_grace = store.close().plan_grace(waiting.id, repo.id, &PLAN, &plan_row(6, 1), at(10)).await.expect("planned").expect("not taken");

        let found = store.close().grace_of_plan(of_grace).await.expect("reads").expect("a grace");
        assert_eq!((found.id, found.number, found.plan), (waiting.id, number(6), Some(of_grace)));
        assert_eq!(store.close().grace_of_plan(made[0]).await.expect("reads"), None);

        let list = async |origin, before, limit| {
            let plans = store.plans().list(repo.id, origin, before, limit).await.expect("reads");
            plans.into_iter().map(|plan| (plan.run.id, plan.totals.closes, plan.apply.is_some())).collect::<Vec<_>>()
        };
        assert_eq!(list(PlanOrigin::Person, None, 3).await, [(made[4], 1, false), (made[3], 1, true), (made[2], 1, false)]);
        assert_eq!(list(PlanOrigin::Person, Some(made[2]), 3).await, [(made[1], 1, false), (made[0], 1, false)]);
        assert_eq!(list(PlanOrigin::Person, Some(made[0]), 3).await, []);
        assert_eq!(list(PlanOrigin::Grace, None, 3).await, [(of_grace, 1, false)]);
    }
}
