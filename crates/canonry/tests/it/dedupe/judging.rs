//! When the judge is asked, what its answer becomes, and what stops it.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::models::Fault;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::questions::{bare_yes, full_structure, no, yes, yes_with};
use crate::dedupe::setting::{Setting, issue, issue_with, of, refused, ruling, title};

/// A source and one open candidate for each number; a candidate has the number after its source.
fn pairs(setting: &Setting, sources: &[i64]) {
    let lines: Vec<Value> = sources.iter().flat_map(|&source| [issue(source), issue(source + 1)]).collect();
    setting.import(&lines);
    for &source in sources {
        setting.around(source, &[(source + 1, 0.95)]);
    }
    setting.find_candidates(&[]);
}

fn accepted() -> (String, Option<String>) {
    ("accepted".to_owned(), None)
}

on_both_engines! {
    /// Cases 5, 6 and 7, with every kind of invalid answer.
    async fn answers_are_read_strictly(database: TestDatabase) {
        let setting = Setting::on(database);
        let long = "r".repeat(400);
        let base = |key: &str, value: Value| {
            let mut answer: Value = serde_json::from_str(&yes(9001, 0.95)).expect("JSON");
            answer[key] = value;
            answer.to_string()
        };
        let without = |key: &str| {
            let mut answer: Value = serde_json::from_str(&yes(9001, 0.95)).expect("JSON");
            answer.as_object_mut().expect("an object").remove(key);
            answer.to_string()
        };
        let numbered = |text: String, to: i64| text.replace("9001", &to.to_string());
        let cases: Vec<(String, &str)> = vec![
            (no(), "rejected"),
            (r#"{"is_duplicate":false,"duplicate_of":null,"confidence":0.4,"reasoning":"Another exporter."}"#.to_owned(), "rejected"),
            (base("extra", json!(1)), "unknown_key"),
            (base("duplicate_of", json!(0)), "no_target"),
            (base("duplicate_of", Value::Null), "no_target"),
            (base("duplicate_of", json!(31_337)), "target_not_in_set"),
            ("Yes, it is a duplicate.".to_owned(), "not_json"),
            ("[true]".to_owned(), "not_json|bad_type"),
            (base("confidence", json!("%")).replace("\"%\"", "NaN"), "not_json|out_of_range"),
            (base("confidence", json!(1.2)), "out_of_range"),
            (base("confidence", json!(-0.1)), "out_of_range"),
            (base("confidence", json!("high")), "bad_type"),
            (base("is_duplicate", json!("true")), "bad_type"),
            (base("relation", json!("twin")), "bad_type|out_of_range"),
            (without("confidence"), "missing_key"),
            (without("is_duplicate"), "missing_key"),
            (format!("{} Anything else?", yes(9001, 0.95)), "trailing_text"),
            (String::new(), "empty"),
            (base("reasoning", json!(long)), "accepted"),
            (format!("```json\n{}\n```", yes(9001, 0.95)), "accepted"),
            (base("path_match", Value::Null), "accepted"),
        ];
        let sources: Vec<i64> = (1..=21).map(|at| at * 10).collect();
        assert_eq!(sources.len(), cases.len());
        pairs(&setting, &sources);
        let answers: Vec<(i64, String)> =
            sources.iter().zip(&cases).map(|(&source, (answer, _))| (source, numbered(answer.clone(), source + 1))).collect();
        setting.judge_says(move |question| {
            answers.iter().find(|(source, _)| *source == question.source).map_or_else(no, |(_, answer)| answer.clone())
        });
        let ran = setting.run_judge(&[]);
        assert!(matches!(ran.exit, Some(0 | 3)), "{ran:?}");
        let judged = ran.json();
        let mut invalid = 0;
        for (&source, (answer, expected)) in sources.iter().zip(&cases) {
            let (status, reason) = ruling(&judged, source);
            match *expected {
                "accepted" | "rejected" => assert_eq!((status.as_str(), reason), (*expected, None), "{answer}"),
                kinds => {
                    invalid += 1;
                    let reason = reason.unwrap_or_else(|| panic!("no reason for {answer}"));
                    let kind = reason.strip_prefix("invalid_response:").unwrap_or_else(|| panic!("{reason}: {answer}"));
                    assert!(status == "skipped" && kinds.split('|').any(|word| word == kind), "{kind}: {answer}");
                }
            }
            assert_eq!(setting.asked_about(source), 1, "an answer that came is not asked for again: {answer}");
        }
        let stats = &judged["stats"];
        assert_eq!((&stats["invalid_responses"], &stats["accepted_edges"]), (&json!(invalid), &json!(3)), "{stats}");
        assert_eq!((&stats["discovered_candidate_sets"], &stats["failed"]), (&json!(42), &json!(0)), "{stats}");
        let kept = setting.accepted(190);
        let reasoning = kept[0]["reasoning"].as_str().expect("reasoning");
        assert_eq!(reasoning, "r".repeat(240));
    }

    /// What an answer quotes must be in the texts; an answer without these keys stays valid.
    async fn an_answer_that_quotes_what_is_not_there_is_refused(database: TestDatabase) {
        let setting = Setting::on(database);
        pairs(&setting, &[10, 20, 30, 40]);
        let quoting = |of: i64, source: Value, candidate: Value| {
            let mut answer: Value = serde_json::from_str(&yes(of, 0.95)).expect("JSON");
            answer["fix"] = json!("Write the summary once.");
            (answer["source_quote"], answer["candidate_quote"]) = (source, candidate);
            answer.to_string()
        };
        let there = "writes its summary twice to the console";
        setting.judge_says(move |question| match question.source {
            10 => quoting(11, json!(there), json!("the second copy … of the FIRST one")),
            20 => quoting(21, json!(there), json!("segmentation fault in the exporter")),
            30 => quoting(31, json!(null), json!(there)),
            40 => yes(41, 0.95),
            _ => no(),
        });
        let judged = setting.run_judge(&[]).json();
        assert_eq!(ruling(&judged, 10), accepted());
        let refused = ("skipped".to_owned(), Some("invalid_response:quote_not_found".to_owned()));
        assert_eq!((ruling(&judged, 20), ruling(&judged, 30)), (refused.clone(), refused));
        assert_eq!(ruling(&judged, 40), accepted());
        assert_eq!(judged["stats"]["invalid_responses"], 2, "{judged}");
        // The stored answer is checked again, and the judge is not asked again.
        setting.models.forget_requests();
        let again = setting.run_judge(&[]).json();
        assert_eq!(again["stats"]["invalid_responses"], 2, "{again}");
        assert_eq!(setting.questions(), []);
    }

    /// The local judge settles what no answer could change; the model is asked about the rest.
    async fn a_cascade_asks_the_model_only_what_is_open(database: TestDatabase) {
        let setting = Setting::on(database);
        // Alike, but neither copies nor a series: the local judge is not sure about them.
        let again = "Since the update every run ends with two summaries on the console. The second copy carries the numbers \
            of the first one, which confuses the people who read our nightly logs. It happens on every machine.";
        let other = |number: i64, title: &str, state: &str| {
            let by = json!({"title": title, "body": again, "state": state, "author": "bob", "created_at": "2026-02-05T10:00:00Z"});
            issue_with(number, by)
        };
        setting.import(&[
            issue_with(10, json!({"title": "The exporter writes its summary twice"})),
            other(11, "The exporter writes a second summary", "open"),
            issue_with(20, json!({"title": "The importer writes its summary twice"})),
            other(21, "The importer writes a second summary", "closed"),
        ]);
        setting.around(10, &[(11, 0.95)]);
        setting.around(20, &[(21, 0.95)]);
        setting.find_candidates(&[]);
        setting.judge_knows(&[(10, 11, 0.95)]);
        let judged = setting.judge(&["--cascade"]);
        let stats = &judged["stats"];
        let count = |key: &str| stats[key].as_u64().expect("a count");
        assert_eq!(setting.asked_about(20), 0, "its only candidate is closed: {judged}");
        assert_eq!(setting.asked_about(10), 1, "{judged}");
        assert_eq!(count("settled_locally") + count("calls"), count("judged"), "{stats}");
        assert_eq!(ruling(&judged, 10), accepted());
        let by = |number: i64| setting.show(number)["decisions"][0]["provider"].clone();
        assert_eq!((by(10), by(20)), (json!("openai"), json!("local")));
        setting.models.forget_requests();
        let again = setting.with_judge(&["judge", "--cascade"]).succeeded();
        assert!(again.stdout.contains("The model was asked about"), "{}", again.stdout);
        assert_eq!(setting.questions(), [], "nothing has changed");
        refused(&setting.run(&["judge", "--cascade"]), 2, "--cascade needs a model");
    }

    /// Cases 18 and 19.
    async fn an_edge_is_judged_again_only_on_request(database: TestDatabase) {
        let setting = Setting::on(database);
        pairs(&setting, &[10, 20, 30]);
        setting.judge_says(|question| match question.source {
            10 => bare_yes(11, 0.93),
            20 => yes(21, 0.5),
            _ => no(),
        });
        let first = setting.judge(&[]);
        assert_eq!((&first["stats"]["judged"], setting.questions().len()), (&json!(6), 6), "{first}");
        let decision = of(&first["decisions"], 10);
        assert_eq!(
            (&decision["target"], &decision["model_is_duplicate"], &decision["confidence"]),
            (&json!(11), &json!(true), &json!(0.93))
        );
        setting.models.forget_requests();

        let second = setting.judge(&[]);
        assert_eq!(setting.questions(), [], "nothing has changed");
        assert_eq!(second["stats"]["skipped_existing_edge"], 1, "{second}");
        assert_eq!(ruling(&second, 10), ("skipped".to_owned(), Some("existing_edge".to_owned())));
        assert_eq!(setting.accepted(10).len(), 1);

        setting.judge_says(|question| if question.source == 10 { yes(11, 0.97) } else { no() });
        let third = setting.judge(&["--rejudge"]);
        assert_eq!((setting.asked_about(10), ruling(&third, 10)), (1, accepted()));
        let edges = setting.accepted(10);
        assert_eq!((edges.len(), &edges[0]["confidence"]), (1, &json!(0.97)), "{edges:?}");
        let all = setting.show(10)["decisions"].as_array().expect("decisions").clone();
        assert!(all.iter().any(|one| one["confidence"] == 0.93), "the old one is kept: {all:?}");

        // A pair that was accepted and is now rejected is no edge any more.
        setting.judge_says(|_| no());
        setting.judge(&["--rejudge"]);
        assert_eq!(setting.accepted(10), Vec::<Value>::new());
    }

    /// An edge is valid only for the texts that were judged (gate 3).
    async fn an_edge_of_older_texts_is_judged_again(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.maintainers_of_pairs(&[10, 20]);
        setting.judge_knows(&[(10, 11, 0.95), (20, 21, 0.95)]);
        setting.judge(&[]);
        setting.models.forget_requests();
        // Source 10 changes its own text; for source 20 the text of its target changes.
        setting.import(&[
            issue_with(10, json!({"body": "Edited. ".repeat(40)})),
            issue_with(21, json!({"body": "Edited as well. ".repeat(30), "comments": 9})),
        ]);
        let plan = setting.plan(&[]);
        let reasons: Vec<&Value> = plan["items"].as_array().expect("rows").iter().map(|row| &row["skip_reason"]).collect();
        assert_eq!(reasons, ["stale_edge", "stale_edge"], "{plan}");
        setting.find_candidates(&[]);
        let again = setting.judge(&[]);
        assert_eq!((ruling(&again, 10), ruling(&again, 20)), (accepted(), accepted()));
        assert_eq!((setting.asked_about(10), setting.asked_about(20)), (1, 1));
        assert_eq!((setting.accepted(10).len(), setting.accepted(20).len()), (1, 1));
        let plan = setting.plan(&[]);
        assert!(plan["items"].as_array().expect("rows").iter().all(|row| row["action"] == "close"), "{plan}");
    }

    /// Gate 0: people's rulings count, whatever a model says.
    async fn an_override_decides_before_any_model(database: TestDatabase) {
        let setting = Setting::on(database);
        pairs(&setting, &[10, 20]);
        setting.import(&[issue(500)]);
        setting.succeeds(&["override", "not-duplicate", "10", "11"]);
        // An override may name an item that is not a candidate.
        setting.succeeds(&["override", "duplicate", "20", "500"]);
        setting.judge_says(|question| yes(question.candidates[0], 0.99));
        let judged = setting.judge(&[]);
        assert_ne!(ruling(&judged, 10).0, "accepted", "{judged}");
        assert_ne!(ruling(&judged, 11).0, "accepted", "the pair has no direction: {judged}");
        assert_eq!((setting.accepted(10), setting.accepted(11)), (vec![], vec![]));
        let document = setting.succeeds(&["canonicalize"]);
        let clusters = crate::dedupe::setting::clusters(&document);
        assert!(clusters.iter().any(|(_, members)| members.contains(&20) && members.contains(&500)), "{clusters:?}");
        assert!(!clusters.iter().any(|(_, members)| members.contains(&10) && members.contains(&11)), "{clusters:?}");
    }
}

#[test]
fn a_refusal_is_an_invalid_answer() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10]);
    setting.models.fault_when("Report 10:", Fault::Refusal);
    let ran = setting.run_judge(&[]);
    assert!(matches!(ran.exit, Some(0 | 3)), "{ran:?}");
    assert_eq!(ruling(&ran.json(), 10), ("skipped".to_owned(), Some("invalid_response:refusal".to_owned())));
}

