//! An error that many items of a repository show is no evidence, whichever command compares two of them.

use canonry_domain::{DecisionStatus, ItemRecord, ItemState, ItemType, Probability, Similarity, Verdict, parse_moment};
use canonry_models::chat::TokenBudget;
use canonry_models::{Embedder as _, LocalEmbedder};
use canonry_retrieval::RetrievalMode;
use canonry_store::{EmbeddingKey, Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_triage::{
    CandidateOptions, DecisionLine, EmbedSource, Judge, JudgeOptions, JudgeReport, NeighbourQuery, Neighbourhood,
    candidates, judge,
};
use jiff::Timestamp;

use crate::unfilled_templates::{PROBLEMS, detect, embed_all, issue};

const LOG: &str = "```\nthread 'main' panicked at src/plugins/host.rs:212:9:\n\
    error: plugin host cannot finish the handshake with its worker process\n   4: harbour::plugins::host::connect\n```";
const TITLE: &str = "Preview pane stays empty after opening an archive";
const THINGS: [&str; 12] = [
    "The printer dialog",
    "A sync of the calendar",
    "The spelling check",
    "An upload to the gallery",
    "The export as a table",
    "Every second login",
    "The welcome tour",
    "A search by colour",
    "The nightly backup",
    "The contact import",
    "A change of the theme",
    "The map of the office",
];

/// The same report by two people, among a dozen others with or without the same log.
fn reports(is_common: bool) -> (Vec<ItemRecord>, ItemRecord) {
    let log = if is_common { LOG } else { "There is no log of it." };
    let others = (1..).zip(THINGS).map(|(at, thing)| {
        let body = format!("{thing} does nothing when number {at} of our team tries it on the new machines.\n\n{log}");
        issue(at, &format!("{thing} does nothing"), &body)
    });
    let unrelated = (21..).zip(PROBLEMS).map(|(at, (title, answers))| issue(at, title, &answers.join("\n\n")));
    let report = |at, words: &str| {
        let steps = "Open the file manager, select an archive with many small pictures and wait for the preview pane.";
        issue(at, TITLE, &format!("{steps} {words}\n\n{LOG}"))
    };
    let first = report(
        150,
        "It stays empty whatever I do, and closing the window or starting the program again does not help.",
    );
    let again =
        "My colleagues see a grey area on all three laptops since Monday, with every archive that they have tried.";
    let again = report(181, again);
    (others.chain(unrelated).chain([first]).collect(), again)
}

async fn judged(store: &Store, repo: &Repo, now: Timestamp) -> JudgeReport {
    let embedder = LocalEmbedder::load().expect("compiled in");
    let key = EmbeddingKey::raw(embedder.model_id());
    let calibration = embedder.calibration().clone();
    let near = Neighbourhood::load(store, repo, ItemType::Issue, key, calibration, None).await.expect("loads");
    let wanted =
        NeighbourQuery { mode: RetrievalMode::Hybrid, k: 8, min_score: Similarity::ZERO, state: Some(ItemState::Open) };
    let options = CandidateOptions { wanted, source_state: None, joining: None };
    candidates(store, repo, &near, None, &options, now, &mut |_, _| ()).await.expect("finds");
    let options = JudgeOptions {
        item_type: Some(ItemType::Issue),
        source: EmbedSource::Raw,
        min_edge: Probability::new(0.85).expect("valid"),
        allow_stale: false,
        rejudge: false,
        joining: None,
        workers: 1,
        budget: TokenBudget::default(),
        config_hash: String::new(),
        run_id: "run".to_owned(),
    };
    judge(store, repo, Judge::Local, &options, now, &mut |_| ()).await.expect("judges")
}

on_both_engines! {
    async fn what_many_items_show_makes_no_duplicate_online_or_in_a_batch(database: TestDatabase) {
        let now = parse_moment("2026-02-01").expect("a time");
        let store = Store::open(&database.url().parse().expect("valid"), now).await.expect("opens");
        for (name, is_common) in [("tide/rare", false), ("tide/common", true)] {
            let (records, again) = reports(is_common);
            let pair = [150, 181];
            let repo = store.repos().ensure(&name.parse().expect("a name"), now).await.expect("created");
            store.corpus().upsert_items(&repo, records, now).await.expect("stored");
            embed_all(&store, &repo).await;
            let online = detect(&store, &repo, again).await;
            assert_eq!(online.verdict.verdict == Verdict::Duplicate, !is_common, "{online:#?}");
            let report = judged(&store, &repo, now).await;
            let is_accepted = |line: &DecisionLine| {
                line.status == DecisionStatus::Accepted
                    && pair.contains(&line.number.get())
                    && line.target.is_some_and(|target| pair.contains(&target.get()))
            };
            assert_eq!(report.decisions.iter().any(is_accepted), !is_common, "{:#?}", report.decisions);
        }
        store.disconnect().await;
    }
}
