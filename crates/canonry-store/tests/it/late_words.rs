//! Data that was read from GitHub before a change and is stored after it.

use canonry_domain::{
    EventBy, GoneReason, ItemRecord, ItemState, OutcomeEvent, OutcomeKind, RecordChange, StateReason,
};
use canonry_store::{CloseOutcome, CloseResult, CloseRunId, Repo, Store, SyncPage, SyncProgress};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::fixtures::{ISSUE, PLAN, at, number, open_with, plan_row};

/// A record of #2 from GitHub whose last change was at that second.
fn told(state: ItemState, second: i64) -> ItemRecord {
    let closed = state == ItemState::Closed;
    ItemRecord {
        state: Some(state),
        state_reason: Some(closed.then_some(StateReason::Duplicate)),
        labels: Some(Vec::new()),
        updated_at: Some(at(second)),
        closed_at: Some(closed.then(|| at(second))),
        synced_at: Some(at(second)),
        ..ItemRecord::new(ISSUE, number(2), "It stops")
    }
}

async fn open(database: &TestDatabase) -> (Store, Repo) {
    open_with(database, [ItemRecord::new(ISSUE, number(1), "It stops"), told(ItemState::Open, 5)]).await
}

/// A plan that closes #2 as a duplicate of #1, and the run that applies it.
async fn applying(store: &Store, repo: &Repo) -> CloseRunId {
    let plan = store.plans().create(repo.id, &PLAN, &[plan_row(2, 1)], at(6)).await.expect("planned");
    store.plans().begin_apply(plan, "applying", at(7)).await.expect("begun").expect("a plan").id
}

async fn record_close(store: &Store, run: CloseRunId, second: i64) {
    let outcome = CloseOutcome::Applied { objected: false };
    let result = CloseResult { outcome, reason: None, outbox_key: Some("close:1") };
    assert!(store.plans().record_close_result(run, ISSUE, number(2), result, at(second)).await.expect("recorded"));
}

async fn state(store: &Store, repo: &Repo) -> ItemState {
    store.corpus().item(repo.id, ISSUE, number(2)).await.expect("reads").expect("known").state
}

async fn kinds(store: &Store, repo: &Repo) -> Vec<OutcomeKind> {
    let events = store.learning().outcome_events(repo.id, number(2)).await.expect("reads");
    events.iter().map(|event| event.kind).collect()
}

async fn upsert(store: &Store, repo: &Repo, record: ItemRecord) -> RecordChange {
    store.corpus().upsert_items(repo, vec![record], at(20)).await.expect("taken in").changes[0]
}

