//! Tests every kind of mistake with its exact position and message.

use canonry_config::parse;

/// Returns each problem of a file as people read it.
fn told(text: &str) -> Vec<String> {
    let problems = parse(text).problems;
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn each_mistake_is_told_with_its_place() {
    let cases: &[(&str, &[&str])] = &[
        (
            "review:\n  maxComment: 5",
            &["line 2, column 3: `maxComment` is not a known key of `review` (did you mean `maxComments`?); the \
              section `review` uses its defaults"],
        ),
        (
            "close:\n  max_per_day: 5",
            &["line 2, column 3: `max_per_day` is not a known key of `close` (did you mean `maxPerDay`?); the \
              section `close` uses its defaults"],
        ),
        (
            "triage:\n  protectedLabels: [keep]",
            &["line 2, column 3: `protectedLabels` is not a known key of `triage` (did you mean \
              `close.protectedLabels`?); the section `triage` uses its defaults"],
        ),
        (
            "triag:\n  mode: off\nmentions: {handle: bot}",
            &["line 1, column 1: `triag` is not a known section (did you mean `triage`?); the key is ignored"],
        ),
        (
            "protectedLabels: [keep]",
            &["line 1, column 1: `protectedLabels` is not a known section (did you mean `close.protectedLabels`?); \
              the key is ignored"],
        ),
        (
            "review:\n  enabled: true\n  maxComments: many",
            &["line 3, column 16: `review.maxComments` must be a whole number, but is the text `many`; the section \
              `review` uses its defaults"],
        ),
        (
            "review: {maxComments: 2.5}",
            &["line 1, column 23: `review.maxComments` must be a whole number, but is the number 2.5; the section \
              `review` uses its defaults"],
        ),
        (
            "review: {maxComments: \"7\"}",
            &["line 1, column 23: `review.maxComments` must be a whole number, but is the text `7`; the section \
              `review` uses its defaults"],
        ),
        (
            "review:\n  triggers: {onOpened: yes}",
            &["line 2, column 24: `review.triggers.onOpened` must be true or false, but is the text `yes` (did you \
              mean `true`?); the section `review` uses its defaults"],
        ),
        (
            "close: {message: '{target}, {confidence}', maxPerDay: 7}",
            &[
                "line 1, column 9: `close.message` contains `{confidence}`: remove it, comments contain no percentages; the \
              placeholder becomes \"high\"",
            ],
        ),
        (
            "triage: []",
            &["line 1, column 9: `triage` must be a mapping of keys, but is a list; the section `triage` uses its \
              defaults"],
        ),
        (
            "triage:\nclose:\n  minClose: 0.95",
            &["line 1, column 7: `triage` must be a mapping of keys, but is empty; the section `triage` uses its \
              defaults"],
        ),
        (
            "review:\n  skipAuthors: {a: b}",
            &["line 2, column 16: `review.skipAuthors` must be a list, but is a mapping; the section `review` uses \
              its defaults"],
        ),
        (
            "triage:\n  excludeLabels: [bug, 1.0]",
            &["line 2, column 24: `triage.excludeLabels[1]` must be text, but is the number 1; put it in quotes; \
              the section `triage` uses its defaults"],
        ),
        (
            "review:\n  maxComments: 26",
            &["line 2, column 16: `review.maxComments` must be between 1 and 25, but is 26; the section `review` \
              uses its defaults"],
        ),
        (
            "knowledge:\n  retrieval:\n    distanceThreshold: -0.1",
            &["line 3, column 24: `knowledge.retrieval.distanceThreshold` must be between 0 and 2, but is -0.1; the \
              section `knowledge` uses its defaults"],
        ),
        (
            "review: {maxComments: 99999999999999999999}",
            &["line 1, column 23: `review.maxComments` must be between 1 and 25, but is 1e+20; the section `review` \
              uses its defaults"],
        ),
        (
            "close:\n  minEdge: .nan\n  minClose: .inf\n  graceHours: -.inf\nbudget: {monthlyCostUsd: 1e999}",
            &[
                "line 2, column 12: `close.minEdge` must be a finite number; the section `close` uses its defaults",
                "line 3, column 13: `close.minClose` must be a finite number; the section `close` uses its \
                 defaults",
                "line 4, column 15: `close.graceHours` must be a whole number, but is the number -inf; the section \
                 `close` uses its defaults",
                "line 5, column 26: `budget.monthlyCostUsd` must be a finite number; the section `budget` uses its \
                 defaults",
            ],
        ),
        (
            "triage:\n  mode: shaddow\n  learning: {rule: betamean}",
            &[
                "line 2, column 9: `triage.mode` must be one of `off`, `shadow`, `suggest`, `grace`, but is \
                 `shaddow` (did you mean `shadow`?); the section `triage` uses its defaults",
                "line 3, column 20: `triage.learning.rule` must be one of `precision-target`, `beta-mean`, \
                 `beta-complement`, but is `betamean` (did you mean `beta-mean`?); the section `triage` uses its \
                 defaults",
            ],
        ),
        (
            "triage: {mode: false}",
            &["line 1, column 16: `triage.mode` must be one of `off`, `shadow`, `suggest`, `grace`, but is false; \
              the section `triage` uses its defaults"],
        ),
        (
            "review:\n  suppressions:\n    - unused import\n    - \"regex:(a\"\n    - {pattern: todo, severity: \
             [minr]}\n    - {patern: todo}\n    - {severity: [minor]}\n    - {pattern: spelling, category: \
             [style], paths: [\"docs/**\"]}\n    - 7\n    - {pattern: a, pattern: b}",
            &[
                "line 4, column 7: `review.suppressions[1]` is not a usable pattern: unclosed group; this entry is \
                 ignored, the rest of the list counts",
                "line 5, column 34: `review.suppressions[2].severity[0]` must be one of `minor`, `medium`, \
                 `major`, `critical`, but is `minr` (did you mean `minor`?); this entry is ignored, the rest of \
                 the list counts",
                "line 6, column 8: `patern` is not a known key of `review.suppressions[3]` (did you mean \
                 `pattern`?); this entry is ignored, the rest of the list counts",
                "line 7, column 7: `review.suppressions[4]` needs the key `pattern`; this entry is ignored, the \
                 rest of the list counts",
                "line 9, column 7: `review.suppressions[6]` must be text or a mapping of keys, but is the number \
                 7; put it in quotes; this entry is ignored, the rest of the list counts",
                "line 10, column 20: `review.suppressions[7].pattern` is written twice, first in line 10, column \
                 8; this entry is ignored, the rest of the list counts",
            ],
        ),
        (
            "review:\n  severityFloors:\n    - {pattern: \"regex:sql injection\", severity: critical}\n    - \
             {pattern: x, severity: blocker}\n    - {pattern: x}",
            &[
                "line 4, column 30: `review.severityFloors[1].severity` must be one of `minor`, `medium`, `major`, \
                 `critical`, but is `blocker`; this entry is ignored, the rest of the list counts",
                "line 5, column 7: `review.severityFloors[2]` needs the key `severity`; this entry is ignored, the \
                 rest of the list counts",
            ],
        ),
        (
            "review:\n  skipPaths: [\"vendor/**\", \"a[b\"]\n  pathInstructions:\n    - {paths: [], instructions: \
             look}\n    - {paths: [\"src/{a\"], instructions: look}\n    - {paths: [\"src/**\"], instructions: \
             look}",
            &[
                "line 2, column 28: `review.skipPaths[1]` is not a usable pattern: its `[` is never closed; this \
                 entry is ignored, the rest of the list counts",
                "line 4, column 15: `review.pathInstructions[0].paths` must have 1 to 20 entries, but has 0; this \
                 entry is ignored, the rest of the list counts",
                "line 5, column 16: `review.pathInstructions[1].paths[0]` is not a usable pattern: its `{` is \
                 never closed; this entry is ignored, the rest of the list counts",
            ],
        ),
        (
            "review:\n  maxComments: 0\n  suppressions: [\"glob:[z-a]\", fine]",
            &[
                "line 2, column 16: `review.maxComments` must be between 1 and 25, but is 0; the section `review` \
                 uses its defaults",
                "line 3, column 18: `review.suppressions[0]` is not a usable pattern: its range `z-a` runs \
                 backwards; the section `review` uses its defaults",
            ],
        ),
        (
            "review:\n  reviewers: [builtin, llmm]",
            &["line 2, column 24: `review.reviewers[1]` must be one of `builtin`, `llm`, `sarif`, `rdjson`, \
              `command`, but is `llmm` (did you mean `llm`?); the section `review` uses its defaults"],
        ),
        (
            "close:\n  minEdge: 0.8\n  minEdge: 0.9",
            &["line 3, column 3: `close.minEdge` is written twice, first in line 2, column 3; the section `close` \
              uses its defaults"],
        ),
        (
            "close: {minEdge: 0.8}\ntriage: {mode: suggest}\nclose: {minEdge: 0.9}",
            &["line 3, column 1: `close` is written twice, first in line 1, column 1; the section `close` uses its \
              defaults"],
        ),
        (
            "mentions: {handle: \"@canonry\"}",
            &["line 1, column 20: `mentions.handle` must be a name of at most 39 letters, digits and hyphens, \
              without `@`, but is `@canonry`; the section `mentions` uses its defaults"],
        ),
        (
            "review: {outputLanguage: \"English, please\"}",
            &["line 1, column 26: `review.outputLanguage` must be a language tag such as `en` or `pt-BR`, but is \
              `English, please`; the section `review` uses its defaults"],
        ),
        (
            "close: {protectedLabels: [\"\"]}",
            &["line 1, column 27: `close.protectedLabels[0]` must have 1 to 100 characters, but has 0; the section \
              `close` uses its defaults"],
        ),
        (
            "review:\n  enabled: true\n maxComments: 5",
            &["line 3, column 2: the file is not valid YAML: while parsing a block mapping, did not find expected \
              key; the whole file is ignored and every setting has its default"],
        ),
        (
            "review:\n\tenabled: true\n",
            &["line 2, column 2: the file is not valid YAML: tabs disallowed within this context (block \
              indentation); the whole file is ignored and every setting has its default"],
        ),
        (
            "review: {skipAuthors: [a",
            &["line 1, column 23: the file is not valid YAML: unclosed bracket '['; the whole file is ignored and \
              every setting has its default"],
        ),
        (
            "- review",
            &["line 1, column 1: the file must be a mapping of keys, but is a list; the whole file is ignored and \
              every setting has its default"],
        ),
        (
            "review",
            &["line 1, column 1: the file must be a mapping of keys, but is the text `review`; the whole file is \
              ignored and every setting has its default"],
        ),
        (
            "review: {enabled: false}\n---\nreview: {enabled: true}",
            &[
                "line 2, column 1: a second YAML document begins; only the first is read; the whole file is ignored and \
              every setting has its default",
            ],
        ),
        (
            "review: {skipAuthors: *nobody}",
            &["line 1, column 23: the file is not valid YAML: while parsing node, found unknown anchor; the whole \
              file is ignored and every setting has its default"],
        ),
        (
            "review: &r\n  skipAuthors: [*r]",
            &["line 2, column 17: an alias (`*…`) stands inside the value that it repeats; the whole file is \
              ignored and every setting has its default"],
        ),
        (
            "review: {maxComments: !secret 5}",
            &["line 1, column 23: tags (`!…`) have no meaning in this file; the whole file is ignored and every \
              setting has its default"],
        ),
        (
            "review: &r {enabled: false}\nclose: {<<: *r}",
            &["line 2, column 9: `<<` is not a known key of `close`; the section `close` uses its defaults"],
        ),
        (
            "review:\n  ? [a, b]\n  : c",
            &["line 2, column 5: `[…]` is not a known key of `review`; the section `review` uses its defaults"],
        ),
        (
            "close: {protectedLabels: [\"日本語\", 5]}",
            &["line 1, column 34: `close.protectedLabels[1]` must be text, but is the number 5; put it in quotes; \
              the section `close` uses its defaults"],
        ),
        ("\"a\\u001b[2J`\\u202e\": 1", &["line 1, column 1: `a�[2J'�` is not a known section; the key is ignored"]),
    ];
    for (file, problems) in cases {
        assert_eq!(told(file), *problems, "{file}");
    }
}

#[test]
fn too_long_a_pattern() {
    assert_eq!(
        told(&format!("review:\n  suppressions:\n    - {}", "x".repeat(201))),
        ["line 3, column 7: `review.suppressions[0]` is not a usable pattern: the pattern has 201 \
             characters; at most 200 are allowed; this entry is ignored, the rest of the list \
             counts",]
    );
}

#[test]
fn what_stands_beside_a_dropped_entry_is_kept() {
    let review =
        parse("review:\n  maxComments: 3\n  skipPaths: [\"a[b\", docs]\n  suppressions: [one, \"regex:(\", two]\n")
            .config
            .review;
    assert_eq!(review.max_comments, 3);
    assert_eq!(review.skip_paths.len(), 1);
    let kept: Vec<&str> = review.suppressions.iter().map(|suppression| suppression.pattern.as_str()).collect();
    assert_eq!(kept, ["one", "two"]);
}
