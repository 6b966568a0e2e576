//! Every kind of mistake with the exact place and words.

use canonry_config::parse;

/// Each problem of a file as people read it.
fn told(text: &str) -> Vec<String> {
    let problems = parse(text).problems;
    problems.iter().map(ToString::to_string).collect()
}

#[test]
fn a_misspelt_key_names_the_nearest() {
    assert_eq!(
        told(
            r"review:
  maxComment: 5"
        ),
        ["line 2, column 3: `maxComment` is not a known key of `review` (did you mean \
             `maxComments`?); the section `review` uses its defaults",]
    );
}

#[test]
fn a_key_in_snake_case_names_the_right_one() {
    assert_eq!(
        told(
            r"close:
  max_per_day: 5"
        ),
        ["line 2, column 3: `max_per_day` is not a known key of `close` (did you mean \
             `maxPerDay`?); the section `close` uses its defaults",]
    );
}

#[test]
fn a_key_of_another_section_is_told_where_it_belongs() {
    assert_eq!(
        told(
            r"triage:
  protectedLabels: [keep]"
        ),
        ["line 2, column 3: `protectedLabels` is not a known key of `triage` (did you mean \
             `close.protectedLabels`?); the section `triage` uses its defaults",]
    );
}

#[test]
fn a_misspelt_section_is_ignored() {
    assert_eq!(
        told(
            r"triag:
  mode: off
mentions: {handle: bot}"
        ),
        ["line 1, column 1: `triag` is not a known section (did you mean `triage`?); the key \
             is ignored",]
    );
}

#[test]
fn a_section_key_at_the_top_is_told_where_it_belongs() {
    assert_eq!(
        told("protectedLabels: [keep]"),
        ["line 1, column 1: `protectedLabels` is not a known section (did you mean \
             `close.protectedLabels`?); the key is ignored",]
    );
}

#[test]
fn a_word_for_a_number() {
    assert_eq!(
        told(
            r"review:
  enabled: true
  maxComments: many"
        ),
        ["line 3, column 16: `review.maxComments` must be a whole number, but is the text \
             `many`; the section `review` uses its defaults",]
    );
}

#[test]
fn a_fraction_for_a_whole_number() {
    assert_eq!(
        told("review: {maxComments: 2.5}"),
        ["line 1, column 23: `review.maxComments` must be a whole number, but is the number \
             2.5; the section `review` uses its defaults",]
    );
}

#[test]
fn a_quoted_number() {
    assert_eq!(
        told("review: {maxComments: \"7\"}"),
        ["line 1, column 23: `review.maxComments` must be a whole number, but is the text `7`; \
             the section `review` uses its defaults",]
    );
}

#[test]
fn yes_is_no_boolean() {
    assert_eq!(
        told(
            r"review:
  triggers: {onOpened: yes}"
        ),
        ["line 2, column 24: `review.triggers.onOpened` must be true or false, but is the text \
             `yes` (did you mean `true`?); the section `review` uses its defaults",]
    );
}

#[test]
fn a_list_for_a_section() {
    assert_eq!(
        told("triage: []"),
        ["line 1, column 9: `triage` must be a mapping of keys, but is a list; the section \
             `triage` uses its defaults",]
    );
}

#[test]
fn an_empty_section() {
    assert_eq!(
        told(
            r"triage:
close:
  minClose: 0.95"
        ),
        ["line 1, column 7: `triage` must be a mapping of keys, but is empty; the section \
             `triage` uses its defaults",]
    );
}

#[test]
fn a_mapping_for_a_list() {
    assert_eq!(
        told(
            r"review:
  skipAuthors: {a: b}"
        ),
        ["line 2, column 16: `review.skipAuthors` must be a list, but is a mapping; the \
             section `review` uses its defaults",]
    );
}

#[test]
fn a_number_for_a_label() {
    assert_eq!(
        told(
            r"triage:
  excludeLabels: [bug, 1.0]"
        ),
        ["line 2, column 24: `triage.excludeLabels[1]` must be text, but is the number 1; put \
             it in quotes; the section `triage` uses its defaults",]
    );
}