on_both_engines! {
    async fn a_list_of_the_second_of_a_closing_reopens_nothing(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        // Labelled and closed within a second: the list was read in between.
        assert_eq!(upsert(&store, &repo, told(ItemState::Closed, 9)).await, RecordChange::Updated { content: false });
        for second in [5, 8, 9] {
            let left = if second == 9 { RecordChange::Unordered } else { RecordChange::Older };
            assert_eq!(upsert(&store, &repo, told(ItemState::Open, second)).await, left, "{second}");
        }
        assert_eq!((state(&store, &repo).await, kinds(&store, &repo).await), (ItemState::Closed, vec![OutcomeKind::Closed]));
        // A fetch now is the newest, unless another process stores something meanwhile.
        let seen = store.corpus().item(repo.id, ISSUE, number(2)).await.expect("reads");
        let labels = Some(vec!["bug".into()]);
        let labelled = ItemRecord { labels, updated_at: Some(at(10)), ..told(ItemState::Closed, 9) };
        upsert(&store, &repo, labelled).await;
        let answer = ItemRecord { updated_at: Some(at(10)), ..told(ItemState::Open, 9) };
        let late = store.corpus().upsert_fetched_item(&repo, seen.as_ref(), answer.clone(), at(20)).await.expect("taken in").1;
        assert_eq!((late, state(&store, &repo).await), (RecordChange::Unordered, ItemState::Closed));
        let seen = store.corpus().item(repo.id, ISSUE, number(2)).await.expect("reads");
        let answered = store.corpus().upsert_fetched_item(&repo, seen.as_ref(), answer, at(20)).await.expect("taken in").1;
        assert_eq!((answered, state(&store, &repo).await), (RecordChange::Updated { content: false }, ItemState::Open));
        assert_eq!(kinds(&store, &repo).await, [OutcomeKind::Closed, OutcomeKind::Reopened]);
    }

    async fn what_was_read_between_our_comment_and_our_close_is_no_reopening(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let run = applying(&store, &repo).await;
        record_close(&store, run, 12).await;
        for second in [5, 11, 12, 13] {
            assert_eq!(upsert(&store, &repo, told(ItemState::Open, second)).await, RecordChange::Unordered, "{second}");
        }
        assert_eq!((state(&store, &repo).await, kinds(&store, &repo).await), (ItemState::Closed, vec![OutcomeKind::Closed]));
        assert_eq!(store.learning().reopened_numbers(repo.id).await.expect("reads"), []);
        // GitHub reports our close: from then on its times count again.
        let closed = ItemRecord { labels: Some(vec!["possible-duplicate".into()]), ..told(ItemState::Closed, 12) };
        assert_eq!(upsert(&store, &repo, closed).await, RecordChange::Updated { content: false });
        assert_eq!(upsert(&store, &repo, told(ItemState::Open, 11)).await, RecordChange::Older);
        assert_eq!(upsert(&store, &repo, told(ItemState::Open, 14)).await, RecordChange::Updated { content: false });
        assert_eq!(store.learning().reopened_numbers(repo.id).await.expect("reads"), [(number(2), at(14))]);
    }

    async fn whoever_reopens_before_our_close_is_noted_has_the_last_word(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        let run = applying(&store, &repo).await;
        // The label took long, and a person was faster.
        let reopened = OutcomeEvent {
            delivery_id: "d1".to_owned(),
            number: number(2),
            kind: OutcomeKind::Reopened,
            state_reason: None,
            actor: Some("ann".parse().expect("a login")),
            by: EventBy::Person,
            duplicate_of: None,
            in_body: None,
            comment: None,
            labels: None,
            cluster: Vec::new(),
            occurred_at: at(11),
        };
        store.learning().record_outcome_events(repo.id, &[reopened], at(12)).await.expect("recorded");
        upsert(&store, &repo, told(ItemState::Open, 11)).await;
        record_close(&store, run, 13).await;
        let item = store.corpus().item(repo.id, ISSUE, number(2)).await.expect("reads").expect("known");
        assert_eq!((item.state, item.duplicate_of, item.updated_at), (ItemState::Open, None, Some(at(11))));
    }

    async fn what_left_is_not_brought_back_by_an_old_list(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        assert!(store.corpus().mark_gone(repo.id, number(2), GoneReason::Deleted, at(6)).await.expect("marked"));
        for second in [5, 9] {
            assert_eq!(upsert(&store, &repo, told(ItemState::Open, second)).await, RecordChange::Unordered, "{second}");
        }
        assert_eq!(store.corpus().gone_numbers(repo.id).await.expect("reads"), [number(2)]);
    }

    async fn a_page_counts_as_read_only_when_all_of_it_is_in_order(database: TestDatabase) {
        let (store, repo) = open(&database).await;
        upsert(&store, &repo, told(ItemState::Closed, 9)).await;
        let progress = SyncProgress { watermark: Some(at(9)), ..SyncProgress::default() };
        let page = |state| SyncPage { records: vec![told(state, 9)], progress: Some(progress) };
        let taken = store.corpus().upsert_sync_page(&repo, page(ItemState::Open), at(10)).await.expect("taken in");
        assert_eq!((taken.changes.as_slice(), taken.counts()), ([RecordChange::Unordered].as_slice(), (0, 0, 1)));
        assert_eq!(store.corpus().sync_progress(repo.id).await.expect("reads"), SyncProgress::default());
        store.corpus().upsert_sync_page(&repo, page(ItemState::Closed), at(10)).await.expect("taken in");
        assert_eq!(store.corpus().sync_progress(repo.id).await.expect("reads"), progress);
    }
}
