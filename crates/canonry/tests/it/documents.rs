//! Checks that tests named in documents exist, and that links lead to their targets.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Every document for people: those at the top, and those in `docs`.
fn documents() -> Vec<(PathBuf, String)> {
    let folders = [root(), root().join("docs")];
    let mut found = Vec::new();
    for folder in folders {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|ending| ending == "md") {
                let text = fs::read_to_string(&path).expect("a text");
                found.push((path, text));
            }
        }
    }
    assert!(found.len() >= 12, "{found:?}");
    found
}

/// Every source file of the crates and of the tasks.
fn sources() -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates"), root().join("xtask")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(fs::read_to_string(&path).expect("a text"));
            }
        }
    }
    found
}

/// The names of the tests in a source file: functions with a test attribute, and those that run on both engines.
fn tests_in(source: &str) -> Vec<&str> {
    let mut tests = Vec::new();
    let (mut is_marked, mut is_on_both_engines) = (false, false);
    for line in source.lines() {
        match line {
            "on_both_engines! {" => is_on_both_engines = true,
            "}" => is_on_both_engines = false,
            _ => {}
        }
        let words = line.trim_start();
        if words.starts_with("#[test]") || words.starts_with("#[tokio::test") {
            is_marked = true;
        } else if let Some(name) = function_in(words) {
            // The macro turns its own functions into tests; functions inside them are indented further.
            let is_engines = is_on_both_engines && line.starts_with("    async fn ");
            tests.extend((is_marked || is_engines).then_some(name));
            is_marked = false;
        } else if !words.starts_with("#[") && !words.starts_with("//") {
            is_marked = false;
        }
    }
    tests
}

/// The name of the function that begins in a line.
fn function_in(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(|character: char| !character.is_ascii_alphanumeric() && character != '_').next()
}

/// The text between backquotes, without code blocks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with("```")).flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Other names that look like the name of a test.
const NOT_OURS: [&str; 9] = [
    "pull_request_target",
    "pull_request_review",
    "pull_request_review_thread",
    "below_maybe_threshold",
    "cited_as_different",
    "no_shared_evidence",
    "source_too_vague",
    "max_completion_tokens",
    "text_is_cut",
];

#[test]
fn every_test_that_a_document_names_is_one() {
    let sources = sources();
    let tests: BTreeSet<&str> = sources.iter().flat_map(|source| tests_in(source)).collect();
    let migrations = root().join("crates/canonry-store/migrations/sqlite");
    let tables: String = fs::read_dir(migrations)
        .expect("a folder")
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("a text"))
        .collect();
    let (mut seen, mut wrong) = (0, Vec::new());
    for (path, text) in documents() {
        // Metrics begin with our name, reasons and events have one underscore, and tables are created by a migration.
        let looks_like_one = |word: &&str| {
            word.matches('_').count() >= 2
                && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
                && !word.starts_with("canonry_")
                && !NOT_OURS.contains(word)
                && !tables.contains(&format!("CREATE TABLE {word} "))
        };
        for word in quoted(&text).filter(looks_like_one) {
            seen += 1;
            if !tests.contains(word) {
                wrong.push(format!("{}: {word} is no test", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 80, "{seen}");
}

#[test]
fn what_is_no_test_is_not_taken_for_one() {
    let source = "/// Words.\n#[test]\n#[ignore]\nfn one() {\n    fn inside() {}\n}\n\n#[tokio::test(start_paused = true)]\n\
                  async fn two() {}\n\nfn helper() {}\n\non_both_engines! {\n    async fn three(database: TestDatabase) {\n        \
                  async fn inside_too() {}\n    }\n}\n\nasync fn later() {}\n#[test]\nconst X: u8 = 1;\nfn after() {}\n\
                  proptest! {\n    #[test]\n    fn four(x in 0..3) {}\n}\n";
    assert_eq!(tests_in(source), ["one", "two", "three", "four"]);
}

#[test]
fn every_file_that_a_document_names_is_there() {
    let mut seen = 0;
    for (path, text) in documents() {
        let is_file = |word: &&str| {
            ["crates/", "docs/", "packages/", "training/", "xtask/"].iter().any(|folder| word.starts_with(folder))
                && !word.contains(['*', '{', ' ', '<', '…'])
        };
        for word in quoted(&text).filter(is_file) {
            let file = word.split(':').next().unwrap_or(word);
            assert!(root().join(file).exists(), "{}: there is no {word}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn every_link_leads_somewhere() {
    let documents = documents();
    let mut seen = 0;
    for (path, text) in &documents {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, part) = link.split_once('#').unwrap_or((link, ""));
            let folder = path.parent().expect("a file lies in a folder");
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            let target = target.canonicalize().unwrap_or_else(|_| panic!("{}: there is no {link}", path.display()));
            if !part.is_empty() {
                let text = fs::read_to_string(&target).expect("a text");
                let parts: Vec<String> = text.lines().filter(|line| line.starts_with('#')).map(anchor).collect();
                assert!(parts.iter().any(|known| known == part), "{}: {link} is none of {parts:?}", path.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

/// GitHub's anchor of a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|character| character.is_alphanumeric() || [' ', '-', '_'].contains(character));
    kept.map(|character| if character == ' ' { '-' } else { character }).collect()
}

#[test]
fn nothing_is_left_to_be_written() {
    for (path, text) in documents() {
        assert!(!text.contains("TODO"), "{} has a part that is to be written", path.display());
    }
}