#[test]
fn a_limit_of_calls_stops_and_the_next_run_goes_on() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10, 20, 30]);
    let ran = setting.run_judge(&["--max-calls", "2", "--workers", "4"]);
    assert!(matches!(ran.exit, Some(0 | 3)), "{ran:?}");
    assert_eq!(setting.questions().len(), 2, "{ran:?}");
    setting.judge(&[]);
    let mut asked: Vec<i64> = setting.questions().iter().map(|question| question.source).collect();
    asked.sort_unstable();
    assert_eq!(asked, [10, 11, 20, 21, 30, 31], "each was asked about once");
}

#[test]
fn a_limit_of_cost_stops_before_the_first_call() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10]);
    let prices = ["--input-price", "3", "--output-price", "15"];
    let ran = setting.run_judge(&[&["--max-cost", "0"][..], &prices].concat());
    assert!(matches!(ran.exit, Some(0 | 3)), "{ran:?}");
    assert_eq!(setting.questions(), [], "{ran:?}");
    setting.run_judge(&[&["--max-cost", "5"][..], &prices].concat()).succeeded();
    assert_eq!(setting.questions().len(), 2);
}

#[test]
fn a_busy_judge_is_asked_again_after_the_pause_it_names() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10]);
    setting.models.fault_once(Fault::status(429).retry_after(0));
    setting.models.fault_once(Fault::status(503).retry_after(0));
    setting.judge_knows(&[(10, 11, 0.95)]);
    setting.models.forget_requests();
    let judged = setting.judge(&["--workers", "1"]);
    assert_eq!((ruling(&judged, 10), setting.questions().len()), (accepted(), 4), "{judged}");
    assert_eq!(judged["stats"]["failed"], 0);
}

