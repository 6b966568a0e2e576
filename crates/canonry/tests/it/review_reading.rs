//! `review` and what it reads: nothing is green unread, every commit counts, lines are those of the head.

use std::fs;

use serde_json::Value;

use crate::working_copy::{WorkingCopy, code, credential, sarif, told};

#[test]
fn a_file_that_nobody_can_read_is_never_green() {
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(credential().encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let nul = format!("{}\0\n", credential()).into_bytes();
    let large = format!("{}\n", "x();\n".repeat(800_000) + &credential()).into_bytes();
    for (bytes, why) in [
        (wide, "it is UTF-16; only UTF-8 is read"),
        (nul, "it contains NUL bytes, so it is not read as text"),
        (large, "it is too large: 4000 kB, and at most 2097 kB are read"),
    ] {
        let copy = WorkingCopy::new();
        fs::write(copy.path("notes.txt"), bytes).expect("a file");
        copy.commit("Notes");
        let ran = copy.canonry(&["review", "--base", "main"]);
        assert_eq!(ran.exit, Some(3), "{why}: {ran:?}");
        assert!(ran.stdout.contains(why), "{why}: {}", ran.stdout);
        assert!(
            ran.stdout.contains("Exit status 3: 1 file was not read. --allow-gaps accepts that."),
            "{}",
            ran.stdout
        );
        // It stays unread in the next run.
        assert_eq!(copy.canonry(&["review", "--base", "main"]).exit, Some(3), "{why}");
        copy.canonry(&["review", "--base", "main", "--allow-gaps"]).succeeded();
    }
    // A picture has no text.
    let copy = WorkingCopy::new();
    fs::write(copy.path("cat.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").expect("a file");
    copy.commit("A picture");
    let ran = copy.canonry(&["review", "--base", "main"]).succeeded();
    assert!(ran.stdout.contains("cat.png: it is a PNG image"), "{}", ran.stdout);
}

#[test]
fn a_model_that_read_a_part_leaves_a_gap() {
    let copy = WorkingCopy::new();
    for file in 0..30 {
        copy.write(&format!("src/f{file:02}.js"), &"call(1, 2, 3);\n".repeat(40));
    }
    copy.commit("Many files");
    let program = copy.place.write("model.sh", "#!/bin/sh\ncat > /dev/null\necho '{\"findings\": []}'\n");
    let program = format!("sh {}", program.display());
    let config = copy.place.write("small.yml", "review:\n  modelBudget: {maxFiles: 20, maxTokens: 3000}\n");
    let config = config.display().to_string();
    let model =
        ["review", "--json", "--base", "main", "--reviewer", "builtin", "llm", "--provider", "command", "--model"];
    let ran = copy.canonry(&[&model[..], &[&program, "--config", &config]].concat());
    assert_eq!(ran.exit, Some(3), "{}", ran.stderr);
    let document = ran.json();
    let skipped = document["coverage"]["skipped"].as_array().expect("a list").clone();
    let unread: Vec<&Value> = skipped.iter().filter(|one| one["gap"] == true).collect();
    assert!(unread.len() > 5 && unread.len() < 30, "{}", unread.len());
    let why = unread[0]["why"].as_str().expect("a reason");
    assert!(why.contains("the model's budget of 9000 characters was used up"), "{why}");
    // With room for everything there is no gap.
    copy.canonry(&[&model[..], &[&program, "--full"]].concat()).succeeded();
}

#[test]
fn lines_of_a_merge_commit_are_mapped_to_the_head() {
    let copy = WorkingCopy::new();
    let lines = |from: u32, to: u32| (from..=to).map(|line| format!("step{line}();\n")).collect::<String>();
    copy.git(&["switch", "--quiet", "main"]);
    copy.write("src/app.js", &lines(1, 60)).commit("Sixty lines");
    copy.git(&["switch", "--quiet", "--create", "change"]);
    copy.write("src/app.js", &(lines(1, 61) + "eval(x);\n")).commit("A new line");
    let head = copy.git(&["rev-parse", "HEAD"]);
    copy.git(&["switch", "--quiet", "main"]);
    copy.write("src/app.js", &((1..=12).map(|line| format!("before{line}();\n")).collect::<String>() + &lines(1, 60)));
    copy.commit("The base goes on");
    // As GitHub makes it: the base first, then the head.
    copy.git(&["switch", "--quiet", "--detach", "main"]);
    copy.git(&["merge", "--quiet", "--no-ff", "--message", "Merge", &head]);
    let merge = copy.git(&["rev-parse", "HEAD"]);
    let results = [("no-eval", "error", "src/app.js", 74), ("no-before", "error", "src/app.js", 3)];
    let report = copy.place.write("lint.sarif", sarif(&results)).display().to_string();
    let review = |more: &[&str]| {
        copy.canonry(
            &[&["review", "--json", "--base", "main", "--head", "change", "--full", "--fail-on", "major"], more]
                .concat(),
        )
    };
    let checked_out = review(&["--sarif", &report]);
    assert_eq!(checked_out.exit, Some(5), "{checked_out:?}");
    assert_eq!(told(&checked_out.json()), ["no-eval src/app.js:62 new inline"]);
    // The base's own line is not part of the change; that is a note and no gap.
    let notes = checked_out.json()["reviewers"][0]["notes"].to_string();
    assert!(notes.contains("1 result of lint left out, on lines that only the base has"), "{notes}");
    // Elsewhere the commit is named by an option, or by the report itself.
    copy.git(&["switch", "--quiet", "main"]);
    assert_eq!(told(&review(&["--sarif", &report, "--linted", &merge]).json()), ["no-eval src/app.js:62 same inline"]);
    let mut named: Value = serde_json::from_str(&sarif(&results)).expect("JSON");
    named["runs"][0]["versionControlProvenance"] =
        serde_json::json!([{"repositoryUri": "https://github.com/octo/cat", "revisionId": merge}]);
    let named = copy.place.write("named.sarif", named.to_string()).display().to_string();
    assert_eq!(told(&review(&["--sarif", &named]).json()), ["no-eval src/app.js:62 same inline"]);
    // So it does for a clean checkout of the head; with uncommitted changes the report is about the files as they are.
    copy.git(&["switch", "--quiet", "change"]);
    let here = || copy.canonry(&["review", "--json", "--base", "main", "--full", "--sarif", &named]);
    assert_eq!(told(&here().succeeded().json()), ["no-eval src/app.js:62 same inline"]);
    copy.write("README.md", "# Cats\n");
    let dirty = here();
    assert!(dirty.exit == Some(3) && dirty.stdout.contains("behind the end of their files"), "{dirty:?}");
    copy.git(&["checkout", "--quiet", "README.md"]);
    // Without either, a line behind the end of the file is a gap, not an approval.
    copy.git(&["switch", "--quiet", "--create", "again", "change"]);
    copy.git(&["switch", "--quiet", "main"]);
    let unknown = copy.canonry(&["review", "--base", "main", "--head", "again", "--sarif", &report]);
    assert_eq!(unknown.exit, Some(3), "{unknown:?}");
    assert!(unknown.stdout.contains("1 result left out, behind the end of their files"), "{}", unknown.stdout);
    let named = ["--linted", &"1".repeat(40), "--reviewer", "builtin"];
    let lost =
        copy.canonry(&[&["review", "--base", "main", "--head", "again", "--sarif", &report], &named[..]].concat());
    assert!(lost.exit == Some(3) && lost.stdout.contains("lint checked 1111111"), "{lost:?}");
}

#[test]
fn a_secret_that_a_later_commit_removes_is_found() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code(&credential())).write("gone.env.js", &code(&credential())).commit("Add it");
    let commit = copy.git(&["rev-parse", "--short=7", "HEAD"]);
    fs::remove_file(copy.path("gone.env.js")).expect("removed");
    copy.write("src/app.js", &code("clean();")).commit("Take it out");
    let ran = copy.canonry(&["review", "--base", "main", "--fail-on", "critical"]);
    assert_eq!(ran.exit, Some(5), "{ran:?}");
    assert!(ran.stdout.contains(&format!("Commit {commit} adds what looks like a GitHub token")), "{}", ran.stdout);
    assert!(!ran.stdout.contains("a1B2c3"), "{}", ran.stdout);
    let mut seen = told(&copy.review(&["--base", "main"]));
    seen.sort();
    let expected = ["leaked-credential gone.env.js:null same inline", "leaked-credential src/app.js:null same inline"];
    assert_eq!(seen, expected);
    // A branch without that commit has no such secret.
    copy.git(&["reset", "--quiet", "--soft", "main"]);
    copy.commit("One clean commit");
    copy.canonry(&["review", "--base", "main", "--fail-on", "critical"]).succeeded();
}

