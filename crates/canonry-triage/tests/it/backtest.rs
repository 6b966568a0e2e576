//! Backtests on both engines: a history small enough to compute by hand, and a whole sample repository.

use std::io::Write as _;

use canonry_domain::{ItemNumber, ItemType, RepoName};
use canonry_models::Calibration;
use canonry_retrieval::{RetrievalMode, duplicate_clusters, wilson};
use canonry_store::{EmbeddingKey, NewEmbedding, Repo, Representation, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_testkit::samples::TIDEPOOL;
use canonry_triage::{
    Backtest, BacktestError, BacktestOptions, Neighbourhood, TruthFile, backtest, backtest_html, import,
};
use jiff::Timestamp;
use serde_json::{Value, json};

const MODEL: &str = "test:three-numbers";

fn number(number: i64) -> ItemNumber {
    ItemNumber::new(number).expect("valid")
}

fn options(mode: RetrievalMode) -> BacktestOptions {
    BacktestOptions { mode, wanted_precision: 0.8, limit_queries: None, seed: 1 }
}

async fn imported(database: &TestDatabase, repo: &str, lines: &str) -> (Store, Repo) {
    let store = Store::open(&database.url().parse().expect("valid"), Timestamp::UNIX_EPOCH).await.expect("opens");
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(lines.as_bytes()).expect("it takes lines");
    let name: RepoName = repo.parse().expect("valid");
    let files = vec![file.path().to_owned()];
    let report =
        import(&store, files, Some(&name), Timestamp::UNIX_EPOCH, &mut |_| {}).await.expect("it can be imported");
    assert_eq!(report.failed, 0, "{:?}", report.errors);
    let repo = store.repos().find(&name).await.expect("it answers").expect("imported");
    (store, repo)
}

async fn loaded(store: &Store, repo: &Repo, item_type: ItemType) -> Neighbourhood {
    let key = EmbeddingKey { representation: Representation::Raw, model: MODEL.to_owned() };
    Neighbourhood::load(store, repo, item_type, key, Calibration::identity(), None).await.expect("loads")
}

async fn replayed(
    store: &Store,
    repo: &Repo,
    truth: Option<&str>,
    options: BacktestOptions,
) -> Result<Backtest, BacktestError> {
    let truth = truth.map(|text| TruthFile::parse(text.as_bytes()));
    let both = [loaded(store, repo, ItemType::Issue).await, loaded(store, repo, ItemType::Pr).await];
    let mut told = Vec::new();
    let done = backtest(store, repo, &both, truth.as_ref(), options, &mut |done, total| told.push((done, total))).await;
    if let Ok(done) = &done {
        let total = (done.counts.duplicates_replayed + done.counts.others_replayed) as u64;
        assert_eq!(told, (1..=total).map(|done| (done, total)).collect::<Vec<_>>());
    }
    done
}

/// Seven issues and a pull request. By time: 6, 1, 2, 3, 4, 5, 8.
///
/// Duplicates are 1 and 3 (of 6, which is older despite its higher number) and 5, which is one of 2 although nothing
/// suggests it. 8 has the same text as 4, but nobody linked them.
fn history() -> String {
    let issue = |number: i64, day: u32, title: &str, duplicate_of: Option<i64>| {
        json!({"number": number, "title": title, "state": "closed", "created_at": format!("2020-01-{day:02}"),
            "labels": ["duplicate"], "duplicate_of": duplicate_of, "url": format!("https://example.org/{number}")})
    };
    let lines = [
        issue(6, 1, "alpha engine crashes while starting", None),
        issue(1, 2, "alpha engine crashes while starting", Some(6)),
        issue(2, 3, "beta window flickers", None),
        issue(3, 4, "alpha engine crashes while starting", Some(1)),
        issue(4, 5, "gamma export loses <b>unicode</b> names", None),
        issue(5, 6, "delta engine misses keyboard shortcuts completely", Some(2)),
        issue(8, 8, "gamma export loses <b>unicode</b> names", None),
        json!({"type": "pr", "number": 9, "title": "alpha engine crashes while starting", "created_at": "2020-01-09"}),
    ];
    lines.map(|line| line.to_string()).join("\n")
}

on_both_engines! {
    async fn a_history_by_hand(database: TestDatabase) {
        let (store, repo) = imported(&database, "octo/cat", &history()).await;
        let done = replayed(&store, &repo, None, options(RetrievalMode::Lexical)).await.expect("it replays");

        // 1 finds 6 and 3 finds 1 or 6; 5 shares only "engine" with others, and nothing with 2.
        assert_eq!(done.retrieval.queries, 3);
        assert_eq!((done.retrieval.recall_at_1.value, done.retrieval.recall_at_20.value), (2.0 / 3.0, 2.0 / 3.0));
        assert_eq!(done.retrieval.mrr.value, 2.0 / 3.0);
        assert_eq!(done.by_type.len(), 1, "no pull request is a duplicate");
        let counts = done.counts;
        assert_eq!((counts.items, counts.duplicates_known, counts.duplicates_without_earlier), (8, 3, 0));
        assert_eq!((counts.duplicates, counts.others, counts.others_replayed), (3, 5, 5));

        // Three items repeat an earlier one word for word, including 8. 9 would be the fourth, but it is of another
        // type; 6 and 4 are older than the items that repeat them.
        let point = done.verdicts.at(0.95);
        assert_eq!((point.given, point.right), (3, 2));
        assert_eq!(point.precision, Some(wilson(2, 3)));
        assert_eq!(point.recall, wilson(2, 3));
        assert_eq!(point.per_thousand, 375.0);
        assert_eq!(done.verdicts.meets_wanted, None);

        let [miss] = done.misses.as_slice() else { panic!("{:?}", done.misses) };
        assert_eq!((miss.duplicate.number, miss.expected.number, miss.rank), (number(5), number(2), None));
        assert_eq!(miss.expected.title, "beta window flickers");
        let advice = done.recommendation().join(" ");
        assert!(advice.contains("No threshold would have been right 4 times in 5 here"), "{advice}");
        assert!(advice.contains("Do not close anything automatically yet"), "{advice}");
        assert!(done.cautions()[0].starts_with("Only 3 past duplicates could be replayed, so the figures are uncertain"));
        store.disconnect().await;
    }

    async fn the_same_seed_gives_the_same_sample_and_weights_keep_the_frequency(database: TestDatabase) {
        let (store, repo) = imported(&database, "octo/cat", &history()).await;
        let sampled = BacktestOptions { limit_queries: Some(2), ..options(RetrievalMode::Lexical) };
        let one = replayed(&store, &repo, None, sampled).await.expect("it replays");
        let again = replayed(&store, &repo, None, sampled).await.expect("it replays");
        assert_eq!((&one.retrieval, &one.verdicts), (&again.retrieval, &again.verdicts));
        let counts = one.counts;
        assert_eq!((counts.duplicates, counts.duplicates_replayed), (3, 2));
        assert_eq!((counts.others, counts.others_replayed), (5, 2));
        assert!(one.method().contains("a sample of 2 of 5 other items, each counted 2.5 times"), "{}", one.method());
        store.disconnect().await;
    }

    async fn a_truth_file_takes_the_place_of_what_people_said(database: TestDatabase) {
        let (store, repo) = imported(&database, "octo/cat", &history()).await;
        let truth = r#"{"type":"issue","number":8,"relevant":[4,77]}
{"type":"issue","number":99,"relevant":[4]}
{"type":"issue","number":4,"relevant":[8]}
oops
{"type":"pr","number":9,"relevant":[6]}"#;
        let done = replayed(&store, &repo, Some(truth), options(RetrievalMode::Lexical)).await.expect("it replays");
        assert_eq!((done.retrieval.queries, done.retrieval.recall_at_1.value), (1, 1.0));
        // 4 came before 8, so there was nothing to find for it.
        assert_eq!((done.counts.duplicates_known, done.counts.duplicates_without_earlier), (2, 1));
        let told: Vec<(u64, &str)> =
            done.mistakes.iter().map(|mistake| (mistake.line, mistake.message.as_str())).collect();
        assert_eq!(told, [
            (1, "there is no issue #77 in the database"),
            (2, "there is no issue #99 in the database"),
            (4, "expected value at column 1"),
            (5, "there is no pull request #6 in the database"),
        ]);
        let useless = replayed(&store, &repo, Some("oops\n"), options(RetrievalMode::Lexical)).await;
        let message = useless.expect_err("nothing can be used").to_string();
        assert_eq!(message, "no line of the truth file can be used; line 1: expected value at column 1");
        store.disconnect().await;
    }

    async fn without_duplicates_there_is_nothing_to_replay(database: TestDatabase) {
        let lines = r#"{"number":1,"title":"a"}
{"number":2,"title":"b","state":"closed","state_reason":"duplicate"}"#;
        let (store, repo) = imported(&database, "octo/cat", lines).await;
        let refused = replayed(&store, &repo, None, options(RetrievalMode::Hybrid)).await.expect_err("nothing known");
        assert_eq!(
            refused.to_string(),
            "no duplicates are known in octo/cat, so there is nothing to replay; learn them with `canonry sync --repo octo/cat --outcomes`, or name them in a file with --truth"
        );
        let (store, repo) = {
            store.disconnect().await;
            imported(&database, "octo/dog", r#"{"number":3,"title":"a","duplicate_of":2}"#).await
        };
        let refused = replayed(&store, &repo, None, options(RetrievalMode::Lexical)).await.expect_err("no target");
        assert!(refused.to_string().starts_with("1 duplicates are known in octo/dog, but nothing that they duplicate"));
        store.disconnect().await;
    }

    async fn vectors_are_needed_and_their_absence_is_told(database: TestDatabase) {
        let (store, repo) = imported(&database, "octo/cat", &history()).await;
        let refused = replayed(&store, &repo, None, options(RetrievalMode::Hybrid)).await.expect_err("no vectors");
        assert!(refused.to_string().contains("run `canonry embed --repo octo/cat`"), "{refused}");

        // Everything except 3 and 9: 1 is near 6, and 5 is nearer to 2 than to anything else.
        let key = EmbeddingKey { representation: Representation::Raw, model: MODEL.to_owned() };
        let vectors = [(6, [1.0, 0.0, 0.0]), (1, [1.0, 0.0, 0.0]), (2, [0.0, 1.0, 0.0]), (4, [0.6, 0.0, 0.8]),
            (5, [0.0, 0.8, 0.6]), (8, [0.0, 0.0, 1.0])];
        let mut embeddings = Vec::new();
        for (item, vector) in vectors {
            let item = store.corpus().item(repo.id, ItemType::Issue, number(item)).await.expect("it answers").expect("there");
            embeddings.push(NewEmbedding {
                item_type: ItemType::Issue,
                number: item.number,
                embedded_hash: item.content_hash,
                vector: vector.to_vec(),
                tokens: None,
            });
        }
        store.corpus().write_embeddings(repo.id, &key, &embeddings, Timestamp::UNIX_EPOCH).await.expect("stored");
        for mode in [RetrievalMode::Dense, RetrievalMode::Hybrid] {
            let done = replayed(&store, &repo, None, options(mode)).await.expect("it replays");
            let counts = done.counts;
            assert_eq!((counts.items_without_vector, counts.duplicates_without_vector), (2, 1), "{mode}");
            assert_eq!((counts.duplicates, done.retrieval.queries, counts.others), (2, 2, 4), "{mode}");
            assert_eq!(done.retrieval.recall_at_20.value, 1.0, "{mode}");
            assert!(done.cautions().iter().any(|caution| caution.contains("2 of 8 items have no vector")), "{mode}");
            assert!(done.cautions().iter().any(|caution| caution.contains("raw cosines")), "{mode}");
        }
        let dense = replayed(&store, &repo, None, options(RetrievalMode::Dense)).await.expect("it replays");
        // First neighbours: 1 → 6 at 1.0, right; 5 → 2 at .8, right; 8 → 4 at .8, wrong; 4 → 6 at .6, wrong;
        // 2 → 1 or 6 at 0, wrong; 6 is the first of all.
        let told = |threshold| { let point = dense.verdicts.at(threshold); (point.given, point.right) };
        assert_eq!([told(0.5), told(0.7), told(0.9)], [(4, 2), (3, 2), (1, 1)]);
        store.disconnect().await;
    }

    async fn a_sample_repository_sees_only_the_past(database: TestDatabase) {
        let (store, repo) = imported(&database, TIDEPOOL.repo, TIDEPOOL.items).await;
        let done = replayed(&store, &repo, None, options(RetrievalMode::Lexical)).await.expect("it replays");

        // Counted in another way: numbers follow time there, so every linked item except the first of its cluster is
        // a query, unless its cluster is of the other type.
        let items: Vec<Value> =
            TIDEPOOL.items.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let mut expected = 0;
        for item_type in ["issue", "pr"] {
            let of_type: Vec<&Value> = items.iter().filter(|item| item["type"] == item_type).collect();
            let numbers: Vec<i64> = of_type.iter().filter_map(|item| item["number"].as_i64()).collect();
            let links = of_type.iter().filter_map(|item| Some((item["number"].as_i64()?, item["duplicate_of"].as_i64()?)));
            let clusters = duplicate_clusters(links.map(|(one, other)| (number(one), number(other))));
            expected += numbers.iter().filter(|&&own| {
                let others = clusters.get(&number(own));
                others.is_some_and(|others| others.iter().any(|other| other.get() < own && numbers.contains(&other.get())))
            }).count();
        }
        assert!(expected >= 20, "{expected}");
        assert_eq!(done.retrieval.queries, expected);
        assert_eq!(done.counts.others_replayed, done.counts.others);
        for miss in &done.misses {
            let first = miss.first.as_ref().expect("something is always a little alike");
            assert!(first.number < miss.duplicate.number && miss.expected.number < miss.duplicate.number, "{miss:?}");
        }
        assert!(done.misses.is_sorted_by_key(|miss| std::cmp::Reverse(miss.rank.unwrap_or(usize::MAX))));
        assert!(done.recall_curve.is_sorted_by(|one, other| one.1 <= other.1));
        assert_eq!(done.recall_curve[4], (10, done.retrieval.recall_at_10.value));

        let from_file = replayed(&store, &repo, Some(TIDEPOOL.truth), options(RetrievalMode::Lexical)).await.expect("it replays");
        assert_eq!((from_file.retrieval.queries, from_file.mistakes.len()), (TIDEPOOL.truth.lines().count(), 0));
        assert_eq!(from_file.by_type.iter().map(|(_, of)| of.queries).sum::<usize>(), from_file.retrieval.queries);
        store.disconnect().await;
    }
}

#[tokio::test]
async fn the_page_is_whole_and_holds_nothing_from_the_corpus_as_markup() {
    let database = TestDatabase::sqlite();
    let lines = [
        r#"{"number":1,"title":"<img src=x onerror=alpha()>","url":"javascript:alert(1)","created_at":"2020-01-01"}"#,
        r#"{"number":2,"title":"</table><script>beta()</script>","url":"https://example.org/2?a=\"b&c","created_at":"2020-01-02","duplicate_of":1}"#,
    ];
    let (store, repo) = imported(&database, "octo/cat", &lines.join("\n")).await;
    let done = replayed(&store, &repo, None, options(RetrievalMode::Lexical)).await.expect("it replays");
    let page = backtest_html(&done, None, "2026-02-01T10:00:00Z".parse().expect("valid"));
    for absent in ["<script", "<img", "javascript:", "http-equiv=\"refresh\"", "src="] {
        let hits = page.matches(absent).count();
        // The title is shown, escaped.
        let escaped = usize::from(absent == "src=");
        assert_eq!(hits, escaped, "{absent}");
    }
    assert!(page.contains("&lt;img src=x onerror=alpha()&gt;"));
    assert!(
        page.contains(r#"<a href="https://example.org/2?a=&quot;b&amp;c" rel="noreferrer">#2 <bdi>&lt;/table&gt;"#)
    );
    for element in
        ["svg", "figure", "table", "section", "tbody", "tr", "td", "th", "g", "main", "html", "title", "desc"]
    {
        let opened = page.matches(&format!("<{element}>")).count() + page.matches(&format!("<{element} ")).count();
        assert!(opened > 0 && opened == page.matches(&format!("</{element}>")).count(), "{element}");
    }
    assert_eq!(page.matches("<svg ").count(), 3);
    assert_eq!(page.matches("role=\"img\" aria-labelledby=").count(), 3);
    assert!(page.contains("What to do now") && page.contains("1 February 2026, 10:00 UTC"));
    store.disconnect().await;
}