#[test]
fn one_question_that_fails_costs_only_itself() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10, 20, 30]);
    setting.judge_knows(&[(10, 11, 0.95), (20, 21, 0.95), (30, 31, 0.95)]);
    // A status that is not retried, for the questions whose source is 20 and for those that have it as a candidate.
    setting.models.fault_when("Report 20:", Fault::status(400));
    let ran = setting.run_judge(&[]);
    assert_eq!(ran.exit, Some(3), "{ran:?}");
    let judged = ran.json();
    assert_eq!((&judged["stats"]["failed"], &judged["stats"]["accepted_edges"]), (&json!(2), &json!(2)), "{judged}");
    assert_eq!((ruling(&judged, 10), ruling(&judged, 30)), (accepted(), accepted()));
    setting.models.clear_faults();
    setting.models.forget_requests();
    let again = setting.judge(&[]);
    assert_eq!(ruling(&again, 20), accepted());
    let mut asked: Vec<i64> = setting.questions().iter().map(|question| question.source).collect();
    asked.sort_unstable();
    assert_eq!(asked, [20, 21], "only what failed is asked again");
}

#[test]
fn a_wrong_key_is_told_once() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10, 20, 30]);
    setting.models.fault_when("", Fault::status(401));
    let ran = setting.run_judge(&["--workers", "1"]);
    refused(&ran, 1, "401");
    assert!(setting.questions().len() <= 2, "the rest would fail alike: {:?}", setting.questions());
}

