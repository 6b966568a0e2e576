//! Tests arbitrary bytes, and real answers with changed bytes: nothing panics, nothing hangs, no path leads outside.

use std::path::Path;

use canonry_domain::review::{RepoPath, ReviewerName, grounding};
use canonry_review::reviewers::{read_findings, read_rdjson, read_sarif};
use canonry_review::{FileChange, HeadTexts, ReviewerAnswer, merge_findings, parse_diff};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_oneof, proptest};
use proptest::test_runner::TestCaseError;
use serde_json::json;

/// Git's output for a change of every kind, built once for all cases.
fn real_diff() -> Vec<u8> {
    let id = |digit: &str| digit.repeat(40);
    let list: Vec<u8> = [
        (":100644 100644", "1", "2", "R087", "old.rs\0src/new name.rs"),
        (":100644 100644", "1", "2", "M", "logo.png"),
        (":100644 120000", "1", "2", "T", "link"),
        (":160000 160000", "1", "2", "M", "vendor/lib"),
        (":100644 000000", "1", "0", "D", "gone.rs"),
        (":000000 100644", "0", "1", "A", "caf\u{e9}.txt"),
    ]
    .iter()
    .flat_map(|(modes, before, after, status, paths)| {
        format!("{modes} {} {} {status}\0{paths}\0", id(before), id(after)).into_bytes()
    })
    .collect();
    let patch = "diff --git a/old.rs b/src/new name.rs\nsimilarity index 87%\n@@ -3,2 +3,3 @@ fn f()\n-a\n-b\n+c\n+d\n+e\n\
        @@ -9,0 +11 @@\n+last\n\\ No newline at end of file\n\
        diff --git a/logo.png b/logo.png\nindex 1..2\nBinary files a/logo.png and b/logo.png differ\n\
        diff --git a/link b/link\ndeleted file mode 100644\n@@ -1 +0,0 @@\n-text\n\
        diff --git a/link b/link\nnew file mode 120000\n@@ -0,0 +1 @@\n+target\n\
        diff --git a/vendor/lib b/vendor/lib\n@@ -1 +1 @@\n-Subproject commit 1\n+Subproject commit 2\n\
        diff --git a/gone.rs b/gone.rs\n@@ -1,2 +0,0 @@\n-a\n-b\n\
        diff --git a/x b/x\nnew file mode 100644\n@@ -0,0 +1,2 @@\n+one\r\n+two\n";
    list.into_iter().chain([0]).chain(patch.bytes()).collect()
}

fn real_sarif() -> Vec<u8> {
    let log = json!({"version": "2.1.0", "runs": [{
    "tool": {"driver": {"name": "T", "rules": [{"id": "r/1", "properties": {"tags": ["security", "cwe-89"], "security-severity": "9.1"},
        "messageStrings": {"default": {"text": "Use {0} of {1}"}}}]}, "extensions": [{"name": "E", "rules": []}]},
    "artifacts": [{"location": {"uri": "src/b.js", "uriBaseId": "ROOT"}, "roles": ["analysisTarget"]}],
    "originalUriBaseIds": {"ROOT": {"uri": "file:///ci/repo/"}},
    "invocations": [{"executionSuccessful": true, "workingDirectory": {"uri": "file:///ci/repo"}}],
    "results": [
        {"ruleId": "r/1/x", "ruleIndex": 0, "level": "error", "message": {"id": "default", "arguments": ["a", "b"]},
         "locations": [{"physicalLocation": {"artifactLocation": {"uri": "file:///ci/repo/a%20b.js"}, "region": {"startLine": 3, "endLine": 4}}}],
         "partialFingerprints": {"primaryLocationLineHash": "abc:1"}, "fixes": [{"description": {"text": "do"}}]},
        {"message": {"text": "Two\nlines"}, "locations": [{"physicalLocation": {"artifactLocation": {"index": 0}}}],
         "suppressions": [{"status": "rejected"}], "kind": "fail", "baselineState": "new"},
        {"message": {"text": "Up"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "../../etc/passwd"}}}]},
    ]}]});
    log.to_string().into_bytes()
}

fn real_rdjson() -> Vec<u8> {
    let one = json!({"message": "Quote this.", "location": {"path": "/ci/repo/run.sh", "range": {"start": {"line": 3}, "end": {"line": 4}}},
        "severity": "ERROR", "code": {"value": "SC2086"}, "suggestions": [{"text": "x"}], "source": {"name": "t"}});
    let two = json!({"message": "Up", "location": {"path": "../x"}, "severity": 2});
    format!("{one}\n{two}\n").into_bytes()
}

fn real_findings() -> Vec<u8> {
    let finding = json!({"title": "Leak", "message": "Open.", "path": "src/a.c", "line": 3, "end_line": 5, "severity": "major", "fix": "x"});
    json!({"findings": [finding, {"title": "x", "path": "/etc/passwd", "severity": "minor"}]}).to_string().into_bytes()
}

