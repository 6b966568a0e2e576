//! What a new user meets: plans before the maintainers are known, imports without all fields, long commands without a
//! terminal, and verdicts as of an earlier time.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::questions::yes;
use crate::dedupe::setting::{Setting, issue, issue_with};

on_both_engines! {
    async fn a_plan_needs_no_maintainers_but_says_that_apply_does(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(&[issue(1), issue(2)], &[(2, 1, 0.95)]);
        let planned = setting.succeeds(&["plan-close"]);
        assert_eq!(planned["stats"]["close"], 1, "{planned}");
        let needs = planned["apply_needs"].as_str().expect("a sentence");
        assert!(needs.contains("`canonry apply` needs the list"), "{needs}");
        let shown = setting.run(&["plan-close"]).succeeded().stdout;
        assert!(shown.contains("The maintainers of octo/cat are unknown"), "{shown}");
        let plan = setting.succeeds(&["plan-close"])["plan"]["id"].to_string();
        assert!(setting.run(&["apply", &plan, "--yes"]).exit != Some(0), "nothing is closed without the list");
        let dedupe = setting.with_models(&["dedupe", "--no-sync", "--json"]).succeeded().json();
        assert!(dedupe["apply_needs"].is_string(), "{dedupe}");
        // The list keeps the maintainers' items open, and nothing is missing any more.
        setting.maintainers(&["ann"]);
        let planned = setting.succeeds(&["plan-close"]);
        assert_eq!((&planned["stats"]["close"], &planned["apply_needs"]), (&json!(0), &Value::Null), "{planned}");
    }

    async fn unknown_people_are_told_once(database: TestDatabase) {
        let setting = Setting::on(database);
        let lines: Vec<Value> = (1..=6).map(|number| issue_with(number, json!({"assignees": null}))).collect();
        setting.with_edges(&lines, &[(2, 1, 0.95), (3, 1, 0.95), (4, 1, 0.95), (5, 1, 0.95), (6, 1, 0.95)]);
        setting.maintainers(&["mona"]);
        let shown = setting.run(&["plan-close"]).succeeded().stdout;
        assert_eq!(shown.matches("unknown").count(), 1, "{shown}");
        assert!(shown.contains("5 items. Import `author` and `assignees`"), "{shown}");
        let planned = setting.succeeds(&["plan-close"]);
        assert_eq!(planned["stats"]["skipped_by_reason"]["uncertain_maintainer_identity"], 5, "{planned}");
        assert_eq!(planned["items"].as_array().map(Vec::len), Some(5), "{planned}");
    }

    async fn a_long_command_says_how_far_it_is(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.import(&[issue(1), issue(2), issue(3)]);
        setting.alike(&[1, 2, 3], 0.9);
        let often = [("CANONRY_PROGRESS_SECONDS", "0")];
        let embedded = setting.run_models_with(&["embed"], &often).succeeded();
        assert!(embedded.stderr.contains("items embedded: 3 of 3"), "{embedded:?}");
        let again = setting.run_models_with(&["embed", "--only-changed"], &often).succeeded();
        assert!(!again.stderr.contains("items embedded"), "{again:?}");
        let compared = setting.run_models_with(&["candidates", "--retrieval", "dense"], &often).succeeded();
        assert!(compared.stderr.contains("items compared: 3 of 3"), "{compared:?}");
        let silent = setting.run_models_with(&["embed", "--quiet"], &often).succeeded();
        assert_eq!(silent.stderr, "", "{silent:?}");
    }

    async fn no_duplicates_after_judging_is_an_answer(database: TestDatabase) {
        let setting = Setting::on(database);
        let short = issue_with(3, json!({"title": "It fails", "body": "please fix"}));
        setting.import(&[issue(1), issue(2), short]);
        setting.alike(&[1, 2, 3], 0.9);
        setting.find_candidates(&[]);
        let before = setting.run(&["canonicalize"]).succeeded().stdout;
        assert!(before.contains("Next: canonry judge"), "{before}");
        let judged = setting.with_judge(&["judge"]).succeeded().stdout;
        assert!(judged.contains("1 were too short or vague to close anything by; `canonry detect-new NUMBER`"), "{judged}");
        let after = setting.run(&["canonicalize"]).succeeded().stdout;
        assert!(after.contains("no known duplicates") && !after.contains("canonry judge"), "{after}");
    }

    async fn several_items_are_checked_as_of_an_earlier_time(database: TestDatabase) {
        let setting = Setting::on(database);
        let at = |number, created: &str, more: Value| {
            let mut line = issue_with(number, json!({"created_at": created, "updated_at": created}));
            let keys = line.as_object_mut().expect("an object");
            keys.extend(more.as_object().cloned().unwrap_or_default());
            line
        };
        setting.import(&[
            at(10, "2026-01-05T10:00:00Z", json!({"state": "closed", "closed_at": "2026-02-01T10:00:00Z"})),
            at(11, "2026-01-10T10:00:00Z", json!({})),
            at(12, "2026-03-01T10:00:00Z", json!({})),
        ]);
        setting.alike(&[10, 11, 12], 0.97);
        setting.find_candidates(&[]);
        setting.judge_says(|question| yes(question.candidates[0], 0.95));
        let detect = |more: &[&str]| setting.with_models(&[&["detect-new", "--json"], more].concat());
        let then = detect(&["11", "--as-of", "2026-01-20"]).succeeded().json();
        assert_eq!((&then["duplicate_of"], &then["triage_id"]), (&json!(10), &Value::Null), "open then: {then}");
        let filed = detect(&["10", "11", "12", "--as-of", "filing"]).succeeded().json();
        let items = filed["items"].as_array().expect("a list").clone();
        let of: Vec<Value> = items.iter().map(|one| one["duplicate_of"].clone()).collect();
        assert_eq!(of, [Value::Null, json!(10), json!(11)], "{filed}");
        assert_eq!(filed["stats"], json!({"checked": 3, "failed": 0}), "{filed}");
        for number in [10, 11, 12] {
            assert_eq!(setting.show(number)["triage"], Value::Null, "nothing is stored");
        }
        let now = detect(&["11", "--type", "issue"]).succeeded().json();
        assert_eq!(now["duplicate_of"], 12, "{now}");
        assert!(now["triage_id"].is_number(), "{now}");
        let some = detect(&["11", "99"]);
        assert_eq!(some.exit, Some(3), "{some:?}");
        assert!(some.json()["items"][1]["error"].as_str().is_some_and(|error| error.contains("#99")), "{some:?}");
        assert_eq!(detect(&["11", "--as-of", "someday"]).exit, Some(2));
    }
}