#[test]
fn too_large_a_number_names_the_range() {
    assert_eq!(
        told(
            r"review:
  maxComments: 26"
        ),
        ["line 2, column 16: `review.maxComments` must be between 1 and 25, but is 26; the \
             section `review` uses its defaults",]
    );
}

#[test]
fn too_small_a_number_names_the_range() {
    assert_eq!(
        told(
            r"knowledge:
  retrieval:
    distanceThreshold: -0.1"
        ),
        ["line 3, column 24: `knowledge.retrieval.distanceThreshold` must be between 0 and 2, \
             but is -0.1; the section `knowledge` uses its defaults",]
    );
}

#[test]
fn a_number_beyond_every_integer() {
    assert_eq!(
        told("review: {maxComments: 99999999999999999999}"),
        ["line 1, column 23: `review.maxComments` must be between 1 and 25, but is 1e+20; the \
             section `review` uses its defaults",]
    );
}

#[test]
fn no_finite_number() {
    assert_eq!(
        told(
            r"close:
  minEdge: .nan
  minClose: .inf
  graceHours: -.inf
budget: {monthlyCostUsd: 1e999}"
        ),
        [
            "line 2, column 12: `close.minEdge` must be a finite number; the section `close` uses \
             its defaults",
            "line 3, column 13: `close.minClose` must be a finite number; the section `close` \
             uses its defaults",
            "line 4, column 15: `close.graceHours` must be a whole number, but is the number \
             -inf; the section `close` uses its defaults",
            "line 5, column 26: `budget.monthlyCostUsd` must be a finite number; the section \
             `budget` uses its defaults",
        ]
    );
}

#[test]
fn an_unknown_value_names_the_nearest() {
    assert_eq!(
        told(
            r"triage:
  mode: shaddow
  learning: {rule: betamean}"
        ),
        [
            "line 2, column 9: `triage.mode` must be one of `off`, `shadow`, `suggest`, `grace`, \
             but is `shaddow` (did you mean `shadow`?); the section `triage` uses its defaults",
            "line 3, column 20: `triage.learning.rule` must be one of `precision-target`, \
             `beta-mean`, `beta-complement`, but is `betamean` (did you mean `beta-mean`?); the \
             section `triage` uses its defaults",
        ]
    );
}

#[test]
fn off_as_a_boolean_lists_the_values() {
    assert_eq!(
        told("triage: {mode: false}"),
        ["line 1, column 16: `triage.mode` must be one of `off`, `shadow`, `suggest`, `grace`, \
             but is false; the section `triage` uses its defaults",]
    );
}

#[test]
fn a_bad_entry_is_dropped_alone() {
    assert_eq!(
        told(
            r#"review:
  suppressions:
    - unused import
    - "regex:(a"
    - {pattern: todo, severity: [minr]}
    - {patern: todo}
    - {severity: [minor]}
    - {pattern: spelling, category: [style], paths: ["docs/**"]}
    - 7
    - {pattern: a, pattern: b}"#
        ),
        [
            "line 4, column 7: `review.suppressions[1]` is not a usable pattern: unclosed group; \
             this entry is dropped, the rest of the list stands",
            "line 5, column 34: `review.suppressions[2].severity[0]` must be one of `minor`, \
             `medium`, `major`, `critical`, but is `minr` (did you mean `minor`?); this entry is \
             dropped, the rest of the list stands",
            "line 6, column 8: `patern` is not a known key of `review.suppressions[3]` (did you \
             mean `pattern`?); this entry is dropped, the rest of the list stands",
            "line 7, column 7: `review.suppressions[4]` needs the key `pattern`; this entry is \
             dropped, the rest of the list stands",
            "line 9, column 7: `review.suppressions[6]` must be text or a mapping of keys, but is \
             the number 7; put it in quotes; this entry is dropped, the rest of the list stands",
            "line 10, column 20: `review.suppressions[7].pattern` is written twice, first in line \
             10, column 8; this entry is dropped, the rest of the list stands",
        ]
    );
}

