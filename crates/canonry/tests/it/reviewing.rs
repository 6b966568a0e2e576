//! `review` in a clone: without an account, a key or any set-up.

use serde_json::{Value, json};

use crate::place::Place;
use crate::working_copy::{WorkingCopy, code, credential, sarif, told};

#[test]
fn a_change_is_reviewed_without_any_set_up() {
    let copy = WorkingCopy::new();
    let base = copy.git(&["rev-parse", "main"]);
    let head = copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let document = copy.review(&["--base", "main"]);
    assert_eq!((&document["schema_version"], &document["command"]), (&json!(1), &json!("review")));
    assert_eq!(document["repo"], "octo/cat");
    let run = &document["run"];
    assert_eq!((&run["mode"], &run["reason"]), (&json!("full"), &json!("no-prior-review")));
    assert_eq!(
        (&run["base_sha"], &run["head_sha"], &run["subject"]),
        (&json!(base), &json!(head), &json!("branch/topic"))
    );
    let findings = document["findings"].as_array().expect("a list");
    assert_eq!(findings.len(), 1, "{document}");
    let finding = findings[0].as_object().expect("an object");
    for (key, value) in [
        ("title", json!("Debugging code is left in")),
        ("path", json!("src/app.js")),
        ("line", json!(10)),
        ("severity", json!("medium")),
        ("category", json!("correctness")),
        ("confidence", json!(70)),
        ("status", json!("new")),
        ("visibility", json!("inline")),
        ("suppressed_by", Value::Null),
    ] {
        assert_eq!(finding.get(key), Some(&value), "{key} in {document}");
    }
    assert!(finding["fingerprint"].as_str().is_some_and(|text| text.starts_with("fp-")), "{document}");
    assert_eq!((&document["counts"]["inline"], &document["counts"]["suppressed"]), (&json!(1), &json!(0)));
    assert_eq!(document["stats"]["findings"], 1);
    assert!(copy.place.database().exists());
}

#[test]
fn the_second_push_reads_what_changed_and_says_nothing_twice() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).write("src/b.js", &code("debugger;")).commit("push A");
    let first = copy.review(&["--base", "main"]);
    assert_eq!(told(&first), ["debug-leftover src/app.js:10 new inline", "debug-leftover src/b.js:10 new inline"]);
    let head = first["run"]["head_sha"].as_str().expect("an id").to_owned();
    let moved: String = (1..=200).map(|line| format!("more{line}();\n")).collect();
    copy.write("src/b.js", &code("debugger; // why?"));
    copy.git(&["mv", "src/app.js", "src/cat.js"]);
    copy.write("src/cat.js", &(moved + &code("debugger;"))).write("src/c.js", "other();\ndebugger;\n").commit("push B");
    copy.write("src/b.js", &code("calm();")).commit("push C");
    let second = copy.review(&["--base", "main"]);
    assert_eq!(second["run"]["mode"], "incremental");
    assert_eq!(second["run"]["reason"], format!("incremental-from-{}", &head[..7]));
    let mut seen = told(&second);
    seen.sort();
    assert_eq!(
        seen,
        [
            "debug-leftover src/b.js:10 fixed details",
            "debug-leftover src/c.js:2 new inline",
            "debug-leftover src/cat.js:210 moved inline",
        ]
    );
    let third = copy.review(&["--base", "main"]);
    assert!(third["run"]["reason"].as_str().is_some_and(|reason| reason.starts_with("no-changes-since-")), "{third}");
    let mut seen = told(&third);
    seen.sort();
    assert_eq!(seen, ["debug-leftover src/c.js:2 same inline", "debug-leftover src/cat.js:210 same inline"]);
    let full = copy.review(&["--base", "main", "--full"]);
    assert_eq!((&full["run"]["mode"], &full["run"]["reason"]), (&json!("full"), &json!("full-requested")));
}

