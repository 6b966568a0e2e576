//! Pull requests: which may revert others, and whose changes are fetched again.

use canonry_domain::{ItemNumber, ItemRecord, ItemState, ItemType, PullChanges};
use canonry_store::{Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;

use crate::fixtures::{at, number, open_with};

fn pull(of: i64, title: &str, body: &str) -> ItemRecord {
    ItemRecord { body: Some(body.to_owned()), ..ItemRecord::new(ItemType::Pr, number(of), title) }
}

fn merged(of: i64, title: &str, body: &str) -> ItemRecord {
    let closed_at = Some(Some(at(of)));
    ItemRecord { merged: Some(true), state: Some(ItemState::Closed), closed_at, ..pull(of, title, body) }
}

fn numbers(numbers: impl IntoIterator<Item = ItemNumber>) -> Vec<i64> {
    numbers.into_iter().map(ItemNumber::get).collect()
}

fn changes(diff: &str) -> PullChanges {
    PullChanges { files: vec!["src/tap.rs".to_owned()], diff: diff.to_owned() }
}

async fn without_changes(store: &Store, repo: &Repo) -> Vec<i64> {
    numbers(store.corpus().pulls_without_changes(repo.id, at(0)).await.expect("reads"))
}

async fn fetched(store: &Store, repo: &Repo, of: i64, diff: &str) {
    let pull = store.corpus().item(repo.id, ItemType::Pr, number(of)).await.expect("reads").expect("stored");
    let stored = store.corpus().upsert_pull_changes(repo, &pull, changes(diff), at(99)).await.expect("stored");
    assert_eq!(stored.changes, Some(changes(diff)));
}

on_both_engines! {
    async fn what_may_be_a_revert_is_found_in_any_case(database: TestDatabase) {
        let found = [
            merged(40, "Revert \"Open it\"", ""),
            merged(41, "REVERT: open it", ""),
            merged(42, "Re-Apply \"Open it\"", ""),
            merged(43, "Reapply \"Open it\"", ""),
            merged(44, "Back it out", "REVERTS octo/cat#31"),
            merged(45, "Back it out", "reverts https://github.com/octo/cat/pull/31"),
            merged(46, "Bring it back", "Re-apply GH-31"),
        ];
        let others = [
            merged(20, "Revert \"Open it\"", ""),
            merged(47, "Draw boxes", "How to revert: press undo."),
            merged(48, "Draw boxes", "Reverts #7"),
            merged(49, "Draw boxes", "See #31"),
            pull(50, "Revert \"Open it\"", "Reverts #31"),
            ItemRecord::new(ItemType::Issue, number(51), "Revert #31"),
        ];
        let (store, repo) = open_with(&database, found.iter().chain(&others).cloned()).await;
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = store.corpus().possible_reverts(repo.id, &[number(31)], at(30), after, 3).await.expect("reads");
            let Some(last) = page.last() else { break };
            after = Some(last.number);
            seen.extend(page);
        }
        assert_eq!(numbers(seen.iter().map(|pull| pull.number)), [40, 41, 42, 43, 44, 45, 46]);
        assert_eq!((seen[4].title.as_str(), seen[4].body.as_str()), ("Back it out", "REVERTS octo/cat#31"));
        assert_eq!((seen[4].closed_at, seen[4].base_branch.as_deref()), (Some(at(44)), None));
        let by_title = store.corpus().possible_reverts(repo.id, &[], at(30), None, 9).await.expect("reads");
        assert_eq!(numbers(by_title.iter().map(|pull| pull.number)), [40, 41, 42, 43]);
    }

    async fn changes_of_an_open_pull_request_are_fetched_again_after_any_activity(database: TestDatabase) {
        let seen = |of: ItemRecord, second: i64| ItemRecord { updated_at: Some(at(second)), ..of };
        let open = |of: i64| pull(of, "Warm the water", "It is cold.");
        let closed = |of: i64| merged(of, "Warm the water", "It is cold.");
        let from_a_file = ItemRecord { changes: Some(changes("+a")), ..open(4) };
        let records = [seen(open(1), 1), seen(open(2), 1), seen(closed(3), 1), from_a_file];
        let (store, repo) = open_with(&database, records).await;
        assert_eq!(without_changes(&store, &repo).await, [3, 2, 1, 4], "first those without any");
        for of in 1..=4 {
            fetched(&store, &repo, of, "+a").await;
        }
        assert_eq!(without_changes(&store, &repo).await, [0; 0]);
        // People comment on both, or push.
        let later = vec![seen(open(2), 5), seen(closed(3), 5)];
        store.corpus().upsert_items(&repo, later, at(5)).await.expect("stored");
        assert_eq!(without_changes(&store, &repo).await, [2]);
        // The same changes again are current, too.
        fetched(&store, &repo, 2, "+a").await;
        assert_eq!(without_changes(&store, &repo).await, [0; 0]);
    }

    async fn a_push_forgets_the_changes_of_an_open_pull_request(database: TestDatabase) {
        let (open, closed) = (pull(1, "Warm the water", ""), merged(2, "Warm the pool", ""));
        let (store, repo) = open_with(&database, [open, closed]).await;
        for of in 1..=2 {
            fetched(&store, &repo, of, "+a").await;
        }
        let version = async || store.corpus().index_version(repo.id).await.expect("reads").version;
        let before = version().await;
        for of in [1, 2, 1, 9] {
            store.corpus().forget_pull_changes(repo.id, number(of)).await.expect("forgotten");
        }
        assert_eq!(without_changes(&store, &repo).await, [1]);
        assert_eq!(version().await, before + 1);
        let changed = store.corpus().items_changed_since(repo.id, ItemType::Pr, before).await.expect("reads");
        assert_eq!(numbers(changed), [1]);
    }
}
