//! Tests what editors, pages and stored records rely on.

use canonry_config::{
    MAX_FILE_BYTES, ProblemEffect, RepoConfig, SettingsSection, config_hash, json_schema, parse, parse_bytes,
    reference_markdown, to_yaml,
};

/// The file with every key at its default, as in the documentation.
const SAMPLE: &str = r#"
review:
  enabled: false
  triggers: {onOpened: true, onReadyForReview: true, onReviewRequested: true, onSynchronize: false}
  reviewers: [builtin]            # builtin, llm, sarif, rdjson, command
  scope: changed                  # or all
  modelBudget: {maxFiles: 1000, maxTokens: 130000}   # 1..100000, 1000..10000000
  skipAuthors: []
  skipPaths: []                   # nothing in them is reviewed, CRITICAL included
  pathInstructions: []            # - {paths: ["src/api/**"], instructions: "…"}
  focusAreas: []                  # security, correctness, performance, style, documentation
  ignoredAreas: []
  severity: {minLevel: minor}     # independent filters that stack; CRITICAL passes all but skipPaths
  severityFloors: []              # - {pattern: "regex:sql injection", severity: critical}
  severityCeilings: []            # - {pattern: "glob:ruff/E*", severity: minor}
  suppressions: []                # "text", or {pattern, severity: [], category: [], paths: []}
  minConfidence: 0                # 0..100
  maxComments: 7                  # 1..25
  referee: {bots: []}             # logins of other review bots
  outputLanguage: en
feedback: {autoSuppress: {enabled: false, thresholds: {minThumbsDown: 3, minDistinctReactors: 3, minDistinctPRs: 2}}}   # each 1..50
knowledge:
  shareGlobal: false
  shareWithinOwner: false
  retrieval: {enabled: true, topK: 5, distanceThreshold: null, maxContextChars: 2000}   # 1..20, 0..2, 0..5000
triage:
  mode: shadow                    # off, shadow, suggest, grace
  duplicateThreshold: 85          # 50..95, until learned
  maxCandidates: 3                # 1..8 shown
  excludeLabels: []
  cooldownHours: 24
  askForDescription: false
  learning: {rule: precision-target, targetPrecision: 0.80}   # or beta-mean, beta-complement
close: {minEdge: 0.85, minClose: 0.90, targetPolicy: canonical-only, graceHours: 72, protectedLabels: [security], maxPerDay: 10, message: null}   # message: own template for the closing comment
mentions: {handle: canonry}
budget: {monthlyCostUsd: 0}        # 0: no hosted model may be called for this repository beyond the operator's own limit
"#;

#[test]
fn the_sample_of_all_keys_is_the_default() {
    let parsed = parse(SAMPLE);
    assert_eq!(parsed.problems, []);
    assert_eq!(parsed.config, RepoConfig::default());
}

#[test]
fn a_file_that_says_nothing_is_the_default() {
    for text in ["", "\n", "# only a comment\n", "---\n", "~", "{}", "\u{feff}"] {
        let parsed = parse(text);
        assert_eq!(parsed.problems, [], "{text:?}");
        assert_eq!(parsed.config, RepoConfig::default(), "{text:?}");
    }
}

#[test]
fn anchors_quotes_blocks_and_line_ends_are_read() {
    let parsed = parse(
        "triage:\r\n  mode: off\r\n  excludeLabels: &labels [keep, 'wont fix']\r\nclose:\r\n  \
         protectedLabels: *labels\r\n  message: |\r\n    One.\r\n    Two.\r\nmentions: {handle: !!str 7}\r\n",
    );
    assert_eq!(parsed.problems, []);
    assert_eq!(parsed.config.close.protected_labels, ["keep", "wont fix"]);
    assert_eq!(parsed.config.triage.exclude_labels, parsed.config.close.protected_labels);
    assert_eq!(parsed.config.close.message.as_deref(), Some("One.\nTwo.\n"));
    assert_eq!(parsed.config.mentions.handle, "7");
}

#[test]
fn an_alias_bomb_ends_early() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let inside = vec![format!("*a{}", level - 1); 8].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{inside}]\n"));
    }
    let parsed = parse(&text);
    assert_eq!(parsed.problems.len(), 1);
    assert_eq!(parsed.problems[0].message, "aliases (`*…`) repeat too much");
    assert_eq!(parsed.problems[0].effect, ProblemEffect::FileDefaults);
}