#[test]
fn a_person_reads_it_in_a_terminal() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let shown = copy.canonry(&["review", "--base", "main"]).succeeded();
    for words in ["src/app.js", "Debugging code is left in", "debugger;", "medium"] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
    let linked = |force: &str| {
        let mut command = copy.command(&["review", "--base", "main", "--full"]);
        let ran = command.env("CLICOLOR_FORCE", "1").env("FORCE_HYPERLINK", force).output().expect("it starts");
        String::from_utf8(ran.stdout).expect("UTF-8")
    };
    let address = format!(
        "\u{1b}]8;;file://{}/src/app.js\u{1b}\\line 10",
        copy.path("").canonicalize().expect("a folder").display()
    );
    assert!(linked("1").contains(&address), "{}", linked("1"));
    assert!(!linked("0").contains("\u{1b}]8;;") && !linked("").contains("\u{1b}]8;;"), "off in a pipe");
    // Colours are only for terminals, and the log is not part of the result.
    assert_eq!((shown.stdout.contains('\u{1b}'), shown.stderr.as_str()), (false, ""));
    let help = copy.canonry(&["review", "--help"]).succeeded().stdout;
    for words in
        ["--fail-on", "--sarif", "--no-publish", "status is 5", "Critical findings are always shown", "Example:"]
    {
        assert!(help.contains(words), "{words}: {help}");
    }
}

#[test]
fn linters_and_rules_go_through_one_pipeline() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("eval(name);")).commit("Evaluate");
    copy.place
        .write("lint.sarif", sarif(&[("no-eval", "error", "src/app.js", 10), ("old", "warning", "src/app.js", 2)]));
    let rdjson = json!({"source": {"name": "Spell"}, "severity": "WARNING", "diagnostics": [
        {"message": "Misspelt", "location": {"path": "src/app.js", "range": {"start": {"line": 10}}}, "code": {"value": "word"}}]});
    copy.place.write("spell.json", rdjson.to_string());
    let document = copy.review(&["--base", "main", "--sarif", "../lint.sarif", "--rdjson", "../spell.json"]);
    assert_eq!(document["reviewers"].as_array().map(Vec::len), Some(2), "reports alone");
    let both = ["--sarif", "../lint.sarif", "--rdjson", "../spell.json", "--reviewer", "builtin"];
    let document = copy.review(&[&["--base", "main", "--full"], &both[..]].concat());
    assert_eq!(
        told(&document),
        ["no-eval src/app.js:10 same inline", "old src/app.js:2 same suppressed", "word src/app.js:10 same inline"]
    );
    let reviewers: Vec<&Value> =
        document["reviewers"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(reviewers, ["builtin", "lint", "spell"]);
}

#[test]
fn a_build_fails_on_what_the_change_brings() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let exit = |more: &[&str]| copy.canonry(&[&["review", "--base", "main", "--full"], more].concat()).exit;
    assert_eq!(exit(&[]), Some(0));
    assert_eq!(exit(&["--fail-on", "never"]), Some(0));
    assert_eq!(exit(&["--fail-on", "minor"]), Some(5));
    assert_eq!(exit(&["--fail-on", "medium"]), Some(5));
    let named = "Exit status 5: 1 finding of severity minor or higher (--fail-on minor):\n  \
        medium  src/app.js:10  Debugging code is left in\n";
    let words = copy.canonry(&["review", "--base", "main", "--full", "--fail-on", "minor"]);
    assert!(words.stdout.ends_with(named), "{words:?}");
    let lines = copy.canonry(&["review", "--base", "main", "--full", "--fail-on", "minor", "--format", "rdjsonl"]);
    assert_eq!((lines.exit, lines.stderr.as_str()), (Some(5), named), "{lines:?}");
    assert_eq!(exit(&["--fail-on", "major"]), Some(0));
    // A linter's findings on lines outside the change are shown, but fail nothing.
    let old = [("slow", "warning", "src/app.js", 2), ("long", "note", "README.md", 1)];
    copy.place.write("old.sarif", sarif(&old));
    copy.write("src/app.js", &code("calm();")).commit("Calm down");
    assert_eq!(exit(&["--sarif", "../old.sarif", "--reviewer", "builtin", "--fail-on", "minor"]), Some(0));
    copy.write("src/app.js", &code(&credential())).commit("Leak");
    assert_eq!(exit(&["--fail-on", "critical"]), Some(5));
    let document = copy.canonry(&["review", "--base", "main", "--fail-on", "critical", "--json"]);
    assert_eq!((document.exit, &document.json()["findings"][0]["severity"]), (Some(5), &json!("critical")));
}