#[test]
fn a_bad_floor_is_dropped_alone() {
    assert_eq!(
        told(
            r#"review:
  severityFloors:
    - {pattern: "regex:sql injection", severity: critical}
    - {pattern: x, severity: blocker}
    - {pattern: x}"#
        ),
        [
            "line 4, column 30: `review.severityFloors[1].severity` must be one of `minor`, \
             `medium`, `major`, `critical`, but is `blocker`; this entry is dropped, the rest of \
             the list stands",
            "line 5, column 7: `review.severityFloors[2]` needs the key `severity`; this entry is \
             dropped, the rest of the list stands",
        ]
    );
}

#[test]
fn a_bad_instruction_or_path_is_dropped_alone() {
    assert_eq!(
        told(
            r#"review:
  skipPaths: ["vendor/**", "a[b"]
  pathInstructions:
    - {paths: [], instructions: look}
    - {paths: ["src/{a"], instructions: look}
    - {paths: ["src/**"], instructions: look}"#
        ),
        [
            "line 2, column 28: `review.skipPaths[1]` is not a usable pattern: its `[` is never \
             closed; this entry is dropped, the rest of the list stands",
            "line 4, column 15: `review.pathInstructions[0].paths` must have 1 to 20 entries, but \
             has 0; this entry is dropped, the rest of the list stands",
            "line 5, column 16: `review.pathInstructions[1].paths[0]` is not a usable pattern: \
             its `{` is never closed; this entry is dropped, the rest of the list stands",
        ]
    );
}

#[test]
fn a_bad_entry_in_a_bad_section_is_lost_with_it() {
    assert_eq!(
        told(
            r#"review:
  maxComments: 0
  suppressions: ["glob:[z-a]", fine]"#
        ),
        [
            "line 2, column 16: `review.maxComments` must be between 1 and 25, but is 0; the \
             section `review` uses its defaults",
            "line 3, column 18: `review.suppressions[0]` is not a usable pattern: its range `z-a` \
             runs backwards; the section `review` uses its defaults",
        ]
    );
}

#[test]
fn too_long_a_pattern() {
    assert_eq!(
        told(&format!("review:\n  suppressions:\n    - {}", "x".repeat(201))),
        ["line 3, column 7: `review.suppressions[0]` is not a usable pattern: it has 201 \
             characters, and at most 200 are allowed; this entry is dropped, the rest of the list \
             stands",]
    );
}

#[test]
fn a_bad_reviewer_spoils_the_section() {
    assert_eq!(
        told(
            r"review:
  reviewers: [builtin, llmm]"
        ),
        ["line 2, column 24: `review.reviewers[1]` must be one of `builtin`, `llm`, `sarif`, \
             `rdjson`, `command`, but is `llmm` (did you mean `llm`?); the section `review` uses \
             its defaults",]
    );
}

#[test]
fn a_key_written_twice() {
    assert_eq!(
        told(
            r"close:
  minEdge: 0.8
  minEdge: 0.9"
        ),
        ["line 3, column 3: `close.minEdge` is written twice, first in line 2, column 3; the \
             section `close` uses its defaults",]
    );
}

#[test]
fn a_section_written_twice() {
    assert_eq!(
        told(
            r"close: {minEdge: 0.8}
triage: {mode: suggest}
close: {minEdge: 0.9}"
        ),
        ["line 3, column 1: `close` is written twice, first in line 1, column 1; the section \
             `close` uses its defaults",]
    );
}

#[test]
fn a_wrong_handle() {
    assert_eq!(
        told("mentions: {handle: \"@canonry\"}"),
        ["line 1, column 20: `mentions.handle` must be a name of at most 39 letters, digits \
             and hyphens, without `@`, but is `@canonry`; the section `mentions` uses its \
             defaults",]
    );
}

