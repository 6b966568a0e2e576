//! Tests reports that are cut, huge, deeply nested or about files elsewhere.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use canonry_domain::review::{CodeIndex, FileMaps, LineRange, RepoPath, TrackedFinding, track};
use canonry_review::reviewers::{read_rdjson, read_report, read_sarif};
use canonry_review::{HeadTexts, RawFinding, ReviewerAnswer, merge_findings};
use serde_json::{Value, json};

use crate::bad_input::reviewed::lint;

fn sarif(bytes: &[u8]) -> ReviewerAnswer {
    read_sarif("r.sarif", bytes, Some(Path::new("/ci/repo")))
}

fn rdjson(bytes: &[u8]) -> ReviewerAnswer {
    read_rdjson("r.json", bytes, Some(Path::new("/ci/repo")))
}

fn paths(heard: &ReviewerAnswer) -> Vec<&str> {
    heard.reported.iter().map(|one: &RawFinding| one.path.as_str()).collect()
}

#[test]
fn a_report_that_is_cut_anywhere_is_told_and_never_half_used() {
    let whole = lint(&[("one", "a.js", 1), ("two", "b.js", 2)]);
    assert_eq!(sarif(&whole).reported.len(), 2);
    for end in 0..whole.len() {
        let heard = sarif(&whole[..end]);
        assert_eq!((heard.reported.len(), heard.read.len(), heard.problems.len()), (0, 0, 1), "cut at {end}");
        assert!(heard.problems[0].starts_with("r.sarif is not used: it is not SARIF (it ends early"), "{heard:?}");
    }
    let whole = br#"{"source": {"name": "x"}, "diagnostics": [{"message": "m", "location": {"path": "a"}}]}"#;
    for end in 1..whole.len() {
        let heard = rdjson(&whole[..end]);
        assert_eq!((heard.reported.len(), heard.read.len(), heard.problems.len()), (0, 0, 1), "cut at {end}");
    }
}

#[tokio::test]
async fn two_hundred_megabytes_are_refused_by_their_size_and_a_pipe_by_what_comes() {
    let folder = tempfile::tempdir().expect("a folder");
    let sparse = folder.path().join("huge.sarif");
    std::fs::File::create(&sparse).and_then(|file| file.set_len(200_000_000)).expect("a file");
    let error = read_report(&sparse).await.expect_err("too large").to_string();
    assert!(error.contains("it has 200 MB, and at most 104 MB are read"), "{error}");
    // A file that claims to be empty and never ends.
    let error = read_report(Path::new("/dev/zero")).await.expect_err("endless").to_string();
    assert!(error.starts_with("read /dev/zero: it has 104 MB"), "{error}");
    let error = read_report(folder.path()).await.expect_err("a folder").to_string();
    assert!(error.contains("directory"), "{error}");
}

#[test]
fn paths_that_lead_elsewhere_are_left_out_and_the_rest_stands() {
    let written = [
        ("/etc/passwd", None),
        ("../outside.js", None),
        ("a/../../outside.js", None),
        ("%2e%2e/outside.js", None),
        ("..%2foutside.js", None),
        ("file:///etc/passwd", None),
        ("file:///ci/repo/../other/a.js", None),
        ("file://evil.example/ci/repo/../../a.js", None),
        ("https://evil.example/a.js", None),
        ("C:\\Windows\\a.js", None),
        ("\\\\server\\share\\a.js", None),
        ("a%00b.js", None),
        ("", None),
        (".", None),
        ("%", Some("%")),
        ("%zz%4", Some("%zz%4")),
        ("a%20b%23.js", Some("a b#.js")),
        ("a%2520b.js", Some("a%20b.js")),
        ("caf%C3%A9.js", Some("café.js")),
        ("caf%E9.js", Some("caf%E9.js")),
        ("file:///ci/repo/src/a.js", Some("src/a.js")),
        ("src/./x/../a.js", Some("src/a.js")),
    ];
    let results: Vec<(&str, &str, u32)> = written.iter().map(|(uri, _)| ("r", *uri, 1)).collect();
    let heard = sarif(&lint(&results));
    let expected: Vec<&str> = written.iter().filter_map(|(_, path)| *path).collect();
    assert_eq!(paths(&heard), expected);
    assert_eq!((heard.problems.len(), heard.notes.len()), (0, 1));
    assert!(heard.notes[0].starts_with("r.sarif: 14 results of lint left out, outside the repository"), "{heard:?}");
    let long = format!("{}a.js", "deep/".repeat(2_000));
    assert_eq!(sarif(&lint(&[("r", &long, 1)])).reported, []);
}

