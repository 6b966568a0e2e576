//! `detect-new`: the verdict on one item, cases 33 to 40, and the record of each run.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{NewIssue, Pull};
use canonry_testkit::models::Fault;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::on_github::{open, world};
use crate::dedupe::questions::{bare_yes, no, structure_with, yes, yes_with};
use crate::dedupe::setting::{BODY, REPO, Setting, issue, issue_with, refused, title};

/// One new item, its neighbours, the judge's answer, and the verdict.
struct Case {
    scores: &'static [f64],
    answer: fn(i64) -> String,
    verdict: &'static str,
    reason: &'static str,
    /// The neighbour that is named, counted from 1; 0 for none.
    target: i64,
}

fn detect(setting: &Setting, number: i64, more: &[&str]) -> Value {
    let number = number.to_string();
    let ran = setting.with_models(&[&["detect-new", "--type", "issue", "--number", &number, "--json"], more].concat());
    ran.succeeded().json()
}

const CASES: &[Case] = &[
    // 33
    Case { scores: &[0.93], answer: |at| yes(at + 1, 0.95), verdict: "duplicate", reason: "", target: 1 },
    // 34
    Case {
        scores: &[0.93],
        answer: |at| bare_yes(at + 1, 0.97),
        verdict: "maybe_duplicate",
        reason: "online_strict_guardrail:",
        target: 1,
    },
    // 35
    Case {
        scores: &[0.86],
        answer: |at| yes(at + 1, 0.96),
        verdict: "maybe_duplicate",
        reason: "duplicate_low_retrieval_support",
        target: 1,
    },
    // 36
    Case {
        scores: &[0.91, 0.90],
        answer: |at| yes(at + 1, 0.96),
        verdict: "maybe_duplicate",
        reason: "online_strict_guardrail:",
        target: 1,
    },
    // 37
    Case {
        scores: &[0.89],
        answer: |at| yes(at + 1, 0.88),
        verdict: "maybe_duplicate",
        reason: "low_confidence_duplicate",
        target: 1,
    },
    // 38
    Case {
        scores: &[0.74],
        answer: |at| yes(at + 1, 0.99),
        verdict: "not_duplicate",
        reason: "no_candidates",
        target: 0,
    },
    // 39
    Case {
        scores: &[0.93],
        answer: |_| "I think so".to_owned(),
        verdict: "maybe_duplicate",
        reason: "invalid_judge_response",
        target: 1,
    },
    Case {
        scores: &[0.80],
        answer: |_| "I think so".to_owned(),
        verdict: "not_duplicate",
        reason: "invalid_judge_response",
        target: 0,
    },
    Case {
        scores: &[0.85],
        answer: |_| String::new(),
        verdict: "maybe_duplicate",
        reason: "invalid_judge_response",
        target: 1,
    },
    // The borders, and each structural key that may be missing.
    Case { scores: &[0.90], answer: |at| yes(at + 1, 0.92), verdict: "duplicate", reason: "", target: 1 },
    Case {
        scores: &[0.8999],
        answer: |at| yes(at + 1, 0.92),
        verdict: "maybe_duplicate",
        reason: "duplicate_low_retrieval_support",
        target: 1,
    },
    Case {
        scores: &[0.95],
        answer: |at| yes(at + 1, 0.9199),
        verdict: "maybe_duplicate",
        reason: "low_confidence_duplicate",
        target: 1,
    },
    Case {
        scores: &[0.95],
        answer: |at| yes(at + 1, 0.84),
        verdict: "not_duplicate",
        reason: "below_maybe_threshold",
        target: 0,
    },
    Case { scores: &[0.95], answer: |_| no(), verdict: "not_duplicate", reason: "model_not_duplicate", target: 0 },
    Case {
        scores: &[0.95],
        answer: |at| yes_with(at + 1, 0.95, &structure_with(&json!({"certainty": null}))),
        verdict: "maybe_duplicate",
        reason: "online_strict_guardrail:",
        target: 1,
    },
    Case {
        scores: &[0.95],
        answer: |at| yes_with(at + 1, 0.95, &structure_with(&json!({"scope_relation": "source_subset"}))),
        verdict: "maybe_duplicate",
        reason: "online_strict_guardrail:",
        target: 1,
    },
    Case {
        scores: &[0.95],
        answer: |at| yes_with(at + 1, 0.95, &structure_with(&json!({"certainty": "unsure"}))),
        verdict: "maybe_duplicate",
        reason: "online_strict_guardrail:",
        target: 1,
    },
    Case {
        scores: &[0.95],
        answer: |at| bare_yes(at + 1, 0.84),
        verdict: "not_duplicate",
        reason: "below_maybe_threshold",
        target: 0,
    },
    // Structure is required, but not the path.
    Case {
        scores: &[0.95],
        answer: |at| yes_with(at + 1, 0.95, &structure_with(&json!({"path_match": null}))),
        verdict: "duplicate",
        reason: "",
        target: 1,
    },
    // The score of the selected candidate counts, not the best score.
    Case {
        scores: &[0.97, 0.93],
        answer: |at| yes(at + 2, 0.96),
        verdict: "maybe_duplicate",
        reason: "online_strict_guardrail:",
        target: 2,
    },
];

