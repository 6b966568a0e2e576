//! People's rulings, and what remains when an edge no longer counts.

use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use serde_json::json;

use crate::dedupe::on_github::{result, world};
use crate::dedupe::questions::{no, yes};
use crate::dedupe::setting::{REPO, Setting, issue, issue_with, rows, ruling, skip};

on_both_engines! {
    /// An edge that a person ruled out must not keep its item from being compared with others.
    async fn an_edge_that_was_ruled_out_blocks_nothing(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.with_edges(&[issue(1), issue(2), issue(3)], &[(1, 2, 0.95)]);
        setting.succeeds(&["override", "not-duplicate", "1", "2"]);
        setting.find_candidates(&["--k", "50"]);
        setting.judge_says(|question| if question.source == 1 { yes(3, 0.95) } else { no() });
        let judged = setting.judge(&[]);
        assert_eq!(ruling(&judged, 1), ("accepted".to_owned(), None), "{judged}");
        assert!(setting.questions().iter().all(|question| question.source != 1 || question.candidates == [3]));
        let edges = setting.accepted(1);
        assert_eq!((edges.len(), &edges[0]["target"]), (1, &json!(3)));
    }

    /// Ruling out a candidate does not affect another item's edge.
    async fn ruling_out_one_pair_leaves_another_edge_alone(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.import(&[issue(1), issue(2), issue(9)]);
        setting.around(1, &[(2, 0.95), (9, 0.80)]);
        setting.find_candidates(&["--k", "1"]);
        setting.judge_knows(&[(1, 2, 0.95)]);
        setting.judge(&[]);
        assert_eq!(setting.accepted(1).len(), 1);
        setting.succeeds(&["override", "not-duplicate", "1", "9"]);
        setting.around(1, &[(2, 0.70), (9, 0.96)]);
        setting.import(&[issue_with(9, json!({ "body": "Another text that is near by now, long enough to be compared at all, and said so." }))]);
        setting.find_candidates(&["--k", "1"]);
        setting.judge(&[]);
        let edges = setting.accepted(1);
        assert_eq!((edges.len(), &edges[0]["target"]), (1, &json!(2)), "the edge to #2 stands");
    }

    /// Removing a ruling must not revive an older one.
    async fn a_ruling_that_is_removed_revives_no_older_one(database: TestDatabase) {
        let setting = Setting::on(database);
        setting.import(&[issue(1), issue(2)]);
        setting.maintainers(&["mona"]);
        setting.succeeds(&["override", "duplicate", "1", "2"]);
        let apart = setting.succeeds(&["override", "not-duplicate", "2", "1"]);
        let listed = setting.succeeds(&["override", "list"]);
        assert_eq!(listed["overrides"].as_array().map(Vec::len), Some(1), "{listed}");
        setting.succeeds(&["override", "remove", &apart["override"]["id"].to_string()]);
        assert_eq!(rows(&setting.plan(&[])), []);
    }
}

/// A closed canonical must not hide the open items of its cluster.
#[test]
fn a_closed_canonical_does_not_hide_its_cluster() {
    let setting = Setting::sqlite();
    setting.with_edges(&[issue(5), issue(6), issue(7)], &[(6, 5, 0.95)]);
    setting.maintainers(&["mona"]);
    setting.succeeds(&["override", "canonical", "5"]);
    setting.succeeds(&["canonicalize"]);
    setting.import(&[issue_with(5, json!({ "state": "closed" }))]);
    setting.judge_knows(&[(7, 6, 0.95)]);
    let named = setting.with_models(&["detect-new", "--type", "issue", "--number", "7", "--json"]).succeeded().json();
    assert_eq!((&named["verdict"], &named["duplicate_of"]), (&json!("duplicate"), &json!(6)), "{named}");
}

/// A closed item is never suggested as a target, whoever named it.
#[test]
fn a_closed_item_is_never_named_as_the_target() {
    let setting = Setting::sqlite();
    setting.import(&[issue(10), issue(11)]);
    setting.around(10, &[(11, 0.95)]);
    setting.find_candidates(&[]);
    setting.succeeds(&["override", "duplicate", "10", "11"]);
    setting.judge_says(|_| no());
    let detect = ["detect-new", "--type", "issue", "--number", "10", "--json"];
    let named = setting.with_models(&detect).succeeded().json();
    assert_eq!(
        (&named["verdict"], &named["duplicate_of"], &named["reason"]),
        (&json!("duplicate"), &json!(11), &json!("override"))
    );
    setting.import(&[issue_with(11, json!({ "state": "closed" }))]);
    let closed = setting.with_models(&detect).succeeded().json();
    assert!(closed["duplicate_of"].is_null(), "{closed}");
}

/// A repository's own higher minimum confidence applies, whatever the plan was made with.
#[test]
fn the_repositorys_own_minimum_holds_when_applying() {
    let mut world = world(&[1, 2]);
    world.get_mut(REPO).file(".canonry.yml", "close: {minClose: 0.99}\n");
    let setting = Setting::on_github(TestDatabase::sqlite(), world, &[(1, &[2])]);
    assert_eq!(rows(&setting.plan(&[])), [skip(2, "low_confidence")], "planning reads it too");
    let run = setting.plan_number(&setting.plan(&["--min-close", "0.9"]));
    let applied = setting.apply(&run).succeeded().json();
    assert_eq!(result(&applied, 2), ("skipped".to_owned(), "low_confidence".to_owned()), "{applied}");
    setting.is_untouched(2);
}
