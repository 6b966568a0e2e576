//! Tests files of every kind, with one mistake among them that must be found whatever is beside it.

use canonry_domain::review::RepoPath;
use canonry_review::{ChangeKind, ContentKind};

use crate::bad_input::reviewed::{lint, reviewed};
use crate::repositories::test_repository::{TestRepository, path};

/// A mistake that the built-in rules find.
const MISTAKE: &str = "debugger;\n";

async fn places(repository: &TestRepository) -> Vec<String> {
    let git = repository.git();
    let (base, head) = (git.commit("main").await.expect("main"), repository.head());
    reviewed(&repository.local(), &base, &head, None).await.places()
}

#[tokio::test]
async fn a_link_is_never_followed() {
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("secret.js"), MISTAKE).expect("a file");
    let repository = TestRepository::new();
    let base = repository.write("a.js", "a();\n").commit("base");
    repository.branch("topic").write("a.js", MISTAKE);
    for (link, target) in [
        ("file.js", outside.path().join("secret.js")),
        ("folder", outside.path().to_owned()),
        ("up.js", "../../../../../../etc/passwd".into()),
        ("itself.js", "itself.js".into()),
        ("debugger.js", "debugger;".into()),
    ] {
        std::os::unix::fs::symlink(target, repository.path(link)).expect("a link");
    }
    repository.commit("links");
    let report = lint(&[("no-link", "folder/secret.js", 1), ("no-link", "up.js", 1)]);
    let reviewed = reviewed(&repository.local(), &base, &repository.head(), Some(&report)).await;
    assert_eq!(reviewed.places(), ["debug-leftover a.js:1", "no-link folder/secret.js:1", "no-link up.js:1"]);
    assert_eq!(reviewed.texts.get(&path("folder/secret.js")), None);
    assert!(reviewed.texts.get(&path("file.js")).is_none_or(|text| !text.contains("debugger")));
    let links = reviewed.scope.changes.iter().filter(|change| change.content == ContentKind::Symlink);
    assert_eq!(links.count(), 5);
}

#[tokio::test]
async fn what_has_no_lines_costs_only_itself() {
    let repository = TestRepository::new();
    repository.write("was.bin", b"\0\x01").write("mode.js", MISTAKE).write("full.js", "a();\n").commit("base");
    repository.branch("topic").write("was.bin", "now text\n").write("became.bin", b"debugger;\n\0\xff");
    repository.write("empty.js", "").write("full.js", "").write("zz.js", MISTAKE);
    repository.write("latin.js", b"// caf\xe9\ndebugger;\n").write("bom.js", "\u{feff}debugger;\n");
    repository.run(&["add", "--all", "."]);
    repository.run(&["update-index", "--chmod=+x", "mode.js"]);
    repository.run(&["update-index", "--add", "--cacheinfo", &format!("160000,{},sub", "12".repeat(20))]);
    repository.run(&["commit", "--quiet", "--message", "all kinds"]);
    let seen = places(&repository).await;
    assert_eq!(seen, ["debug-leftover bom.js:1", "debug-leftover latin.js:2", "debug-leftover zz.js:1"]);
}

