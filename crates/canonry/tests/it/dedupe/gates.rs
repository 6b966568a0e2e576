//! The gates after a judge's answer; the first match decides: cases 8 to 17 and similar ones.

use std::collections::BTreeMap;

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::questions::{bare_yes, full_structure, no, structure_with, yes, yes_with};
use crate::dedupe::setting::{BODY, Setting, issue, issue_with, ruling, title};

/// One source with its candidates, the judge's answer about it, and the result.
struct Row {
    source: Value,
    /// Score, state, and how each candidate differs.
    candidates: Vec<(f64, &'static str, Value)>,
    /// The answer, about candidates 1, 2, … of the source.
    answer: Box<dyn Fn(i64) -> String + Send>,
    status: &'static str,
    /// Every part must occur in the reason; empty for no reason.
    reason: &'static [&'static str],
}

/// The source and candidates of the conformance cases.
fn usual(
    answer: impl Fn(i64) -> String + Send + 'static,
    status: &'static str,
    reason: &'static [&'static str],
) -> Row {
    Row {
        source: json!({}),
        candidates: vec![(0.95, "open", json!({})), (0.90, "closed", json!({}))],
        answer: Box::new(answer),
        status,
        reason,
    }
}

/// One open candidate at .95, to which the judge says yes with this structure.
fn structured(structure: Value, status: &'static str, reason: &'static [&'static str]) -> Row {
    usual(move |source| yes_with(source + 1, 0.92, &structure), status, reason)
}

fn scored(scores: &[f64], chosen: i64, status: &'static str, reason: &'static [&'static str]) -> Row {
    Row {
        candidates: scores.iter().map(|&score| (score, "open", json!({}))).collect(),
        ..usual(move |source| bare_yes(source + chosen, 0.93), status, reason)
    }
}

fn texts(
    source: Value,
    candidate: Value,
    confidence: f64,
    status: &'static str,
    reason: &'static [&'static str],
) -> Row {
    Row {
        source,
        candidates: vec![(0.95, "open", candidate)],
        ..usual(move |source| yes(source + 1, confidence), status, reason)
    }
}

/// Judges all rows at once, with separate vectors for each.
fn hold(setting: &Setting, rows: Vec<Row>, more: &[&str]) -> Value {
    let mut answers: BTreeMap<i64, Box<dyn Fn(i64) -> String + Send>> = BTreeMap::new();
    let mut expected = Vec::new();
    let mut lines = Vec::new();
    let mut corners = Vec::new();
    for (at, row) in (1_i64..).zip(rows) {
        let source = at * 100;
        lines.push(issue_with(source, row.source));
        let mut others = Vec::new();
        for (place, (score, state, changed)) in (1..).zip(row.candidates) {
            let mut line = issue_with(source + place, changed);
            line["state"] = json!(state);
            lines.push(line);
            others.push((source + place, score));
        }
        corners.push((source, others));
        answers.insert(source, row.answer);
        expected.push((source, row.status, row.reason));
    }
    setting.import(&lines);
    for (source, others) in &corners {
        setting.around(*source, others);
    }
    setting.find_candidates(&[]);
    setting.judge_says(move |question| answers.get(&question.source).map_or_else(no, |answer| answer(question.source)));
    let judged = setting.judge(more);
    for (source, status, parts) in expected {
        let (found, reason) = ruling(&judged, source);
        assert_eq!(found, status, "#{source}: {reason:?}, wanted {parts:?}");
        assert_eq!(reason.is_some(), !parts.is_empty(), "#{source}: {reason:?}, wanted {parts:?}");
        let reason = reason.unwrap_or_default();
        assert!(parts.iter().all(|part| reason.contains(part)), "#{source}: {reason}, wanted {parts:?}");
        if let [only] = parts {
            assert_eq!(&reason, only, "#{source}");
        }
    }
    judged
}

on_both_engines! {
    /// Cases 8 to 12 and 17, with the source of the conformance cases.
    async fn the_state_and_the_confidence_of_a_yes(database: TestDatabase) {
        let setting = Setting::on(database);
        let mut rows = vec![
            usual(|source| bare_yes(source + 1, 0.93), "accepted", &[]),
            usual(
                |source| yes_with(source + 1, 0.92, &json!({"relation": "partial_overlap", "root_cause_match": "adjacent"})),
                "rejected", &["relation=partial_overlap"],
            ),
            usual(|source| yes_with(source + 2, 0.92, &json!({"certainty": "unsure"})), "rejected", &["certainty=unsure"]),
            usual(|source| yes(source + 2, 0.97), "rejected", &["target_not_open"]),
            usual(|source| bare_yes(source + 2, 0.80), "rejected", &["target_not_open"]),
            usual(|source| yes(source + 1, 0.84), "rejected", &["below_min_edge"]),
            usual(|source| yes(source + 1, 0.8499), "rejected", &["below_min_edge"]),
            usual(|source| yes(source + 1, 0.85), "accepted", &[]),
            usual(|source| yes(source + 1, 1.0), "accepted", &[]),
            usual(|source| yes(source + 1, 0.0), "rejected", &["below_min_edge"]),
            usual(|_| no(), "rejected", &[]),
        ];
        rows[0].source = json!({
            "title": "exec approvals still required despite ask=off and security=full",
            "body": "Every command still waits for an approval. The settings say ask=off and security=full since the \
                last release. The log names the same settings, so they are read.",
        });
        let judged = hold(&setting, rows, &[]);
        let stats = &judged["stats"];
        assert_eq!((&stats["accepted_edges"], &stats["invalid_responses"]), (&json!(3), &json!(0)), "{stats}");
    }

    /// Case 13 and the rest of gate 6: a missing key never vetoes by itself, but counts as "not same" if a rule needs
    /// it.
    async fn the_structure_of_a_yes(database: TestDatabase) {
        let setting = Setting::on(database);
        let same_instance = "same_instance";
        hold(&setting, vec![
            structured(json!({"scope_relation": "source_subset", "root_cause_match": "same"}), "accepted", &[]),
            structured(json!({"scope_relation": "source_subset"}), "rejected", &["scope", "root"]),
            structured(structure_with(&json!({"scope_relation": "source_superset"})), "accepted", &[]),
            structured(structure_with(&json!({"scope_relation": "different_scope", "root_cause_match": null})), "rejected", &["scope", "root"]),
            structured(structure_with(&json!({"relation": "related_followup"})), "rejected", &["relation=related_followup"]),
            structured(structure_with(&json!({"relation": "different"})), "rejected", &["relation=different"]),
            structured(structure_with(&json!({"root_cause_match": "adjacent"})), "rejected", &["root_cause_match=adjacent"]),
            structured(structure_with(&json!({"root_cause_match": "different"})), "rejected", &["root_cause_match=different"]),
            structured(structure_with(&json!({"certainty": "unsure", "relation": "different"})), "rejected", &["certainty=unsure"]),
            structured(structure_with(&json!({"path_match": "different"})), "accepted", &[]),
            structured(structure_with(&json!({"path_match": "different", "root_cause_match": null})), "rejected", &["path_match=different", "different"]),
            structured(structure_with(&json!({"path_match": "different", "relation": null})), "rejected", &["path_match=different", "different"]),
            structured(structure_with(&json!({"path_match": "unknown"})), "accepted", &[]),
            structured(json!({"certainty": "sure"}), "accepted", &[]),
            structured(json!({"relation": same_instance}), "accepted", &[]),
            structured(full_structure(), "accepted", &[]),
        ].into_iter().map(one_candidate).collect(), &[]);
    }

    /// Case 14: alternatives that are equally near block, unless they are copies of the same report.
    async fn the_gap_to_the_next_candidate(database: TestDatabase) {
        let setting = Setting::on(database);
        hold(&setting, vec![
            scored(&[0.91, 0.90], 1, "rejected", &["candidate_gap_too_small"]),
            scored(&[0.915, 0.900], 1, "accepted", &[]),
            scored(&[0.9149, 0.9000], 1, "rejected", &["candidate_gap_too_small"]),
            scored(&[0.95, 0.92], 2, "rejected", &["candidate_gap_too_small"]),
            scored(&[0.95], 1, "accepted", &[]),
            scored(&[0.95, 0.90, 0.89], 1, "accepted", &[]),
            scored(&[0.80, 0.78], 1, "accepted", &[]),
            scored(&[0.80, 0.79], 1, "rejected", &["candidate_gap_too_small"]),
        ], &[]);
    }

    /// Case 14, the near-identical ones.
    async fn near_identical_reports_do_not_block_each_other(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.import(&[issue(100), issue(101), issue(102), issue(103), issue(200), issue(201), issue(202)]);
        setting.similar(&[100, 101, 102, 103], |one, other| match (one, other) {
            (100, 101) => 0.97,
            (100, 102) => 0.968,
            (100, 103) => 0.966,
            _ => 0.97,
        });
        // Equally near to the source, but not to each other.
        setting.similar(&[200, 201, 202], |one, other| match (one, other) {
            (200, 201) => 0.97,
            (200, 202) => 0.968,
            _ => 0.94,
        });
        setting.find_candidates(&[]);
        setting.judge_says(|question| match question.source {
            100 => yes(101, 0.93),
            200 => yes(201, 0.93),
            _ => no(),
        });
        let judged = setting.judge(&[]);
        assert_eq!(ruling(&judged, 100), ("accepted".to_owned(), None));
        assert_eq!(ruling(&judged, 200), ("rejected".to_owned(), Some("candidate_gap_too_small".to_owned())));
    }

    /// Case 14 with a second candidate that is known to be a duplicate of the first: by a decision, or by a person.
    async fn a_known_cluster_is_no_alternative(database: TestDatabase) {
        let setting = Setting::on(database);
        let older = |number: i64, comments: i64| issue_with(number, json!({"comments": comments}));
        setting.import(&[older(101, 9), older(102, 0), older(201, 9), older(202, 0)]);
        setting.knows(100, &title(100));
        setting.knows(200, &title(200));
        setting.around(100, &[(101, 0.91), (102, 0.90)]);
        setting.around(200, &[(201, 0.91), (202, 0.90)]);
        // One cluster is known before the candidates are computed, the other only afterwards.
        setting.find_candidates(&[]);
        setting.judge_says(|question| if question.source == 102 { yes(101, 0.95) } else { no() });
        let judged = setting.judge(&[]);
        assert_eq!(ruling(&judged, 102), ("accepted".to_owned(), None));
        setting.import(&[issue(100), issue(200)]);
        setting.find_candidates(&[]);
        setting.succeeds(&["override", "duplicate", "202", "201"]);
        setting.judge_says(|question| match question.source {
            100 => bare_yes(101, 0.93),
            200 => bare_yes(201, 0.93),
            _ => no(),
        });
        let judged = setting.judge(&[]);
        assert_eq!(ruling(&judged, 100), ("accepted".to_owned(), None), "{judged}");
        assert_eq!(ruling(&judged, 200), ("accepted".to_owned(), None), "{judged}");
    }

    /// Case 15: whole words and labels show what an item is, headings and parts of words do not.
    async fn a_bug_is_no_feature(database: TestDatabase) {
        let setting = Setting::on(database);
        let neutral = "The order of messages in a chat differs from the order in which they were sent, on every client \
            that we have looked at, since the release of last week, in groups as well as in direct chats.";
        let template = format!("### Feature request or bug report?\n\n{neutral}");
        hold(&setting, vec![
            texts(
                json!({"title": "[Bug] Telegram messages arrive out of order", "body": neutral}),
                json!({"title": "[Feature] Improve message ordering controls", "body": format!("Add a new ordering strategy option. {neutral}")}),
                0.95, "rejected", &["bug_feature_mismatch:bug_vs_feature"],
            ),
            texts(
                json!({"title": "[Feature] Telegram order controls", "body": neutral}),
                json!({"title": "[Bug] Order of messages in Telegram", "body": neutral}),
                0.95, "rejected", &["bug_feature_mismatch:feature_vs_bug"],
            ),
            texts(
                json!({"title": "Support for prefix matching is broken in debug builds"}),
                json!({"title": "Prefix matching broken"}),
                0.95, "accepted", &[],
            ),
            texts(
                json!({"title": "Matching of words one", "labels": ["bug"], "body": neutral}),
                json!({"title": "Matching of words two", "labels": ["enhancement"], "body": neutral}),
                0.95, "rejected", &["bug_feature_mismatch:bug_vs_feature"],
            ),
            texts(
                json!({"title": "[Bug] Matching of words three", "body": neutral}),
                json!({"title": "[Bug] Matching of words four", "body": template}),
                0.95, "accepted", &[],
            ),
            texts(
                json!({"title": "Prefixes in debugger output one", "body": neutral}),
                json!({"title": "[Feature] Prefixes in debugger output two", "body": neutral}),
                0.95, "accepted", &[],
            ),
            // Gate 8 comes before gate 9, and gate 9 before gate 10.
            texts(
                json!({"title": "[Bug] Order in channels", "body": neutral}),
                json!({"title": "[Feature] Order for channels", "body": neutral}),
                0.5, "rejected", &["bug_feature_mismatch:bug_vs_feature"],
            ),
            Row {
                candidates: vec![(0.91, "open", json!({})), (0.90, "open", json!({}))],
                ..usual(|source| yes(source + 1, 0.5), "rejected", &["below_min_edge"])
            },
        ], &[]);
    }

    /// Case 16: items that say too little are not judged.
    async fn vague_sources_are_not_asked_about(database: TestDatabase) {
        let setting = Setting::on(database);
        let japanese = "エクスポーターを実行すると、集計結果がコンソールに二回出力されます。一回目は処理の開始時、二回目は終了時です。\
            先週の更新以降に発生しており、設定を変更しても改善しません。複数の端末で同じ現象を確認しています。\
            二回目の出力には一回目と同じ数値が含まれているため、後続の処理で重複して集計されてしまいます。";
        assert!(japanese.chars().count() >= 130);
        let headings = "### What did you expect to see instead of what you saw?\n\n### What did you do before that \
            happened, step by step?\n\n### Which version of the program do you use and on which system?\n";
        let closed = |source: Value, status: &'static str, reason: &'static [&'static str]| Row {
            source,
            candidates: vec![(0.95, "closed", json!({}))],
            ..usual(|_| no(), status, reason)
        };
        let vague = &["source_too_vague"];
        let judged = hold(&setting, vec![
            closed(json!({"title": "[Bug]:", "body": "plz fix not working"}), "skipped", vague),
            closed(json!({"title": "保存すると落ちる不具合", "body": japanese}), "rejected", &[]),
            closed(json!({"title": "保存二回", "body": "毎回二回出ます。"}), "skipped", vague),
            // A stock phrase and fewer than 220 characters.
            closed(json!({"title": "The exporter of summaries", "body": "The exporter of summaries is not working for me since the last update of the program, on all of my machines at home."}), "skipped", vague),
            closed(json!({"title": "The exporter of numbers", "body": format!("It is not working. {BODY}")}), "rejected", &[]),
            // Fewer than 90 characters; fewer than 12 words.
            closed(json!({"title": "Exporter twice", "body": "The exporter writes a line twice on each of my two machines at home."}), "skipped", vague),
            closed(json!({"title": "Zusammenfassungen", "body": format!("{} {}", "Doppelausgabe".repeat(6), "Exporteinstellung".repeat(4))}), "skipped", vague),
            closed(json!({"title": "Exporter told twice", "body": headings}), "skipped", vague),
            closed(json!({"title": "Exporter without a body but with a title that alone says more than enough to tell what it is about and where it happens", "body": ""}), "rejected", &[]),
        ], &[]);
        assert_eq!(judged["stats"]["skipped_vague"], 6, "{judged}");
        let mut asked: Vec<i64> = setting.questions().iter().map(|question| question.source).collect();
        asked.sort_unstable();
        assert_eq!(asked, [200, 500, 900]);
    }
}

#[test]
fn the_least_confidence_of_an_edge_can_be_set() {
    let setting = Setting::sqlite();
    let rows = vec![
        usual(|source| yes(source + 1, 0.94), "rejected", &["below_min_edge"]),
        usual(|source| yes(source + 1, 0.95), "accepted", &[]),
    ];
    hold(&setting, rows, &["--min-edge", "0.95"]);
    for wrong in ["1.5", "-0.1", "nan", "much"] {
        assert_eq!(setting.run_judge(&["--min-edge", wrong]).exit, Some(2), "{wrong}");
    }
}

/// Without the closed candidate, which does not matter here.
fn one_candidate(mut row: Row) -> Row {
    row.candidates.truncate(1);
    row
}