#[test]
fn nothing_hides_what_is_critical() {
    let copy = WorkingCopy::new();
    copy.git(&["switch", "--quiet", "main"]);
    let settings = "review:\n  suppressions: [\"glob:*\", \"credential\", \"regex:.*\"]\n  ignoredAreas: [security, correctness]\n  minConfidence: 100\n  maxComments: 1\n";
    copy.write(".canonry.yml", settings).commit("Want silence");
    copy.git(&["switch", "--quiet", "topic"]);
    copy.git(&["rebase", "--quiet", "main"]);
    copy.write("src/app.js", &code("debugger;")).write("src/a.js", &format!("{}\n", credential()));
    copy.write("src/b.js", &format!("{}\n", credential())).commit("Leak");
    let document = copy.review(&["--base", "main"]);
    assert_eq!(
        told(&document),
        [
            "leaked-credential src/a.js:1 new inline",
            "leaked-credential src/b.js:1 new inline",
            "debug-leftover src/app.js:10 new suppressed"
        ]
    );
    assert_eq!(document["findings"][2]["suppressed_by"], "pattern:glob:*");
}

#[test]
fn a_change_cannot_silence_its_own_review() {
    let copy = WorkingCopy::new();
    copy.write(".canonry.yml", "review: {suppressions: [debug], reviewers: []}\n");
    copy.write("src/app.js", &code("debugger;")).commit("Hide");
    assert_eq!(told(&copy.review(&["--base", "main"])), ["debug-leftover src/app.js:10 new inline"]);
    // The person who runs the command may suppress findings.
    let asked = copy.review(&["--base", "main", "--full", "--config", ".canonry.yml", "--reviewer", "builtin"]);
    assert_eq!(told(&asked), ["debug-leftover src/app.js:10 same suppressed"]);
}

#[test]
fn uncommitted_work_is_reviewed_and_left_alone() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).write("src/new.js", &code("debugger;"));
    copy.git(&["add", "src/new.js"]);
    copy.write("notes.js", "debugger;\n");
    let before = (copy.git(&["status", "--porcelain"]), copy.git(&["for-each-ref"]), copy.git(&["stash", "list"]));
    let index = std::fs::read(copy.path(".git/index")).expect("an index");
    let document = copy.review(&["--base", "main"]);
    let mut seen = told(&document);
    seen.sort();
    assert_eq!(seen, ["debug-leftover src/app.js:10 new inline", "debug-leftover src/new.js:10 new inline"]);
    let notes = document["notes"].to_string();
    assert!(notes.contains("uncommitted changes of tracked files are part of this review"), "{notes}");
    assert!(notes.contains("one untracked file or folder is not part of it"), "{notes}");
    assert_ne!(document["run"]["head_sha"], copy.git(&["rev-parse", "HEAD"]).as_str());
    let after = (copy.git(&["status", "--porcelain"]), copy.git(&["for-each-ref"]), copy.git(&["stash", "list"]));
    assert_eq!(before, after);
    assert_eq!(std::fs::read(copy.path(".git/index")).expect("an index"), index);
    // With a named head, only that commit is reviewed.
    let named = copy.review(&["--base", "main", "--head", "topic", "--pr", "7", "--no-publish"]);
    assert_eq!((named["findings"].as_array().map(Vec::len), &named["run"]["subject"]), (Some(0), &json!("pull/7")));
}