#[test]
fn regions_that_are_missing_or_nonsense_are_about_the_file() {
    let region = |region: Value| json!({"message": {"text": "m"}, "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.js"}, "region": region}}]});
    let results: Vec<Value> = [
        json!(null),
        json!({}),
        json!({"startLine": 0}),
        json!({"startLine": -5, "endLine": 7}),
        json!({"startLine": 4_294_967_295_u64}),
        json!({"startLine": i64::MAX}),
        json!({"startLine": 3, "endLine": 1}),
        json!({"startLine": 3, "endLine": 4_294_967_295_u64}),
        json!({"charOffset": 10}),
        json!({"startLine": "3"}),
        json!({"startLine": 3.5}),
        json!([]),
    ]
    .map(region)
    .to_vec();
    let log = json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "T"}}, "results": results}]});
    let heard = sarif(log.to_string().as_bytes());
    let lines: Vec<Option<LineRange>> = heard.reported.iter().map(|one| one.lines).collect();
    let three = LineRange::new(3, 3);
    assert_eq!(lines, [None, None, None, None, None, None, three, three, None, None]);
    assert_eq!(
        heard.problems,
        [
            "r.sarif: 2 results of t left out, because they are not valid SARIF: a result in another format, a result in another format; no finding counts as fixed because of this report"
        ]
    );
    let mut diagnostics = String::new();
    for line in ["null", "{}", "{\"start\": {\"line\": -1}}", "{\"start\": {\"line\": 99999999999}}", "{\"start\": {}}"]
    {
        writeln!(diagnostics, "{{\"message\": \"m\", \"location\": {{\"path\": \"a\", \"range\": {line}}}}}")
            .expect("text");
    }
    let heard = rdjson(diagnostics.as_bytes());
    assert_eq!(heard.problems, [""; 0]);
    assert!(heard.reported.len() == 5 && heard.reported.iter().all(|one| one.lines.is_none()));
}

