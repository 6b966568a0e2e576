//! The life cycle of intent cards on both engines.

use canonry_domain::{Extractor, IntentCard, IntentSource, Item, ItemRecord, ItemType, extract_locally, parse_moment};
use canonry_store::{CardMaker, CardOutcome, Repo, RepoId, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use jiff::Timestamp;

use crate::fixtures::number;

fn now() -> Timestamp {
    parse_moment("2026-02-01").expect("a valid time")
}

fn maker(extractor: Extractor, model: &str) -> CardMaker {
    CardMaker { extractor, model: model.to_owned() }
}

fn ready(item: &Item) -> CardOutcome {
    CardOutcome::Ready(Box::new(card(item)))
}

fn card(item: &Item) -> IntentCard {
    extract_locally(IntentSource::from(item))
}

async fn write(store: &Store, repo: RepoId, item: &Item, maker: &CardMaker, outcome: &CardOutcome) -> bool {
    let cards = [(item.clone(), outcome.clone())];
    store.corpus().write_intent_cards(repo, maker, &cards, now()).await.expect("asked") == [true]
}

/// Sets the text of an item, and returns the stored item.
async fn told(store: &Store, repo: &Repo, item_type: ItemType, of: i64, body: &str) -> Item {
    let record = ItemRecord { body: Some(body.to_owned()), ..ItemRecord::new(item_type, number(of), "Sync stops") };
    store.corpus().upsert_items(repo, vec![record], now()).await.expect("taken in");
    store.corpus().item(repo.id, item_type, number(of)).await.expect("reads").expect("known")
}

on_both_engines! {
    async fn a_card_counts_while_it_is_about_the_items_text(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        let repo = store.repos().ensure(&"tide/pool".parse().expect("valid"), now()).await.expect("created");
        let item = told(&store, &repo, ItemType::Issue, 1, "error: `a\\u0000` \"quoted\" 日本").await;
        let local = maker(Extractor::Local, "rules");
        let fresh = |extractor| { let (store, repo) = (&store, &repo); async move {
            store.corpus().fresh_intent_card(repo.id, ItemType::Issue, number(1), extractor).await.expect("reads")
        } };
        assert_eq!(fresh(Extractor::Local).await, None);

        assert!(write(&store, repo.id, &item, &local, &ready(&item)).await);
        assert_eq!(fresh(Extractor::Local).await, Some(card(&item)));
        assert_eq!(fresh(Extractor::OpenAi).await, None, "another extractor's card was taken");

        // Line endings and labels do not belong to the text.
        let same = told(&store, &repo, ItemType::Issue, 1, "error: `a\\u0000` \"quoted\" 日本\r\n").await;
        assert_eq!((same.content_version.get(), fresh(Extractor::Local).await.is_some()), (1, true));

        // An edit makes the card stale; a card of the old text is not accepted any more.
        let edited = told(&store, &repo, ItemType::Issue, 1, "It never starts.").await;
        assert_eq!(fresh(Extractor::Local).await, None);
        let stored = store.corpus().intent_cards(repo.id, ItemType::Issue, number(1)).await.expect("reads");
        assert_eq!((stored.len(), stored[0].fresh, stored[0].source_version.get()), (1, false, 1));
        assert!(!write(&store, repo.id, &item, &local, &ready(&item)).await);
        assert!(write(&store, repo.id, &edited, &local, &ready(&edited)).await);
        assert_eq!(fresh(Extractor::Local).await, Some(card(&edited)));

        // Back to the first text: its card was replaced, and the current card is about another text.
        told(&store, &repo, ItemType::Issue, 1, &item.body).await;
        assert_eq!(fresh(Extractor::Local).await, None);
        let unknown = Item { number: number(9), ..item.clone() };
        assert!(!write(&store, repo.id, &unknown, &local, &ready(&item)).await);
    }

    async fn a_failure_is_kept_and_never_costs_a_good_card(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        let repo = store.repos().ensure(&"tide/pool".parse().expect("valid"), now()).await.expect("created");
        let item = told(&store, &repo, ItemType::Issue, 1, "It stops.").await;
        let (first, second) = (maker(Extractor::OpenAi, "m1"), maker(Extractor::OpenAi, "m2"));
        let failed = CardOutcome::Failed("the answer is empty".to_owned());
        let last = || async {
            let stored = store.corpus().intent_cards(repo.id, ItemType::Issue, number(1)).await.expect("reads");
            assert_eq!(stored.len(), 1, "one row for one extractor");
            (stored[0].outcome.clone(), stored[0].maker.model.clone(), stored[0].fresh)
        };

        assert!(write(&store, repo.id, &item, &first, &failed).await);
        assert_eq!(last().await, (failed.clone(), "m1".to_owned(), false));
        assert!(write(&store, repo.id, &item, &first, &ready(&item)).await);
        assert!(!write(&store, repo.id, &item, &first, &failed).await);
        assert_eq!(last().await, (ready(&item), "m1".to_owned(), true));

        // A failure of another model or on another text is stored.
        assert!(write(&store, repo.id, &item, &second, &failed).await);
        assert_eq!(last().await, (failed.clone(), "m2".to_owned(), false));
        assert!(write(&store, repo.id, &item, &second, &ready(&item)).await);
        let edited = told(&store, &repo, ItemType::Issue, 1, "It stops again.").await;
        assert!(write(&store, repo.id, &edited, &second, &failed).await);
        assert_eq!(last().await, (failed, "m2".to_owned(), false));
    }

    async fn what_a_maker_has_done_is_told_for_many_items(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        let repo = store.repos().ensure(&"tide/pool".parse().expect("valid"), now()).await.expect("created");
        let other = store.repos().ensure(&"tide/other".parse().expect("valid"), now()).await.expect("created");
        let (local, model) = (maker(Extractor::Local, "rules"), maker(Extractor::Gemini, "m"));
        let issue = told(&store, &repo, ItemType::Issue, 1, "a").await;
        let pull = told(&store, &repo, ItemType::Pr, 2, "b").await;
        let foreign = told(&store, &other, ItemType::Issue, 2, "c").await;
        for (repo, item) in [(&repo, &issue), (&other, &foreign)] {
            assert!(write(&store, repo.id, item, &local, &ready(item)).await);
        }
        let failed = CardOutcome::Failed("no".to_owned());
        assert!(write(&store, repo.id, &pull, &local, &failed).await);
        let items = [issue.clone(), pull.clone()];
        let sources = store.corpus().intent_card_sources(repo.id, &local, &items).await.expect("reads");
        assert_eq!(sources.into_iter().collect::<Vec<_>>(), [((ItemType::Issue, number(1)), issue.content_hash.clone())]);
        for another in [&model, &maker(Extractor::Local, "older rules")] {
            assert!(store.corpus().intent_card_sources(repo.id, another, &items).await.expect("reads").is_empty());
        }
        assert!(store.corpus().intent_card_sources(repo.id, &local, &[]).await.expect("reads").is_empty());
    }
}
