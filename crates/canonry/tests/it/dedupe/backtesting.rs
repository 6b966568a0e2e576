//! Backtests of a model as the judge: what it would take, what it said, and where its budget ended.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::setting::{Setting, issue_with};

/// Four issues on four days, all much alike. People linked the second with the first.
fn history(setting: &Setting) {
    let filed = |number: i64, duplicate_of: Value| {
        issue_with(
            number,
            json!({ "created_at": format!("2026-01-{number:02}T10:00:00Z"), "duplicate_of": duplicate_of }),
        )
    };
    setting.import(&[filed(11, json!(null)), filed(12, json!(11)), filed(13, json!(null)), filed(14, json!(null))]);
    setting.alike(&[11, 12, 13, 14], 0.95);
    setting.find_candidates(&[]);
    // The third is one, too, but nobody linked it.
    setting.judge_knows(&[(12, 11, 0.95), (13, 11, 0.95)]);
    setting.models.forget_requests();
}

on_both_engines! {
    async fn a_model_is_replayed_within_its_budget(database: TestDatabase) {
        let setting = Setting::on(database);
        history(&setting);

        let estimate = setting.with_models(&["backtest", "--estimate", "--json"]).succeeded().json();
        assert_eq!(setting.questions(), [], "an estimate asks nothing");
        let questions = estimate["forecast"]["questions"].as_u64().expect("a count");
        assert!(estimate["forecast"]["input_tokens"].as_u64().is_some_and(|tokens| tokens > 1_000), "{estimate}");

        let done = setting.with_models(&["backtest", "--json"]).succeeded().json();
        let asked: Vec<(i64, Vec<i64>)> =
            setting.questions().into_iter().map(|question| (question.source, question.candidates)).collect();
        assert_eq!(asked.len() as u64, questions, "{asked:?}");
        for (source, candidates) in &asked {
            assert!(candidates.iter().all(|candidate| candidate < source), "only what was filed before: {asked:?}");
        }
        let verdicts = &done["verdicts"];
        assert_eq!((&done["judge"]["provider"], &done["calls"]), (&json!("openai"), &json!(questions)), "{done}");
        assert_eq!((&verdicts["said"]["given"], &verdicts["said"]["linked"]), (&json!(2), &json!(1)), "{verdicts}");
        assert_eq!((&verdicts["said"]["unread"], &verdicts["recall"]), (&json!(1), &json!(1.0)), "{verdicts}");
        assert_eq!(done["local_verdicts"]["asked_model"], 0);
        let advice = done["recommendation"].to_string();
        assert!(advice.contains("`canonry adjudicate --repo octo/cat`"), "{advice}");

        let short = setting.with_models(&["backtest", "--max-calls", "1", "--json"]);
        assert_eq!((short.exit, &short.json()["calls"]), (Some(3), &json!(1)), "{short:?}");
        assert!(short.json()["stopped"].as_str().is_some_and(|why| why.contains("the budget of 1 calls")), "{short:?}");
    }
}