#[test]
fn a_wrong_language() {
    assert_eq!(
        told("review: {outputLanguage: \"English, please\"}"),
        ["line 1, column 26: `review.outputLanguage` must be a language tag such as `en` or \
             `pt-BR`, but is `English, please`; the section `review` uses its defaults",]
    );
}

#[test]
fn an_empty_label() {
    assert_eq!(
        told("close: {protectedLabels: [\"\"]}"),
        ["line 1, column 27: `close.protectedLabels[0]` must have 1 to 100 characters, but has \
             0; the section `close` uses its defaults",]
    );
}

#[test]
fn a_syntax_error() {
    assert_eq!(
        told(
            r"review:
  enabled: true
 maxComments: 5"
        ),
        ["line 3, column 2: the file is not valid YAML: while parsing a block mapping, did not \
             find expected key; the whole file is ignored and every setting has its default",]
    );
}

#[test]
fn a_tab() {
    assert_eq!(
        told("review:\n\tenabled: true\n"),
        ["line 2, column 2: the file is not valid YAML: tabs disallowed within this context \
             (block indentation); the whole file is ignored and every setting has its default",]
    );
}

#[test]
fn an_open_bracket() {
    assert_eq!(
        told("review: {skipAuthors: [a"),
        ["line 1, column 23: the file is not valid YAML: unclosed bracket '['; the whole file \
             is ignored and every setting has its default",]
    );
}

#[test]
fn a_list_at_the_top() {
    assert_eq!(
        told("- review"),
        ["line 1, column 1: the file must be a mapping of keys, but is a list; the whole file \
             is ignored and every setting has its default",]
    );
}

#[test]
fn a_word_at_the_top() {
    assert_eq!(
        told("review"),
        ["line 1, column 1: the file must be a mapping of keys, but is the text `review`; the \
             whole file is ignored and every setting has its default",]
    );
}

#[test]
fn two_documents() {
    assert_eq!(
        told(
            r"review: {enabled: false}
---
review: {enabled: true}"
        ),
        ["line 2, column 1: a second YAML document begins, and only one is read; the whole \
             file is ignored and every setting has its default",]
    );
}

#[test]
fn an_unknown_alias() {
    assert_eq!(
        told("review: {skipAuthors: *nobody}"),
        ["line 1, column 23: the file is not valid YAML: while parsing node, found unknown \
             anchor; the whole file is ignored and every setting has its default",]
    );
}

#[test]
fn an_alias_of_itself() {
    assert_eq!(
        told(
            r"review: &r
  skipAuthors: [*r]"
        ),
        ["line 2, column 17: an alias (`*…`) stands inside the value that it repeats; the \
             whole file is ignored and every setting has its default",]
    );
}

#[test]
fn a_tag() {
    assert_eq!(
        told("review: {maxComments: !secret 5}"),
        ["line 1, column 23: tags (`!…`) have no meaning in this file; the whole file is \
             ignored and every setting has its default",]
    );
}

#[test]
fn a_merge_key() {
    assert_eq!(
        told(
            r"review: &r {enabled: false}
close: {<<: *r}"
        ),
        ["line 2, column 9: `<<` is not a known key of `close`; the section `close` uses its \
             defaults",]
    );
}

#[test]
fn a_key_that_is_a_list() {
    assert_eq!(
        told(
            r"review:
  ? [a, b]
  : c"
        ),
        ["line 2, column 5: `[…]` is not a known key of `review`; the section `review` uses \
             its defaults",]
    );
}

#[test]
fn columns_count_characters() {
    assert_eq!(
        told("close: {protectedLabels: [\"日本語\", 5]}"),
        ["line 1, column 34: `close.protectedLabels[1]` must be text, but is the number 5; put \
             it in quotes; the section `close` uses its defaults",]
    );
}

#[test]
fn text_of_the_file_is_made_harmless() {
    assert_eq!(
        told("\"a\\u001b[2J`\\u202e\": 1"),
        ["line 1, column 1: `a�[2J'�` is not a known section; the key is ignored",]
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