#[derive(Debug, Clone)]
enum Mutation {
    Set(usize, u8),
    Cut(usize, usize),
    Repeat(usize, usize),
    Insert(usize, Vec<u8>),
    End(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    // Pieces that have a meaning for one of the readers.
    let pieces: [&[u8]; 12] = [
        b"\n@@ -1 +4294967295,2 @@\n",
        b"diff --git a/x b/x\n",
        b"\0",
        b":000000 100644 0 1 A\0../x\0",
        b"null",
        b"[",
        b"}",
        b"\"",
        b"..",
        b"%2e%2e%2f",
        b"-1",
        b"\xff",
    ];
    let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        (any::<usize>(), 1..40_usize).prop_map(|(at, length)| Mutation::Cut(at, length)),
        (any::<usize>(), 1..80_usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        (any::<usize>(), proptest::sample::select(pieces)).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        any::<usize>().prop_map(Mutation::End),
    ]
}

fn mutated(mut bytes: Vec<u8>, mutations: &[Mutation]) -> Vec<u8> {
    for mutation in mutations {
        let length = bytes.len();
        let place = |at: &usize| at % (length + 1);
        match mutation {
            Mutation::Set(at, byte) if length > 0 => bytes[at % length] = *byte,
            Mutation::Set(..) => {}
            Mutation::Cut(at, count) => drop(bytes.drain(place(at)..(place(at) + count).min(length))),
            Mutation::Repeat(at, count) => {
                let again = bytes[place(at)..(place(at) + count).min(length)].to_vec();
                bytes.splice(place(at)..place(at), again);
            }
            Mutation::Insert(at, piece) => drop(bytes.splice(place(at)..place(at), piece.iter().copied())),
            Mutation::End(at) => bytes.truncate(place(at)),
        }
    }
    bytes
}

fn stays_inside(path: &RepoPath) -> bool {
    let text = path.as_str();
    !text.starts_with('/') && !text.contains('\0') && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn check_changes(changes: &[FileChange]) -> Result<(), TestCaseError> {
    for change in changes {
        prop_assert!(stays_inside(&change.path) && stays_inside(change.path_before()), "{change:?}");
        // Every line can be mapped.
        let map = change.line_map();
        for line in [1, 2, 1_000, u32::MAX] {
            prop_assert!(map.nearest(line) >= 1);
            prop_assert!(map.line(line).is_none_or(|line| line >= 1));
            let _ = map.is_new(line);
        }
        prop_assert!(change.added.iter().all(|(_, text)| !text.contains('\n')));
    }
    Ok(())
}

fn check_heard(heard: ReviewerAnswer, changes: &[FileChange]) -> Result<(), TestCaseError> {
    for one in &heard.reported {
        prop_assert!(stays_inside(&one.path), "{one:?}");
        prop_assert!(!one.title.trim().is_empty() && one.title.chars().count() <= 201, "{one:?}");
        let is_tame = !one.title.chars().any(char::is_control) && one.message.chars().count() <= 8_001;
        prop_assert!(is_tame, "{one:?}");
        for change in changes {
            grounding(&change.hunks, one.lines);
        }
    }
    prop_assert!(heard.read.iter().flat_map(|(_, paths)| paths.iter().flatten()).all(stays_inside));
    prop_assert!(heard.problems.iter().all(|problem| problem.chars().count() < 1_000), "{:?}", heard.problems);
    let reported = heard.reported.len();
    prop_assert!(merge_findings(vec![heard], &HeadTexts::default()).len() <= reported);
    Ok(())
}

fn real() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![Just(real_diff()), Just(real_sarif()), Just(real_rdjson()), Just(real_findings())]
}

fn anything() -> impl Strategy<Value = Vec<u8>> {
    let changed = (real(), proptest::collection::vec(mutation(), 0..6)).prop_map(|(real, how)| mutated(real, &how));
    prop_oneof![4 => changed, 1 => proptest::collection::vec(any::<u8>(), 0..400)]
}

#[test]
fn the_unchanged_ones_are_read() {
    assert_eq!(parse_diff(&real_diff()).expect("readable").len(), 6);
    let root = Some(Path::new("/ci/repo"));
    let sarif = read_sarif("r", &real_sarif(), root);
    let paths: Vec<&str> = sarif.reported.iter().map(|one| one.path.as_str()).collect();
    assert_eq!((paths, sarif.notes.len()), (vec!["a b.js", "src/b.js"], 1));
    assert_eq!(read_rdjson("r", &real_rdjson(), root).reported.len(), 1);
    assert_eq!(read_findings("r", &ReviewerName::tool("t"), &real_findings(), root).reported.len(), 1);
}

proptest! {
    #[test]
    fn whatever_it_is_it_is_read_or_refused(bytes in anything()) {
        let changes = parse_diff(&bytes).unwrap_or_default();
        check_changes(&changes)?;
        let changes = if changes.is_empty() { parse_diff(&real_diff()).expect("readable") } else { changes };
        for root in [None, Some(Path::new("/ci/repo"))] {
            check_heard(read_sarif("r", &bytes, root), &changes)?;
            check_heard(read_rdjson("r", &bytes, root), &changes)?;
            check_heard(read_findings("r", &ReviewerName::tool("t"), &bytes, root), &changes)?;
        }
    }
}
