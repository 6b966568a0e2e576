//! `analyze-intent` with rules, with a program and with a model that cannot be reached.

use canonry_testkit::models::{Fault, ModelServer};
use insta::assert_snapshot;

use crate::place::{Place, Ran};

const RUN: &[&str] = &["analyze-intent", "--repo", "octo/cat"];

#[test]
fn cards_by_rules_are_made_once() {
    let place = Place::with_items();
    assert_snapshot!(place.shown(&place.canonry(RUN)), @"
    exit 0
    Stored 3 cards from the local extractor.
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
    Stored 0 cards from the command extractor.

    2 items failed and will be compared by title and body:
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
    for variable in [
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "CANONRY_ADMIN_TOKEN",
        "CANONRY_MARKER_SECRET",
        "CANONRY_WEBHOOK_SECRET",
        "CANONRY_APP_PRIVATE_KEY",
    ] {
        assert!(told(variable).ends_with("it ended with exit status: 1"), "{variable}");
    }
}

#[test]
fn what_cannot_work_is_said_at_once() {
    let place = Place::with_items();
    for (arguments, exit, expected) in [
        (&["--extractor", "openai"][..], 1, "failed to set up the openai model: no key in OPENAI_API_KEY"),
        (&["--model", "gpt"], 2, "--model, --base-url and --thinking need a model; name one with --extractor"),
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

#[test]
fn how_long_and_how_often_a_model_is_asked_is_the_operators_to_say() {
    let (place, server) = (Place::with_items(), ModelServer::start_blocking());
    let url = server.base_url();
    let by_model = ["--extractor", "openai", "--base-url", &url, "--type", "issue", "--json"];
    server.fault_when("", Fault::Hang);
    let ran = place.canonry(&[RUN, &by_model, &["--model-timeout", "1s", "--model-tries", "1"]].concat());
    let message = "failed to ask openai: no answer within 1 s, asked once";
    assert_eq!((ran.exit, &ran.json()["errors"][0]["message"]), (Some(3), &message.into()), "{ran:?}");
    let mut by_variable = place.command(&[RUN, &by_model].concat());
    by_variable.env("CANONRY_MODEL_TIMEOUT", "1s").env("CANONRY_MODEL_TRIES", "2");
    let ran = Ran::of(by_variable.output().expect("the program starts"));
    assert_eq!(ran.json()["errors"][0]["message"], "failed to ask openai: no answer within 1 s, asked 2 times");
    let wrong = place.canonry(&[RUN, &by_model[..4], &["--model-timeout", "90"]].concat());
    assert!(wrong.exit == Some(2) && wrong.stderr.contains("write it as 90s or 10m"), "{wrong:?}");
}

#[test]
fn a_model_that_is_not_there_is_named_by_its_address() {
    let place = Place::with_items();
    let base = "http://127.0.0.1:1/v1?api-key=s3cret";
    let ran = place.canonry(&[RUN, &["--extractor", "openai", "--base-url", base, "--json"]].concat());
    let message = "failed to ask openai: the connection to http://127.0.0.1:1/v1/chat/completions failed, tried once";
    assert_eq!(ran.json()["errors"][0]["message"], message);
    assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
}