on_both_engines! {
    /// Cases 33 to 39 and their borders.
    async fn verdicts(database: TestDatabase) {
        let setting = Setting::on(database);
        let mut lines = Vec::new();
        for (at, case) in (1..).zip(CASES) {
            lines.extend((0..=case.scores.len() as i64).map(|place| issue(at * 100 + place)));
        }
        setting.import(&lines);
        for (at, case) in (1..).zip(CASES) {
            let others: Vec<(i64, f64)> = (1..).zip(case.scores).map(|(place, &score)| (at * 100 + place, score)).collect();
            setting.around(at * 100, &others);
        }
        setting.find_candidates(&[]);
        setting.judge_says(|question| {
            let at = usize::try_from(question.source / 100).expect("small");
            (CASES[at - 1].answer)(question.source)
        });
        for (at, case) in (1_i64..).zip(CASES) {
            let number = at * 100;
            let document = detect(&setting, number, &[]);
            let reason = document["reason"].as_str().unwrap_or_default();
            assert_eq!(document["verdict"], case.verdict, "#{number}: {document}");
            assert!(reason.starts_with(case.reason), "#{number}: {document}");
            if case.verdict == "duplicate" {
                assert_eq!(document["is_duplicate"], true, "#{number}: {document}");
            }
            if case.target > 0 {
                assert_eq!(document["duplicate_of"], number + case.target, "#{number}: {document}");
            }
            assert_eq!(document["effective_source"], "raw", "{document}");
            assert!(document["triage_id"].is_number(), "{document}");
            if case.reason == "no_candidates" {
                continue;
            }
            let matches = document["top_matches"].as_array().expect("matches").clone();
            let best = matches.first().map(|one| (one["number"].clone(), one["score"].clone(), one["state"].clone()));
            assert_eq!(best, Some((json!(number + 1), json!(case.scores[0]), json!("open"))), "#{number}: {document}");
        }
    }

    /// Each run stores a record with all neighbours, but neither a candidate set nor a decision.
    async fn a_record_is_kept_whatever_the_verdict(database: TestDatabase) {
        let setting = Setting::on(database);
        let closed = issue_with(12, json!({"state": "closed"}));
        setting.import(&[issue(10), issue(11), closed, issue(13), issue(14)]);
        setting.around(10, &[(11, 0.93), (12, 0.91), (13, 0.60), (14, 0.40)]);
        setting.find_candidates(&["--source-state", "closed"]);
        setting.judge_says(|question| {
            assert_eq!(question.candidates, [11], "open ones above the threshold: {question:?}");
            yes(11, 0.95)
        });
        let first = detect(&setting, 10, &[]);
        assert_eq!((&first["verdict"], &first["duplicate_of"]), (&json!("duplicate"), &json!(11)), "{first}");
        let shown = setting.show(10);
        assert_eq!((&shown["candidate_sets"], &shown["decisions"]), (&json!([]), &json!([])), "{shown}");
        let triage = shown["triage"].as_array().map_or_else(|| shown["triage"].clone(), |records| records[0].clone());
        assert_eq!((&triage["verdict"], &triage["confidence"]), (&json!("duplicate"), &json!(0.95)), "{shown}");
        let known: Vec<i64> = triage["candidates"].as_array().expect("its candidates").iter().filter_map(|one| one["number"].as_i64()).collect();
        assert!(known.contains(&11) && known.contains(&13) && !known.contains(&14), "all from .50 on: {triage}");
        let judged = |number: i64| crate::dedupe::setting::of(&triage["candidates"], number)["judged"].clone();
        assert_eq!((judged(11), judged(13)), (json!(true), json!(false)), "{triage}");
        assert!(setting.story(10).contains("duplicate"), "{}", setting.story(10));
        let second = detect(&setting, 10, &[]);
        assert_ne!(second["triage_id"], first["triage_id"]);
    }

    /// Case 40.
    async fn a_card_that_cannot_be_made_falls_back_to_the_text(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.import(&[issue(10), issue(11)]);
        setting.around(10, &[(11, 0.93)]);
        setting.find_candidates(&[]);
        setting.judge_says(|question| if question.candidates.is_empty() { "no card".to_owned() } else { yes(11, 0.95) });
        let document = detect(&setting, 10, &["--source", "intent", "--extractor", "openai"]);
        assert_eq!(
            (&document["effective_source"], &document["source_fallback_reason"], &document["verdict"]),
            (&json!("raw"), &json!("intent_extraction_failed"), &json!("duplicate")),
            "{document}"
        );
    }
}

