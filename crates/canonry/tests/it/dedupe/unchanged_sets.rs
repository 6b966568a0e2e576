//! Which questions are asked again and which are not: a model is paid once per question.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::dedupe::questions::{no, yes};
use crate::dedupe::setting::{BODY, Setting, issue, issue_with, ruling};

/// 10 and 20 with one candidate each; the judge says yes to the first with .84 and no to the rest.
fn judged(database: TestDatabase) -> Setting {
    let setting = Setting::on(database);
    setting.import(&[issue(10), issue(11), issue(20), issue(21)]);
    setting.around(10, &[(11, 0.95)]);
    setting.around(20, &[(21, 0.95)]);
    setting.find_candidates(&[]);
    setting.judge_says(|question| if question.source == 10 { yes(11, 0.84) } else { no() });
    let judged = setting.judge(&[]);
    assert_eq!(ruling(&judged, 10).1.as_deref(), Some("below_min_edge"));
    setting.models.forget_requests();
    setting
}

fn asked(setting: &Setting) -> Vec<i64> {
    let mut sources: Vec<i64> = setting.questions().iter().map(|question| question.source).collect();
    sources.sort_unstable();
    sources
}

on_both_engines! {
    /// The same candidates in a new set are the same question; other comments and labels do not change that.
    async fn a_new_set_of_the_same_texts_is_not_asked_about(database: TestDatabase) {
        let setting = judged(database);
        setting.import(&[issue_with(11, json!({"comments": 7, "labels": ["later"], "updated_at": "2026-02-01T00:00:00Z"}))]);
        setting.find_candidates(&[]);
        setting.judge(&[]);
        assert_eq!(asked(&setting), Vec::<i64>::new());
    }

    /// The item whose text changed is asked about again, and so is every item that has it as a candidate.
    async fn an_edited_text_is_asked_about(database: TestDatabase) {
        let setting = judged(database);
        setting.import(&[issue_with(21, json!({"body": format!("{BODY} It is always the second copy.")}))]);
        setting.find_candidates(&[]);
        setting.judge(&[]);
        assert_eq!(asked(&setting), [20, 21]);
    }

    /// Two runs at once ask more than necessary, but leave one edge for each source, and neither fails.
    async fn two_judges_at_once_leave_one_edge(database: TestDatabase) {
        let setting = Setting::on(database);
        let sources: Vec<i64> = (1..=12).map(|at| at * 10).collect();
        setting.import(&sources.iter().flat_map(|&source| [issue(source), issue(source + 1)]).collect::<Vec<_>>());
        for &source in &sources {
            setting.around(source, &[(source + 1, 0.95)]);
        }
        setting.find_candidates(&[]);
        setting.judge_says(|question| yes(question.candidates[0], 0.95));
        let exits: Vec<Option<i32>> = std::thread::scope(|scope| {
            let more: &[&str] = &["--rejudge"];
            let both: Vec<_> = (0..3).map(|_| scope.spawn(|| setting.run_judge(more))).collect();
            both.into_iter().map(|one| one.join().expect("it ends").exit).collect()
        });
        assert_eq!(exits, [Some(0); 3]);
        for source in [sources[0], sources[5], sources[11]] {
            assert_eq!((setting.accepted(source).len(), setting.accepted(source + 1).len()), (1, 1), "#{source}");
        }
        setting.maintainers(&["mona"]);
        let exits: Vec<Option<i32>> = std::thread::scope(|scope| {
            let both: Vec<_> = (0..3).map(|_| scope.spawn(|| setting.run(&["plan-close", "--json"]))).collect();
            both.into_iter().map(|one| one.join().expect("it ends").exit).collect()
        });
        assert_eq!(exits, [Some(0); 3]);
        let closing = crate::dedupe::setting::rows(&setting.plan(&[]));
        assert_eq!(closing.len(), 12, "of each mutual pair one is closed: {closing:?}");
    }

    async fn another_candidate_is_asked_about(database: TestDatabase) {
        let setting = judged(database);
        setting.knows(30, &crate::dedupe::setting::title(30));
        setting.similar(&[20, 21, 30], |_, _| 0.96);
        setting.import(&[issue(30), issue_with(20, json!({"body": format!("{BODY} ")})), issue(21)]);
        // 20 and 21 have new vectors but unchanged texts: they are embedded again only on request.
        let url = setting.models.base_url();
        setting.succeeds(&["embed", "--embedder", "openai", "--embed-base-url", &url]);
        setting.find_candidates(&[]);
        setting.judge(&[]);
        assert_eq!(asked(&setting), [20, 21, 30]);
    }
}