#[test]
fn only_fresh_sets_of_open_items_are_judged_unless_told() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10, 20]);
    setting
        .import(&[issue_with(10, json!({"body": "Edited. ".repeat(40)})), issue_with(20, json!({"state": "closed"}))]);
    let judged = setting.judge(&[]);
    let mut asked: Vec<i64> = setting.questions().iter().map(|question| question.source).collect();
    asked.sort_unstable();
    assert_eq!(asked, [11, 21], "{judged}");
    let judged = setting.judge(&["--allow-stale"]);
    assert_eq!((setting.asked_about(10), setting.asked_about(20)), (1, 0), "{judged}");
    assert_eq!(judged["stats"]["stale_sets_used"], 1, "{judged}");
}

#[test]
fn types_do_not_mix() {
    let setting = Setting::sqlite();
    setting.import(&[
        issue(10),
        issue(11),
        issue_with(12, json!({"type": "pr"})),
        issue_with(13, json!({"type": "pr"})),
    ]);
    setting.alike(&[10, 11, 12, 13], 0.95);
    setting.find_candidates(&[]);
    setting.judge_says(|question| {
        assert!(question.candidates.len() == 1, "one of the same type: {question:?}");
        yes(question.candidates[0], 0.95)
    });
    let judged = setting.judge(&["--type", "pr"]);
    assert_eq!(setting.questions().iter().map(|question| question.source).filter(|&source| source < 12).count(), 0);
    assert_eq!(ruling(&judged, 13), accepted());
    setting.judge(&[]);
    let clusters = crate::dedupe::setting::clusters(&setting.succeeds(&["canonicalize"]));
    assert_eq!(clusters, [(10, vec![10, 11]), (12, vec![12, 13])]);
}

