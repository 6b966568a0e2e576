//! Pairs that look alike and are no duplicates: each is refused by its name, whatever the judge says.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::questions::yes;
use crate::dedupe::setting::{Setting, issue_with, of};

/// Two items that the judge calls duplicates, and the reason that is stored instead.
struct Pair {
    earlier: Value,
    later: Value,
    reason: &'static str,
}

const LINES: &str = "-    return glyphs.get(letter)\n+    found = glyphs.get(letter)\n+    if found is None:\n\
    +        found = fallback_font.glyph_of(letter)\n+    return found_or_box\n";
const BACK: &str = "+    return glyphs.get(letter)\n-    found = glyphs.get(letter)\n-    if found is None:\n\
    -        found = fallback_font.glyph_of(letter)\n-    return found_or_box\n";

fn pairs() -> Vec<Pair> {
    let pair = |reason, earlier: Value, later: Value, number: i64| Pair {
        earlier: issue_with(number, earlier),
        later: issue_with(number + 1, later),
        reason,
    };
    vec![
        pair("series", json!({"title": "Release checklist 1.2.0"}), json!({"title": "Release checklist 1.3.0"}), 10),
        pair("series", json!({"title": "Report for January"}), json!({"title": "Report for February"}), 20),
        pair(
            "cited_as_different",
            json!({"title": "The summary is written twice"}),
            json!({"title": "A summary appears twice", "body": "Unlike #30, the exporter here writes a summary of the whole month twice, and only on the last machine of the list that we keep."}),
            30,
        ),
        pair(
            "follow_up",
            json!({"title": "Write the summary once"}),
            json!({"title": "Once means once", "body": "Follow-up to #40: the exporter also writes the heading of each summary twice on every machine that was looked at so far."}),
            40,
        ),
        pair(
            "revert",
            json!({"type": "pr", "title": "Draw a box for unknown letters", "files": ["font.py"], "diff": LINES}),
            json!({"type": "pr", "title": "Revert \"Draw a box for unknown letters\"", "files": ["font.py"], "diff": BACK}),
            50,
        ),
        pair(
            "opposite_change",
            json!({"type": "pr", "title": "Boxes for letters of other scripts", "files": ["font.py"], "diff": LINES}),
            json!({"type": "pr", "title": "Leave letters out if the font lacks them", "files": ["font.py"], "diff": BACK}),
            60,
        ),
        pair(
            "backport",
            json!({"type": "pr", "title": "Keep the cache key of a folder", "files": ["font.py"], "diff": LINES}),
            json!({"type": "pr", "title": "[3-2-stable] Keep the cache key of a folder", "files": ["font.py"], "diff": LINES}),
            70,
        ),
    ]
}

on_both_engines! {
    async fn each_is_refused_by_its_name(database: TestDatabase) {
        let setting = Setting::on(database);
        let pairs = pairs();
        let lines: Vec<Value> = pairs.iter().flat_map(|pair| [pair.earlier.clone(), pair.later.clone()]).collect();
        setting.import(&lines);
        let number = |line: &Value| line["number"].as_i64().expect("a number");
        for pair in &pairs {
            setting.alike(&[number(&pair.earlier), number(&pair.later)], 0.97);
        }
        setting.find_candidates(&[]);
        setting.judge_says(|question| yes(question.candidates[0], 0.99));
        let judged = setting.judge(&[]);
        assert_eq!(judged["stats"]["accepted_edges"], 0, "{judged}");
        for pair in &pairs {
            let later = number(&pair.later);
            let decision = of(&judged["decisions"], later);
            assert_eq!((&decision["final_status"], &decision["veto_reason"]), (&json!("rejected"), &json!(pair.reason)), "{decision}");
            let kind = pair.later["type"].as_str().unwrap_or("issue");
            let shown = later.to_string();
            let detect = ["detect-new", "--type", kind, "--number", &shown, "--json"];
            let verdict = setting.with_models(&detect).succeeded().json();
            assert_eq!((&verdict["verdict"], &verdict["reason"]), (&json!("not_duplicate"), &json!(pair.reason)), "{verdict}");
        }
        let story = setting.story(11);
        assert!(story.contains("not a duplicate of #10") && story.contains("they are parts of a series"), "{story}");
        assert!(setting.story(31).contains("the text says that they are different"), "{}", setting.story(31));
    }
}