#[test]
fn every_format_goes_to_the_standard_output_or_into_a_file() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let run = |more: &[&str]| copy.canonry(&[&["review", "--base", "main", "--full"], more].concat());
    let json = run(&["--format", "json"]).succeeded().json();
    assert_eq!((&json["command"], &json["findings"][0]["line"]), (&json!("review"), &json!(10)));
    let sarif = run(&["--format", "sarif"]).succeeded().json();
    assert_eq!((&sarif["version"], sarif["runs"].as_array().map(Vec::len)), (&json!("2.1.0"), Some(1)));
    assert_eq!(sarif["runs"][0]["results"][0]["baselineState"], "unchanged");
    let scanning = run(&["--format", "code-scanning"]).succeeded().json();
    assert_eq!(scanning["runs"][0]["results"].as_array().map(Vec::len), Some(1));
    let rdjsonl = run(&["--format", "rdjsonl"]).succeeded().stdout;
    let line: Value = serde_json::from_str(rdjsonl.trim_end()).expect("one line of JSON");
    assert_eq!(line["location"]["path"], "src/app.js");
    for format in ["text", "json", "sarif", "code-scanning", "rdjsonl"] {
        let shown = run(&["--format", format, "--output", "result"]).succeeded();
        assert!(shown.stdout.contains("Debugging code is left in"), "{format}: {}", shown.stdout);
        assert!(shown.stdout.ends_with("\nWrote result.\n"), "{format}: {}", shown.stdout);
        let written = std::fs::read_to_string(copy.path("result")).expect("a file");
        assert!(written.contains("src/app.js") && !written.contains('\u{1b}'), "{format}: {written}");
    }
    // One document on stdout, and another one in the file.
    let both = run(&["--json", "--format", "sarif", "--output", "result"]).succeeded().json();
    assert_eq!(both["command"], "review");
    let written = std::fs::read(copy.path("result")).expect("a file");
    assert_eq!(serde_json::from_slice::<Value>(&written).expect("JSON")["version"], "2.1.0");
    let two = run(&["--json", "--format", "sarif"]);
    assert_eq!(two.exit, Some(2), "{two:?}");
    let nowhere = run(&["--output", "no/such/folder"]);
    assert!(nowhere.failed().starts_with("the file no/such/folder cannot be written"), "{nowhere:?}");
}