#[test]
fn show_tells_every_decision_with_its_reason() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10, 20, 30]);
    setting.judge_says(|question| match question.source {
        10 => yes(11, 0.95),
        20 => yes_with(21, 0.95, &json!({"certainty": "unsure"})),
        30 => "no idea".to_owned(),
        _ => no(),
    });
    setting.run_judge(&[]);
    let shown = |number: i64| setting.show(number)["decisions"][0].clone();
    let first = shown(10);
    assert_eq!(
        (&first["final_status"], &first["target"], &first["confidence"]),
        (&json!("accepted"), &json!(11), &json!(0.95))
    );
    assert_eq!((&first["model"], &first["provider"]), (&json!("judge-1"), &json!("openai")), "{first}");
    assert!(first["reasoning"].as_str().is_some_and(|words| words.contains("summary")), "{first}");
    assert!(first["prompt_version"].is_number() && first.get("config_hash").is_some(), "who made it is kept: {first}");
    assert_eq!(shown(20)["veto_reason"], "certainty=unsure");
    assert_eq!(shown(30)["veto_reason"], "invalid_response:not_json");
    let words = "not a duplicate of #21 (confidence 95 %); the judge was not sure";
    assert!(setting.story(20).contains(words), "{}", setting.story(20));
    assert!(setting.story(10).contains("#11"), "{}", setting.story(10));
}

#[test]
fn without_candidates_nobody_is_asked() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(20)]);
    setting.find_candidates(&[]);
    let judged = setting.judge(&[]);
    assert_eq!(setting.questions(), []);
    assert_eq!(ruling(&judged, 10), ("skipped".to_owned(), Some("no_candidates".to_owned())));
    assert_eq!(judged["stats"]["skipped_no_candidates"], 2, "{judged}");
}

#[test]
fn the_judge_is_shown_three_hundred_and_four_thousand_characters() {
    let setting = Setting::sqlite();
    let long_title = format!("Kelp {}", "ä".repeat(400));
    setting
        .import(&[json!({"number": 10, "title": long_title, "body": "ö".repeat(9_000), "state": "open"}), issue(11)]);
    setting.knows(10, "Kelp ä");
    setting.around(10, &[(11, 0.95)]);
    setting.find_candidates(&[]);
    setting.judge(&[]);
    let chats = setting.models.requests().into_iter().filter(|request| request.path == "/chat/completions");
    let prompt = chats.map(|request| request.prompt()).find(|prompt| prompt.contains('ö')).expect("it was asked");
    let count = |letter: char| prompt.chars().filter(|&character| character == letter).count();
    assert_eq!((count('ä'), count('ö')), (295, 4_000));
    assert!(prompt.contains(&title(11)));
}

#[test]
fn absent_structure_is_null_structure() {
    let setting = Setting::sqlite();
    pairs(&setting, &[10, 20]);
    let mut nulls = full_structure();
    nulls.as_object_mut().expect("an object").values_mut().for_each(|value| *value = Value::Null);
    setting.judge_says(move |question| match question.source {
        10 => bare_yes(11, 0.93),
        20 => yes_with(21, 0.93, &nulls),
        _ => no(),
    });
    let judged = setting.judge(&[]);
    assert_eq!((ruling(&judged, 10), ruling(&judged, 20)), (accepted(), accepted()));
}

impl Setting {
    /// Pairs whose second item is canonical, in a repository with known maintainers.
    fn maintainers_of_pairs(&self, sources: &[i64]) {
        pairs(self, sources);
        let written_to = |source: &i64| issue_with(source + 1, json!({"comments": 9}));
        self.import(&sources.iter().map(written_to).collect::<Vec<_>>());
        self.maintainers(&["mona"]);
    }
}
