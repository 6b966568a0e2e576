//! Tests reports in SARIF: from other tools, and malformed ones.

use std::path::Path;

use canonry_domain::review::{Category, LineRange, ReviewerName, Severity};
use canonry_review::ReviewerAnswer;
use canonry_review::reviewers::read_sarif;
use serde_json::{Value, json};

fn read(log: &Value) -> ReviewerAnswer {
    read_sarif("r.sarif", log.to_string().as_bytes(), None)
}

/// A log of one tool `T` with these results and rules.
fn log(results: &Value, rules: &Value) -> Value {
    json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "T", "rules": rules}}, "results": results}]})
}

fn result(more: Value) -> Value {
    let mut result = json!({
        "ruleId": "r1",
        "message": {"text": "Something is wrong.\nIt really is."},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": "src/a.rs"}, "region": {"startLine": 3, "endLine": 4}}}],
    });
    let Value::Object(more) = more else { panic!("an object") };
    for (key, value) in more {
        result[key] = value;
    }
    result
}

fn at(uri: &str) -> Value {
    result(json!({"locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}]}))
}

#[test]
fn a_result_as_tools_write_it() {
    let heard = read(&log(
        &json!([result(json!({"partialFingerprints": {"primaryLocationLineHash": "abc:1", "odd": 7}}))]),
        &json!([]),
    ));
    assert_eq!(heard.problems, [""; 0]);
    let one = &heard.reported[0];
    assert_eq!((one.reviewer.as_str(), one.rule.as_deref(), one.path.as_str()), ("t", Some("r1"), "src/a.rs"));
    assert_eq!((one.title.as_str(), one.message.as_str()), ("Something is wrong.", "It really is."));
    assert_eq!(
        (one.lines, one.severity, one.category),
        (LineRange::new(3, 4), Severity::Medium, Category::Correctness)
    );
    assert_eq!(one.partial, [("primaryLocationLineHash".to_owned(), "abc:1".to_owned())].into());
    assert_eq!(heard.read, [(ReviewerName::tool("T"), None)]);
}

#[test]
fn severity_from_the_score_and_else_from_the_level() {
    let score = |score: Value| json!({"properties": {"security-severity": score}});
    for (more, rule, expected) in [
        (json!({"level": "error"}), json!({}), Severity::Major),
        (json!({"level": "warning"}), json!({}), Severity::Medium),
        (json!({"level": "note"}), json!({}), Severity::Minor),
        (json!({"level": "none"}), json!({}), Severity::Minor),
        (json!({}), json!({}), Severity::Medium),
        (json!({"level": null}), json!({"defaultConfiguration": {"level": "error"}}), Severity::Major),
        (json!({"level": "note"}), json!({"defaultConfiguration": {"level": "error"}}), Severity::Minor),
        (json!({"level": "note"}), score(json!("9.0")), Severity::Critical),
        (json!({"level": "note"}), score(json!(9.8)), Severity::Critical),
        (json!({"level": "note"}), score(json!("8.9")), Severity::Major),
        (json!({"level": "note"}), score(json!("7")), Severity::Major),
        (json!({"level": "error"}), score(json!("6.9")), Severity::Major),
        (json!({"level": "note"}), score(json!("6.9")), Severity::Minor),
        (json!({"level": "note"}), score(json!("NaN")), Severity::Minor),
        (score(json!("9.5")), score(json!("1.0")), Severity::Critical),
    ] {
        let mut rule = rule;
        rule["id"] = json!("r1");
        let heard = read(&log(&json!([result(more.clone())]), &json!([rule.clone()])));
        assert_eq!(heard.reported[0].severity, expected, "{more} {rule}");
    }
}

#[test]
fn category_and_weakness_from_the_tags() {
    for (tags, category, names) in [
        (json!(["security", "external/cwe/cwe-089"]), Category::Security, vec!["cwe-89"]),
        (json!(["CWE-79: Cross-site Scripting"]), Category::Security, vec!["cwe-79"]),
        (json!(["Performance"]), Category::Performance, vec![]),
        (json!(["maintainability"]), Category::Style, vec![]),
        (json!(["docs"]), Category::Documentation, vec![]),
        (json!(["insecurity", "cwe-"]), Category::Correctness, vec![]),
        (json!([7, null]), Category::Correctness, vec![]),
        (json!("security"), Category::Correctness, vec![]),
    ] {
        let rule = json!([{"id": "r1", "properties": {"tags": tags}}]);
        let heard = read(&log(&json!([result(json!({}))]), &rule));
        let one = &heard.reported[0];
        assert_eq!(
            (one.category, one.tags.iter().map(String::as_str).collect::<Vec<_>>()),
            (category, names),
            "{rule}"
        );
    }
}

#[test]
fn several_runs_and_tools() {
    let run = |tool: &str, results: Value| json!({"tool": {"driver": {"name": tool}}, "results": results});
    let mut broken = run("Broken", json!([result(json!({}))]));
    broken["invocations"] = json!([{"executionSuccessful": false}]);
    let mut scoped = run("Scoped", json!([]));
    scoped["artifacts"] =
        json!([{"location": {"uri": "src/a.rs"}, "roles": ["analysisTarget"]}, {"location": {"uri": "b"}}]);
    let log = json!({"version": "2.1.0", "runs": [run("A", json!([result(json!({}))])), run("B", Value::Null), broken, scoped, run("broken", json!([]))]});
    let heard = read(&log);
    let who: Vec<_> = heard.reported.iter().map(|one| one.reviewer.as_str()).collect();
    assert_eq!(who, ["a", "broken"]);
    let path = canonry_domain::review::RepoPath::new("src/a.rs").expect("a path");
    let expected = [
        (ReviewerName::tool("A"), None),
        (ReviewerName::tool("B"), None),
        (ReviewerName::tool("Scoped"), Some([path].into())),
    ];
    // A tool that failed once fixes nothing, whatever its other run reports.
    assert_eq!(heard.read, expected);
    assert_eq!(heard.problems, ["r.sarif: broken did not finish; no finding counts as fixed because of this report"]);
}

#[test]
fn what_is_no_finding() {
    for more in [
        json!({"kind": "pass"}),
        json!({"kind": "notApplicable"}),
        json!({"suppressions": [{"kind": "inSource"}]}),
        json!({"suppressions": [{"kind": "external", "status": "accepted"}]}),
        json!({"baselineState": "absent"}),
    ] {
        assert_eq!(read(&log(&json!([result(more.clone())]), &json!([]))).reported.len(), 0, "{more}");
    }
    for more in [
        json!({"kind": "review"}),
        json!({"suppressions": [{"kind": "external", "status": "rejected"}]}),
        json!({"suppressions": []}),
    ] {
        assert_eq!(read(&log(&json!([result(more.clone())]), &json!([]))).reported.len(), 1, "{more}");
    }
}

#[test]
fn where_a_result_is() {
    let lines = |region: Value| {
        let location = json!([{"physicalLocation": {"artifactLocation": {"uri": "a"}, "region": region}}]);
        read(&log(&json!([result(json!({"locations": location}))]), &json!([]))).reported[0].lines
    };
    assert_eq!(lines(Value::Null), None);
    assert_eq!(lines(json!({"charOffset": 7})), None);
    assert_eq!(lines(json!({"startLine": 0})), None);
    assert_eq!(lines(json!({"startLine": -3})), None);
    assert_eq!(lines(json!({"startLine": 99_999_999_999_u64})), None);
    assert_eq!(lines(json!({"startLine": 5})), LineRange::new(5, 5));
    assert_eq!(lines(json!({"startLine": 5, "endLine": 2})), LineRange::new(5, 5));
}

#[test]
fn paths_that_lead_elsewhere_are_told() {
    let results = json!([
        at("/etc/passwd"), at("../a.rs"), at("file:///etc/passwd"), at("a/%2e%2e/%2e%2e/b"), at("https://host/a"), at(""),
        at("with%20space.rs"), result(json!({"locations": []})), result(json!({"message": {"text": " "}})), {"ruleId": 7},
    ]);
    let heard = read(&log(&results, &json!([])));
    let paths: Vec<_> = heard.reported.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths, ["with space.rs"]);
    assert_eq!(
        heard.problems,
        [
            "r.sarif: 1 result of t left out, because they are not valid SARIF: a result in another format; no finding counts as fixed because of this report",
            "r.sarif: 1 result of t left out, which say nothing: r1; no finding counts as fixed because of this report",
        ]
    );
    assert_eq!(
        heard.notes,
        [
            "r.sarif: 6 results of t left out, outside the repository: r1, r1, r1, r1, r1 and 1 more",
            "r.sarif: 1 result of t left out, without a file: r1",
        ]
    );
    assert_eq!(heard.read, [], "what cannot be read may be what was found before");
}

#[test]
fn what_is_left_out_fixes_nothing() {
    let nowhere = result(json!({"locations": []}));
    for (results, reads) in [
        (json!([]), 1),
        (json!([at("a.rs"), at("/usr/include/a.h"), nowhere]), 1),
        (json!([at("/another/clone/a.rs")]), 0),
        (json!([at("a.rs"), {"ruleId": 7}]), 0),
        (json!([at("a.rs"), result(json!({"message": {"text": ""}}))]), 0),
    ] {
        assert_eq!(read(&log(&results, &json!([]))).read.len(), reads, "{results}");
    }
    // Another run of the same tool does not compensate for it.
    let run = |results: Value| json!({"tool": {"driver": {"name": "T"}}, "results": results});
    let both = json!({"version": "2.1.0", "runs": [run(json!([at("a.rs")])), run(json!([{"ruleId": 7}]))]});
    assert_eq!(read(&both).read, []);
}

#[test]
fn absolute_paths_below_the_folder_of_the_run() {
    let at_root = |uri: &str, root: Option<&str>, more: Value| {
        let mut log = log(&json!([at(uri)]), &json!([]));
        let Value::Object(more) = more else { panic!("an object") };
        for (key, value) in more {
            log["runs"][0][key] = value;
        }
        let heard = read_sarif("r", log.to_string().as_bytes(), root.map(Path::new));
        heard.reported.first().map(|one| one.path.as_str().to_owned())
    };
    let base = json!({"originalUriBaseIds": {"SRCROOT": {"uri": "file:///home/ci/repo/"}, "SUB": {"uri": "file:///home/ci/repo/sub/"}}});
    let ran =
        json!({"invocations": [{"executionSuccessful": true, "workingDirectory": {"uri": "file:///home/ci/repo"}}]});
    let expected = Some("sub/a.rs".to_owned());
    assert_eq!(at_root("file:///home/ci/repo/sub/a.rs", Some("/home/ci/repo"), json!({})), expected);
    assert_eq!(at_root("/home/ci/repo/sub/a.rs", Some("/home/ci/repo/"), json!({})), expected);
    assert_eq!(at_root("file:///home/ci/repo/sub/a.rs", None, base.clone()), expected);
    assert_eq!(at_root("file:///home/ci/repo/sub/a.rs", None, ran.clone()), expected);
    assert_eq!(at_root("file:///home/ci/repository/a.rs", None, ran), None);
    assert_eq!(at_root("file:///home/ci/repo/../x", None, base), None);
    assert_eq!(at_root("file:///a.rs", None, json!({"originalUriBaseIds": {"ROOT": {"uri": "file:///"}}})), None);
}

#[test]
fn a_base_inside_the_repository() {
    let located = json!([{"physicalLocation": {"artifactLocation": {"uri": "a.rs", "uriBaseId": "SRC"}}}]);
    let mut log = log(&json!([result(json!({"locations": located}))]), &json!([]));
    log["runs"][0]["originalUriBaseIds"] = json!({"SRC": {"uri": "src/"}});
    assert_eq!(read(&log).reported[0].path.as_str(), "src/a.rs");
    log["runs"][0]["originalUriBaseIds"] = json!({"SRC": {"uri": "file:///ci/repo/"}});
    assert_eq!(read(&log).reported[0].path.as_str(), "a.rs");
    let indexed = json!([{"physicalLocation": {"artifactLocation": {"index": 0}}}]);
    let mut log = self::log(&json!([result(json!({"locations": indexed}))]), &json!([]));
    log["runs"][0]["artifacts"] = json!([{"location": {"uri": "src/b.rs"}}]);
    assert_eq!(read(&log).reported[0].path.as_str(), "src/b.rs");
}

#[test]
fn rules_messages_and_extensions() {
    let rules = json!([{"id": "r1/sub", "shortDescription": {"text": "Described"}, "messageStrings": {"m": {"text": "Look at {0} and {1}"}}}]);
    let text = |more: Value, rules: &Value| read(&log(&json!([result(more)]), rules)).reported[0].title.clone();
    assert_eq!(
        text(json!({"message": {"id": "m", "arguments": ["a", "b"]}, "ruleIndex": 0}), &rules),
        "Look at a and b"
    );
    assert_eq!(text(json!({"message": {}, "ruleIndex": 0}), &rules), "Described");
    let extended = json!({"version": "2.1.0", "runs": [{
        "tool": {"driver": {"name": "T"}, "extensions": [{"name": "E", "rules": [{"id": "x", "defaultConfiguration": {"level": "error"}}]}]},
        "results": [result(json!({"ruleId": null, "rule": {"index": 0, "toolComponent": {"index": 0}}}))]}]});
    let heard = read(&extended);
    assert_eq!((heard.reported[0].rule.as_deref(), heard.reported[0].severity), (Some("x"), Severity::Major));
}

#[test]
fn what_is_no_sarif_is_told_in_words() {
    let whole = log(&json!([result(json!({}))]), &json!([])).to_string();
    for (bytes, expected) in [
        (&whole.as_bytes()[..whole.len() - 9], "r is not used: it is not SARIF (it ends early, line 1, column"),
        (b"", "r is not used: it is not SARIF (it ends early, line 1, column 0)"),
        (b"<xml/>", "r is not used: it is not SARIF (it is not JSON, line 1, column 1)"),
        (b"\"text\"", "r is not used: it is not SARIF (it has another format"),
        (b"{}", "r is not used: it has no runs"),
        (br#"{"version": "1.0.0", "runs": []}"#, "r is not used: it is SARIF \"1.0.0\", and only 2.1.0 is supported"),
        (b"\xef\xbb\xbf{\"runs\": null}", "r is not used: it has no runs"),
    ] {
        let heard = read_sarif("r", bytes, None);
        assert_eq!((heard.reported.len(), heard.read.len(), heard.problems.len()), (0, 0, 1));
        assert!(heard.problems[0].starts_with(expected), "{:?}", heard.problems);
    }
    let deep = "[".repeat(100_000);
    assert_eq!(read_sarif("r", deep.as_bytes(), None).problems.len(), 1);
}
