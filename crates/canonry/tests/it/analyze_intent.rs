//! `analyze-intent` by rules, by a program and by a model that is not there.

use insta::assert_snapshot;

use crate::place::{Place, Ran};

const RUN: &[&str] = &["analyze-intent", "--repo", "octo/cat"];

#[test]
fn cards_by_rules_are_made_once() {
    let place = Place::with_items();
    assert_snapshot!(place.shown(&place.canonry(RUN)), @r"
    exit 0
    Made 3 cards with the local extractor.
    ");
    let again = place.canonry(&[RUN, &["--only-changed", "--json"]].concat());
    assert_snapshot!(place.shown_json(&again), @r#"
    exit 0
    {
      "schema_version": 1,
      "command": "analyze-intent",
      "run_id": "[RUN]",
      "repo": "octo/cat",
      "stats": {
        "discovered": 3,
        "analyzed": 0,
        "skipped_fresh": 3,
        "failed": 0
      },
      "extractor": "local",
      "model": "rules",
      "errors": []
    }
    "#);
}

#[test]
fn a_program_that_gives_no_card_costs_no_run() {
    let place = Place::with_items();
    let by_program = ["--extractor", "command", "--type", "issue", "--model"];
    assert_snapshot!(place.shown(&place.canonry(&[RUN, &by_program, &["/bin/echo no idea"]].concat())), @r#"
    exit 3
    Made 0 cards with the command extractor.

    2 items got none, and will be compared by title and body:
      issue #1: the answer is not one JSON object: it begins with "no idea"
      issue #2: the answer is not one JSON object: it begins with "no idea"
    "#);
    let ran = place.canonry(&[RUN, &by_program, &["/bin/false", "--workers", "1", "--json"]].concat());
    let document = ran.json();
    assert_eq!((ran.exit, &document["stats"]["failed"]), (Some(3), &serde_json::json!(2)));
    assert_eq!(document["errors"][0]["number"], 1);
    assert_eq!(document["errors"][0]["message"], "failed to ask the program /bin/false: it ended with exit status: 1");
}

#[test]
fn a_program_is_not_told_our_secrets() {
    let place = Place::with_items();
    let told = |variable: &str| {
        let program = format!("/usr/bin/printenv {variable}");
        let mut command = place.command(&[RUN, &["--extractor", "command", "--json", "--model", &program]].concat());
        let ran = Ran::of(command.env(variable, "told").output().expect("the program starts"));
        ran.json()["errors"][0]["message"].as_str().expect("a message").to_owned()
    };
    assert!(told("SOMETHING_ELSE").ends_with("it begins with \"told\""));
    for variable in
        ["GITHUB_TOKEN", "GH_TOKEN", "CANONRY_ADMIN_TOKEN", "CANONRY_WEBHOOK_SECRET", "CANONRY_APP_PRIVATE_KEY"]
    {
        assert!(told(variable).ends_with("it ended with exit status: 1"), "{variable}");
    }
}

#[test]
fn what_cannot_work_is_said_at_once() {
    let place = Place::with_items();
    for (arguments, exit, expected) in [
        (&["--extractor", "openai"][..], 1, "failed to set up the openai model: no key in OPENAI_API_KEY"),
        (&["--model", "gpt"], 2, "--model, --base-url and --thinking are for models; name one with --extractor"),
        (&["--extractor", "command"], 2, "name the program with --model 'PROGRAM ARGUMENTS'"),
    ] {
        assert_eq!(place.canonry(&[RUN, arguments].concat()).ended_with(exit), expected);
    }
    let ran = place.canonry(&[RUN, &["--extractor", "oracle"]].concat());
    assert_eq!(ran.exit, Some(2));
    assert!(
        ran.stderr.contains("is not a provider; it must be one of local, openai, anthropic, gemini, command"),
        "{ran:?}"
    );
}