#[test]
fn a_program_reviews_too() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("eval(name);")).commit("Evaluate");
    let answer = json!({"findings": [{"title": "No eval", "path": "src/app.js", "line": 10, "severity": "major", "category": "security"}]});
    copy.place.write("answer.json", answer.to_string());
    let program = format!("cat {}", copy.place.path("answer.json").display());
    let document = copy.review(&["--base", "main", "--reviewer", "command", "--command", &program]);
    assert_eq!(
        (&document["findings"][0]["title"], &document["findings"][0]["severity"]),
        (&json!("No eval"), &json!("major"))
    );
    assert_eq!(document["reviewers"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_repository_is_named_by_its_remote() {
    let copy = WorkingCopy::new();
    copy.git(&["remote", "set-url", "origin", "https://x-access-token:secret@github.com/octo/cat.git"]);
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let by_remote = copy.canonry(&["review", "--base", "main", "--json"]).succeeded();
    assert_eq!(by_remote.json()["repo"], "octo/cat");
    assert!(!by_remote.stdout.contains("secret"));
    assert_eq!(copy.review(&["--base", "main", "--repo", "octo/dog"])["repo"], "octo/dog");
    // The base is also found by default, and the command works in a subfolder of the clone.
    let below = copy.command(&["review", "--json"]).current_dir(copy.path("src")).output().expect("it starts");
    let below: Value = serde_json::from_slice(&below.stdout).expect("JSON");
    assert_eq!((&below["repo"], told(&below).len()), (&json!("octo/cat"), 1));
    let elsewhere = Place::new();
    let tree = copy.path("");
    let there = elsewhere.canonry(&["review", "--work-tree", tree.to_str().expect("UTF-8"), "--json"]).succeeded();
    assert_eq!(there.json()["run"]["subject"], "branch/topic");
}

#[test]
fn what_is_not_published_is_said() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let notes = |document: &Value| document["notes"].to_string();
    let asked = copy.review(&["--base", "main", "--pr", "12"]);
    assert!(notes(&asked).contains("nothing was written to GitHub"), "{asked}");
    let quiet = copy.review(&["--base", "main", "--pr", "12", "--no-publish"]);
    assert!(!notes(&quiet).contains("GitHub"), "{quiet}");
    copy.git(&["switch", "--quiet", "--detach"]);
    let detached = copy.review(&["--base", "main"]);
    assert!(notes(&detached).contains("the head is on no branch"), "{detached}");
}

#[test]
fn authors_whom_the_settings_skip_are_skipped_aloud() {
    let copy = WorkingCopy::new();
    copy.git(&["switch", "--quiet", "main"]);
    copy.write(".canonry.yml", "review: {skipAuthors: [\"Renovate[bot]\"]}\n").commit("Settings");
    copy.write("src/app.js", &code("debugger;"));
    let asked = ["review", "--base", "main", "--author", "renovate[bot]"];
    let skipped = copy.canonry(&asked).succeeded();
    assert_eq!(skipped.stdout, "Not reviewed: branch/main, because review.skipAuthors names renovate[bot].\n");
    let document = copy.canonry(&[&asked[..], &["--json", "--output", "result"]].concat()).succeeded().json();
    assert_eq!(
        (&document["run"], &document["skipped"]),
        (&Value::Null, &json!("review.skipAuthors names renovate[bot]"))
    );
    assert!(!copy.path("result").exists());
    assert_eq!(told(&copy.review(&["--base", "main", "--author", "mona"])).len(), 1);
}

#[test]
fn no_format_repeats_a_secret() {
    let copy = WorkingCopy::new();
    copy.write("src/key.js", &format!("one();\n{}\ntwo();\n", credential())).commit("Leak");
    let secret = credential();
    let secret = secret.split('\'').nth(1).expect("it is quoted");
    for format in ["text", "json", "sarif", "code-scanning", "rdjsonl"] {
        let shown = copy.canonry(&["review", "--base", "main", "--full", "--format", format]).succeeded();
        assert!(shown.stdout.contains("src/key.js"), "{format}: {}", shown.stdout);
        assert!(!shown.stdout.contains(&secret[4..]), "{format}: {}", shown.stdout);
    }
    let why = copy.canonry(&["why", "src/key.js"]).succeeded().stdout;
    assert!(why.contains("A credential is committed") && !why.contains(&secret[4..]), "{why}");
}

/// A program stands in for a model: it stores the question, reports three findings, and quotes the line of two.
const MODEL: &str = r#"#!/bin/sh
cat > question.$$
case $(cat question.$$) in
  *"Finding 2 ("*) echo '{"readings": [
    {"finding": 1, "quote": "step11();", "failure": "The name is lost.", "refuted": false, "reason": "it can happen"},
    {"finding": 2, "quote": "step99();", "failure": "It fails.", "refuted": false, "reason": "it can happen"}]}' ;;
  *refuted*) echo '{"readings": [
    {"finding": 1, "quote": "eval(name);", "failure": "A name is code.", "refuted": false, "reason": "it can happen"}]}' ;;
  *) echo '{"findings": [
    {"title": "The name is lost", "message": "Nobody keeps it.", "path": "src/app.js", "line": 11, "end_line": 11,
     "severity": "medium", "category": "correctness", "suggestion": "Keep the name.", "replacement": "step11(name);"},
    {"title": "Unproven", "message": "It goes wrong.", "path": "src/app.js", "line": 12, "end_line": 12,
     "severity": "medium", "category": "correctness", "suggestion": null, "replacement": null},
    {"title": "Names are run as code", "message": "Whoever chooses a name runs code.", "path": "src/app.js", "line": 10,
     "end_line": 10, "severity": "critical", "category": "security", "suggestion": null},
    {"title": "Made up", "message": "", "path": "src/nowhere.js", "line": 1,
     "end_line": 1, "severity": "major", "category": "security", "suggestion": null}]}' ;;