#[test]
fn a_secret_at_the_end_of_a_long_line_is_found() {
    // One line, as exporters and minifiers write it.
    let line = |end: &str| {
        let before: String = (0..900).map(|at| format!("\"k{at}\": {at}, ")).collect();
        format!("{{{before}\"end\": \"{end}\"}}\n")
    };
    let copy = WorkingCopy::new();
    copy.write("data.json", &line(&credential())).commit("Add it");
    let commit = copy.git(&["rev-parse", "--short=7", "HEAD"]);
    let ran = copy.canonry(&["review", "--base", "main", "--fail-on", "critical"]);
    assert!(ran.exit == Some(5) && ran.stdout.contains("data.json:1"), "{ran:?}");
    copy.write("data.json", &line("clean")).commit("Take it out");
    let ran = copy.canonry(&["review", "--base", "main", "--full", "--fail-on", "critical"]);
    let said = format!("Commit {commit} adds what looks like a GitHub token");
    assert!(ran.exit == Some(5) && ran.stdout.contains(&said), "{ran:?}");
}

#[test]
fn what_nobody_could_read_before_it_was_removed_is_a_gap() {
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(credential().encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let copy = WorkingCopy::new();
    fs::write(copy.path("notes.txt"), wide).expect("a file");
    fs::write(copy.path("cat.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").expect("a file");
    copy.commit("Notes and a picture");
    let commit = copy.git(&["rev-parse", "--short=7", "HEAD"]);
    fs::remove_file(copy.path("notes.txt")).expect("removed");
    fs::remove_file(copy.path("cat.png")).expect("removed");
    copy.write("src/app.js", &code("calm();")).commit("Take them out");
    let why = format!("notes.txt: commit {commit} has it, and it was not searched for credentials: it is UTF-16");
    for _ in 1..=2 {
        let ran = copy.canonry(&["review", "--base", "main"]);
        let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(ran.exit == Some(3) && said.contains(&why) && !said.contains("cat.png"), "{ran:?}");
    }
    copy.canonry(&["review", "--base", "main", "--allow-gaps"]).succeeded();
    let skips = copy.place.write("skips.yml", "review: {skipPaths: [notes.txt]}\n").display().to_string();
    copy.canonry(&["review", "--base", "main", "--config", &skips]).succeeded();
    // The lines of a file that is too large are searched in the commit that adds them.
    let large = format!("{}\n", "x();\n".repeat(800_000) + &credential());
    copy.write("large.txt", &large).commit("Add it");
    fs::remove_file(copy.path("large.txt")).expect("removed");
    copy.commit("Take it out");
    let ran = copy.canonry(&["review", "--base", "main", "--config", &skips, "--fail-on", "critical"]);
    assert!(ran.exit == Some(5) && ran.stdout.contains("adds what looks like a GitHub token"), "{ran:?}");
}

#[test]
fn what_is_staged_is_reviewed_before_it_is_committed() {
    let copy = WorkingCopy::new();
    copy.write("src/app.js", &code("debugger;"));
    copy.git(&["add", "src/app.js"]);
    // The file goes on without it; what counts is what would be committed.
    copy.write("src/app.js", &code("calm();")).write("later.js", "debugger;\n");
    let index = fs::read(copy.path(".git/index")).expect("an index");
    let ran = copy.canonry(&["review", "--staged", "--fail-on", "medium"]);
    assert_eq!(ran.exit, Some(5), "{ran:?}");
    let document = copy.canonry(&["review", "--staged", "--json"]).succeeded().json();
    assert_eq!(told(&document), ["debug-leftover src/app.js:10 same inline"]);
    assert_eq!(fs::read(copy.path(".git/index")).expect("an index"), index, "the clone is unchanged");
    copy.git(&["add", "src/app.js"]);
    let ran = copy.canonry(&["review", "--staged", "--fail-on", "medium"]).succeeded();
    assert!(ran.stdout.contains("1 fixed"), "{}", ran.stdout);
    let usage = copy.canonry(&["review", "--staged", "--base", "main"]);
    assert_eq!(usage.exit, Some(2), "{usage:?}");
}

#[test]
fn a_dependency_that_only_the_work_tree_uses_is_unused_in_the_index() {
    let copy = WorkingCopy::new();
    copy.git(&["switch", "--quiet", "main"]);
    let manifest = "[package]\nname = \"cat\"\n\n[dependencies]\nserde = \"1\"\n";
    copy.write("Cargo.toml", manifest).write("src/lib.rs", "use serde::Serialize;\n").commit("Begin in Rust");
    copy.git(&["switch", "--quiet", "topic"]);
    copy.git(&["rebase", "--quiet", "main"]);
    copy.write("Cargo.toml", &format!("{manifest}rand = \"0.8\"\n"));
    copy.git(&["add", "Cargo.toml"]);
    copy.write("src/lib.rs", "use serde::Serialize;\nuse rand::Rng;\n");
    let staged = copy.canonry(&["review", "--staged", "--json"]).succeeded().json();
    assert_eq!(told(&staged), ["unused-dependency Cargo.toml:6 new inline"]);
    assert_eq!(staged["findings"][0]["title"], "A dependency is not used");
    // With the work tree it is used, and so it is once the code is staged.
    let uncommitted = copy.review(&["--base", "main"]);
    assert_eq!(told(&uncommitted), [""; 0]);
    copy.git(&["add", "src/lib.rs"]);
    let staged = copy.canonry(&["review", "--staged", "--json"]).succeeded().json();
    assert_eq!(told(&staged), ["unused-dependency Cargo.toml:6 fixed details"]);
    copy.write("src/lib.rs", "use serde::Serialize;\n").commit("Forget the code");
    assert_eq!(told(&copy.review(&["--base", "main"])), ["unused-dependency Cargo.toml:6 new inline"]);
    // A first commit has no base: everything is new, and the code of a new crate may follow.
    copy.git(&["checkout", "--quiet", "--orphan", "new"]);
    copy.commit("Root");
    assert_eq!(told(&copy.review(&["--base", "HEAD^", "--full"])), [""; 0]);
}

#[test]
fn a_first_commit_is_compared_with_nothing() {
    let copy = WorkingCopy::new();
    copy.git(&["checkout", "--quiet", "--orphan", "new"]);
    copy.git(&["rm", "-r", "--quiet", "--force", "."]);
    copy.write("a.js", "start();\ndebugger;\n");
    copy.git(&["add", "a.js"]);
    // Before there is any commit on the branch.
    let staged = copy.canonry(&["review", "--staged", "--json"]).succeeded().json();
    assert_eq!(told(&staged), ["debug-leftover a.js:2 new inline"]);
    copy.commit("Root");
    let root = copy.review(&["--base", "HEAD^"]);
    assert_eq!(told(&root), ["debug-leftover a.js:2 new inline"]);
    let notes = root["notes"].to_string();
    assert!(notes.contains("has no base to compare with: all its files count as new"), "{notes}");
    // Two histories that have nothing in common.
    let ran = copy.canonry(&["review", "--base", "main", "--full"]).succeeded();
    assert!(ran.stdout.contains("there is no common ancestor of "), "{}", ran.stdout);
    assert!(ran.stdout.contains("the two trees are compared"), "{}", ran.stdout);
}

#[test]
fn the_manifest_for_pre_commit_names_a_command_that_exists() {
    let manifest = include_str!("../../../../.pre-commit-hooks.yaml");
    let entry = manifest.lines().find_map(|line| line.trim().strip_prefix("entry: canonry ")).expect("an entry");
    let copy = WorkingCopy::new();
    let arguments: Vec<&str> = entry.split_whitespace().collect();
    copy.canonry(&arguments).succeeded();
    copy.write("src/app.js", &code(&credential()));
    copy.git(&["add", "src/app.js"]);
    assert_eq!(copy.canonry(&arguments).exit, Some(5));
}
