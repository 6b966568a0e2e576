//! `review` with the mistakes of people and tools: clear messages, and never a lost review.

use serde_json::{Value, json};

use crate::place::{Place, names_in};
use crate::working_copy::{WorkingCopy, code, sarif, told};

#[test]
fn what_is_missing_is_said_in_one_sentence() {
    let place = Place::new();
    let outside = place.canonry(&["review", "--base", "main"]);
    assert!(
        outside.failed().ends_with("is not in a git repository; go to a clone, or name one with --work-tree DIR"),
        "{outside:?}"
    );
    let nowhere = place.canonry(&["review", "--work-tree", "nowhere"]);
    assert_eq!(nowhere.ended_with(2), "there is no folder nowhere; name a clone with --work-tree");
    assert_eq!(names_in(&place.path("")), ["tmp"]);

    let copy = WorkingCopy::new();
    let unknown = copy.canonry(&["review", "--base", "origin/main"]);
    assert_eq!(
        unknown.failed(),
        "the clone has no commit \"origin/main\"; run `git fetch`, or name another one with --base"
    );
    let unknown = copy.canonry(&["review", "--base", "main", "--head", "--upload-pack=x"]);
    assert_eq!(unknown.exit, Some(2), "{unknown:?}");
    let unknown = copy.canonry(&["review", "--base=--output=x"]);
    assert!(unknown.failed().starts_with("the clone has no commit \"--output=x\""), "{unknown:?}");
    let settings = copy.canonry(&["review", "--base", "main", "--config", "nowhere.yml"]);
    assert_eq!(settings.failed(), "there is no settings file nowhere.yml; check the name");
    copy.git(&["branch", "--quiet", "--move", "main", "trunk"]);
    let unnamed = copy.canonry(&["review"]);
    assert!(unnamed.ended_with(2).contains("with --base REV"), "{unnamed:?}");
    assert!(!copy.place.database().exists());

    copy.git(&["switch", "--quiet", "--orphan", "empty"]);
    let empty = copy.canonry(&["review", "--base", "trunk"]);
    assert_eq!(
        empty.failed(),
        "the clone has no commit yet; commit something first, or review what is staged with --staged"
    );
}