#[test]
fn depth_cannot_be_built_of_aliases() {
    let mut text = String::from("a0: &a0 []\n");
    for level in 1..60 {
        text.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert_eq!(parse(&text).problems[0].message, "values are nested too deeply");
    let brackets = parse(&"[".repeat(100_000));
    assert_eq!(brackets.problems[0].effect, ProblemEffect::FileDefaults);
}

#[test]
fn a_file_of_nothing_but_mistakes_stays_readable() {
    let unknown: String = (0..20_000).map(|n| format!("k{n}: 1\n")).collect();
    let parsed = parse(&unknown);
    assert_eq!(parsed.problems.len(), 1);
    assert_eq!(
        parsed.problems[0].to_string(),
        "line 51, column 1: the file has more than 50 unknown sections; the whole file is ignored \
         and every setting has its default"
    );

    let inside: String = (0..10_000).map(|n| format!("  k{n}: 1\n")).collect();
    let parsed = parse(&format!("close:\n{inside}"));
    assert_eq!(parsed.problems.len(), 50);
    assert!(parsed.fell_back(SettingsSection::Close));
}

#[test]
fn only_files_of_a_sane_size_are_parsed() {
    let exactly = format!("mentions: {{handle: x}}\n#{}", " ".repeat(MAX_FILE_BYTES - 23));
    assert_eq!(exactly.len(), MAX_FILE_BYTES);
    assert_eq!(parse(&exactly).config.mentions.handle, "x");
    for parsed in [parse(&format!("{exactly} ")), parse_bytes(format!("{exactly} ").as_bytes())] {
        assert_eq!(parsed.config, RepoConfig::default());
        assert_eq!(parsed.problems[0].message, "the file is too large: 262145 bytes, limit 262144; shorten it");
    }
}

#[test]
fn bytes_that_are_no_text_are_placed() {
    let parsed = parse_bytes(b"mentions:\n  handle: \"\xc3\xa9\xff\"\n");
    assert_eq!(
        parsed.problems[0].to_string(),
        "line 2, column 13: the file is not UTF-8 text; the whole file is ignored and every \
         setting has its default"
    );
    for section in SettingsSection::ALL.iter().copied() {
        assert!(parsed.fell_back(section), "{section}");
    }
}

#[test]
fn a_misspelt_or_misplaced_section_counts_as_fallen_back() {
    for (text, fallen) in [
        ("closee: {protectedLabels: [keep]}", Some(SettingsSection::Close)),
        ("protectedLabels: [keep]", Some(SettingsSection::Close)),
        ("triag: {mode: off}", Some(SettingsSection::Triage)),
        ("something: 1", None),
        ("review: {suppressions: [\"regex:(\"]}", None),
    ] {
        let parsed = parse(text);
        assert_eq!(parsed.problems.len(), 1, "{text}");
        for section in SettingsSection::ALL.iter().copied() {
            assert_eq!(parsed.fell_back(section), Some(section) == fallen, "{text}: {section}");
        }
    }
}

#[test]
fn problems_are_json_for_scripts() {
    let parsed = parse("review:\n  maxComment: 5\n");
    let json = serde_json::to_value(&parsed.problems).expect("plain data");
    assert_eq!(
        json,
        serde_json::json!([{
            "section": "review",
            "path": "review.maxComment",
            "line": 2,
            "column": 3,
            "message": "`maxComment` is not a known key of `review`",
            "suggestion": "maxComments",
            "effect": "section_defaults",
        }])
    );
}

#[test]
fn the_hash_is_of_the_meaning_and_never_changes() {
    assert_eq!(
        config_hash(&RepoConfig::default()).as_str(),
        "2702a46634bd7fa059230cac0c2e03c8aa3540066a1ad5117dd99d7219e31e71"
    );
    let one = parse("budget: {monthlyCostUsd: 5}\ntriage: {mode: grace}\n").config;
    let same = parse("triage:\n  mode: 'grace'\n  maxCandidates: 3\nbudget: {monthlyCostUsd: 5.0}\n");
    assert_eq!(config_hash(&one), config_hash(&same.config));
    assert_ne!(config_hash(&one), config_hash(&RepoConfig::default()));
}

#[test]
fn the_default_file_is_written_in_full() {
    insta::assert_snapshot!(to_yaml(&RepoConfig::default()));
}

#[test]
fn the_schema_is_published_as_it_was() {
    let schema = json_schema();
    jsonschema::draft202012::meta::validate(&schema).expect("a schema of draft 2020-12");
    insta::assert_json_snapshot!(schema);
}

#[test]
fn the_reference_is_published_as_it_was() {
    insta::assert_snapshot!(reference_markdown());
}

#[test]
fn an_editor_refuses_what_the_parser_refuses() {
    let validator = jsonschema::draft202012::new(&json_schema()).expect("a valid schema");
    for text in [
        r#"{"reviews": {}}"#,
        r#"{"review": {"maxComment": 5}}"#,
        r#"{"review": {"maxComments": 26}}"#,
        r#"{"review": {"maxComments": "7"}}"#,
        r#"{"review": {"maxComments": 2.5}}"#,
        r#"{"review": {"severity": {"minLevel": "high"}}}"#,
        r#"{"review": {"suppressions": [{"severity": []}]}}"#,
        r#"{"review": {"suppressions": [7]}}"#,
        r#"{"review": {"skipPaths": [""]}}"#,
        r#"{"triage": []}"#,
        r#"{"triage": null}"#,
        r#"{"close": {"message": ""}}"#,
        r#"{"close": {"minClose": 1.01}}"#,
        r#"{"mentions": {"handle": "@canonry"}}"#,
    ] {
        let value = serde_json::from_str(text).expect(text);
        assert!(!validator.is_valid(&value), "an editor takes {text}");
        assert_eq!(parse(text).problems.len(), 1, "the parser takes {text}");
    }
    for prefix in ["", "glob:", "regex:"] {
        for (length, accepted) in [(1, true), (200, true), (201, false)] {
            let pattern = format!("{prefix}{}", "x".repeat(length));
            let value = serde_json::json!({"review": {"suppressions": [pattern]}});
            assert_eq!(validator.is_valid(&value), accepted, "{prefix} {length}");
            assert_eq!(parse(&value.to_string()).problems.is_empty(), accepted);
        }
    }
}
