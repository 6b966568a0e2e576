//! What `init` and `doctor` print, for people and for programs.

use canonry_domain::ItemType;
use canonry_store::{EmbeddingKey, NewEmbedding};
use insta::assert_snapshot;

use crate::lessons::{Lessons, moment, number};
use crate::place::{Place, Ran, names_in};

#[test]
fn init_says_what_it_did() {
    let place = Place::new();
    assert_snapshot!(place.shown(&place.canonry(&["init"])), @"
    exit 0
    Created the database sqlite:[HERE]/.local/share/canonry/canonry.db (schema [NEWEST]).

    Next:
      canonry doctor                             check the setup
      canonry sync --repo OWNER/NAME             fetch items from GitHub
      canonry import --repo OWNER/NAME FILE      import items from a file
      canonry demo                               see it work on sample repositories
    ");
    assert_snapshot!(place.shown(&place.canonry(&["init"])), @"
    exit 0
    The database sqlite:[HERE]/.local/share/canonry/canonry.db is up to date (schema [NEWEST]).

    Next:
      canonry doctor                             check the setup
      canonry sync --repo OWNER/NAME             fetch items from GitHub
      canonry import --repo OWNER/NAME FILE      import items from a file
      canonry demo                               see it work on sample repositories
    ");
    assert_snapshot!(place.shown_json(&place.canonry(&["init", "--json", "--db", "sqlite:other.db"])), @r#"
    exit 0
    {
      "schema_version": 1,
      "command": "init",
      "run_id": "[RUN]",
      "repo": null,
      "stats": {},
      "database": "sqlite:other.db",
      "action": "created",
      "schema": {
        "before": 0,
        "after": [NEWEST]
      }
    }
    "#);
}

#[test]
fn doctor_names_what_is_wrong_and_what_to_do() {
    let place = Place::new();
    assert_snapshot!(place.shown(&place.canonry(&["doctor"])), @"
    exit 1
    warn  data folder   [HERE]/.local/share/canonry does not exist yet
                         → run `canonry init` to create it
    fail  database      there is no database at sqlite:[HERE]/.local/share/canonry/canonry.db
                         → run `canonry init`, or name another database with --db
    warn  github token  GITHUB_TOKEN is not set; `canonry import` works without it, `canonry sync` does not
                         → set GITHUB_TOKEN to a token that can read your repositories, or configure a GitHub App
    ok    settings      no .canonry.yml here; every setting has its default
    ");
    assert_eq!(names_in(&place.path("")), ["tmp"], "doctor changes nothing");
    place.write(".canonry.yml", "triage: {mode: shade}\n");
    assert_snapshot!(place.shown_json(&place.canonry(&["doctor", "--json"])), @r#"
    exit 1
    {
      "schema_version": 1,
      "command": "doctor",
      "run_id": "[RUN]",
      "repo": null,
      "stats": {
        "ok": 0,
        "warn": 2,
        "fail": 2
      },
      "checks": [
        {
          "name": "data folder",
          "status": "warn",
          "message": "[HERE]/.local/share/canonry does not exist yet",
          "advice": "run `canonry init` to create it"
        },
        {
          "name": "database",
          "status": "fail",
          "message": "there is no database at sqlite:[HERE]/.local/share/canonry/canonry.db",
          "advice": "run `canonry init`, or name another database with --db"
        },
        {
          "name": "github token",
          "status": "warn",
          "message": "GITHUB_TOKEN is not set; `canonry import` works without it, `canonry sync` does not",
          "advice": "set GITHUB_TOKEN to a token that can read your repositories, or configure a GitHub App"
        },
        {
          "name": "settings",
          "status": "fail",
          "message": ".canonry.yml has 1 mistake",
          "advice": "see `canonry config check`"
        }
      ]
    }
    "#);
}

#[tokio::test]
async fn doctor_says_whose_vectors_are_those_of_a_former_model() {
    let place = Place::new();
    let lessons = Lessons::in_place(&place).await;
    let item =
        lessons.store.corpus().item(lessons.repo.id, ItemType::Issue, number(1)).await.expect("read").expect("there");
    let former = NewEmbedding {
        item_type: ItemType::Issue,
        number: number(1),
        embedded_hash: item.content_hash,
        vector: vec![1.0; 384],
        tokens: None,
    };
    let (key, now) = (EmbeddingKey::raw("local:former-1"), moment("2026-02-02T00:00:00Z"));
    lessons.store.corpus().write_embeddings(lessons.repo.id, &key, &[former], now).await.expect("written");
    let told = |place: &Place| {
        let ran = place.canonry(&["doctor", "--offline"]);
        ran.stdout.lines().skip_while(|line| !line.contains("vectors")).take(2).collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!(told(&place), @"
    warn  vectors       octo/cat: 0 items embedded by local:canonry-encoder-1, 1 item by the older local:former-1, which is no longer used
                         → run `canonry embed --repo octo/cat`
    ");
    place.canonry(&["embed", "--repo", "octo/cat"]).succeeded();
    assert_eq!(told(&place), "");
}

#[test]
fn doctor_is_content_with_a_working_installation() {
    let place = Place::with_items();
    place.write(".canonry.yml", "triage: {mode: suggest}\n");
    let mut command = place.command(&["doctor", "--offline"]);
    command.env("GITHUB_TOKEN", "ghp_doNotPrintMe");
    let ran = Ran::of(command.output().expect("the program starts"));
    assert_snapshot!(place.shown(&ran), @"
    exit 0
    ok    data folder   [HERE]/.local/share/canonry
    ok    database      sqlite:[HERE]/.local/share/canonry/canonry.db answers and has schema [NEWEST]
    ok    rights        [HERE]/.local/share/canonry/canonry.db can be written
    ok    corpus        1 repository with 3 items
    ok    github token  GITHUB_TOKEN is set; not checked with GitHub
    ok    settings      .canonry.yml is valid
    ");
}
