//! What `thresholds` prints, for people and for programs, and that it detects manipulated data.

use canonry_domain::{OutcomeEvent, OutcomeKind, StateReason};
use insta::assert_snapshot;
use serde_json::json;

use crate::lessons::{Lessons, event, moment, number};
use crate::place::Place;

const REPO: [&str; 3] = ["thresholds", "--repo", "octo/cat"];
const AT: &str = "2026-03-01T12:00:00Z";

#[test]
fn without_outcomes_the_configured_threshold_holds() {
    let place = Place::with_items();
    assert_snapshot!(place.shown(&place.canonry(&REPO)), @"
    exit 0
    In octo/cat Canonry comments at 85 % and above (as configured). The rule precision-target wants 80 % of suggestions to be right.

    issues      threshold  source      outcomes  right  wrong  missed  no duplicate
    ───────────────────────────────────────────────────────────────────────────────
    all issues  85 %       configured         0      0      0       0             0

    Why:
      all issues: no prediction at 85 % or above has an outcome yet
    ");
    assert_snapshot!(place.shown_json(&place.canonry(&[&REPO[..], &["--json", "--check"]].concat())), @r#"
    exit 0
    {
      "schema_version": 1,
      "command": "thresholds",
      "run_id": "[RUN]",
      "repo": "octo/cat",
      "stats": {
        "outcomes": 0,
        "components": 0
      },
      "settings": {
        "rule": "precision-target",
        "configured": 85,
        "wanted_precision": 0.8
      },
      "thresholds": [
        {
          "component": null,
          "current": 85,
          "source": "configured",
          "rule": "precision-target",
          "alpha": 1.0,
          "beta": 1.0,
          "variance": 0.08333333333333333,
          "total": 0,
          "confirmed": 0,
          "false_positives": 0,
          "missed": 0,
          "true_negatives": 0,
          "reason": "no prediction at 85 % or above has an outcome yet",
          "evidence": {
            "decided_by": "not_sure",
            "configured": {
              "level": 85,
              "right": 0,
              "wrong": 0,
              "wanted": 0.8,
              "sure": 0.2
            }
          }
        }
      ],
      "adjustments": [],
      "check": {
        "same": true,
        "older_rules": false,
        "differences": []
      }
    }
    "#);
    let unknown = place.canonry(&["thresholds", "--repo", "octo/dog"]);
    assert!(unknown.failed().starts_with("octo/dog is not in the database"), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_learned_is_told_with_its_reason() {
    let place = Place::new();
    let lessons = Lessons::in_place(&place).await;
    // A hundred right predictions, and a component that is always wrong.
    for of in 2..122 {
        let labels: &[&str] = if of < 102 { &[] } else { &["area/sign\u{1b}[31m in"] };
        lessons.open(of, labels).await;
        lessons.predict(of, 0.93, moment("2026-02-02T00:00:00Z")).await;
        let right = of < 102;
        let reason = if right { StateReason::Duplicate } else { StateReason::Completed };
        let closed = OutcomeEvent {
            labels: Some(labels.iter().map(|&label| label.to_owned()).collect()),
            duplicate_of: right.then(|| number(1)),
            ..event(of, OutcomeKind::Closed, Some(reason), AT)
        };
        lessons.happen(closed).await;
    }
    lessons.store.disconnect().await;
    assert_snapshot!(place.shown(&place.canonry(&[&REPO[..], &["--check"]].concat())), @r"
    exit 0
    In octo/cat Canonry comments at 85 % and above (as configured). The rule precision-target wants 80 % of suggestions to be right.
    It does not comment on issues of sign\u{1b}[31m in. `canonry show` shows what each issue taught; a lower triage.learning.targetPrecision or another triage.learning.rule in .canonry.yml makes Canonry comment again.

    issues             threshold  source      outcomes  right  wrong  missed  no duplicate
    ──────────────────────────────────────────────────────────────────────────────────────
    all issues         85 %       configured       120    100     20       0             0
    sign\u{1b}[31m in  silent     learned           20      0     20       0             0

    Why:
      all issues: 100 of 120 predictions at 85 % or above were right (80 % probability that at least 80 % are): too few outcomes to move the threshold
      sign\u{1b}[31m in: 0 of 20 predictions at 85 % or above were right (0 % probability that at least 80 % are), and no higher level is likely to be better

    Changes of more than 5 %, newest first:
      1 Mar 2026  sign\u{1b}[31m in: 85 % → silent after 20 outcomes

    Recomputed from all events: the same as stored.
    ");
    let document = place.canonry(&[&REPO[..], &["--json"]].concat()).succeeded().json();
    let rows = document["thresholds"].as_array().expect("a list");
    let told = |key: &str| rows.iter().map(|row| row[key].clone()).collect::<Vec<_>>();
    assert_eq!(told("component"), [json!(null), json!("sign\u{1b}[31m in")]);
    assert_eq!(told("current"), [json!(85), json!(null)]);
    assert_eq!(told("source"), [json!("configured"), json!("learned")]);
    assert_eq!(told("rule"), [json!("precision-target"), json!("precision-target")]);
    assert_eq!((told("total"), told("confirmed")), (vec![json!(120), json!(20)], vec![json!(100), json!(0)]));
    assert_eq!((told("false_positives"), told("missed")), (vec![json!(20), json!(20)], vec![json!(0), json!(0)]));
    assert_eq!(told("true_negatives"), [json!(0), json!(0)]);
    assert_eq!((told("alpha"), told("beta")), (vec![json!(101.0), json!(1.0)], vec![json!(21.0), json!(21.0)]));
    let keys: Vec<&str> = rows[0].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "component",
            "current",
            "source",
            "rule",
            "alpha",
            "beta",
            "variance",
            "total",
            "confirmed",
            "false_positives",
            "missed",
            "true_negatives",
            "reason",
            "evidence"
        ]
    );
    assert_eq!(document["settings"], json!({ "rule": "precision-target", "configured": 85, "wanted_precision": 0.8 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_finds_what_does_not_follow_from_the_events() {
    let place = Place::new();
    let lessons = Lessons::in_place(&place).await;
    for of in 2..5 {
        lessons.open(of, &[]).await;
        lessons.predict(of, 0.9, moment("2026-02-02T00:00:00Z")).await;
        lessons.happen(event(of, OutcomeKind::Closed, Some(StateReason::Duplicate), AT)).await;
    }
    lessons.store.disconnect().await;
    let check = [&REPO[..], &["--check"]].concat();
    assert!(place.canonry(&check).succeeded().stdout.ends_with("Recomputed from all events: the same as stored.\n"));
    let url = format!("sqlite:{}", place.database().display());
    let mut connection = <sqlx::SqliteConnection as sqlx::Connection>::connect(&url).await.expect("opens");
    let forged = "UPDATE threshold_state SET state = replace(state, '\"total\":3', '\"total\":300')";
    assert_eq!(sqlx::query(forged).execute(&mut connection).await.expect("written").rows_affected(), 1);
    let found = place.canonry(&check);
    assert_eq!(found.exit, Some(1), "{found:?}");
    let told = "These thresholds differ from the stored ones when they are recomputed from all events:\n  \
        all issues: stored 85 % after 300 outcomes, recomputed 85 % after 3 outcomes\n";
    assert!(found.stdout.ends_with(told), "{}", found.stdout);
    let document = place.canonry(&[&check[..], &["--json"]].concat()).json();
    assert_eq!(document["check"]["same"], false);
    let difference = &document["check"]["differences"][0];
    assert_eq!((&difference["stored"]["total"], &difference["computed"]["total"]), (&json!(300), &json!(3)));
}
