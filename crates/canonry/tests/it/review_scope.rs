//! `review` and what a change is answerable for: its own lines, not what was there before.

use std::fs;

use serde_json::{Value, json};

use crate::working_copy::{WorkingCopy, code, credential, sarif, told};

/// A report of ruff as it writes it: every result is an error without tags.
fn ruff(results: &[(&str, &str, u32)]) -> String {
    let result = |(rule, path, line): &(&str, &str, u32)| {
        json!({"ruleId": rule, "level": "error", "message": {"text": format!("{rule} is not allowed")}, "locations":
            [{"physicalLocation": {"artifactLocation": {"uri": path}, "region": {"startLine": line}}}]})
    };
    let results: Vec<Value> = results.iter().map(result).collect();
    json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "ruff"}}, "results": results}]}).to_string()
}

/// A repository with some sixty old files and a report of 1,162 old findings in them; the branch changes one line of
/// the README.
fn flooded() -> WorkingCopy {
    let copy = WorkingCopy::new();
    copy.git(&["switch", "--quiet", "main"]);
    for file in 0..59 {
        copy.write(&format!("src/m{file}.py"), &(1..=20).map(|line| format!("x{line} = {line}\n")).collect::<String>());
    }
    copy.commit("Old code");
    copy.git(&["switch", "--quiet", "topic"]);
    copy.git(&["merge", "--quiet", "--ff-only", "main"]);
    copy.write("README.md", "# Cats\n").commit("Say it better");
    let rules = ["E501", "F401", "F821", "S602", "UP006"];
    let paths: Vec<String> = (0..59).map(|file| format!("src/m{file}.py")).collect();
    let all =
        (0..1_162_usize).map(|at| (rules[at % 5], paths[at / 20].as_str(), u32::try_from(at % 20 + 1).expect("small")));
    copy.place.write("old.sarif", ruff(&all.collect::<Vec<_>>()));
    copy
}

#[test]
fn old_findings_are_one_line_and_fail_nothing_in_any_run() {
    let copy = flooded();
    let report = copy.place.path("old.sarif").display().to_string();
    let asked = ["review", "--base", "main", "--sarif", &report, "--fail-on", "minor"];
    for run in 1..=2 {
        let ran = copy.canonry(&asked).succeeded();
        let sentence = "1,162 findings off the changed lines or older than the change are not shown.";
        assert_eq!(ran.stdout.matches(sentence).count(), 1, "{run}: {}", ran.stdout);
        assert!(
            ran.stdout.starts_with("No findings on the changed lines; the report does not say which files it read.\n"),
            "{run}: {}",
            ran.stdout
        );
        assert!(ran.stdout.lines().count() < 12, "{run}: {}", ran.stdout);
    }
    let document = copy.review(&["--base", "main", "--sarif", &report]);
    assert_eq!((&document["counts"]["inline"], &document["counts"]["suppressed"]), (&json!(0), &json!(1_162)));
    assert_eq!(document["findings"][0]["suppressed_by"], "scope");
    // When some of them are gone, that is no news of this change either.
    let mut less: Value = serde_json::from_str(&ruff(&[])).expect("JSON");
    let target = |path: &str| json!({"location": {"uri": path}, "roles": ["analysisTarget"]});
    less["runs"][0]["artifacts"] = json!([target("src/m0.py"), target("README.md")]);
    let less = copy.place.write("less.sarif", less.to_string()).display().to_string();
    let fixed = copy.canonry(&["review", "--base", "main", "--full", "--sarif", &less]).succeeded();
    assert!(fixed.stdout.contains("1,142 findings off") && !fixed.stdout.contains("fixed"), "{}", fixed.stdout);
}

