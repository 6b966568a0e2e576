//! What `config` prints, for people and for programs.

use insta::assert_snapshot;
use serde_json::json;

use crate::place::Place;

#[test]
fn config_check_points_at_each_mistake() {
    let place = Place::new();
    assert_snapshot!(place.shown(&place.canonry(&["config", "check"])), @"
    exit 1
    --- stderr
    error: there is no file .canonry.yml; name one, or see the defaults with `canonry config show`
    ");
    place.write(".canonry.yml", "triage:\n  mode: suggest\n");
    assert_snapshot!(place.shown(&place.canonry(&["config", "check"])), @r"
    exit 0
    .canonry.yml is valid.
    ");
    place.write("bad.yml", "reveiw: {}\ntriage:\n  mood: suggest\nclose:\n  minClose: 7\n");
    assert_snapshot!(place.shown(&place.canonry(&["config", "check", "bad.yml"])), @r"
    exit 1
    bad.yml:1:1: `reveiw` is not a known section (did you mean `review`?); the key is ignored
    bad.yml:3:3: `mood` is not a known key of `triage`; the section `triage` uses its defaults
    bad.yml:5:13: `close.minClose` must be between 0 and 1, but is 7; the section `close` uses its defaults

    3 mistakes in bad.yml.
    ");
    assert_snapshot!(place.shown_json(&place.canonry(&["config", "check", "bad.yml", "--json"])), @r#"
    exit 1
    {
      "schema_version": 1,
      "command": "config check",
      "run_id": "[RUN]",
      "repo": null,
      "stats": {
        "problems": 3
      },
      "file": "bad.yml",
      "valid": false,
      "problems": [
        {
          "section": null,
          "path": "reveiw",
          "line": 1,
          "column": 1,
          "message": "`reveiw` is not a known section",
          "suggestion": "review",
          "effect": "key_ignored"
        },
        {
          "section": "triage",
          "path": "triage.mood",
          "line": 3,
          "column": 3,
          "message": "`mood` is not a known key of `triage`",
          "suggestion": null,
          "effect": "section_defaults"
        },
        {
          "section": "close",
          "path": "close.minClose",
          "line": 5,
          "column": 13,
          "message": "`close.minClose` must be between 0 and 1, but is 7",
          "suggestion": null,
          "effect": "section_defaults"
        }
      ],
      "config_hash": "2702a46634bd7fa059230cac0c2e03c8aa3540066a1ad5117dd99d7219e31e71"
    }
    "#);
}

#[test]
fn config_show_prints_what_is_in_force() {
    let place = Place::new();
    let defaults = place.canonry(&["config", "show"]).succeeded();
    assert!(
        defaults.stdout.starts_with("# Settings in force, from the defaults.\nreview:\n  enabled: false\n"),
        "{defaults:?}"
    );
    place.write("defaults.yml", &defaults.stdout);
    let again = place.canonry(&["config", "show", "defaults.yml", "--json"]).succeeded().json();
    let fresh = place.canonry(&["config", "show", "--json"]).succeeded().json();
    assert_eq!(again["settings"], fresh["settings"]);
    assert_eq!((&again["config_hash"], &again["problems"]), (&fresh["config_hash"], &json!([])));
    assert_eq!((&again["file"], &fresh["file"]), (&"defaults.yml".into(), &serde_json::Value::Null));

    place.write(".canonry.yml", "mentions: {handle: tidy}\ntriage: {mood: x}\n");
    let shown = place.canonry(&["config", "show"]).succeeded().stdout;
    assert!(shown.contains("  handle: tidy\n"), "{shown}");
    assert!(shown.contains("# .canonry.yml:2:10: "), "{shown}");
}

#[test]
fn config_schema_is_a_schema_in_both_forms() {
    let place = Place::new();
    let plain = place.canonry(&["config", "schema"]).succeeded().json();
    assert_eq!(plain["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(place.canonry(&["config", "schema", "--json"]).json()["schema"], plain);
}

#[test]
fn init_writes_a_settings_file_of_each_preset_and_never_over_one() {
    for preset in ["shadow", "suggest", "grace", "review"] {
        let place = Place::new();
        let written = place.canonry(&["init", &format!("--config={preset}")]).succeeded();
        assert!(written.stdout.starts_with(&format!("Wrote .canonry.yml (preset {preset}).\n")), "{}", written.stdout);
        let checked = place.canonry(&["config", "check", "--json"]).succeeded().json();
        assert_eq!((&checked["valid"], &checked["problems"]), (&json!(true), &json!([])), "{preset}");
        let shown = place.canonry(&["config", "show", "--json"]).succeeded().json();
        let settings = &shown["settings"];
        let mode = if preset == "review" { "shadow" } else { preset };
        assert_eq!(
            (&settings["triage"]["mode"], &settings["review"]["enabled"]),
            (&json!(mode), &json!(preset == "review"))
        );
    }
    let place = Place::new();
    assert_snapshot!(place.shown(&place.canonry(&["init", "--config"])), @r"
    exit 0
    Wrote .canonry.yml (preset shadow).

    Once it is on the default branch, the service records what it would do and writes nothing on GitHub.
    `canonry config check` finds mistakes after an edit.
    ");
    assert!(!place.database().exists(), "no database was asked for");
    place.write(".canonry.yml", "triage: {mode: grace}\n");
    assert_snapshot!(place.shown(&place.canonry(&["init", "--config=suggest"])), @"
    exit 4
    --- stderr
    error: .canonry.yml already exists and was not changed; check it with `canonry config check`
    ");
    let kept = std::fs::read_to_string(place.path(".canonry.yml")).expect("the file");
    assert_eq!(kept, "triage: {mode: grace}\n");
    let unknown = place.canonry(&["init", "--config=loud"]);
    assert!(unknown.exit == Some(2) && unknown.stderr.contains("shadow, suggest, grace, review"), "{}", unknown.stderr);
}
