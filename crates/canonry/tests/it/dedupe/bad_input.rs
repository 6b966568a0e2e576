//! Impossible requests get one sentence that says what to do next, and change nothing.

use canonry_testkit::database::TestDatabase;
use serde_json::json;

use crate::dedupe::on_github::world;
use crate::dedupe::setting::{REPO, Setting, issue, issue_with, refused};

#[test]
fn unknown_repositories_are_named() {
    let setting = Setting::sqlite();
    setting.import(&[issue(1)]);
    for arguments in [
        &["judge"][..],
        &["canonicalize"],
        &["plan-close"],
        &["override", "duplicate", "1", "2"],
        &["detect-new", "--type", "issue", "--number", "1"],
        &["judge-audit", "--strong-provider", "local"],
        &["report-audit"],
        &["plan", "export", "--run", "1"],
        &["apply-close", "--run", "1", "--yes"],
        &["undo-close", "--run", "1"],
    ] {
        let ran = setting.run_about("octo/dog", arguments);
        assert!(ran.failed().contains("octo/dog"), "{ran:?}");
        let ran = setting.run_about("dog", arguments);
        assert_eq!(ran.exit, Some(2), "{ran:?}");
    }
}

#[test]
fn steps_that_are_missing_are_named() {
    let mut setting = Setting::sqlite();
    setting.judge_is_proven = false;
    setting.import(&[issue(1), issue(2)]);
    setting.maintainers(&["mona"]);
    let judge = setting.with_judge(&["judge"]);
    assert!(matches!(judge.exit, Some(0 | 1)), "{judge:?}");
    assert!(format!("{}{}", judge.stdout, judge.stderr).contains("canonry candidates"), "{judge:?}");
    assert_eq!(setting.questions(), []);
}

/// An audit without candidates is refused, and nothing is stored.
#[test]
fn nothing_is_audited_where_there_are_no_candidates() {
    let setting = Setting::sqlite();
    setting.import(&[issue(1), issue(2)]);
    refused(&setting.run(&["report-audit"]), 1, "judge-audit");
    for arguments in
        [&["judge-audit", "--strong-provider", "local"][..], &["judge-audit", "--strong-provider", "local", "--json"]]
    {
        refused(&setting.run(arguments), 1, "run `canonry candidates --repo octo/cat` first");
    }
    refused(&setting.run(&["report-audit"]), 1, "judge-audit");
}

#[test]
fn a_judge_needs_its_key_and_its_place() {
    let setting = Setting::sqlite();
    setting.import(&[issue(1), issue(2)]);
    let told = |arguments: &[&str]| {
        let mut command = setting.place.command(&[&["judge", "--repo", REPO], arguments].concat());
        command.env("CANONRY_DATABASE_URL", setting.database.url());
        crate::place::Ran::of(command.output().expect("the program starts"))
    };
    for (provider, key) in
        [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY")]
    {
        let ran = told(&["--provider", provider]);
        assert!(ran.failed().contains(key), "{ran:?}");
    }
    let unknown = told(&["--provider", "oracle"]);
    assert_eq!(unknown.exit, Some(2));
    let known = "\"oracle\" is not a provider; it must be one of local, openai, anthropic, gemini, command";
    assert!(unknown.stderr.contains(known), "{unknown:?}");
    assert_eq!(told(&["--workers", "0"]).exit, Some(2));
    refused(&told(&["--provider", "command"]), 2, "--model");
}

/// Self-hosted servers need no key.
#[test]
fn a_compatible_server_needs_no_key() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(11)]);
    setting.around(10, &[(11, 0.95)]);
    let url = setting.models.base_url();
    let run = |arguments: &[&str]| {
        let mut command = setting.place.command(&[arguments, &["--repo", REPO]].concat());
        command.env("CANONRY_DATABASE_URL", setting.database.url());
        crate::place::Ran::of(command.output().expect("the program starts")).succeeded()
    };
    let embedder = ["--embedder", "openai", "--embed-base-url", &url];
    run(&[&["embed"][..], &embedder].concat());
    run(&[&["candidates", "--retrieval", "dense"][..], &embedder].concat());
    run(&["judge", "--provider", "openai", "--base-url", &url]);
    assert_eq!(setting.questions().len(), 2);
}