#[test]
fn a_new_item_is_embedded_on_the_way() {
    let setting = Setting::sqlite();
    setting.knows(10, &title(10));
    setting.knows(11, &title(11));
    setting.around(10, &[(11, 0.93)]);
    setting.import(&[issue(11)]);
    setting.find_candidates(&[]);
    setting.import(&[issue(10)]);
    setting.judge_knows(&[(10, 11, 0.95)]);
    assert_eq!(detect(&setting, 10, &[])["verdict"], "duplicate");
}

#[test]
fn thresholds_are_options() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(11), issue(12)]);
    setting.around(10, &[(11, 0.93), (12, 0.80)]);
    setting.find_candidates(&[]);
    setting.judge_knows(&[(10, 11, 0.90)]);
    assert_eq!(detect(&setting, 10, &[])["verdict"], "maybe_duplicate");
    assert_eq!(detect(&setting, 10, &["--duplicate-threshold", "0.9"])["verdict"], "duplicate");
    assert_eq!(detect(&setting, 10, &["--maybe-threshold", "0.91"])["reason"], "below_maybe_threshold");
    assert_eq!(detect(&setting, 10, &["--min-score", "0.94"])["reason"], "no_candidates");
    setting.models.forget_requests();
    detect(&setting, 10, &["--k", "1"]);
    assert_eq!(setting.questions()[0].candidates, [11]);
}

/// Several copies of the same report do not lower the confidence.
#[test]
fn near_identical_neighbours_do_not_block() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(11), issue(12), issue(13)]);
    setting.similar(&[10, 11, 12, 13], |one, other| match (one, other) {
        (10, 11) => 0.95,
        (10, 12) => 0.949,
        (10, 13) => 0.948,
        _ => 0.96,
    });
    setting.find_candidates(&[]);
    setting.judge_knows(&[(10, 11, 0.95)]);
    let document = detect(&setting, 10, &[]);
    assert_eq!((&document["verdict"], &document["duplicate_of"]), (&json!("duplicate"), &json!(11)), "{document}");
}

/// If people ruled on a new item, the judge is not asked.
#[test]
fn rulings_of_people_come_first() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(11), issue(20), issue(21)]);
    setting.around(10, &[(11, 0.95)]);
    setting.around(20, &[(21, 0.95)]);
    setting.find_candidates(&[]);
    setting.succeeds(&["override", "not-duplicate", "10", "11"]);
    setting.judge_says(|question| yes(question.candidates[0], 0.99));
    let document = detect(&setting, 10, &[]);
    assert_ne!(document["duplicate_of"], 11, "it was ruled out: {document}");
}

