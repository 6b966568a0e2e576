//! Pages of clusters, the newest verdicts in lists, and the closes of single items, on both engines.

use std::collections::BTreeMap;

use canonry_domain::{DecisionStatus, ItemNumber, ItemRecord, ItemState, ItemType, OverrideKind, Similarity, Verdict};
use canonry_store::{
    CloseMode, CloseOutcome, CloseResult, CloseRunId, ClusterFilter, ClusterTotals, NewDecision, NewOverride,
    NewPlanRow, NewTriageRecord, NewestClusterPlan, Repo, Representation, Store,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::fixtures::{
    ISSUE, PLAN, RAW, at, issues, judge_decision, number, open_with, plan_row, probability, pulls, triage_record,
};

const PR: ItemType = ItemType::Pr;

/// A store with the issues 1 to 12, of which 3 and 9 are closed, and the pull requests 21 to 23. Every issue was
/// opened in the second of its number.
async fn open(database: &TestDatabase) -> (Store, Repo) {
    let issues = issues(1..=12).map(|issue| ItemRecord {
        state: Some(if [3, 9].contains(&issue.number.get()) { ItemState::Closed } else { ItemState::Open }),
        created_at: Some(at(issue.number.get())),
        ..issue
    });
    open_with(database, issues.chain(pulls(21..=23))).await
}

async fn map(store: &Store, repo: &Repo, item_type: ItemType, pairs: &[(i64, i64)], second: i64) {
    let mapping: BTreeMap<_, _> = pairs.iter().map(|(item, canonical)| (number(*item), number(*canonical))).collect();
    store.duplicates().set_canonicals(repo.id, item_type, RAW, &mapping, at(second)).await.expect("written");
}

fn edge(item_type: ItemType, source: i64, target: i64, confidence: f64) -> NewDecision {
    let confidence = Some(probability(confidence));
    NewDecision { item_type, confidence, ..judge_decision(source, DecisionStatus::Accepted, Some(target)) }
}

async fn plan(store: &Store, repo: &Repo, closes: &[(i64, i64)]) -> CloseRunId {
    let rows: Vec<NewPlanRow> = closes.iter().map(|(of, target)| plan_row(*of, *target)).collect();
    store.plans().create(repo.id, &PLAN, &rows, at(50)).await.expect("planned")
}

fn record(of: i64, verdict: Verdict, target: Option<i64>) -> NewTriageRecord {
    NewTriageRecord { confidence: Some(probability(0.95)), ..triage_record(of, verdict, target) }
}

async fn pages(store: &Store, repo: &Repo, filter: ClusterFilter, limit: u32) -> Vec<Vec<(ItemType, i64, u64)>> {
    let mut pages = Vec::new();
    let mut after = None;
    while pages.len() < 9 {
        let page = store.duplicates().cluster_pages(repo.id, filter, after, limit).await.expect("reads");
        let Some(last) = page.last() else { break };
        after = Some(last.key());
        pages.push(page.iter().map(|row| (row.item_type, row.canonical.get(), row.members)).collect());
    }
    pages
}

on_both_engines! {
    async fn clusters_come_in_pages_the_largest_first(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let clusters = [(1, 1), (2, 1), (3, 1), (4, 5), (5, 5), (6, 7), (7, 7), (8, 8), (9, 8)];
        map(&store, &repo, ISSUE, &clusters, 10).await;
        map(&store, &repo, PR, &[(21, 22), (22, 22), (23, 22)], 20).await;
        let all = ClusterFilter::all(RAW);
        assert_eq!(pages(&store, &repo, all, 2).await, [
            vec![(PR, 22, 3), (ISSUE, 1, 3)],
            vec![(ISSUE, 8, 2), (ISSUE, 7, 2)],
            vec![(ISSUE, 5, 2)],
        ]);
        assert_eq!(pages(&store, &repo, ClusterFilter { item_type: Some(PR), ..all }, 9).await, [[(PR, 22, 3)]]);
        assert_eq!(pages(&store, &repo, ClusterFilter { min_size: 3, ..all }, 1).await, [[(PR, 22, 3)], [(ISSUE, 1, 3)]]);
        assert_eq!(pages(&store, &repo, ClusterFilter::all(Representation::Intent), 9).await, [[]; 0]);
        // 9 is the only duplicate of 8, and it is closed.
        let open = ClusterFilter { item_type: Some(ISSUE), with_open: true, ..all };
        assert_eq!(pages(&store, &repo, open, 9).await, [[(ISSUE, 1, 3), (ISSUE, 7, 2), (ISSUE, 5, 2)]]);
        let totals = store.duplicates().cluster_totals(repo.id, None, RAW).await.expect("reads");
        assert_eq!(totals, ClusterTotals { clusters: 5, members: 12, as_of: Some(at(20)) });
        let totals = store.duplicates().cluster_totals(repo.id, Some(ISSUE), RAW).await.expect("reads");
        assert_eq!(totals, ClusterTotals { clusters: 4, members: 9, as_of: Some(at(10)) });
    }

    async fn a_cluster_tells_its_state_its_weakest_edge_and_its_plan(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        map(&store, &repo, ISSUE, &[(1, 1), (2, 1), (3, 1), (10, 1), (4, 5), (5, 5)], 10).await;
        let edges = [edge(ISSUE, 2, 1, 0.93), edge(ISSUE, 3, 2, 0.88), edge(ISSUE, 10, 1, 0.97)];
        store.judge().write_decisions(repo.id, &edges, at(5)).await.expect("written");
        let old = plan(&store, &repo, &[(2, 1)]).await;
        let new = plan(&store, &repo, &[(10, 1)]).await;
        assert!(old < new);
        let all = ClusterFilter::all(RAW);
        let rows = store.duplicates().cluster_pages(repo.id, all, None, 9).await.expect("reads");
        let first = &rows[0];
        assert_eq!((first.canonical, first.title.as_str(), first.state), (number(1), "Issue 1", ItemState::Open));
        assert_eq!((first.members, first.open, first.least_confidence), (4, 2, Some(probability(0.88))));
        let planned = NewestClusterPlan { id: new, made_at: at(50), left: Some(number(10)) };
        assert_eq!((first.newest, first.newest_at, first.plan), (number(10), Some(at(10)), Some(planned)));
        let second = &rows[1];
        assert_eq!((second.canonical, second.open, second.least_confidence, second.plan), (number(5), 1, None, None));
        let row = async |of: i64| store.duplicates().cluster_row(repo.id, ISSUE, RAW, number(of)).await.expect("reads");
        assert_eq!((row(1).await.as_ref(), row(2).await), (Some(first), None));
        let unplanned = store.duplicates().cluster_pages(repo.id, ClusterFilter { unplanned: true, ..all }, None, 9).await.expect("reads");
        assert_eq!(unplanned.iter().collect::<Vec<_>>(), [second]);

        let members = async |canonical: i64, after: Option<i64>, limit: u32| -> Vec<i64> {
            let found = store.duplicates().cluster_members(repo.id, ISSUE, RAW, number(canonical), after.map(number), limit).await.expect("reads");
            assert!(found.iter().all(|(_, since)| *since == at(10)));
            found.into_iter().map(|(member, _)| member.get()).collect()
        };
        assert_eq!((members(1, None, 3).await, members(1, Some(3), 3).await), (vec![1, 2, 3], vec![10]));
        // The canonical comes first whatever its number, and only once.
        assert_eq!((members(5, None, 9).await, members(5, Some(4), 9).await), (vec![5, 4], vec![]));
        let of = store.duplicates().canonicals_of(repo.id, ISSUE, RAW, &[number(3), number(4), number(12)]).await.expect("reads");
        assert_eq!(of, BTreeMap::from([(number(3), number(1)), (number(4), number(5))]));
        let from = store.duplicates().edges_from(repo.id, ISSUE, RAW, &[number(3), number(10)]).await.expect("reads");
        let from: Vec<_> = from.iter().map(|edge| (edge.source.get(), edge.target.get())).collect();
        assert_eq!(from, [(3, 2), (10, 1)]);
    }

    async fn the_row_of_a_plan_that_is_left_is_told(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        map(&store, &repo, ISSUE, &[(1, 1), (2, 1), (4, 1), (6, 1), (5, 5), (7, 5)], 10).await;
        let id = plan(&store, &repo, &[(2, 1), (4, 1), (6, 1), (7, 5)]).await;
        let left = async |of: i64| {
            let row = store.duplicates().cluster_row(repo.id, ISSUE, RAW, number(of)).await.expect("reads").expect("a cluster");
            let plan = row.plan.expect("a plan");
            assert_eq!((plan.id, plan.made_at), (id, at(50)));
            plan.left.map(ItemNumber::get)
        };
        assert_eq!((left(1).await, left(5).await), (Some(2), Some(7)));
        // Excluded and applied rows are not left.
        store.plans().set_approved(id, ISSUE, &[number(2)], Some(false), None, at(51)).await.expect("noted");
        assert_eq!(left(1).await, Some(4));
        let apply = store.plans().begin_apply(id, "applying", at(60)).await.expect("begun").expect("a plan");
        let applied = CloseResult { outcome: CloseOutcome::Applied { objected: false }, reason: None, outbox_key: None };
        for of in [4, 6] {
            assert!(store.plans().record_close_result(apply.id, ISSUE, number(of), applied, at(61)).await.expect("recorded"));
        }
        assert_eq!((left(1).await, left(5).await), (None, Some(7)));
    }

    async fn rulings_are_found_by_the_items_that_they_name(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let rule = async |item_type, kind, item: i64, other: Option<i64>| {
            let new = NewOverride { item_type, kind, item: number(item), other: other.map(number), note: None, by: None };
            store.duplicates().add_override(repo.id, new, at(6)).await.expect("ruled").id
        };
        let pair = rule(ISSUE, OverrideKind::NotDuplicate, 4, Some(5)).await;
        let canonical = rule(ISSUE, OverrideKind::Canonical, 5, None).await;
        let elsewhere = rule(ISSUE, OverrideKind::Duplicate, 7, Some(8)).await;
        rule(PR, OverrideKind::Duplicate, 21, Some(22)).await;
        let taken_back = rule(ISSUE, OverrideKind::Duplicate, 6, Some(5)).await;
        assert!(store.duplicates().remove_override(repo.id, taken_back, at(7)).await.expect("removed"));
        let naming = async |numbers: &[i64]| -> Vec<i64> {
            let numbers: Vec<ItemNumber> = numbers.iter().copied().map(number).collect();
            let found = store.duplicates().overrides_naming(repo.id, ISSUE, &numbers).await.expect("reads");
            found.into_iter().map(|ruled| ruled.id).collect()
        };
        assert_eq!(naming(&[5]).await, [pair, canonical], "on either side, and once where both are asked for");
        assert_eq!(naming(&[4, 5]).await, [pair, canonical]);
        assert_eq!(naming(&[8, 12]).await, [elsewhere]);
        assert_eq!((naming(&[21]).await, naming(&[]).await), (vec![], vec![]));
    }

    async fn what_the_map_lacks_is_counted(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let lacking = async || store.duplicates().edges_not_in_clusters(repo.id, RAW).await.expect("reads");
        assert_eq!(lacking().await, 0);
        store.judge().write_decisions(repo.id, &[edge(ISSUE, 2, 1, 0.9), edge(ISSUE, 4, 5, 0.9), edge(PR, 21, 22, 0.9)], at(5)).await.expect("written");
        assert_eq!(lacking().await, 3);
        map(&store, &repo, ISSUE, &[(1, 1), (2, 1), (4, 4), (5, 5)], 10).await;
        assert_eq!(lacking().await, 2, "4 and 5 are both there, and apart");
        // A ruling removes the pair, in either direction; another ruling joins two more.
        let rule = async |kind, item: i64, other: i64| {
            let new = NewOverride { item_type: ISSUE, kind, item: number(item), other: Some(number(other)), note: None, by: None };
            store.duplicates().add_override(repo.id, new, at(6)).await.expect("ruled")
        };
        rule(OverrideKind::NotDuplicate, 5, 4).await;
        assert_eq!(lacking().await, 1);
        rule(OverrideKind::Duplicate, 7, 8).await;
        rule(OverrideKind::Duplicate, 2, 1).await;
        assert_eq!(lacking().await, 2, "2 and 1 are together already");
        // A changed text makes an edge stale, so recomputed clusters would not contain it.
        store.corpus().upsert_items(&repo, vec![ItemRecord::new(PR, number(21), "Another fix")], at(7)).await.expect("taken in");
        assert_eq!(lacking().await, 1);
    }

    async fn the_newest_verdict_of_each_item_is_told(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        for written in [record(4, Verdict::NotDuplicate, None), record(5, Verdict::Duplicate, Some(1)), record(4, Verdict::MaybeDuplicate, Some(2))] {
            store.duplicates().write_triage_record(repo.id, &written, at(5)).await.expect("written");
        }
        let told = store.duplicates().latest_triage(repo.id, ISSUE, &[number(4), number(6)]).await.expect("reads");
        assert_eq!(told.keys().copied().collect::<Vec<_>>(), [number(4)]);
        let four = &told[&number(4)];
        assert_eq!((four.verdict, four.target, four.confidence), (Verdict::MaybeDuplicate, Some(number(2)), Some(probability(0.95))));
        assert_eq!((four.reason.as_str(), four.created_at, four.target_score.map(Similarity::get)), ("maybe_duplicate", at(5), Some(0.9)));
        assert!(store.duplicates().latest_triage(repo.id, PR, &[number(4)]).await.expect("reads").is_empty());
    }

    async fn the_closes_of_an_item_are_told_newest_first(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let id = plan(&store, &repo, &[(2, 1), (4, 1)]).await;
        let apply = store.plans().begin_apply(id, "applying", at(60)).await.expect("begun").expect("a plan");
        let applied = CloseResult { outcome: CloseOutcome::Applied { objected: false }, reason: None, outbox_key: Some("close:2") };
        assert!(store.plans().record_close_result(apply.id, ISSUE, number(2), applied, at(61)).await.expect("recorded"));
        let told = store.close().closes_of_item(repo.id, ISSUE, number(2), 9).await.expect("reads");
        assert_eq!(told.iter().map(|one| (one.mode, one.plan)).collect::<Vec<_>>(), [(CloseMode::Apply, id), (CloseMode::Plan, id)]);
        assert_eq!(told[0].row.result.as_ref().map(|result| result.at), Some(at(61)));
        assert_eq!((told[0].row.target, &told[1].row.result), (Some(number(1)), &None));
        assert_eq!(store.close().closes_of_item(repo.id, ISSUE, number(2), 1).await.expect("reads").len(), 1);
        let earlier = store.close().earlier_closes(repo.id, ISSUE, &[number(2), number(4)]).await.expect("reads");
        assert_eq!(earlier.iter().map(|close| (close.number, close.target, close.closed_at, close.reversed_at)).collect::<Vec<_>>(), [(number(2), number(1), at(61), None)]);
        let events = store.learning().outcome_events(repo.id, number(2)).await.expect("reads");
        assert!(!events.is_empty());
        let outcomes = store.duplicates().outcomes_of(repo.id, &[number(2), number(4)]).await.expect("reads");
        assert_eq!(outcomes.keys().copied().collect::<Vec<_>>(), [number(2)]);
        let one = store.learning().issue_outcome(repo.id, number(2)).await.expect("reads");
        assert_eq!(outcomes.get(&number(2)), one.as_ref());
    }
}