#[test]
fn with_the_scope_all_everything_is_answered_for_by_what_its_rule_means() {
    let copy = flooded();
    let report = copy.place.path("old.sarif").display().to_string();
    let config = copy.place.write("all.yml", "review:\n  scope: all\n  maxComments: 1\n");
    let config = config.display().to_string();
    let asked = ["review", "--json", "--base", "main", "--sarif", &report, "--config", &config, "--fail-on", "major"];
    let ran = copy.canonry(&asked);
    assert_eq!(ran.exit, Some(5), "{}", ran.stderr);
    let document = ran.json();
    // F821 and S602 are major, the others are style, whatever ruff calls them.
    let by_rule = |rule: &str| {
        let findings = document["findings"].as_array().expect("a list").iter();
        let one = findings.into_iter().find(|one| one["witnesses"][0]["rule"] == rule).expect("it is there");
        (one["severity"].as_str().expect("a word").to_owned(), one["category"].as_str().expect("a word").to_owned())
    };
    let words = |severity: &str, category: &str| (severity.to_owned(), category.to_owned());
    assert_eq!(by_rule("E501"), words("minor", "style"));
    assert_eq!(by_rule("F821"), words("major", "correctness"));
    assert_eq!(by_rule("S602"), words("major", "security"));
    assert_eq!(document["counts"]["suppressed"], 0);
}

#[test]
fn with_the_scope_all_what_is_not_serious_fails_off_the_changed_lines_too() {
    let copy = WorkingCopy::new();
    copy.write("README.md", "# Cats\n").commit("Say it better");
    let report = copy.place.write("r.sarif", sarif(&[("odd", "warning", "src/app.js", 3)])).display().to_string();
    let config = copy.place.write("all.yml", "review:\n  scope: all\n").display().to_string();
    let asked = |least: &str, more: &[&str]| {
        let asked = ["review", "--full", "--base", "main", "--sarif", &report, "--fail-on", least];
        copy.canonry(&[&asked[..], more].concat())
    };
    let all = ["--config", config.as_str()];
    let ran = asked("medium", &all);
    assert_eq!(ran.exit, Some(5), "{ran:?}");
    assert!(ran.stdout.contains("Exit status 5: 1 finding of severity medium or higher"), "{}", ran.stdout);
    assert_eq!(asked("major", &all).exit, Some(0));
    assert_eq!(asked("medium", &[]).exit, Some(0), "the change answers for its own lines");
}

#[test]
fn no_format_shows_what_the_change_does_not_answer_for() {
    let copy = flooded();
    let report = copy.place.path("old.sarif").display().to_string();
    for (format, empty) in [
        ("github", ""),
        ("gitlab", "[]"),
        ("junit", "<testsuites tests=\"1\" failures=\"0\" errors=\"0\">"),
        ("code-scanning", "\"results\": []"),
        ("rdjsonl", ""),
    ] {
        let asked = ["review", "--base", "main", "--sarif", &report, "--fail-on", "minor", "--format", format];
        let ran = copy.canonry(&asked).succeeded();
        let is_short = ran.stdout.lines().count() < 60 && !ran.stdout.contains("src/m");
        assert!(is_short && ran.stdout.contains(empty), "{format}: {}", ran.stdout);
    }
}

#[test]
fn a_base_report_tells_what_is_old_and_what_is_new_elsewhere() {
    let copy = WorkingCopy::new();
    let moved: String = (1..=20).map(|line| format!("step{line}();\n")).collect();
    copy.git(&["switch", "--quiet", "main"]);
    copy.write("src/app.js", &format!("eval(a);\n{moved}")).commit("Old code");
    copy.git(&["switch", "--quiet", "--create", "fresh"]);
    // The old line moves to the end, and a new one comes before it.
    copy.write("src/app.js", &format!("{moved}eval(b);\neval(a);\n")).commit("Move it");
    let old = copy.place.write("old.sarif", sarif(&[("no-eval", "error", "src/app.js", 1)])).display().to_string();
    let findings = [
        ("no-eval", "error", "src/app.js", 21),
        ("no-eval", "error", "src/app.js", 22),
        ("unused", "error", "README.md", 1),
    ];
    let new = copy.place.write("new.sarif", sarif(&findings)).display().to_string();
    let document = copy.review(&["--base", "main", "--sarif", &new, "--sarif-base", &old]);
    let mut seen = told(&document);
    seen.sort();
    assert_eq!(
        seen,
        [
            "no-eval src/app.js:21 new inline",
            "no-eval src/app.js:22 new suppressed",
            // The same tool did not report it for the base: it is new, although the change does not touch its line.
            "unused README.md:1 new details",
        ]
    );
    // Without that report nobody knows.
    copy.git(&["switch", "--quiet", "--create", "other"]);
    let mut seen = told(&copy.review(&["--base", "main", "--sarif", &new]));
    seen.sort();
    assert_eq!(seen[1..], ["no-eval src/app.js:22 new inline", "unused README.md:1 new suppressed"]);
    let broken = copy.place.write("broken.sarif", "{").display().to_string();
    let ran = copy.canonry(&["review", "--base", "main", "--sarif", &new, "--sarif-base", &broken]);
    assert!(ran.exit == Some(3) && ran.stdout.contains("it is not SARIF"), "{ran:?}");
}