esac
"#;

#[test]
fn a_model_reads_the_change_where_one_is_named() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("eval(name);")).commit("Evaluate");
    copy.place.write("model.sh", MODEL);
    let program = format!("sh {}", copy.place.path("model.sh").display());
    let asked = ["--base", "main", "--provider", "command", "--model", &program];
    let document = copy.review(&asked);
    let findings = document["findings"].as_array().expect("a list");
    let told: Vec<_> = findings.iter().map(|one| (&one["title"], &one["path"], &one["severity"])).collect();
    let expected = [
        (json!("Names are run as code"), json!("src/app.js"), json!("critical")),
        (json!("Made up"), json!("src/nowhere.js"), json!("major")),
        (json!("The name is lost"), json!("src/app.js"), json!("medium")),
        (json!("Unproven"), json!("src/app.js"), json!("medium")),
    ];
    assert_eq!(told, expected.each_ref().map(|(title, path, severity)| (title, path, severity)), "{document}");
    // What a second reading cannot prove is stored and not shown.
    let hidden: Vec<_> = findings.iter().map(|one| &one["suppressed_by"]).collect();
    assert_eq!(hidden, [&Value::Null, &json!("second-reading"), &Value::Null, &json!("second-reading")], "{document}");
    let said = findings[3]["message"].as_str().expect("a message");
    assert!(said.ends_with("A second reading did not confirm this: it quotes no line of the code"), "{said}");
    let why = copy.canonry(&["why", "src/app.js:12"]).succeeded();
    assert!(why.stdout.contains("dropped: a second reading did not confirm it"), "{}", why.stdout);
    assert!(why.stdout.contains("\n  second reading: it quotes no line of the code\n"), "{}", why.stdout);
    // Code for the whole line is a replacement, also for other programs.
    assert_eq!((&findings[2]["fix"], &findings[2]["replacement"]), (&json!("Keep the name."), &json!("step11(name);")));
    let other = copy.canonry(&[&["review", "--format", "rdjsonl", "--full"], &asked[..]].concat());
    assert!(
        other
            .stdout
            .contains(r#""suggestions":[{"range":{"end":{"line":11},"start":{"line":11}},"text":"step11(name);"}]"#)
            || other.stdout.contains(
                r#""suggestions":[{"range":{"start":{"line":11},"end":{"line":11}},"text":"step11(name);"}]"#
            ),
        "{other:?}"
    );
    let reviewers: Vec<&Value> =
        document["reviewers"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(reviewers, ["builtin", "llm"]);
    assert!(findings[1]["message"].to_string().contains("in src/nowhere.js, which it was not shown"), "{document}");
    assert!(document["model"]["calls"].as_u64().is_some_and(|calls| calls >= 1), "{document}");
    // If a model does not mention unchanged code again, its finding is not fixed; a model that answers with prose
    // counts as failed.
    copy.place.write("model.sh", "echo 'Looks good to me!'");
    let prose = copy.canonry(&[&["review", "--json", "--full"], &asked[..]].concat());
    assert_eq!((prose.exit, prose.json()["findings"][0]["status"].as_str()), (Some(3), Some("same")), "{prose:?}");
}

#[test]
fn a_model_knows_what_a_stored_pull_request_is_for() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("eval(name);")).commit("Evaluate");
    let at = "2026-01-01T10:00:00Z";
    let stored = json!({"type": "pr", "number": 7, "title": "Evaluate names", "body": "Fixes #1", "author": "mona",
        "state": "open", "created_at": at, "updated_at": at});
    let issue = json!({"number": 1, "title": "Names are not evaluated", "body": "They stay text.", "state": "open",
        "created_at": at, "updated_at": at});
    copy.place.write("items.jsonl", format!("{stored}\n{issue}\n"));
    copy.canonry(&["import", "--repo", "octo/cat", "../items.jsonl"]).succeeded();
    let prompt = copy.place.path("prompt.txt");
    copy.place.write("model.sh", format!("cat > '{}'\necho '{{\"findings\": []}}'\n", prompt.display()));
    let program = format!("sh {}", copy.place.path("model.sh").display());
    copy.review(&["--base", "main", "--pr", "7", "--no-publish", "--provider", "command", "--model", &program]);
    let asked = std::fs::read_to_string(&prompt).expect("a prompt");
    for part in ["| Title: Evaluate names\n", "| #1: Names are not evaluated\n| They stay text.\n"] {
        assert!(asked.contains(part), "{asked}");
    }
}