#[test]
fn a_program_can_judge() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue_with(11, json!({"comments": 3}))]);
    setting.around(10, &[(11, 0.95)]);
    setting.find_candidates(&[]);
    let answer = r#"{"is_duplicate":true,"duplicate_of":11,"confidence":0.97,"reasoning":"Same."}"#;
    setting.place.write("answer.json", answer);
    let program = format!("/bin/cat {}", setting.place.path("answer.json").display());
    let ran = setting.run(&["judge", "--provider", "command", "--model", &program, "--json"]);
    let judged = ran.json();
    assert_eq!(crate::dedupe::setting::ruling(&judged, 10).0, "accepted", "{judged}");
    // Item 11 got the same answer, which names item 11 itself.
    assert_eq!(crate::dedupe::setting::ruling(&judged, 11).1.as_deref(), Some("invalid_response:target_not_in_set"));
}

#[test]
fn only_plans_are_applied_and_only_their_own_repository() {
    let setting = Setting::on_github(TestDatabase::sqlite(), world(&[1, 2]), &[(1, &[2])]);
    let run = setting.plan_number(&setting.plan(&[]));
    setting.place.write("dog.jsonl", json!({"number": 1, "title": "Something"}).to_string());
    setting.run_about("octo/dog", &["import", "dog.jsonl"]).succeeded();
    for (command, yes) in [("apply-close", &["--yes"][..]), ("undo-close", &[])] {
        let ran = setting.run_about("octo/dog", &[&[command, "--run", &run], yes].concat());
        assert!(ran.failed().contains(&run), "{ran:?}");
        assert!(ran.stderr.contains(REPO), "whose plan it is: {ran:?}");
        let ran = setting.run(&[&[command, "--run", "4711"], yes].concat());
        assert!(ran.failed().contains("4711"), "{ran:?}");
        assert_eq!(setting.run(&[&[command, "--run", "first"], yes].concat()).exit, Some(2));
        assert_eq!(setting.run(&[&[command], yes].concat()).exit, Some(2), "which one?");
    }
    assert_eq!(setting.github().writes().len(), 0);

    // The run that applied a plan is not a plan.
    let applied = setting.apply(&run).succeeded().json();
    let writes = setting.github().writes().len();
    for other in 1..=3 {
        let other = other.to_string();
        if other != run {
            let ran = setting.run(&["apply-close", "--run", &other, "--yes"]);
            assert_eq!(ran.exit, Some(1), "{ran:?} after {applied}");
        }
    }
    assert_eq!(setting.github().writes().len(), writes);
    refused(&setting.undo(&run, &["--item", "99"]), 1, "99");
}

#[test]
fn wrong_usage_is_two() {
    let setting = Setting::sqlite();
    for arguments in [
        &["plan-close", "--target-policy", "anything"][..],
        &["plan-close", "--min-close", "1.1"],
        &["plan", "approve", "--run", "1"],
        &["detect-new", "--number", "0"],
        &["detect-new"],
        &["judge", "--max-calls", "-1"],
        &["judge-audit", "--sample-size", "0"],
        &["override"],
    ] {
        let ran = setting.run(arguments);
        assert_eq!(ran.exit, Some(2), "{ran:?}");
    }
}

#[test]
fn no_embeddings_yet() {
    let setting = Setting::sqlite();
    setting.import(&[issue(1), issue(2)]);
    setting.maintainers(&["mona"]);
    // The new item is embedded, the others are not: this must not look like "nothing similar".
    refused(&setting.with_models(&["detect-new", "--type", "issue", "--number", "1", "--json"]), 1, "canonry embed");
    assert!(setting.show(1)["triage"].as_array().is_none_or(Vec::is_empty), "what could not be known is not recorded");
}