#[test]
fn nesting_without_end_is_no_way_in() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for depth in [100, 200, 1_000_000] {
        let deep = deep(depth);
        // In a field that is not read, nesting does no harm; in a field that is read, it costs only its own result.
        let result = |more: &str| {
            format!(
                r#"{{"message": {{"text": "m"}}, "locations": [{{"physicalLocation": {{"artifactLocation": {{"uri": "a.js"}}}}}}]{more}}}"#
            )
        };
        let unread = format!(r#", "codeFlows": {deep}, "properties": {{"x": {deep}}}"#);
        let read = format!(r#", "partialFingerprints": {{"x": {deep}}}"#);
        let log = format!(
            r#"{{"version": "2.1.0", "extra": {deep}, "runs": [{{"tool": {{"driver": {{"name": "T"}}}}, "results": [{}, {}, {}]}}]}}"#,
            result(&unread),
            result(&read),
            result("")
        );
        let heard = sarif(log.as_bytes());
        assert!(heard.reported.len() >= 2, "{depth}: {:?}", heard.problems);
        let lines = format!("{{\"message\": \"m\", \"location\": {{\"path\": \"a\"}}}}\n{deep}\n");
        let heard = rdjson(lines.as_bytes());
        assert_eq!((heard.reported.len(), heard.problems.len()), (1, 1), "{depth}");
        for broken in ["[".repeat(depth), format!("{{\"runs\": {}", "[".repeat(depth)), "{\"a\":".repeat(depth)] {
            assert_eq!((sarif(broken.as_bytes()).problems.len(), rdjson(broken.as_bytes()).problems.len()), (1, 1));
        }
    }
}

#[test]
fn a_run_of_another_shape_costs_itself_and_fixes_nothing() {
    let good = json!({"tool": {"driver": {"name": "good"}}, "results": [{"message": {"text": "m"}, "locations": [
        {"physicalLocation": {"artifactLocation": {"uri": "a.js"}}}]}]});
    for bad in [json!({}), json!(7), json!({"tool": []}), json!({"tool": {"driver": {"name": "x", "rules": 7}}})] {
        let log = json!({"version": "2.1.0", "runs": [bad, good]});
        let heard = sarif(log.to_string().as_bytes());
        assert_eq!((paths(&heard), heard.read.len()), (vec!["a.js"], 0), "{bad}");
        assert_eq!(
            heard.problems,
            ["r.sarif: run 1 is not valid SARIF and is skipped; nothing counts as fixed"],
            "{bad}"
        );
    }
}

#[test]
fn bytes_that_are_no_text_cost_only_themselves() {
    let mut log = lint(&[("one", "a.js", 1), ("two", "b.js", 2)]);
    let at = log.windows(6).position(|some| some == b"one is").expect("a message");
    log[at] = 0xe9;
    let heard = sarif(&log);
    assert_eq!(paths(&heard), ["a.js", "b.js"]);
    assert_eq!(heard.reported[0].title, "\u{fffd}ne is not allowed");
    assert_eq!(heard.problems, ["r.sarif contains invalid UTF-8, which is read as \u{fffd}"]);
    let wide: Vec<u8> = [0xff, 0xfe]
        .into_iter()
        .chain(String::from_utf8(lint(&[("one", "a.js", 1)])).expect("text").encode_utf16().flat_map(u16::to_le_bytes))
        .collect();
    assert_eq!((paths(&sarif(&wide)), sarif(&wide).problems), (vec!["a.js"], Vec::new()));
    let heard = rdjson(b"{\"message\": \"caf\xe9\", \"location\": {\"path\": \"a.js\"}}");
    assert_eq!((paths(&heard), heard.problems.len()), (vec!["a.js"], 1));
}

#[test]
fn what_is_said_is_bounded() {
    // Each argument contains the next a thousand times: replaced one after the other, they would exceed any memory.
    let arguments: Vec<String> = (1..=20).map(|next| format!("{{{next}}}").repeat(1_000)).collect();
    let huge = "x".repeat(2_000_000);
    let result = json!({
        "ruleId": format!("rule-{huge}"),
        "message": {"text": "{0}".repeat(1_000), "arguments": arguments},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.js"}}}],
        "partialFingerprints": (0..1_000).map(|one| (format!("f{one}"), json!("v"))).chain([("long".to_owned(), json!(huge))])
            .collect::<serde_json::Map<_, _>>(),
        "fixes": [{"description": {"text": huge}}],
    });
    let log = json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": huge}}, "results": [result]}]});
    let heard = sarif(log.to_string().as_bytes());
    let [one] = &heard.reported[..] else { panic!("{:?}", heard.problems) };
    let sizes = [
        one.title.chars().count(),
        one.message.chars().count(),
        one.rule.as_ref().map_or(0, String::len),
        one.reviewer.as_str().len(),
        one.fix.as_ref().and_then(|fix| fix.words.as_ref()).map_or(0, String::len),
        one.partial.len(),
    ];
    assert_eq!(sizes, [201, 8_001, 200, 200, 8_000, 10]);
}

#[test]
fn as_many_rules_as_results_are_looked_up_quickly() {
    let rules: Vec<Value> = (0..20_000).map(|rule| json!({"id": format!("family{rule}/rule")})).collect();
    let results: Vec<Value> = (0..20_000)
        .map(|at| {
            json!({"ruleId": format!("family{at}/rule/unknown"), "message": {"text": "m"}, "locations": [{"physicalLocation":
                {"artifactLocation": {"uri": "file:///elsewhere/a.js"}}}]})
        })
        .collect();
    let bases: serde_json::Map<String, Value> =
        (0..5_000).map(|base| (format!("B{base}"), json!({"uri": format!("file:///base{base}/")}))).collect();
    let log = json!({"version": "2.1.0", "runs": [
        {"tool": {"driver": {"name": "T", "rules": rules}}, "results": results, "originalUriBaseIds": bases}]});
    let bytes = log.to_string().into_bytes();
    let began = Instant::now();
    let heard = sarif(&bytes);
    assert_eq!(heard.problems.len(), 1);
    assert!(heard.problems[0].starts_with("r.sarif: 20000 results of t left out"), "{:?}", heard.problems);
    // Comparing them one by one would take minutes.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn thousands_of_results_on_one_line() {
    let text = "eval(x);\n";
    let path = RepoPath::new("a.js").expect("a path");
    let result = |rule: usize| {
        json!({"ruleId": format!("rule{rule}"), "message": {"text": format!("Remark {rule}")}, "partialFingerprints": {"h": "same"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": "a.js"}, "region": {"startLine": 1}}}]})
    };
    let results: Vec<Value> = (0..4_000).map(|at| result(at % 2_000)).collect();
    let log = json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "T"}}, "results": results}]});
    let began = Instant::now();
    let findings = merge_findings(vec![sarif(log.to_string().as_bytes())], &HeadTexts::default());
    // The same remark twice is one finding; another remark on the same line is another.
    assert_eq!(findings.len(), 2_000);
    let earlier: Vec<TrackedFinding> = (findings.iter().cloned())
        .map(|finding| TrackedFinding { finding, fixed: false, dismissals: Vec::new() })
        .collect();
    let mut index = CodeIndex::new([(&path, text)]);
    let tracked = track(&earlier, &findings, &FileMaps::default(), &mut index);
    assert_eq!((tracked.followed.len(), tracked.new.len()), (2_000, 0));
    assert!(tracked.followed.iter().all(|one| one.earlier == one.now));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn more_results_than_anybody_reads() {
    let results: Vec<(&str, &str, u32)> = (0..50_010).map(|_| ("r", "a.js", 1)).collect();
    let heard = sarif(&lint(&results));
    let expected = "r.sarif: 10 results of lint left out, after the first 50000; no finding counts as fixed because of this report";
    assert_eq!((heard.reported.len(), heard.read.len(), heard.problems), (50_000, 0, vec![expected.to_owned()]));
    let heard = rdjson("{\"message\": \"m\", \"location\": {\"path\": \"a\"}}\n".repeat(50_010).as_bytes());
    assert_eq!((heard.reported.len(), heard.read.len(), heard.problems.len()), (50_000, 0, 1));
}

#[test]
fn one_fingerprint_for_everything() {
    let log = |shift: usize| {
        let result = |line: usize| {
            json!({"ruleId": "r", "message": {"text": "m"}, "partialFingerprints": {"h": "0"}, "locations": [{"physicalLocation":
                {"artifactLocation": {"uri": "a.js"}, "region": {"startLine": line * 2 + shift}}}]})
        };
        let results: Vec<Value> = (1..=4_000).map(result).collect();
        json!({"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "T"}}, "results": results}]}).to_string()
    };
    let findings = |shift| merge_findings(vec![sarif(log(shift).as_bytes())], &HeadTexts::default());
    let earlier: Vec<TrackedFinding> = (findings(0).into_iter())
        .map(|finding| TrackedFinding { finding, fixed: false, dismissals: Vec::new() })
        .collect();
    let began = Instant::now();
    let tracked = track(&earlier, &findings(1), &FileMaps::default(), &mut CodeIndex::default());
    assert_eq!((tracked.followed.len(), tracked.new.len()), (4_000, 0));
    assert!(tracked.followed.iter().all(|one| one.earlier == one.now), "in the order of their lines");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}