/// An item with a vague title is searched all the same: its author waits for an answer.
#[test]
fn vague_items_are_not_left_out() {
    let setting = Setting::sqlite();
    setting.import(&[issue_with(10, json!({"title": "[Bug]:", "body": "plz fix not working"})), issue(11)]);
    setting.around(10, &[(11, 0.93)]);
    setting.find_candidates(&[]);
    setting.judge_knows(&[(10, 11, 0.95)]);
    assert_eq!(detect(&setting, 10, &[])["verdict"], "duplicate");
}

#[test]
fn a_judge_that_is_down_is_no_verdict() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(11)]);
    setting.around(10, &[(11, 0.93)]);
    setting.find_candidates(&[]);
    setting.models.fault_when("Report 11:", Fault::status(400));
    let ran = setting.with_models(&["detect-new", "--type", "issue", "--number", "10", "--json"]);
    assert!(matches!(ran.exit, Some(0 | 3)), "{ran:?}");
    let document = ran.json();
    assert_eq!(
        (&document["verdict"], &document["reason"], &document["is_duplicate"]),
        (&json!("maybe_duplicate"), &json!("invalid_judge_response"), &json!(false)),
        "{document}"
    );
}

#[test]
fn similar_closed_items_are_named_but_never_targets() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue_with(11, json!({"state": "closed"}))]);
    setting.around(10, &[(11, 0.95)]);
    setting.find_candidates(&[]);
    let document = detect(&setting, 10, &[]);
    assert_eq!(
        (&document["verdict"], &document["duplicate_of"]),
        (&json!("not_duplicate"), &Value::Null),
        "{document}"
    );
    assert_eq!(setting.questions(), []);
    let told = setting.with_models(&["detect-new", "--type", "issue", "--number", "10"]).succeeded().stdout;
    assert!(told.contains("#11") && told.contains("closed"), "closed, maybe fixed: {told}");
}

/// With a token the item is fetched from GitHub, a pull request with its changed files.
#[test]
fn the_item_comes_from_github() {
    let mut world = world(&[1]);
    open(&mut world, 2, "ben", NewIssue::new(&title(2), BODY).pull(Pull::default()));
    let setting = Setting::with_world(TestDatabase::sqlite(), world);
    setting.run(&["sync"]).succeeded();
    setting.knows(3, &title(3));
    setting.knows(4, &title(4));
    setting.around(1, &[(3, 0.95)]);
    setting.around(2, &[(4, 0.95)]);
    setting.find_candidates(&[]);
    setting.people(|world| {
        open(world, 3, "ann", NewIssue::new(&title(3), BODY));
        let pull = Pull::default().file("src/exporter.rs", "+write_summary_once();");
        open(world, 4, "ann", NewIssue::new(&title(4), BODY).pull(pull));
    });
    setting.judge_knows(&[(3, 1, 0.95), (4, 2, 0.95)]);
    let document = detect(&setting, 3, &[]);
    assert_eq!((&document["verdict"], &document["duplicate_of"]), (&json!("duplicate"), &json!(1)), "{document}");
    assert_eq!(setting.show(3)["item"]["author"], "ann");
    let ran = setting.with_models(&["detect-new", "--type", "pr", "--number", "4", "--json"]).succeeded().json();
    assert_eq!((&ran["verdict"], &ran["duplicate_of"]), (&json!("duplicate"), &json!(2)), "{ran}");
    let prompt = setting.models.requests().last().expect("it was asked").prompt();
    assert!(prompt.contains("src/exporter.rs") && prompt.contains("write_summary_once"), "{prompt}");
    assert_eq!(setting.github().writes().len(), 0, "it says nothing on GitHub");
    refused(&setting.with_models(&["detect-new", "--type", "issue", "--number", "99", "--json"]), 1, "#99");
    assert_eq!(REPO, document["repo"]);
}