#[test]
fn the_ledger_of_the_base_branch_tells_what_is_old() {
    let copy = WorkingCopy::new();
    let moved: String = (1..=20).map(|line| format!("step{line}();\n")).collect();
    copy.git(&["switch", "--quiet", "main"]);
    copy.write("src/app.js", &format!("eval(a);\n{moved}")).commit("Old code");
    let old = copy.place.write("old.sarif", sarif(&[("no-eval", "error", "src/app.js", 1)])).display().to_string();
    copy.review(&["--base", "HEAD^", "--head", "main", "--sarif", &old]);
    copy.git(&["switch", "--quiet", "--create", "fresh"]);
    copy.write("src/app.js", &format!("{moved}eval(a);\n")).commit("Move it");
    let new = copy.place.write("new.sarif", sarif(&[("no-eval", "error", "src/app.js", 21)])).display().to_string();
    assert_eq!(told(&copy.review(&["--base", "main", "--sarif", &new])), ["no-eval src/app.js:21 new suppressed"]);
}

#[test]
fn a_critical_finding_on_a_changed_line_is_never_out_of_scope() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code(&credential())).commit("Leak");
    let config = copy.place.write("low.yml", "review:\n  severityCeilings: [{pattern: credential, severity: minor}]\n");
    let ran =
        copy.canonry(&["review", "--base", "main", "--fail-on", "critical", "--config", &config.display().to_string()]);
    assert_eq!(ran.exit, Some(5), "{ran:?}");
}

#[test]
fn a_ceiling_lowers_what_a_tool_calls_an_error() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("changed();")).commit("Change");
    let report = copy.place.write("r.sarif", sarif(&[("no-steps", "error", "src/app.js", 10)])).display().to_string();
    let config =
        copy.place.write("low.yml", "review:\n  severityCeilings: [{pattern: lint/no-steps, severity: minor}]\n");
    let document = copy.review(&["--base", "main", "--sarif", &report, "--config", &config.display().to_string()]);
    assert_eq!(document["findings"][0]["severity"], "minor");
}

#[test]
fn the_formats_of_other_ci_systems() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).write("blob.dat", "a\0b").commit("Look closer");
    let as_format = |format: &str| copy.canonry(&["review", "--base", "main", "--full", "--format", format]);
    let github = as_format("github");
    assert_eq!(github.exit, Some(3));
    assert!(github.stdout.starts_with("::warning file=src/app.js,line=10,endLine=10,title="), "{}", github.stdout);
    assert!(github.stdout.contains("::warning file=blob.dat,title=This file was not read::"), "{}", github.stdout);
    let gitlab: Value = serde_json::from_str(&as_format("gitlab").stdout).expect("JSON");
    assert_eq!((&gitlab[0]["location"]["path"], &gitlab[0]["severity"]), (&json!("src/app.js"), &json!("major")));
    let junit = as_format("junit");
    assert!(junit.stdout.contains("<testsuites tests=\"2\" failures=\"1\" errors=\"1\">"), "{}", junit.stdout);
    let output = copy.place.path("junit.xml");
    copy.canonry(&[
        "review",
        "--base",
        "main",
        "--allow-gaps",
        "--format",
        "junit",
        "--output",
        &output.display().to_string(),
    ])
    .succeeded();
    assert!(fs::read_to_string(output).expect("a file").starts_with("<?xml"));
}
