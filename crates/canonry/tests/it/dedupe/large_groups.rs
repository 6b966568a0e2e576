//! `dedupe` in one go: any number of near-identical items ends as one cluster with one canonical.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::Value;

use crate::dedupe::on_github::world;
use crate::dedupe::questions::{no, yes};
use crate::dedupe::setting::{Setting, clusters, rows};

/// A repository with this many items on GitHub, and a judge that selects the first candidate of each question.
fn group(database: TestDatabase, count: i64) -> (Setting, Vec<i64>) {
    let numbers: Vec<i64> = (1..=count).collect();
    let setting = Setting::with_world(database, world(&numbers));
    setting.prove_judge(true);
    setting.judge_says(|question| question.candidates.first().map_or_else(no, |&first| yes(first, 0.96)));
    (setting, numbers)
}

#[track_caller]
fn ends_on_one_canonical(setting: &Setting, numbers: &[i64]) -> Value {
    let document = setting.with_models(&["dedupe", "--json"]).succeeded().json();
    let found = clusters(&setting.succeeds(&["canonicalize"]));
    assert_eq!(found.len(), 1, "{found:?}");
    let (canonical, members) = &found[0];
    assert_eq!(members, numbers);
    let rows = rows(&document);
    assert_eq!(rows.len(), numbers.len() - 1, "{document}");
    for (number, outcome) in &rows {
        assert_ne!(number, canonical, "the canonical stays");
        match outcome {
            Ok(target) => assert_eq!(target, canonical, "#{number}"),
            Err(reason) => assert_eq!(reason, "missing_accepted_edge", "#{number}"),
        }
    }
    assert!(rows.iter().any(|(_, outcome)| outcome.is_ok()), "{document}");
    document
}

on_both_engines! {
    async fn two(database: TestDatabase) {
        let (setting, numbers) = group(database, 2);
        setting.alike(&numbers, 0.97);
        let document = ends_on_one_canonical(&setting, &numbers);
        assert!(document["plan"]["id"].is_number(), "{document}");
        assert_eq!(setting.github().writes().len(), 0, "a plan is only a plan");
        // A second run finds nothing new and asks no question.
        setting.models.forget_requests();
        ends_on_one_canonical(&setting, &numbers);
        assert_eq!(setting.questions(), []);
    }

    async fn twenty_in_five_knots(database: TestDatabase) {
        let (setting, numbers) = group(database, 20);
        // Four groups of five: the nearest four of each item are all in its own group.
        setting.similar(&numbers, |one, other| if (one - 1) / 5 == (other - 1) / 5 { 0.98 } else { 0.96 });
        ends_on_one_canonical(&setting, &numbers);
    }
}

#[test]
fn five() {
    let (setting, numbers) = group(TestDatabase::sqlite(), 5);
    setting.alike(&numbers, 0.97);
    ends_on_one_canonical(&setting, &numbers);
}

#[test]
fn twenty() {
    let (setting, numbers) = group(TestDatabase::sqlite(), 20);
    setting.alike(&numbers, 0.95);
    ends_on_one_canonical(&setting, &numbers);
}

#[test]
fn fifty() {
    let (setting, numbers) = group(TestDatabase::sqlite(), 50);
    setting.alike(&numbers, 0.97);
    ends_on_one_canonical(&setting, &numbers);
}

#[test]
fn fifty_along_a_line() {
    let (setting, numbers) = group(TestDatabase::sqlite(), 50);
    // Items with close numbers are more similar.
    setting.similar(&numbers, |one, other| 0.99 - 0.0005 * (one - other).abs() as f64);
    ends_on_one_canonical(&setting, &numbers);
}

#[test]
fn every_member_is_closed_once_the_judge_was_asked_about_the_missing_ones() {
    let (setting, numbers) = group(TestDatabase::sqlite(), 8);
    setting.similar(&numbers, |one, other| if (one - 1) / 2 == (other - 1) / 2 { 0.98 } else { 0.96 });
    ends_on_one_canonical(&setting, &numbers);
    let plan = setting.with_judge(&["plan-close", "--judge-missing", "--json"]).succeeded().json();
    assert!(rows(&plan).iter().all(|(_, outcome)| outcome.is_ok()), "{plan}");
}

#[test]
fn two_groups_stay_two() {
    let (setting, numbers) = group(TestDatabase::sqlite(), 8);
    setting.alike(&numbers[..4], 0.97);
    setting.alike(&numbers[4..], 0.97);
    setting.with_models(&["dedupe", "--json"]).succeeded();
    let found = clusters(&setting.succeeds(&["canonicalize"]));
    assert_eq!(
        found.iter().map(|(_, members)| members.clone()).collect::<Vec<_>>(),
        [vec![1, 2, 3, 4], vec![5, 6, 7, 8]]
    );
}