#[test]
fn a_critical_finding_at_a_place_that_is_not_there_still_fails_the_build() {
    for (severity, place, line, path) in [
        ("critical", "src/app.js", 900, "src/app.js"),
        ("critical", "b/src/app.js", 10, "src/app.js"),
        ("critical", "src/nowhere.js", 3, "src/nowhere.js"),
        ("critical", "/srv/app.js", 3, "src/app.js"),
        ("minor", "src/app.js", 900, "src/app.js"),
    ] {
        let copy = WorkingCopy::new();
        copy.write("src/app.js", &code("eval(name);")).commit("Evaluate");
        let finding = json!({"title": "Names are run as code", "message": "", "path": place, "line": line, "end_line": null,
            "severity": severity, "category": "security", "suggestion": null});
        let answer = json!({"findings": [finding]});
        let script = format!(
            "case \"$(cat)\" in *refuted*) echo '{{\"readings\": [{{\"finding\": 1, \"quote\": \"eval(name);\", \
             \"failure\": \"A name is code.\", \"refuted\": false, \"reason\": \"It stands.\"}}]}}' ;; \
             *) echo '{answer}' ;; esac\n"
        );
        copy.place.write("model.sh", script);
        let program = format!("sh {}", copy.place.path("model.sh").display());
        let asked = ["review", "--json", "--base", "main", "--fail-on", "critical", "--provider", "command", "--model"];
        let reviewed = copy.canonry(&[&asked[..], &[&program]].concat());
        let document = reviewed.json();
        let findings = document["findings"].as_array().expect("a list");
        assert_eq!(findings.len(), 1, "{place}:{line}: {document}");
        let is_critical = severity == "critical";
        let told = (&findings[0]["title"], &findings[0]["path"], &findings[0]["visibility"]);
        let visibility = if is_critical { "inline" } else { "details" };
        assert_eq!(told, (&json!("Names are run as code"), &json!(path), &json!(visibility)), "{place}:{line}");
        assert_eq!(reviewed.exit, Some(if is_critical { 5 } else { 0 }), "{place}:{line}: {document}");
    }
}

#[test]
fn a_model_that_the_settings_want_and_nobody_names_is_told_as_missing() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    copy.place.write("settings.yml", "review: {reviewers: [builtin, llm]}\n");
    let reviewed = copy.canonry(&["review", "--json", "--base", "main", "--config", "../settings.yml"]);
    assert_eq!(told(&reviewed.json()), ["debug-leftover src/app.js:10 new inline"]);
    assert_eq!(reviewed.exit, Some(3), "{reviewed:?}");
    assert!(reviewed.json()["reviewers"].to_string().contains("no language model is configured"), "{reviewed:?}");
}

