//! `simulate-learning`: the table, the page and the document.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use crate::place::{Place, names_in};

#[test]
fn where_each_rule_goes_in_words_and_curves() {
    let place = Place::new();
    let asked = ["simulate-learning", "--repositories", "40", "--seed", "3", "--html", "learning.html"];
    assert_snapshot!(place.shown(&place.canonry(&asked)), @"
    exit 0
    Simulated 40 repositories with 1,000 outcomes each (seed 3). All start at 85 %; 80 % of the comments should be right.

    repositories  rule              silent at 50  silent    threshold  right  near wanted
    ─────────────────────────────────────────────────────────────────────────────────────
    good          precision-target  0 of 10       0 of 10   58         93 %   0 of 10
    good          beta-mean         0 of 10       0 of 10   92         93 %   0 of 10
    good          beta-complement   0 of 10       0 of 10   50         93 %   0 of 10
    crossing      precision-target  0 of 10       0 of 10   79         85 %   9 of 10
    crossing      beta-mean         0 of 10       0 of 10   53         61 %   0 of 10
    crossing      beta-complement   0 of 10       0 of 10   50         58 %   2 of 10
    bad           precision-target  10 of 10      10 of 10  silent     –      0 of 10
    bad           beta-mean         0 of 10       0 of 10   50         17 %   0 of 10
    bad           beta-complement   0 of 10       0 of 10   83         25 %   0 of 10
    drifting      precision-target  0 of 10       9 of 10   silent     28 %   0 of 10
    drifting      beta-mean         0 of 10       0 of 10   53         16 %   0 of 10
    drifting      beta-complement   0 of 10       0 of 10   50         16 %   0 of 10

    Silent at 50: no comments any more after 50 outcomes. The other columns are about the end: the median threshold, the share of comments that are right, and how many repositories come within 10 % of the wanted share.

    precision-target: stopped commenting in all 10 repositories with mostly wrong predictions, 10 of them after 50 outcomes; near the wanted 80 % on 9 of 10 whose precision crosses it; at 58 on good ones; silent on those that were good and turned bad.
    beta-mean: at 50 on bad repositories (0 of 10 silent), where 17 % of suggestions are right; near the wanted 80 % on 0 of 10 whose precision crosses it; at 92 on good ones; at 53 on those that were good and turned bad.
    beta-complement: at 83 on bad repositories (0 of 10 silent), where 25 % of suggestions are right; near the wanted 80 % on 2 of 10 whose precision crosses it; at 50 on good ones; at 50 on those that were good and turned bad.

    Wrote the curves to learning.html.
    ");
    let page = fs::read_to_string(place.path("learning.html")).expect("the page");
    assert_eq!(page.matches("<svg ").count(), 8);
    // Neither a database nor any other file.
    assert_eq!(names_in(&place.path("")), ["learning.html", "tmp"]);
}

#[test]
fn one_document_that_a_seed_decides() {
    let place = Place::new();
    let asked = ["simulate-learning", "--repositories", "4", "--outcomes", "100", "--json"];
    let document = place.canonry(&asked).succeeded().json();
    assert_eq!(document["stats"], json!({"repositories": 4, "outcomes": 100, "curves": 12}));
    assert_eq!((&document["repo"], &document["configured"]), (&json!(null), &json!(85)));
    let curves = document["curves"].as_array().expect("curves");
    let first = &curves[0];
    assert_eq!((&first["repository"], &first["rule"]), (&json!("good-1"), &json!("precision-target")));
    assert_eq!(first["points"][0]["outcomes"], 0);
    assert_eq!(first["points"][0]["threshold"], 85);
    assert!(first["points"][0]["precision"].as_f64().is_some_and(|precision| precision >= 0.9), "{first}");
    let bad = curves.iter().find(|curve| curve["repository"] == "bad-1").expect("a bad one");
    let end = bad["points"].as_array().and_then(|points| points.last()).expect("an end");
    assert_eq!(end, &json!({"outcomes": 100, "threshold": null, "precision": null}));
    assert_eq!(place.canonry(&asked).json()["curves"], document["curves"]);
    let other = place.canonry(&[&asked[..], &["--seed", "2"]].concat()).json();
    assert_ne!(other["curves"], document["curves"]);
}

#[test]
fn a_page_that_cannot_be_written_is_told_first() {
    let place = Place::new();
    let ran = place.canonry(&["simulate-learning", "--html", "no/such/folder.html"]);
    assert!(ran.failed().starts_with("the file no/such/folder.html cannot be written"), "{ran:?}");
    assert_eq!(place.canonry(&["simulate-learning", "--repositories", "0"]).exit, Some(2));
}
