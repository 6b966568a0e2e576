//! What `show` prints, for people and for programs, and that it cannot act on a terminal.

use canonry_domain::{ContentVersion, EventBy, GithubId, ItemType, OutcomeEvent, OutcomeKind, StateReason};
use canonry_store::{CandidateMember, DatabaseUrl, NewCandidateSet, Representation, Store, TriageActionKind};
use insta::assert_snapshot;
use serde_json::json;

use crate::lessons::{Lessons, event, moment, number};
use crate::place::Place;

#[test]
fn show_tells_an_items_story() {
    let place = Place::with_items();
    assert_snapshot!(place.shown(&place.canonry(&["show", "--repo", "octo/cat", "--number", "1"])), @"
    exit 0
    octo/cat issue #1
    Crash on start
    Open, opened 1 Jan 2026

    Verdict: Canonry has not checked this issue yet.

    Details:
      author     mona
      assignees  hubot
      labels     bug, area/start
      comments   3
      opened     1 Jan 2026
      updated    2 Jan 2026
      url        https://github.com/octo/cat/issues/1

      It crashes.

        thread 'main' panicked
    ");
    assert_snapshot!(place.shown(&place.canonry(&["show", "--repo", "octo/cat", "--type", "pr", "--number", "3"])), @"
    exit 0
    octo/cat pull request #3
    Start again
    Merged, 6 Jan 2026

    Verdict: Canonry has not checked this pull request yet.

    Details:
      author     hubot
      assignees  unknown
      labels     none
      comments   3
      opened     5 Jan 2026
      closed     6 Jan 2026
      updated    6 Jan 2026
      files      src/main.rs

      Fixes #1
    ");
    assert_snapshot!(place.shown_json(&place.canonry(&["show", "--repo", "octo/cat", "--number", "2", "--json"])), @r#"
    exit 0
    {
      "schema_version": 1,
      "command": "show",
      "run_id": "[RUN]",
      "repo": "octo/cat",
      "stats": {},
      "item": {
        "type": "issue",
        "number": 2,
        "github_id": null,
        "title": "Does not start",
        "body": "",
        "state": "closed",
        "state_reason": "duplicate",
        "merged": false,
        "draft": false,
        "author": null,
        "assignees": [],
        "labels": [],
        "comments": 0,
        "review_comments": 0,
        "created_at": "2026-01-03T10:00:00Z",
        "updated_at": "2026-01-04T10:00:00Z",
        "closed_at": "2026-01-04T10:00:00Z",
        "url": null,
        "base_branch": null,
        "duplicate_of": 1,
        "files": null,
        "diff": null,
        "content_hash": "1a3f8cc7897955f28dd59b123c08bdd6f1e17523e83da58a473db691b9e9a97a",
        "content_version": 1,
        "last_synced_at": null,
        "gone": null
      },
      "candidate_sets": [],
      "intent_cards": [],
      "decisions": [],
      "triage": null,
      "triage_records": [],
      "writes": [],
      "graces": [],
      "closes": [],
      "brakes": [],
      "outcome": null,
      "outcome_events": [],
      "cluster": null
    }
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn show_tells_neighbours_and_what_people_did() {
    let place = Place::with_items();
    let store = Store::open_existing(&DatabaseUrl::Sqlite(place.database())).await.expect("it is there");
    let repo = store.repos().find(&"octo/cat".parse().expect("valid")).await.expect("it answers").expect("imported");
    let set = NewCandidateSet {
        item_type: ItemType::Issue,
        number: number(2),
        representation: Representation::Raw,
        content_version: ContentVersion::FIRST,
        model: "local".to_owned(),
        members: vec![CandidateMember {
            number: number(1),
            score: 0.9312,
            parts: [
                ("dense", 0.9),
                ("lexical", 0.7),
                ("ranker", 5.2),
                ("by_vectors", 3.1),
                ("by_words", 2.94),
                ("by_same_author_within_an_hour", -0.84),
            ]
            .map(|(part, value)| (part.to_owned(), value))
            .into(),
        }],
        pairs: Vec::new(),
    };
    assert!(
        store
            .duplicates()
            .write_candidate_set(repo.id, &set, moment("2026-02-01T00:00:00Z"))
            .await
            .expect("it answers")
    );
    let closed = OutcomeEvent {
        delivery_id: "d-1".to_owned(),
        duplicate_of: Some(number(1)),
        ..event(2, OutcomeKind::Closed, Some(StateReason::Duplicate), "2026-01-04T10:00:00Z")
    };
    let now = closed.occurred_at;
    store.learning().record_outcome_events(repo.id, &[closed], now).await.expect("it answers");
    store.disconnect().await;
    assert_snapshot!(place.shown(&place.canonry(&["show", "--repo", "octo/cat", "--number", "2"])), @"
    exit 0
    octo/cat issue #2
    Does not start
    Closed as a duplicate of #1, 4 Jan 2026

    Verdict: Canonry has not checked this issue yet.

    On GitHub:
      4 Jan 2026  closed as duplicate of #1 by mona

    Outcome: a duplicate of #1 (from the close reason, 4 Jan 2026).
      There was no prediction before this outcome.

    Most similar items, by title and body:
      #1 93 %

    Details:
      author     unknown
      assignees  none
      labels     none
      comments   0
      opened     3 Jan 2026
      closed     4 Jan 2026
      updated    4 Jan 2026

      (no text)
    ");
    let hash = "1a3f8cc7897955f28dd59b123c08bdd6f1e17523e83da58a473db691b9e9a97a";
    let exact = place.canonry(&["show", "2", "-v"]).succeeded().stdout;
    for words in [hash, "2026-01-04T10:00:00Z", "0.9312", "dense 0.900", "event d-1", "same author within an hour -0.8"]
    {
        assert!(exact.contains(words), "{words}: {exact}");
        assert!(!place.canonry(&["show", "2"]).succeeded().stdout.contains(words), "{words}");
    }
    let document = place.canonry(&["show", "--repo", "octo/cat", "--number", "2", "--json"]).json();
    let shown = json!({
        "candidate_sets": document["candidate_sets"], "outcome": document["outcome"],
        "decisions": document["decisions"], "triage": document["triage"], "cluster": document["cluster"],
    });
    assert_snapshot!(serde_json::to_string_pretty(&shown).expect("JSON"), @r#"
    {
      "candidate_sets": [
        {
          "representation": "raw",
          "status": "fresh",
          "content_version": 1,
          "model": "local",
          "created_at": "2026-02-01T00:00:00Z",
          "members": [
            {
              "number": 1,
              "rank": 1,
              "score": 0.9312,
              "similarity": 0.9312,
              "parts": {
                "by_same_author_within_an_hour": -0.84,
                "by_vectors": 3.1,
                "by_words": 2.94,
                "dense": 0.9,
                "lexical": 0.7,
                "ranker": 5.2
              }
            }
          ]
        }
      ],
      "outcome": {
        "kind": "duplicate",
        "duplicate_of": 1,
        "state_reason": "duplicate",
        "actor": "mona",
        "evidence": "state_reason",
        "decided_by": "d-1",
        "at": "2026-01-04T10:00:00Z",
        "component": null,
        "cluster": [],
        "lesson": {
          "kind": "unknown"
        },
        "triage_id": null,
        "updated_at": "2026-01-04T10:00:00Z"
      },
      "decisions": [],
      "triage": null,
      "cluster": null
    }
    "#);
}

#[test]
fn what_strangers_wrote_cannot_act_on_a_terminal() {
    let place = Place::new();
    let title = "\u{1b}]0;owned\u{7}\u{202e}gnp.exe\u{9b}2J";
    let item = json!({"number": 1, "title": title, "body": "a\u{1b}[31mb\nc", "labels": ["\u{1b}[0m"], "author": "m\u{200f}o"});
    place.write("items.jsonl", item.to_string());
    place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"]).succeeded();
    let shown = place.canonry(&["show", "--repo", "octo/cat", "--number", "1"]).succeeded();
    let json = place.canonry(&["show", "--repo", "octo/cat", "--number", "1", "--json"]).succeeded();
    for output in [&shown.stdout, &json.stdout] {
        let acting: Vec<char> = output.chars().filter(|c| c.is_control() && *c != '\n').collect();
        assert_eq!(acting, Vec::<char>::new(), "{output:?}");
        assert!(!output.contains(['\u{202e}', '\u{200f}']), "{output:?}");
    }
    assert!(shown.stdout.contains(r"\u{1b}]0;owned\u{7}\u{202e}gnp.exe\u{9b}2J"), "{shown:?}");
    assert_eq!(json.json()["item"]["title"], title);
}

#[test]
fn colours_are_for_terminals_and_who_asks() {
    let place = Place::with_items();
    let arguments = ["show", "--repo", "octo/cat", "--number", "1"];
    assert!(!place.canonry(&arguments).stdout.contains('\u{1b}'));
    let forced = place.command(&arguments).env("CLICOLOR_FORCE", "1").output().expect("the program starts");
    assert!(String::from_utf8_lossy(&forced.stdout).contains("\u{1b}[1mCrash on start\u{1b}[0m"));
    let refused = place.command(&arguments).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").output();
    assert!(!String::from_utf8_lossy(&refused.expect("the program starts").stdout).contains('\u{1b}'));
}

#[test]
fn show_tells_the_intent_card_and_whether_it_is_of_the_present_text() {
    let place = Place::with_items();
    place.canonry(&["analyze-intent", "--repo", "octo/cat"]).succeeded();
    let show = ["show", "--repo", "octo/cat", "--number", "1"];
    let told = place.canonry(&show).succeeded().stdout;
    assert!(told.contains("Intent card (local, ") && told.contains("of the current text"), "{told}");
    let line = r#"{"number":1,"title":"Crash on start","body":"Only on Mondays.","updated_at":"2026-01-03T10:00:00Z"}"#;
    place.write("edited.jsonl", line);
    place.canonry(&["import", "--repo", "octo/cat", "edited.jsonl"]).succeeded();
    assert!(place.canonry(&show).succeeded().stdout.contains("of an older text"));
    let document = place.canonry(&["show", "--repo", "octo/cat", "--number", "1", "--json"]).succeeded().json();
    let card = &document["intent_cards"][0];
    assert_eq!(
        (&card["status"], &card["fresh"], &card["extractor"]),
        (&json!("ready"), &json!(false), &json!("local"))
    );
}

/// The history of an issue: no comment, then a comment, closed, reopened, closed for good.
#[tokio::test(flavor = "multi_thread")]
async fn show_tells_what_was_done_with_each_record_and_what_that_taught() {
    let place = Place::new();
    let lessons = Lessons::in_place(&place).await;
    lessons.open(2, &["area/auth"]).await;
    let shadow = lessons.predict(2, 0.8712, moment("2026-02-01T10:00:00Z")).await;
    lessons.act(shadow, TriageActionKind::Recorded, "mode", moment("2026-02-01T10:00:01Z")).await;
    let spoken = lessons.predict(2, 0.9301, moment("2026-02-02T10:00:00Z")).await;
    lessons.act(spoken, TriageActionKind::Commented, "above_threshold", moment("2026-02-02T10:00:01Z")).await;
    let show = ["show", "--repo", "octo/cat", "--number", "2"];
    let part = |text: &str| {
        let from = text.find("\nTriaged").expect("a part") + 1;
        let to = text.find("\nDetails").expect("details");
        text[from..to].to_owned()
    };
    assert_snapshot!(part(&place.canonry(&show).succeeded().stdout), @"
    Triaged, newest first:
      2 Feb 2026: duplicate of #1 (confidence 97 %, score 93 %); the judge is sure and every gate passed
        decided to comment and label (mode suggest, threshold 85 % configured, component auth)
      1 Feb 2026: duplicate of #1 (confidence 97 %, score 87 %); the judge is sure and every gate passed
        no comment: the mode shadow does not comment (mode shadow, threshold 85 % configured, component auth)
    ");

    let stale = OutcomeEvent {
        actor: Some("stale[bot]".parse().expect("a login")),
        by: EventBy::Bot,
        ..event(2, OutcomeKind::Closed, Some(StateReason::NotPlanned), "2026-02-03T10:00:00Z")
    };
    lessons.happen(stale).await;
    let document = place.canonry(&[&show[..], &["--json"]].concat()).succeeded().json();
    let outcome = &document["outcome"];
    assert_eq!((&outcome["kind"], &outcome["lesson"]["kind"]), (&json!("unknown"), &json!("unknown")), "{outcome}");

    lessons.happen(event(2, OutcomeKind::Reopened, None, "2026-02-04T10:00:00Z")).await;
    let comment = OutcomeEvent {
        by: EventBy::Maintainer,
        duplicate_of: Some(number(1)),
        comment: Some(GithubId(7)),
        ..event(2, OutcomeKind::Commented, None, "2026-02-05T09:59:00Z")
    };
    lessons.happen(comment).await;
    let closed = OutcomeEvent {
        labels: Some(vec!["area/auth".to_owned()]),
        ..event(2, OutcomeKind::Closed, Some(StateReason::Duplicate), "2026-02-05T10:00:00Z")
    };
    lessons.happen(closed).await;
    lessons.store.disconnect().await;
    assert_snapshot!(part(&place.canonry(&show).succeeded().stdout), @r#"
    Triaged, newest first:
      2 Feb 2026: duplicate of #1 (confidence 97 %, score 93 %); the judge is sure and every gate passed
        decided to comment and label (mode suggest, threshold 85 % configured, component auth)
      1 Feb 2026: duplicate of #1 (confidence 97 %, score 87 %); the judge is sure and every gate passed
        no comment: the mode shadow does not comment (mode shadow, threshold 85 % configured, component auth)

    On GitHub:
      3 Feb 2026  closed as not planned by stale[bot] (a bot, not counted)
      4 Feb 2026  reopened by mona
      5 Feb 2026  commented "duplicate of #1" by mona, a maintainer
      5 Feb 2026  closed as duplicate by mona

    Outcome: a duplicate of #1 (from the close reason, 5 Feb 2026).
      Counts for the component auth too.
      The prediction was right, #1 at 93 %.
    "#);
    let document = place.canonry(&[&show[..], &["--json"]].concat()).succeeded().json();
    let shown = json!({
        "actions": document["triage_records"].as_array().expect("a list").iter().map(|record| &record["action"]).collect::<Vec<_>>(),
        "outcome": document["outcome"], "last_event": document["outcome_events"].as_array().and_then(|events| events.last()),
    });
    assert_eq!(document["triage"], document["triage_records"][0]);
    assert_snapshot!(serde_json::to_string_pretty(&shown).expect("JSON"), @r#"
    {
      "actions": [
        {
          "mode": "suggest",
          "component": "auth",
          "threshold": 85,
          "source": "configured",
          "action": "commented",
          "reason": "above_threshold",
          "comment_key": "triage:1:issue:2:0",
          "created_at": "2026-02-02T10:00:01Z"
        },
        {
          "mode": "shadow",
          "component": "auth",
          "threshold": 85,
          "source": "configured",
          "action": "recorded",
          "reason": "mode",
          "comment_key": null,
          "created_at": "2026-02-01T10:00:01Z"
        }
      ],
      "outcome": {
        "kind": "duplicate",
        "duplicate_of": 1,
        "state_reason": "duplicate",
        "actor": "mona",
        "evidence": "state_reason",
        "decided_by": "delivery-closed-2-2026-02-05T10:00:00Z",
        "at": "2026-02-05T10:00:00Z",
        "component": "auth",
        "cluster": [
          1
        ],
        "lesson": {
          "kind": "confirmed",
          "prediction": {
            "target": 1,
            "score": 0.9301
          }
        },
        "triage_id": 2,
        "updated_at": "2026-02-05T10:00:00Z"
      },
      "last_event": {
        "kind": "closed",
        "state_reason": "duplicate",
        "duplicate_of": null,
        "in_body": null,
        "comment": null,
        "labels": [
          "area/auth"
        ],
        "actor": "mona",
        "by": "person",
        "occurred_at": "2026-02-05T10:00:00Z",
        "delivery_id": "delivery-closed-2-2026-02-05T10:00:00Z"
      }
    }
    "#);
}
