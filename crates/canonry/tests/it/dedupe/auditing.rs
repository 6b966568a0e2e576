//! `judge-audit` and `report-audit`: cases 41 to 43 and the arithmetic.

use std::collections::BTreeMap;

use canonry_domain::AdjudicatedAnswer;
use canonry_store::{AdjudicationKind, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::questions::{no, yes};
use crate::dedupe::setting::{REPO, Setting, issue, issue_with};
use crate::place::Ran;

const CHEAP: &str = "cheap-1";
const STRONG: &str = "strong-1";

fn audit(setting: &Setting, more: &[&str]) -> Ran {
    let url = setting.models.base_url();
    let lanes = [
        "judge-audit",
        "--cheap-provider",
        "openai",
        "--cheap-model",
        CHEAP,
        "--strong-provider",
        "openai",
        "--strong-model",
        STRONG,
        "--base-url",
        &url,
        "--json",
    ];
    setting.run(&[&lanes, more].concat())
}

/// Sources 100, 200, … with these scores of closed candidates, so that only sources are sampled.
fn corners(setting: &Setting, corners: &[&[f64]]) {
    let mut lines = Vec::new();
    for (at, scores) in (1_i64..).zip(corners) {
        lines.push(issue(at * 100));
        lines.extend((1..).zip(*scores).map(|(place, _)| issue_with(at * 100 + place, json!({"state": "closed"}))));
    }
    setting.import(&lines);
    for (at, scores) in (1_i64..).zip(corners) {
        let others: Vec<(i64, f64)> = (1..).zip(*scores).map(|(place, &score)| (at * 100 + place, score)).collect();
        setting.around(at * 100, &others);
    }
    setting.find_candidates(&[]);
}

/// The candidate that each lane names for each source, counted from 1; 0 for none.
fn lanes(setting: &Setting, named: &[(i64, i64)]) {
    let named: BTreeMap<i64, (i64, i64)> = (1..).zip(named).map(|(at, &pair)| (at * 100, pair)).collect();
    setting.judge_says(move |question| {
        let (cheap, strong) = named.get(&question.source).copied().unwrap_or_default();
        let place = if question.model == CHEAP { cheap } else { strong };
        assert!([CHEAP, STRONG].contains(&question.model.as_str()), "{question:?}");
        match place {
            0 => no(),
            -1 => "no idea".to_owned(),
            place => yes(question.source + place, 0.95),
        }
    });
}

fn counts(document: &Value) -> [i64; 6] {
    let audit = &document["audit"];
    ["tp", "fp", "fn", "tn", "conflict", "incomplete"]
        .map(|class| audit[class].as_i64().unwrap_or_else(|| panic!("no {class}: {document}")))
}

on_both_engines! {
    /// Its yes passes every gate, but closes nothing: neither in a plan nor by a new item's verdict.
    async fn a_judge_that_says_yes_to_everything_closes_nothing_until_it_is_proven(database: TestDatabase) {
        let mut setting = Setting::on(database);
        setting.judge_is_proven = false;
        let pairs: Vec<i64> = (1..=12).map(|pair| pair * 100).collect();
        setting.import(&pairs.iter().flat_map(|first| [issue(*first), issue(first + 1)]).collect::<Vec<_>>());
        for first in &pairs {
            setting.around(*first, &[(first + 1, 0.97)]);
        }
        setting.find_candidates(&[]);
        setting.maintainers(&["maint"]);
        setting.judge_says(|question| yes(question.candidates[0], 0.99));
        setting.judge(&[]);
        // First another judge finds half of its answers wrong; later it finds all of them right.
        let strong_agrees = |agrees: fn(i64) -> bool| {
            setting.judge_says(move |question| match question.model == STRONG && !agrees(question.source) {
                true => no(),
                false => yes(question.candidates[0], 0.99),
            });
            let url = setting.models.base_url();
            let lanes = ["judge-audit", "--cheap-provider", "openai", "--cheap-model", "judge-1", "--strong-provider"];
            setting.succeeds(&[&lanes[..], &["openai", "--strong-model", STRONG, "--base-url", &url]].concat())["proof"].clone()
        };
        let skips = || {
            let plan = setting.succeeds(&["plan-close", "--dry-run"]);
            let rows = plan["items"].as_array().expect("a list").clone();
            assert_eq!(rows.len(), pairs.len(), "{plan}");
            rows.into_iter().filter(|row| row["skip_reason"] == "unproven_judge").count()
        };
        let detected = || {
            let told = setting.with_models(&["detect-new", "--number", "101", "--json"]).succeeded().json();
            (told["verdict"].clone(), told["reason"].clone())
        };
        let doctor = || {
            let mut command = setting.place.command(&["doctor", "--offline", "--json"]);
            let told = Ran::of(command.env("CANONRY_DATABASE_URL", setting.database.url()).output().expect("runs")).json();
            told["checks"].as_array().expect("a list").iter().filter(|check| check["name"] == "judge").count()
        };
        let maybe = || (json!("maybe_duplicate"), json!("online_strict_guardrail:unproven_judge"));
        assert_eq!((skips(), detected(), doctor()), (12, maybe(), 1));
        let proof = strong_agrees(|source| source % 200 < 100);
        assert_eq!((&proof["right"], &proof["wrong"], &proof["may_close"]), (&json!(12), &json!(12), &json!(false)));
        assert_eq!((skips(), detected(), doctor()), (12, maybe(), 1));
        // A person's ruling needs no judge.
        setting.succeeds(&["override", "duplicate", "101", "100"]);
        assert_eq!(skips(), 11);
        let proof = strong_agrees(|_| true);
        assert_eq!((&proof["right"], &proof["wrong"], &proof["may_close"]), (&json!(24), &json!(0), &json!(true)));
        assert_eq!((skips(), doctor()), (0, 0));
        let told = setting.with_models(&["detect-new", "--number", "201", "--json"]).succeeded().json();
        assert_eq!((&told["verdict"], &told["duplicate_of"]), (&json!("duplicate"), &json!(200)), "{told}");
    }

    /// A judge that is compared with itself proves nothing; people's rulings count before any judge's verdict.
    async fn nobody_proves_themselves_and_people_know_best(database: TestDatabase) {
        let mut setting = Setting::on(database);
        setting.judge_is_proven = false;
        corners(&setting, &[&[0.95], &[0.95], &[0.95]]);
        setting.judge_says(|question| yes(question.candidates[0], 0.99));
        let url = setting.models.base_url();
        let audited = |strong: &str| {
            let lanes = ["judge-audit", "--cheap-provider", "openai", "--cheap-model", CHEAP, "--strong-provider", "openai"];
            setting.succeeds(&[&lanes[..], &["--strong-model", strong, "--base-url", &url]].concat())["proof"].clone()
        };
        let counted = |proof: &Value| (proof["right"].as_u64(), proof["wrong"].as_u64());
        assert_eq!(counted(&audited(CHEAP)), (Some(0), Some(0)));
        assert_eq!(counted(&audited(STRONG)), (Some(3), Some(0)));
        setting.succeeds(&["override", "not-duplicate", "100", "101"]);
        assert_eq!(counted(&audited(STRONG)), (Some(2), Some(1)));
        assert_eq!(counted(&audited(CHEAP)), (Some(0), Some(1)));
    }

    /// Case 41, and the report of the stored run without a model.
    async fn one_of_each_class(database: TestDatabase) {
        let setting = Setting::on(database);
        corners(&setting, &[&[0.95], &[0.95], &[0.95], &[0.95]]);
        lanes(&setting, &[(1, 1), (1, 0), (0, 1), (0, 0)]);
        let document = audit(&setting, &["--sample-size", "10", "--seed", "7"]).succeeded().json();
        assert_eq!(counts(&document), [1, 1, 1, 1, 0, 0], "{document}");
        let told = &document["audit"];
        assert_eq!((&told["sample_size"], &told["precision"], &told["recall"]), (&json!(4), &json!(0.5), &json!(0.5)), "{told}");
        assert_eq!(setting.questions().len(), 8, "each source by each lane");
        // The audit creates neither an edge nor a decision.
        assert_eq!(setting.show(100)["decisions"], json!([]));

        setting.models.forget_requests();
        let run = told["id"].as_i64().expect("a run").to_string();
        let report = setting.succeeds(&["report-audit", "--run", &run]);
        assert_eq!((counts(&report), &report["audit"]["precision"]), ([1, 1, 1, 1, 0, 0], &json!(0.5)), "{report}");
        let unknown = setting.run(&["report-audit", "--run", "4711"]);
        assert!(unknown.failed().contains("4711"), "{unknown:?}");
        assert_eq!(setting.models.requests().len(), 0);
    }

    /// Case 42, conflicts, and lanes without an answer.
    async fn vetoes_conflicts_and_silence(database: TestDatabase) {
        let setting = Setting::on(database);
        corners(&setting, &[&[0.95, 0.92], &[0.95], &[0.95], &[0.95]]);
        // Both are accepted, but they name different items of two that are near-identical.
        setting.import(&[issue(500), issue_with(501, json!({"state": "closed"})), issue_with(502, json!({"state": "closed"}))]);
        setting.similar(&[500, 501, 502], |one, other| match (one, other) {
            (500, 501) => 0.95,
            (500, 502) => 0.945,
            _ => 0.96,
        });
        setting.find_candidates(&[]);
        lanes(&setting, &[(1, 2), (-1, 1), (1, -1), (1, 1), (1, 2)]);
        // An empty answer is a separate class, so the exit status is success.
        let document = audit(&setting, &["--sample-size", "10"]).succeeded().json();
        assert_eq!(counts(&document), [1, 1, 0, 0, 1, 2], "{document}");
        // If the budget ends before all questions were asked, the exit status says so.
        let stopped = audit(&setting, &["--sample-size", "10", "--max-calls", "3"]);
        assert_eq!(stopped.exit, Some(3), "{stopped:?}");
        assert!(stopped.json()["stopped"].is_string(), "{stopped:?}");
    }

    /// People's answers in the console about sampled verdicts are reported beside those of the judges.
    async fn people_have_a_lane_of_their_own(database: TestDatabase) {
        let setting = Setting::on(database);
        corners(&setting, &[&[0.95]]);
        lanes(&setting, &[(1, 1)]);
        audit(&setting, &["--sample-size", "10"]).succeeded();
        let before = setting.succeeds(&["report-audit"]);
        assert_eq!((&before["people"]["answered"], &before["people"]["verdicts"]), (&json!(0), &json!([])), "{before}");
        setting.with_edges(&[issue(801), issue(802), issue(803), issue(804)], &[(802, 801, 0.97), (803, 801, 0.97), (804, 801, 0.97)]);
        let now = jiff::Timestamp::UNIX_EPOCH;
        let store = Store::open(&setting.database.url().parse().expect("valid"), now).await.expect("opens");
        let repo = store.repos().find(&REPO.parse().expect("a name")).await.expect("reads").expect("known");
        assert_eq!(store.judge().draw_adjudications(repo.id, AdjudicationKind::Edge, 1, 10, now).await.expect("drawn"), 3);
        for word in [AdjudicatedAnswer::Same, AdjudicatedAnswer::Different] {
            let case = store.judge().next_adjudication(repo.id, None).await.expect("reads").expect("a case");
            assert!(store.judge().adjudicate(repo.id, case.id, word, None, now).await.expect("kept"));
        }
        store.disconnect().await;
        let report = setting.succeeds(&["report-audit"]);
        let people = &report["people"];
        assert_eq!((&people["answered"], &people["waiting"], &people["unsure"]), (&json!(2), &json!(1), &json!(0)), "{people}");
        let duplicates = &people["verdicts"][0];
        assert_eq!((&duplicates["verdict"], &duplicates["confirmed"], &duplicates["refuted"]), (&json!("duplicate"), &json!(1), &json!(1)), "{people}");
        assert_eq!((&duplicates["precision"], &duplicates["levels"][0]["precision"]), (&json!(0.5), &json!(0.5)), "{people}");
        assert_eq!(counts(&report), counts(&before), "the judges' lanes are as they were");
        let told = setting.run(&["report-audit"]).succeeded().stdout;
        assert!(told.contains("People checked 2 sampled verdicts") && told.contains("duplicate          1        1"), "{told}");
    }

    /// Case 43.
    async fn a_seed_names_a_sample(database: TestDatabase) {
        let setting = Setting::on(database);
        corners(&setting, &[&[0.95][..]; 16]);
        let sample = |seed: &str| {
            setting.models.forget_requests();
            lanes(&setting, &[]);
            let document = audit(&setting, &["--sample-size", "6", "--seed", seed]).succeeded().json();
            assert_eq!(document["audit"]["sample_size"], 6, "{document}");
            let mut sources: Vec<i64> = setting.questions().iter().map(|question| question.source).collect();
            sources.sort_unstable();
            sources.dedup();
            assert_eq!(sources.len(), 6);
            sources
        };
        let first = sample("1");
        assert_eq!(sample("1"), first);
        // Another seed may give the same sample by accident; three other seeds do not.
        assert!(["2", "3", "4"].iter().any(|seed| sample(seed) != first));
    }

    /// Tighter gates over a stored run, calculated by hand: ranks 1 and 2, scores .95 to .80, gaps.
    async fn gates_are_simulated_without_a_model(database: TestDatabase) {
        let setting = Setting::on(database);
        // Accepted by both: .95 alone, .80 alone, .93 with .90 behind it. By the cheap one alone: .82, .95 with .92.
        corners(&setting, &[&[0.95], &[0.80], &[0.93, 0.90], &[0.82], &[0.95, 0.92], &[0.95]]);
        lanes(&setting, &[(1, 1), (1, 1), (1, 1), (1, 0), (1, 0), (0, 1)]);
        let document = audit(&setting, &["--sample-size", "50"]).succeeded().json();
        assert_eq!(counts(&document), [3, 2, 1, 0, 0, 0], "{document}");
        let told = &document["audit"];
        assert_eq!((&told["precision"], &told["recall"]), (&json!(0.6), &json!(0.75)), "{told}");
        let run = told["id"].as_i64().expect("a run").to_string();
        setting.models.forget_requests();
        let simulated = |more: &[&str]| {
            let report = setting.succeeds(&[&["report-audit", "--run", &run], more].concat());
            report["simulations"].as_array().unwrap_or_else(|| panic!("no simulations: {report}")).clone()
        };
        let class = |one: &Value| ["tp", "fp", "fn", "tn"].map(|class| one[class].as_i64().unwrap_or_else(|| panic!("no {class}: {one}")));
        // A minimum score of .85 drops one right answer and one wrong one.
        let by_score = simulated(&["--min-score", "0.85"]);
        assert_eq!(class(&by_score[0]), [2, 1, 2, 1], "{by_score:?}");
        // A minimum gap of .04 drops the answers with an alternative: one right, one wrong.
        let by_gap = simulated(&["--min-gap", "0.04"]);
        assert_eq!(class(&by_gap[0]), [2, 1, 2, 1], "{by_gap:?}");
        let by_rank = simulated(&["--max-rank", "1"]);
        assert_eq!(class(&by_rank[0]), [3, 2, 1, 0], "{by_rank:?}");
        let both = simulated(&["--min-score", "0.85", "--min-gap", "0.04"]);
        assert_eq!(class(&both[0]), [1, 0, 3, 2], "{both:?}");
        assert!(simulated(&["--sweep"]).len() > 3);
        assert_eq!(setting.models.requests().len(), 0);
    }
}

#[test]
fn sets_that_are_empty_stale_or_of_closed_items_are_not_sampled() {
    let setting = Setting::sqlite();
    corners(&setting, &[&[0.95], &[0.95], &[0.95]]);
    setting.import(&[
        issue_with(200, json!({"state": "closed"})),
        issue_with(300, json!({"body": "Edited. ".repeat(40)})),
        issue(900),
    ]);
    let document = audit(&setting, &["--sample-size", "50"]).succeeded().json();
    assert_eq!((counts(&document), &document["audit"]["sample_size"]), ([0, 0, 0, 1, 0, 0], &json!(1)), "{document}");
    assert!(
        document["audit"]["precision"].is_null() && document["audit"]["recall"].is_null(),
        "nothing to divide by: {document}"
    );
}

#[test]
fn edges_overrides_and_states_have_no_part_in_an_audit() {
    let setting = Setting::sqlite();
    corners(&setting, &[&[0.95], &[0.95]]);
    setting.succeeds(&["override", "not-duplicate", "100", "101"]);
    setting.succeeds(&["override", "duplicate", "200", "201"]);
    lanes(&setting, &[(1, 1), (0, 0)]);
    let document = audit(&setting, &["--sample-size", "50"]).succeeded().json();
    assert_eq!(counts(&document), [1, 0, 0, 1, 0, 0], "{document}");
}