#[test]
fn wrong_options_are_told_apart() {
    let copy = WorkingCopy::new();
    for (arguments, words) in [
        (&["--reviewer", "llm"][..], "the reviewer llm needs a model; add --provider"),
        (&["--provider", "local"], "there is no local review model"),
        (&["--reviewer", "command"], "the reviewer command needs a program; add --command"),
        (&["--command", " "], "the reviewer command needs a program; add --command"),
        (&["--embed-model", "x"], "--embed-model and --embed-base-url need a remote embedder"),
        (&["--fail-on", "blocker"], "invalid value 'blocker'"),
        (&["--pr", "0"], "invalid value '0'"),
        (&["--max-cost", "1"], "--provider"),
        (&["--repo", "cat"], "is not a repository name"),
    ] {
        let ran = copy.canonry(&[&["review", "--base", "main"], arguments].concat());
        assert_eq!((ran.exit, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

/// A reviewer that fails is reported, does not stop the others, and never looks like an approval.
#[test]
fn reports_that_cannot_be_read_cost_only_themselves() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let whole = sarif(&[("no-eval", "error", "src/app.js", 10)]);
    copy.place.write("cut.sarif", &whole[..whole.len() / 2]);
    copy.place.write("prose.sarif", "All good!");
    copy.place.write("old.sarif", r#"{"version": "1.0.0", "runs": []}"#);
    for (report, words) in [
        ("../cut.sarif", "cut.sarif"),
        ("../prose.sarif", "prose.sarif"),
        ("../old.sarif", "old.sarif"),
        ("../absent.sarif", "absent.sarif"),
    ] {
        let ran =
            copy.canonry(&["review", "--base", "main", "--full", "--json", "--reviewer", "builtin", "--sarif", report]);
        assert_eq!(ran.exit, Some(3), "{report}: {ran:?}");
        let document = ran.json();
        assert_eq!(told(&document).len(), 1, "{report}: {document}");
        let problems = document["reviewers"][1]["problems"].to_string();
        assert!(problems.contains(words), "{report}: {problems}");
        let text =
            copy.canonry(&["review", "--base", "main", "--full", "--reviewer", "builtin", "--sarif", report]).stdout;
        assert!(text.contains(words), "{report}: {text}");
    }
    // The status that fails a build has priority.
    let both = copy.canonry(&[
        "review",
        "--base",
        "main",
        "--reviewer",
        "builtin",
        "--sarif",
        "../cut.sarif",
        "--fail-on",
        "medium",
    ]);
    assert_eq!(both.exit, Some(5));
}

#[test]
fn paths_of_reports_stay_in_the_repository() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("eval(name);")).write("a b/ü.js", &code("eval(name);")).commit("Evaluate");
    let absolute = copy.path("src/app.js").canonicalize().expect("it is there");
    let absolute = format!("file://{}", absolute.display());
    let report = sarif(&[
        ("absolute", "error", &absolute, 10),
        ("up", "error", "../../etc/passwd", 1),
        ("elsewhere", "error", "file:///etc/passwd", 1),
        ("escaped", "error", "a%20b/%C3%BC.js", 10),
        ("far", "error", "src/app.js", 999_999),
    ]);
    copy.place.write("lint.sarif", report);
    let ran = copy.canonry(&["review", "--json", "--base", "main", "--sarif", "../lint.sarif"]);
    // A line that the head does not have is a gap: the report may be about another commit.
    assert_eq!(ran.exit, Some(3), "{ran:?}");
    let document = ran.json();
    let mut seen = told(&document);
    seen.sort();
    assert_eq!(seen, ["absolute src/app.js:10 new inline", "escaped a b/ü.js:10 new inline"]);
    let notes = document["reviewers"][0]["notes"].to_string();
    assert!(notes.contains("2 results of lint left out, outside the repository"), "{notes}");
}

#[test]
fn settings_with_mistakes_are_told_and_the_rest_holds() {
    let copy = WorkingCopy::new();
    copy.git(&["switch", "--quiet", "main"]);
    let regex = format!("regex:{}", "a".repeat(10_000));
    copy.write(
        ".canonry.yml",
        &format!("review:\n  suppressions:\n    - \"{regex}\"\n    - \"regex:(\"\n    - debugging\n"),
    )
    .commit("Settings");
    copy.git(&["switch", "--quiet", "topic"]);
    copy.git(&["rebase", "--quiet", "main"]);
    copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let document = copy.review(&["--base", "main"]);
    assert_eq!(told(&document), ["debug-leftover src/app.js:10 new suppressed"]);
    let notes: Vec<&str> = document["notes"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let told: Vec<&&str> = notes.iter().filter(|note| note.contains("this entry is ignored")).collect();
    assert_eq!(told.len(), 2, "{notes:?}");
    assert!(told.iter().all(|note| note.len() < 500), "{told:?}");
}

#[test]
fn odd_files_and_histories_do_not_stop_a_review() {
    let copy = WorkingCopy::new();
    copy.write("crlf.js", "a();\r\ndebugger;\r\nb();").write("quo\"te 'n.js", "debugger;\n");
    std::fs::write(copy.path("blob.bin"), [0_u8, 159, 146, 150, 0, 1, 2]).expect("a file");
    std::os::unix::fs::symlink("/etc/passwd", copy.path("link.js")).expect("a link");
    copy.commit("Odd");
    // The file with NUL bytes is a gap.
    let mut seen = told(&copy.review(&["--base", "main", "--allow-gaps"]));
    seen.sort();
    assert_eq!(seen, ["debug-leftover crlf.js:2 new inline", "debug-leftover quo\"te 'n.js:1 new inline"]);
    // After history was rewritten, the earlier head still exists or is unknown.
    copy.git(&["commit", "--quiet", "--amend", "--message", "Odder"]);
    let amended = copy.review(&["--base", "main", "--allow-gaps"]);
    assert_eq!(amended["findings"][0]["status"], "same", "{amended}");
    // A shallow clone has no common ancestor: everything is compared, and the output says so.
    let origin = format!("file://{}", copy.path("").display());
    let here = copy.place.path("shallow");
    copy.git(&[
        "clone",
        "--quiet",
        "--depth=1",
        "--branch=topic",
        "--no-single-branch",
        &origin,
        here.to_str().expect("UTF-8"),
    ]);
    let shallow =
        copy.command(&["review", "--json", "--base", "origin/main"]).current_dir(&here).output().expect("it starts");
    let shallow: Value = serde_json::from_slice(&shallow.stdout).expect("JSON");
    assert_eq!(shallow["run"]["reason"], "no-prior-review", "{shallow}");
    assert!(shallow["notes"].to_string().contains("no common ancestor"), "{shallow}");
    assert_eq!(shallow["stats"]["findings"], json!(2));
}