/// The answer is stored, the gate is not: a confidence that was too low then may be high enough now.
#[test]
fn a_lower_bar_needs_no_second_answer() {
    let setting = judged(TestDatabase::sqlite());
    let again = setting.judge(&["--min-edge", "0.8"]);
    assert_eq!(asked(&setting), Vec::<i64>::new());
    assert_eq!(ruling(&again, 10), ("accepted".to_owned(), None), "{again}");
    assert_eq!(setting.accepted(10).len(), 1);
}

/// Case 14 in one run: that the second candidate is a duplicate is known only after the source was judged.
#[test]
fn a_cluster_that_is_known_by_now_needs_no_second_answer() {
    let setting = Setting::sqlite();
    setting.import(&[issue(100), issue_with(101, json!({"comments": 9})), issue(102)]);
    setting.similar(&[100, 101, 102], |one, other| match (one, other) {
        (100, 101) => 0.91,
        (100, 102) => 0.90,
        _ => 0.89,
    });
    setting.find_candidates(&[]);
    setting.judge_says(|question| match question.source {
        100 => yes(101, 0.93),
        102 => yes(101, 0.95),
        _ => no(),
    });
    setting.judge(&["--workers", "1"]);
    setting.judge(&["--workers", "1"]);
    assert_eq!(setting.questions().len(), 3, "each was asked about once");
    assert_eq!((setting.accepted(102).len(), setting.accepted(100).len()), (1, 1));
}

/// The current state counts, not that of the set.
#[test]
fn a_candidate_that_was_closed_since_is_no_target() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(11)]);
    setting.around(10, &[(11, 0.95)]);
    setting.find_candidates(&[]);
    setting.import(&[issue_with(11, json!({"state": "closed"}))]);
    setting.judge_knows(&[(10, 11, 0.95)]);
    let judged = setting.judge(&[]);
    assert_eq!(ruling(&judged, 10), ("rejected".to_owned(), Some("target_not_open".to_owned())));
}

/// An edge needs an open target; when the target is reopened, the same answer counts.
#[test]
fn a_target_that_opens_again_is_accepted_without_a_question() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue_with(11, json!({"state": "closed"}))]);
    setting.around(10, &[(11, 0.95)]);
    setting.find_candidates(&[]);
    setting.judge_knows(&[(10, 11, 0.95)]);
    setting.judge(&[]);
    setting.models.forget_requests();
    setting.import(&[issue(11)]);
    let judged = setting.judge(&[]);
    assert_eq!((setting.asked_about(10), ruling(&judged, 10)), (0, ("accepted".to_owned(), None)), "{judged}");
}

/// The document contains calls, tokens and cost.
#[test]
fn calls_tokens_and_cost_are_told() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(11)]);
    setting.around(10, &[(11, 0.95)]);
    setting.find_candidates(&[]);
    let judged = setting.judge(&["--input-price", "1000000", "--output-price", "1000000"]);
    assert_eq!(judged["stats"]["calls"], 2, "{judged}");
    assert!(judged["stats"]["cost_usd"].as_f64().is_some_and(|cost| cost > 100.0), "a dollar a token: {judged}");
    let prices = ["--input-price", "1000000", "--output-price", "1000000"];
    let limited =
        setting.run_judge(&[&["--rejudge", "--max-cost", "1", "--workers", "1"][..], &prices].concat()).json();
    assert!(limited["stats"]["calls"].as_i64().is_some_and(|calls| calls <= 1), "{limited}");
}