#[tokio::test]
async fn line_ends_of_every_kind() {
    let repository = TestRepository::new();
    repository.write("crlf.js", "a();\r\nb();\r\n").write("open.js", "a();").write("mixed.js", "a();\n").commit("base");
    repository.branch("topic").write("crlf.js", "a();\r\ndebugger;\r\nb();\r\n").write("open.js", "a();\ndebugger;");
    // A lone carriage return is not a line end for git.
    repository.write("mixed.js", "a();\r\n\rb();\ndebugger;\r\n").write("to_lf.js", "debugger;\r\n").commit("ends");
    let seen = places(&repository).await;
    let expected = ["crlf.js:2", "mixed.js:3", "open.js:2", "to_lf.js:1"].map(|at| format!("debug-leftover {at}"));
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn names_that_mean_something_to_git_are_names() {
    let repository = TestRepository::new();
    let base = repository.write("a.js", "a();\n").commit("base");
    repository.branch("topic");
    let described = format!("release-g{}", base.short());
    let names = [
        described.as_str(),
        "--output=x.js",
        ":(exclude)a.js",
        "*.js",
        "a\tb\n\"c\" d.js",
        "HEAD^{commit}",
        "a~1",
        "x@{0}",
        "..dots..",
        "sub/.gitmodules",
        "diff --git a/x b/x\n@@ -1 +1 @@",
    ];
    for name in names {
        repository.write(name, "debugger;\n");
    }
    repository.write_bytes(b"caf\xe9.js", "debugger;\n").commit("names");
    let report: Vec<(&str, &str, u32)> = names.iter().map(|name| ("named", *name, 1)).collect();
    let reviewed = reviewed(&repository.local(), &base, &repository.head(), Some(&lint(&report))).await;
    assert_eq!(reviewed.problems, [""; 0]);
    assert_eq!(reviewed.scope.changes.len(), names.len() + 1);
    assert!(reviewed.places().contains(&"debug-leftover caf%E9.js:1".to_owned()), "{:#?}", reviewed.places());
    let paths: Vec<_> = names.iter().map(|name| path(name)).collect();
    // A file with such a name exists, and its findings do not count as fixed; a file with a similar name is another
    // file.
    let odd = [path("caf%E9.js"), path("caf%41.js"), path("caf%C3%A9.js"), path("100%.js")];
    let odd = repository.git().files_at(&repository.head(), &odd.each_ref()).await.expect("asked");
    assert_eq!(odd.keys().map(RepoPath::as_str).collect::<Vec<_>>(), ["caf%E9.js"]);
    let files = repository.git().files_at(&repository.head(), &paths.iter().collect::<Vec<_>>()).await.expect("asked");
    assert_eq!(files.len(), names.len());
    for path in &paths {
        assert_eq!(reviewed.texts.get(path), Some("debugger;\n"), "{path:?}");
    }
}

#[tokio::test]
async fn a_rename_with_edits_and_a_changed_mode() {
    let repository = TestRepository::new();
    let code: String = (0..50).map(|line| format!("step{line}();\n")).collect();
    let base = repository.write("old/a.js", &code).write_lines("b.txt", 0..40).commit("base");
    repository.branch("topic").run(&["mv", "old/a.js", "new.js"]);
    repository.run(&["mv", "b.txt", "c d.txt"]);
    repository.write("new.js", code.replace("step30();", "debugger;")).run(&["add", "--all", "."]);
    repository.run(&["update-index", "--chmod=+x", "new.js"]);
    repository.run(&["commit", "--quiet", "--message", "renamed"]);
    let reviewed = reviewed(&repository.local(), &base, &repository.head(), None).await;
    assert_eq!(reviewed.places(), ["debug-leftover new.js:31"]);
    let renamed: Vec<_> = reviewed.scope.changes.iter().map(|one| (one.kind, one.path_before().as_str())).collect();
    assert_eq!(renamed, [(ChangeKind::Renamed, "b.txt"), (ChangeKind::Renamed, "old/a.js")]);
}

#[tokio::test]
async fn a_folder_that_becomes_a_file_and_a_file_that_becomes_a_folder() {
    let repository = TestRepository::new();
    let base = repository.write("one/a.js", "a();\n").write("two", "b();\n").commit("base");
    repository.branch("topic");
    std::fs::remove_dir_all(repository.path("one")).expect("removed");
    std::fs::remove_file(repository.path("two")).expect("removed");
    repository.write("one", "debugger;\n").write("two/b.js", MISTAKE).commit("swapped");
    let reviewed = reviewed(&repository.local(), &base, &repository.head(), None).await;
    assert_eq!(reviewed.places(), ["debug-leftover two/b.js:1"]);
}

#[tokio::test]
async fn three_thousand_files_and_a_report_on_each() {
    let repository = TestRepository::new();
    let base = repository.write("a.js", "a();\n").commit("base");
    repository.branch("topic");
    let names: Vec<String> = (0..3_000).map(|file| format!("src/{:02}/{file}.js", file % 40)).collect();
    for name in &names {
        repository.write(name, format!("// {name}\nwork();\n"));
    }
    repository.write("src/07/7.js", MISTAKE).commit("many");
    let results: Vec<(&str, &str, u32)> = names.iter().map(|name| ("no-work", name.as_str(), 2)).collect();
    let reviewed = reviewed(&repository.local(), &base, &repository.head(), Some(&lint(&results))).await;
    assert_eq!((reviewed.scope.changes.len(), reviewed.findings.len()), (3_000, 3_001));
    assert!(reviewed.places().contains(&"debug-leftover src/07/7.js:1".to_owned()));
}

#[tokio::test]
async fn a_large_diff_and_a_line_of_three_megabytes() {
    let repository = TestRepository::new();
    let base = repository.write("a.js", "a();\n").commit("base");
    let lines: String = (0..200_000).map(|line| format!("value[{line}] = compute({line});\n")).collect();
    assert!(lines.len() > 5_000_000);
    repository.branch("topic").write("long.js", format!("x = '{}'; debugger;\n", "y".repeat(3_000_000)));
    // Under two megabytes, so that the rules read its one line.
    repository.write("bundle.js", format!("x = '{}';\ndebugger;\n", "y".repeat(1_900_000)));
    repository.write("data.js", &lines).write("a.js", MISTAKE).commit("large");
    let reviewed = reviewed(&repository.local(), &base, &repository.head(), None).await;
    assert!(reviewed.places().contains(&"debug-leftover a.js:1".to_owned()), "{:?}", reviewed.places());
    assert!(reviewed.places().contains(&"debug-leftover bundle.js:2".to_owned()), "{:?}", reviewed.places());
    // A file that is too large has no text, and its size is known.
    let long = reviewed.scope.changes.iter().find(|change| change.path.as_str() == "long.js").expect("changed");
    let file = reviewed.texts.file(long);
    assert_eq!((file.text, file.bytes), (None, Some(3_000_018)));
}
