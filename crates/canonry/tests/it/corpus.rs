//! What `import`, `export` and `maintainers` print, for people and for programs.

use std::fs;

use insta::assert_snapshot;
use serde_json::json;

use crate::place::{ITEMS, Place, names_in};

#[test]
fn import_counts_and_names_bad_lines() {
    let place = Place::new();
    let items = format!("{}{}", ITEMS, "{\"number\":4}\nnot json\n{\"number\":0,\"title\":\"t\"}\n");
    place.write("items.jsonl", items);
    assert_snapshot!(place.shown(&place.canonry(&["import", "--repo", "octo/cat", "items.jsonl"])), @"
    exit 3
    Read 6 records of octo/cat.
    new  changed  unchanged  failed
    ───────────────────────────────
      3        0          0       3

    Skipped records:
      items.jsonl, line 4: title is missing
      items.jsonl, line 5: not JSON: expected ident at column 2
      items.jsonl, line 6: number is 0, which is not a whole number from 1 to 9223372036854775807
    ");
    assert_snapshot!(place.shown_json(&place.canonry(&["import", "--repo", "octo/cat", "items.jsonl", "--json"])), @r#"
    exit 3
    {
      "schema_version": 1,
      "command": "import",
      "run_id": "[RUN]",
      "repo": "octo/cat",
      "stats": {
        "read": 6,
        "inserted": 0,
        "updated": 0,
        "unchanged": 3,
        "failed": 3
      },
      "repos": [
        "octo/cat"
      ],
      "errors": [
        {
          "file": "items.jsonl",
          "line": 4,
          "message": "title is missing"
        },
        {
          "file": "items.jsonl",
          "line": 5,
          "message": "not JSON: expected ident at column 2"
        },
        {
          "file": "items.jsonl",
          "line": 6,
          "message": "number is 0, which is not a whole number from 1 to 9223372036854775807"
        }
      ]
    }
    "#);
}

#[test]
fn export_writes_lines_files_and_documents() {
    let place = Place::with_items();
    assert_snapshot!(place.shown(&place.canonry(&["export", "--repo", "octo/cat", "--type", "pr"])), @r#"
    exit 0
    {"repo":"octo/cat","type":"pr","number":3,"title":"Start again","body":"Fixes #1","state":"closed","state_reason":null,"author":"hubot","labels":[],"comments":1,"review_comments":2,"created_at":"2026-01-05T10:00:00Z","updated_at":"2026-01-06T10:00:00Z","closed_at":"2026-01-06T10:00:00Z","duplicate_of":null,"merged":true,"draft":false,"files":["src/main.rs"],"diff":"-crash();\n+start();\n"}
    "#);
    assert_snapshot!(place.shown(&place.canonry(&["export", "--repo", "Octo/Cat", "-o", "out.jsonl"])), @r"
    exit 0
    Wrote 3 items of octo/cat to out.jsonl.
    ");
    assert_snapshot!(place.shown_json(&place.canonry(&["export", "--repo", "octo/cat", "--output", "out.jsonl", "--json"])), @r#"
    exit 0
    {
      "schema_version": 1,
      "command": "export",
      "run_id": "[RUN]",
      "repo": "octo/cat",
      "stats": {
        "exported": 3
      },
      "file": "out.jsonl"
    }
    "#);
    assert_snapshot!(place.shown_json(&place.canonry(&["export", "--repo", "octo/cat", "--state", "open", "--json"])), @r#"
    exit 0
    {
      "schema_version": 1,
      "command": "export",
      "run_id": "[RUN]",
      "repo": "octo/cat",
      "items": [
        {
          "repo": "octo/cat",
          "type": "issue",
          "number": 1,
          "title": "Crash on start",
          "body": "It crashes.\r\n\r\n  thread 'main' panicked",
          "state": "open",
          "state_reason": null,
          "author": "mona",
          "assignees": [
            "hubot"
          ],
          "labels": [
            "bug",
            "area/start"
          ],
          "comments": 3,
          "review_comments": 0,
          "created_at": "2026-01-01T10:00:00Z",
          "updated_at": "2026-01-02T10:00:00Z",
          "closed_at": null,
          "url": "https://github.com/octo/cat/issues/1",
          "duplicate_of": null,
          "merged": false,
          "draft": false
        }
      ],
      "stats": {
        "exported": 1
      }
    }
    "#);
    assert_eq!(fs::read_to_string(place.path("out.jsonl")).expect("written").lines().count(), 3);
    assert_eq!(names_in(&place.path("")), [".local", "items.jsonl", "out.jsonl", "tmp"], "nothing half written stays");
}

#[test]
fn maintainers_are_set_and_listed() {
    let place = Place::with_items();
    assert_snapshot!(place.shown(&place.canonry(&["maintainers", "list", "--repo", "octo/cat"])), @"
    exit 0
    The maintainers of octo/cat are not known yet.

    Next:
      canonry maintainers refresh --repo octo/cat      fetch them from GitHub
      canonry maintainers set LOGIN… --repo octo/cat   set them yourself
    ");
    let set = place.canonry(&["maintainers", "set", "--repo", "octo/cat", "mona", "Hubot", "MONA", "--json"]).json();
    assert_eq!(set["stats"], json!({"maintainers": 2}));
    let mut listed = place.canonry(&["maintainers", "list", "--repo", "octo/cat", "--json"]);
    let at = set["maintainers"]["written_at"].as_str().expect("a time").to_owned();
    listed.stdout = listed.stdout.replace(&at, "[TIME]");
    assert_snapshot!(place.shown_json(&listed), @r#"
    exit 0
    {
      "schema_version": 1,
      "command": "maintainers list",
      "run_id": "[RUN]",
      "repo": "octo/cat",
      "stats": {
        "maintainers": 2
      },
      "maintainers": {
        "source": "set",
        "written_at": "[TIME]",
        "logins": [
          "Hubot",
          "mona"
        ]
      }
    }
    "#);
    let mut listed = place.canonry(&["maintainers", "list", "--repo", "octo/cat"]);
    listed.stdout = listed.stdout.replace(&at, "[TIME]");
    assert_snapshot!(place.shown(&listed), @"
    exit 0
    2 maintainers of octo/cat, set by hand, just now:
      Hubot
      mona
    ");
}
