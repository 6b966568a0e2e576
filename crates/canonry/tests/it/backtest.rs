//! `backtest`: figures, advice and a page, and a message if there is nothing to replay.

use canonry_testkit::samples::TIDEPOOL;
use serde_json::json;

use crate::place::{Place, names_in};

const REPO: &str = "tidepool/tidepool";

fn place() -> Place {
    let place = Place::new();
    place.write("items.jsonl", TIDEPOOL.items);
    place.write("truth.jsonl", TIDEPOOL.truth);
    place.canonry(&["import", "items.jsonl"]).succeeded();
    place
}

#[test]
fn the_document_has_what_scripts_rely_on() {
    let place = place();
    let ran = place.canonry(&[
        "backtest",
        "--repo",
        REPO,
        "--retrieval",
        "lexical",
        "--retrieval-only",
        "--truth",
        "truth.jsonl",
        "--json",
    ]);
    let document = ran.succeeded().json();
    assert_eq!((&document["command"], &document["repo"]), (&json!("backtest"), &json!(REPO)));
    let retrieval = &document["retrieval"];
    assert_eq!(retrieval["queries"], TIDEPOOL.truth.lines().count());
    let recall = |k: &str| retrieval["recall_at"][k].as_f64().expect("a share");
    assert!(recall("1") <= recall("5") && recall("5") <= recall("10") && recall("10") <= recall("20"));
    // The minimum that a realistic sample must reach.
    assert!(recall("10") > 0.5, "{retrieval}");
    let mrr = retrieval["mrr"].as_f64().expect("a share");
    let limits = &retrieval["intervals"]["mrr"];
    assert!(limits[0].as_f64() < Some(mrr) && Some(mrr) < limits[1].as_f64(), "{retrieval}");
    assert_eq!(retrieval["by_type"]["issue"]["queries"], 38);
    let verdicts = &document["verdicts"];
    assert_eq!(verdicts["threshold"], 0.85);
    for key in ["precision", "recall"] {
        assert!(verdicts[key].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{verdicts}");
    }
    let gates: Vec<f64> =
        verdicts["gates"].as_array().expect("a list").iter().filter_map(|gate| gate["threshold"].as_f64()).collect();
    assert_eq!(gates, [0.75, 0.85, 0.9, 0.95]);
    assert_eq!(document["errors"], json!([]));
    assert!(document["timing"]["replay_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    assert!(document["method"].as_str().is_some_and(|method| method.contains("the truth file names")));
    assert_eq!(document["stats"]["others_replayed"], document["stats"]["others"]);
}

#[test]
fn a_person_gets_figures_advice_and_a_page() {
    let place = place();
    let ran = place
        .canonry(&["backtest", "--repo", REPO, "--retrieval", "lexical", "--retrieval-only", "--report", "page.html"])
        .succeeded();
    for told in [
        "How often the right earlier item is found:",
        "How often a comment would have been right",
        "How often the nearest item is right, by its score:",
        "Worst misses:",
        "Recommendation:",
        "Do not close anything automatically yet",
        "Wrote the curves to page.html.",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    assert_eq!(ran.stderr, "");
    let page = std::fs::read_to_string(place.path("page.html")).expect("written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    assert!(page.contains("https://github.com/tidepool/tidepool/issues/"));
}

#[test]
fn verdicts_of_the_whole_judge_are_replayed_as_of_filing_time() {
    let place = place();
    place.canonry(&["embed", "--repo", REPO]).succeeded();
    let arguments = ["backtest", "--repo", REPO, "--sample", "20", "--truth", "truth.jsonl"];
    let document = place.canonry(&[&arguments[..], &["--json"]].concat()).succeeded().json();
    let verdicts = &document["verdicts"];
    assert_eq!(verdicts["judged"], 40, "{verdicts}");
    assert_eq!(document["judge"]["provider"], "local");
    assert_eq!(
        document["stats"]["duplicates_replayed"],
        TIDEPOOL.truth.lines().count(),
        "retrieval is measured on all"
    );
    let given = |key: &str| verdicts[key]["given"].as_u64().expect("a count");
    assert_eq!(given("said"), given("duplicate") + given("maybe_duplicate"), "{verdicts}");
    let levels: Vec<u64> = verdicts["levels"]
        .as_array()
        .expect("levels")
        .iter()
        .map(|level| level["given"].as_u64().expect("a count"))
        .collect();
    assert!(levels.is_sorted_by(|low, high| low >= high) && levels[0] > 0, "{verdicts}");
    assert!(verdicts["recall"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{verdicts}");
    assert!(document["method"].as_str().is_some_and(|method| method.contains("a sample of 20 of")), "{document}");
    assert_eq!(document["calls"], 0);
    let again = place.canonry(&[&arguments[..], &["--json"]].concat()).succeeded().json();
    assert_eq!(verdicts, &again["verdicts"], "the same seed gives the same figures");

    let text = place.canonry(&[&arguments[..], &["--report", "page.html"]].concat()).succeeded().stdout;
    for told in ["with the same judge and gates as `detect-new`", "Verdicts of evidence.", "Recommendation:"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(
        !text.contains("How often a comment would have been right"),
        "tables of scores need --retrieval-only: {text}"
    );
    let page = std::fs::read_to_string(place.path("page.html")).expect("written");
    assert!(page.contains("What would the judge have said?") && !page.contains("Do scores mean what they say?"));
}

#[test]
fn mistakes_of_a_truth_file_are_named_and_cost_only_themselves() {
    let place = place();
    let truth = format!("{}{{\"type\":\"issue\",\"number\":9999,\"relevant\":[1]}}\nnot json\n", TIDEPOOL.truth);
    place.write("truth.jsonl", truth);
    let ran =
        place.canonry(&["backtest", "--repo", REPO, "--retrieval", "lexical", "--truth", "truth.jsonl", "--json"]);
    assert_eq!(ran.exit, Some(3), "{ran:?}");
    let lines = TIDEPOOL.truth.lines().count();
    assert_eq!(
        ran.json()["errors"],
        json!([
            {"line": lines + 1, "message": "there is no issue #9999 in the database"},
            {"line": lines + 2, "message": "expected ident at column 2"},
        ])
    );
    let absent = place.canonry(&["backtest", "--repo", REPO, "--truth", "nowhere.jsonl"]);
    assert!(absent.failed().starts_with("the truth file nowhere.jsonl cannot be read: "), "{absent:?}");
}

#[test]
fn what_cannot_be_replayed_says_what_to_do() {
    let place = Place::new();
    place.write("items.jsonl", "{\"number\":1,\"title\":\"a\"}\n{\"number\":2,\"title\":\"b\",\"duplicate_of\":1}\n");
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    let ran = place.canonry(&["backtest", "--repo", "octo/cat", "--report", "page.html"]);
    assert!(ran.failed().contains("run `canonry embed --repo octo/cat`"), "{ran:?}");
    let ran = place.canonry(&["backtest", "--repo", "octo/cat", "--type", "pr"]);
    assert_eq!(
        ran.failed(),
        "no duplicates are known in octo/cat, so there is nothing to replay; learn them with `canonry sync --repo octo/cat --outcomes`, or name them in a file with --truth"
    );
    assert!(!names_in(&place.path("")).iter().any(|name| name.contains("page.html")), "no page without a replay");
    let wrong = place.canonry(&["backtest", "--repo", "octo/cat", "--precision", "1.5"]);
    assert_eq!(wrong.exit, Some(2), "{wrong:?}");
}