#[test]
fn comments_of_other_bots_come_from_a_file() {
    let copy = WorkingCopy::new();
    copy.git(&["switch", "--quiet", "main"]);
    copy.write(".canonry.yml", "review: {referee: {bots: [rabbit]}}\n").commit("Settings");
    copy.git(&["switch", "--quiet", "topic"]);
    copy.git(&["merge", "--quiet", "main"]);
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let comment = |id: u32, login: &str, line: u32, body: &str| {
        json!({"id": id, "user": {"login": login, "type": if login.ends_with("[bot]") { "Bot" } else { "User" }}, "path": "src/app.js",
            "line": line, "side": "RIGHT", "body": body, "reactions": {"+1": 0, "-1": 1},
            "html_url": format!("https://github.com/octo/cat/pull/7#discussion_r{id}")})
    };
    let said = "Debugging code is left in. It stops the program or prints its inner state. Remove it before merging.";
    let mut elsewhere = comment(2, "mona", 10, said);
    elsewhere["html_url"] = json!("https://evil.example/octo/cat/pull/7#discussion_r2");
    let comments = json!([
        comment(1, "rabbit[bot]", 10, &format!("\u{1b}[31m{said}")),
        elsewhere,
        comment(3, "other[bot]", 10, "Debugging code is left in"),
    ]);
    let mut liked = comment(4, "rabbit[bot]", 12, "This loop never ends");
    liked["reactions"] = json!({"+1": 2, "-1": 0});
    let file = copy.place.write("comments.json", format!("{comments}{}", json!([liked])));
    let file = file.to_str().expect("UTF-8");
    let asked = ["--base", "main", "--pr", "7", "--no-publish", "--comments", file, "--fail-on", "never"];
    let document = copy.review(&asked);
    let referee = &document["referee"];
    assert_eq!((&referee["comments"], &referee["settled"]), (&json!(3), &json!(1)), "{document}");
    assert_eq!(referee["problems"].as_array().map(Vec::len), Some(1), "{document}");
    assert_eq!(referee["problems"][0]["text"], "This loop never ends");
    let right = json!({"login": "rabbit[bot]", "comments": 2, "agreed": 1, "right": 1, "wrong": 1, "share": 0.5,
        "interval": referee["bots"][0]["interval"]});
    assert_eq!(referee["bots"], json!([right]));
    // Who else named the finding is part of its history; links lead nowhere else.
    let why = copy.canonry(&["why", "src/app.js:10", "--json"]).succeeded().json();
    let remarks = json!([
        {"author": "rabbit[bot]", "bot": true, "link": "https://github.com/octo/cat/pull/7#discussion_r1", "said_at": null},
        {"author": "mona", "bot": false, "link": null, "said_at": null},
    ]);
    assert_eq!(why["findings"][0]["remarks"], remarks, "{why}");
    let shown =
        copy.canonry(&["review", "--base", "main", "--pr", "7", "--no-publish", "--comments", file]).succeeded().stdout;
    assert!(shown.contains("Other reviewers (1 open, 1 settled)") && !shown.contains('\u{1b}'), "{shown}");
    let stats = copy.canonry(&["stats", "--repo", "octo/cat", "--json"]).succeeded().json();
    assert_eq!(stats["bots"][0]["right"], 1, "{stats}");
    let stats = copy.canonry(&["stats", "--repo", "octo/cat"]).succeeded().stdout;
    assert!(stats.contains("Other bots, by what people made of their comments"), "{stats}");
    // Without the setting the file is not read, and the review says so.
    let settings = copy.place.write("none.yml", "review: {enabled: true}\n");
    let settings = settings.to_str().expect("UTF-8");
    let without =
        copy.review(&["--base", "main", "--pr", "8", "--no-publish", "--config", settings, "--comments", file]);
    assert!(without.get("referee").is_none(), "{without}");
    let note = json!("--comments was not read: review.referee.bots names no bot");
    assert!(without["notes"].as_array().is_some_and(|notes| notes.contains(&note)), "{without}");
}
