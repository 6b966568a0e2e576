//! Backtests of a model as the judge: what it would take, what it said, and where its budget ended.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::{Value, json};

use crate::dedupe::questions::{no, yes};
use crate::dedupe::setting::{BODY, Setting, issue_with};

/// Four issues on four days, all much alike. People linked the second with the first.
fn history(setting: &Setting) {
    // Without evidence in both texts, a model's word closes nothing.
    let body = format!("{BODY}\n\n```\nError: cannot open the summary file of the exporter for writing\n```");
    let filed = |number: i64, duplicate_of: Value| {
        let created_at = format!("2026-01-{number:02}T10:00:00Z");
        issue_with(number, json!({ "body": body, "created_at": created_at, "duplicate_of": duplicate_of }))
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
        assert!(asked.len() as u64 <= questions, "no more than forecast: {asked:?}");
        let (first, mut again): (Vec<_>, Vec<_>) =
            asked.iter().partition(|(source, candidates)| candidates.iter().all(|candidate| candidate < source));
        assert_eq!(first.len(), 3, "only what was filed before: {asked:?}");
        again.sort();
        assert_eq!(again, [&(11, vec![12]), &(11, vec![13])], "each sure duplicate is read again, exchanged");
        let verdicts = &done["verdicts"];
        assert_eq!((&done["judge"]["provider"], &done["calls"]), (&json!("openai"), &json!(asked.len())), "{done}");
        assert_eq!((&verdicts["duplicate"]["given"], &verdicts["unconfirmed"]), (&json!(0), &json!(2)), "{verdicts}");
        assert_eq!((&verdicts["said"]["given"], &verdicts["said"]["linked"]), (&json!(2), &json!(1)), "{verdicts}");
        assert_eq!((&verdicts["said"]["unread"], &verdicts["recall"]), (&json!(1), &json!(1.0)), "{verdicts}");
        assert_eq!(done["local_verdicts"]["asked_model"], 0);
        let advice = done["recommendation"].to_string();
        assert!(advice.contains("`canonry adjudicate --repo octo/cat`"), "{advice}");

        let short = setting.with_models(&["backtest", "--max-calls", "1", "--json"]);
        assert_eq!((short.exit, &short.json()["calls"]), (Some(3), &json!(1)), "{short:?}");
        assert!(short.json()["stopped"].as_str().is_some_and(|why| why.contains("the budget of 1 calls")), "{short:?}");
        let advice = short.json()["recommendation"][0].to_string();
        assert!(advice.contains("this backtest advises no mode") && !advice.contains("triage.mode"), "{advice}");
    }

    /// An unproven model is measured as if it were proven, with the second reading before a close.
    async fn a_model_that_agrees_with_itself_gives_duplicates(database: TestDatabase) {
        let mut setting = Setting::on(database);
        setting.judge_is_proven = false;
        history(&setting);
        setting.judge_says(|question| match (question.source, question.candidates.as_slice()) {
            (12 | 13, _) => yes(11, 0.95),
            (11, &[12]) => yes(12, 0.9),
            // Not sure enough for a close, whatever thresholds the backtest reports.
            (11, &[13]) => yes(13, 0.7),
            _ => no(),
        });
        let done = setting.with_models(&["backtest", "--json"]).succeeded().json();
        let verdicts = &done["verdicts"];
        assert_eq!((&verdicts["duplicate"]["given"], &verdicts["duplicate"]["linked"]), (&json!(1), &json!(1)), "{verdicts}");
        assert_eq!((&verdicts["said"]["given"], &verdicts["unconfirmed"]), (&json!(2), &json!(1)), "{verdicts}");
        let advice = done["recommendation"][1].as_str().expect("a sentence").to_owned();
        assert!(advice.contains("before an audit has proven it here (`canonry judge-audit`)"), "{advice}");
        assert!(done["method"].as_str().is_some_and(|method| method.contains("read again with the two exchanged")), "{done}");
        // In daily work an audit comes first.
        let now = setting.with_models(&["detect-new", "12", "--as-of", "filing", "--json"]).succeeded().json();
        assert_eq!(now["reason"], "online_strict_guardrail:unproven_judge", "{now}");

        // The second question is not answered any more: nothing is known about the pair.
        let short = setting.with_models(&["backtest", "--max-calls", "1", "--json"]);
        let verdicts = &short.json()["verdicts"];
        assert_eq!((short.exit, &verdicts["judged"], &verdicts["unconfirmed"]), (Some(3), &json!(0), &json!(0)), "{short:?}");
    }

    /// When the budget ends, the local judge does not stand in for the model that is measured.
    async fn a_cascade_is_measured_until_its_budget_ends(database: TestDatabase) {
        let setting = Setting::on(database);
        let filed = |number: i64, title: &str, body: &str, duplicate_of: Value| {
            let at = format!("2026-01-{number:02}T10:00:00Z");
            let by = if number == 11 { "ann" } else { "bob" };
            issue_with(number, json!({ "title": title, "body": body, "author": by, "created_at": at, "duplicate_of": duplicate_of }))
        };
        // Alike, but neither copies nor a series: the local judge is not sure about them.
        let again = "Since the update every run ends with two summaries on the console. The second copy carries the numbers \
            of the first one, which confuses the people who read our nightly logs. It happens on every machine.";
        let third = "Our nightly logs contain two summaries of each run of the exporter, which it did not do before the last \
            update. One of them carries the numbers of the other one, on every machine that we have.";
        setting.import(&[
            filed(11, "The exporter writes its summary twice", BODY, json!(null)),
            filed(12, "The exporter writes a second summary", again, json!(11)),
            filed(13, "Two summaries of one run of the exporter", third, json!(11)),
        ]);
        setting.alike(&[11, 12, 13], 0.95);
        setting.find_candidates(&[]);
        let done = setting.with_models(&["backtest", "--cascade", "--json"]).succeeded().json();
        assert_eq!((&done["verdicts"]["asked_model"], &done["calls"]), (&json!(2), &json!(2)), "{done}");
        let text = setting.with_models(&["backtest", "--cascade"]).succeeded().stdout;
        assert!(text.contains("Asked about every item, it would have found no more known duplicates."), "{text}");

        let short = setting.with_models(&["backtest", "--cascade", "--max-calls", "1", "--json"]);
        let document = short.json();
        // One question, and the oldest item, which is compared with nothing.
        assert_eq!((short.exit, &document["verdicts"]["judged"]), (Some(3), &json!(2)), "{document}");
        assert!(document["stopped"].as_str().is_some_and(|why| why.contains("the budget of 1 calls")), "{document}");
    }
}
