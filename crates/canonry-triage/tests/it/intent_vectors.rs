//! Vectors of intent cards: stored next to those of the texts, and never for an outdated card.

use canonry_domain::{Extractor, ItemNumber, ItemRecord, ItemType, Similarity, parse_moment};
use canonry_models::{Embedder, LocalEmbedder};
use canonry_retrieval::RetrievalMode;
use canonry_store::{Repo, Representation, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{
    AnalyzeOptions, CandidateOptions, EmbedOptions, EmbedReport, EmbedSource, IntentExtractor, NeighbourQuery,
    Neighbourhood, analyze_intent, candidates, embed,
};
use jiff::Timestamp;

const CARDS: EmbedOptions =
    EmbedOptions { source: EmbedSource::Intent(Extractor::Local), item_type: None, state: None, only_changed: true };

fn now() -> Timestamp {
    parse_moment("2026-02-01").expect("a valid time")
}

fn record(number: i64, body: &str) -> ItemRecord {
    let number = ItemNumber::new(number).expect("a valid number");
    ItemRecord { body: Some(body.to_owned()), ..ItemRecord::new(ItemType::Issue, number, "Crash on save") }
}

async fn analyze(store: &Store, repo: &Repo, only_changed: bool) {
    let options = AnalyzeOptions { item_type: None, state: None, only_changed, workers: 1 };
    analyze_intent(store, repo, IntentExtractor::Local, options, now(), &mut |_| {}).await.expect("analysed");
}

async fn embed_cards(store: &Store, repo: &Repo, model: &LocalEmbedder) -> (u64, u64) {
    let report: EmbedReport = embed(store, model, repo, CARDS, now(), &mut |_| {}).await.expect("embedded");
    (report.embedded, report.without_card)
}

on_both_engines! {
    async fn a_vector_is_of_the_card_that_the_item_has_now(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        let repo = store.repos().ensure(&"o/n".parse().expect("valid"), now()).await.expect("created");
        let model = LocalEmbedder::load().expect("the model is in the program");
        let bodies = ["## Steps\nSave a file.\n## Actual\nerror: disk full", "It crashes in `save()`."];
        let records = (1..).zip(bodies).map(|(number, body)| record(number, body)).collect();
        store.corpus().upsert_items(&repo, records, now()).await.expect("taken in");

        // Without cards only the texts are embedded, and the report says so.
        assert_eq!(embed_cards(&store, &repo, &model).await, (2, 2));
        analyze(&store, &repo, true).await;
        assert_eq!(embed_cards(&store, &repo, &model).await, (2, 0));
        assert_eq!(embed_cards(&store, &repo, &model).await, (0, 0));
        let models = store.corpus().embedding_models(repo.id, Representation::Intent).await.expect("reads");
        assert_eq!(models, [("local:canonry-encoder-1+cards:local.1".to_owned(), 2)]);

        // The card of an edited item is outdated: its text is embedded again, its card is not.
        store.corpus().upsert_items(&repo, vec![record(2, "It crashes in `load()`.")], now()).await.expect("taken in");
        assert_eq!(embed_cards(&store, &repo, &model).await, (1, 1));
        analyze(&store, &repo, true).await;
        assert_eq!(embed_cards(&store, &repo, &model).await, (1, 0));

        // When a card is made again, the vector of the old one is removed.
        analyze(&store, &repo, false).await;
        assert_eq!(store.corpus().embedding_models(repo.id, Representation::Intent).await.expect("reads"), []);
        assert_eq!(embed_cards(&store, &repo, &model).await, (2, 0));
    }

    async fn an_item_without_a_card_is_compared_by_its_text(database: TestDatabase) {
        let store = Store::open(&database.url().parse().expect("valid"), now()).await.expect("opens");
        let repo = store.repos().ensure(&"o/n".parse().expect("valid"), now()).await.expect("created");
        let model = LocalEmbedder::load().expect("the model is in the program");
        let records = (1..=3).map(|number| record(number, "It crashes in `save()` with error: disk full.")).collect();
        store.corpus().upsert_items(&repo, records, now()).await.expect("taken in");
        analyze(&store, &repo, true).await;
        store.corpus().upsert_items(&repo, vec![record(3, "It crashes in `save()` with error: disk full!")], now()).await.expect("edited");
        assert_eq!(embed_cards(&store, &repo, &model).await, (5, 1));
        let load = async |source: EmbedSource| {
            let (key, calibration) = (source.key(model.model_id()), model.calibration().clone());
            Neighbourhood::load(&store, &repo, ItemType::Issue, key, calibration, None).await.expect("loads")
        };
        let (cards, texts) = (load(CARDS.source).await, load(EmbedSource::Raw).await);
        let wanted = NeighbourQuery { mode: RetrievalMode::Dense, k: 4, min_score: Similarity::ZERO, state: None };
        let options = CandidateOptions { wanted, source_state: None, joining: None };
        let alone = candidates(&store, &repo, &cards, None, &options, now(), &mut |_, _| ()).await.expect("compares");
        assert_eq!((alone.sets.len(), alone.skipped_missing_embedding, alone.fell_back), (2, 1, 0));
        let done = candidates(&store, &repo, &cards, Some(&texts), &options, now(), &mut |_, _| ()).await.expect("compares");
        assert_eq!((done.sets.len(), done.skipped_missing_embedding, done.fell_back), (3, 0, 1));
        let compared: Vec<_> = done.sets.iter().map(|set| (set.representation, set.members.len())).collect();
        assert_eq!(compared, [(Representation::Intent, 1), (Representation::Intent, 1), (Representation::Raw, 2)]);
    }
}
