//! What the Action passes to the program, what it does with the answer, and which secrets it keeps back.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use canonry_store::Store;
use canonry_testkit::github::{Emulator, NewIssue, NewPull, Permission, World};
use canonry_testkit::public_text::assert_readable;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Left, TOKEN, program, run_step, run_step_as};
use crate::packages::{ACTION, text};
use crate::place::Place;
use crate::working_copy::{WorkingCopy, code, sarif};

pub(super) const REPO: &str = "octo/cat";
pub(super) const OWN: &str = "canonry-bot";

/// Runs the main step with this program.
fn run_action(place: &Place, emulator: &Emulator, command: &str, number: &str, given: &[(&str, &str)]) -> Left {
    let api = emulator.url();
    let usual = [
        ("CANONRY", env!("CARGO_BIN_EXE_canonry")),
        ("GITHUB_TOKEN", TOKEN),
        ("CANONRY_GITHUB_API_URL", api.as_str()),
        ("REPOSITORY", REPO),
        ("COMMAND", command),
        ("NUMBER", number),
        ("FROM_FORK", "false"),
    ];
    run_step(place, "run", &[&usual[..], given].concat())
}

/// A program that records its arguments and whether it sees a token, instead of the real one.
fn recorder(place: &Place) -> String {
    let (arguments, tokens) = (place.path("arguments"), place.path("tokens"));
    let script = format!(
        "for one in \"$@\"; do printf '%s\\0' \"$one\"; done > '{}'; echo \"${{GITHUB_TOKEN-none}} ${{GH_TOKEN-none}}\" > '{}'; echo '{{}}'",
        arguments.display(),
        tokens.display()
    );
    program(place, "recorder", &script)
}

fn recorded(place: &Place) -> (Vec<String>, String) {
    let arguments = fs::read_to_string(place.path("arguments")).expect("it ran");
    let arguments = arguments.split_terminator('\0').map(str::to_owned).collect();
    (arguments, fs::read_to_string(place.path("tokens")).expect("it ran"))
}

#[test]
fn what_a_workflow_says_reaches_the_program_as_it_is() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(World::new()));
    let recorder = recorder(&place);
    let bad = "x'\"; touch pwned; $(touch pwned) `touch pwned` --publish * \\";
    place.write("lint one.sarif", sarif(&[]));
    let output = format!("{bad}/out.sarif");
    let given = [
        ("CANONRY", recorder.as_str()),
        ("PUBLISH", "true"),
        ("PROVIDER", "anthropic"),
        ("MODEL", bad),
        ("MAX_CALLS", "-1 --publish"),
        ("FAIL_ON", "--json"),
        ("OUTPUT", &output),
        ("SARIF_REPORTS", "lint one.sarif\n\n"),
        ("RDJSON_REPORTS", "--repo=a/b\n/whole/$(touch pwned) path.json"),
    ];
    let left = run_action(&place, &emulator, "review", "7", &given);
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
    let (arguments, tokens) = recorded(&place);
    let here = |name: &str| place.path(name).display().to_string();
    let expected = [
        "review".to_owned(),
        "--repo".to_owned(),
        REPO.to_owned(),
        "--pr".to_owned(),
        "7".to_owned(),
        "--provider=anthropic".to_owned(),
        "--max-calls=-1 --publish".to_owned(),
        format!("--model={bad}"),
        "--fail-on=--json".to_owned(),
        "--format=code-scanning".to_owned(),
        format!("--output={}", here(&output)),
        "--json".to_owned(),
        format!("--sarif={}", here("runner/canonry-report-1.sarif")),
        format!("--rdjson={}", here("--repo=a/b")),
        "--rdjson=/whole/$(touch pwned) path.json".to_owned(),
        "--reviewer=builtin".to_owned(),
        "--reviewer=llm".to_owned(),
    ];
    assert_eq!(arguments, expected);
    assert_eq!(tokens, format!("{TOKEN} \n"), "who publishes needs the token");
    assert!(!place.path("pwned").exists() && !place.path("runner/canonry-empty/pwned").exists());

    let left = run_action(&place, &emulator, "review", "7", &[("OUTPUT", "a\nprogram=/bin/sh")]);
    assert!(left.exit == Some(2) && !left.outputs.contains("program="), "{}", left.outputs);
    let left = run_action(&place, &emulator, "review", "7", &[("PROVIDER", "openai --base-url=http://x")]);
    assert_eq!(left.exit, Some(2), "{}", left.outputs);
    // The program itself accepts these values: only the key is missing.
    let left =
        run_action(&place, &emulator, "review", "7", &[("PROVIDER", "anthropic"), ("PUBLISH", "true"), ("MODEL", "m")]);
    assert!(left.exit == Some(1) && left.outputs.contains("ANTHROPIC_API_KEY"), "{:?} {}", left.exit, left.outputs);
}

#[test]
fn an_incomplete_review_fails_the_job_unless_the_workflow_allows_gaps() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(World::new()));
    let incomplete =
        program(&place, "incomplete", "for one in \"$@\"; do [ \"$one\" = --allow-gaps ] && exit 0; done; exit 3");
    let given = [("CANONRY", incomplete.as_str()), ("PUBLISH", "true")];
    let left = run_action(&place, &emulator, "review", "7", &given);
    assert!(left.exit == Some(3) && left.outputs.contains("::error::the review is incomplete"), "{}", left.outputs);
    let left = run_action(&place, &emulator, "review", "7", &[&given[..], &[("ALLOW_GAPS", "true")]].concat());
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
}

#[test]
fn the_action_looks_at_nothing_of_an_event_that_strangers_word() {
    // No title, text, label or name of a branch; the repository of a fork is only compared.
    let used: BTreeSet<String> = text(ACTION)
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split("${{").skip(1).map(|rest| rest.split("}}").next().unwrap_or_default().to_owned()))
        .flat_map(|expression| {
            let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c)));
            words.filter(|word| word.starts_with("github.")).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let known = [
        "github.api_url",
        "github.event.pull_request.head.repo.full_name",
        "github.event.pull_request.number",
        "github.event_name",
        "github.repository",
        "github.run_attempt",
        "github.run_id",
        "github.server_url",
        "github.token",
    ];
    assert_eq!(used, known.map(str::to_owned).into());
}

const HOSTILE: &str = "Saving ::error::the settings panics $(id) <img src=x> with E4711";

/// A repository with an issue, and its twin as an event; the settings decide what is written.
pub(super) fn repeated(settings: Option<&str>) -> (World, Value) {
    repeated_as(HOSTILE, settings)
}

fn repeated_as(title: &str, settings: Option<&str>) -> (World, Value) {
    let mut world = World::new();
    world.repo(REPO);
    for login in ["mona", "zoe"] {
        world.user(login);
    }
    world.collaborator(REPO, "mona", Permission::Maintain);
    world.collaborator(REPO, OWN, Permission::Write);
    world.token(TOKEN, OWN);
    if let Some(settings) = settings {
        world.get_mut(REPO).file(".canonry.yml", settings);
    }
    let body = "Saving the settings fails:\n\n```\nthread 'main' panicked at src/settings.rs:218:13:\n\
                E4711: settings file is locked by process 99\n```\n\nVersion 4.2.1 on Debian 12.";
    world.open(REPO, "zoe", NewIssue::new(title, body));
    world.advance(60);
    world.send_webhooks_to("http://127.0.0.1:9/", "none");
    world.open(REPO, "mona", NewIssue::new(title, body));
    let event = world.deliveries.last().expect("an event").payload.clone();
    world.advance(60);
    (world, event)
}

/// Runs the Action for an event, with the state in a bare repository beside it.
fn run_event(place: &Place, emulator: &Emulator, event: &Value, run: &str) -> Left {
    let payload = place.write("event.json", event.to_string());
    let origin = place.path("origin.git");
    if !origin.exists() {
        let made = Command::new("git").args(["init", "--quiet", "--bare"]).arg(&origin).status();
        assert!(made.expect("git runs").success());
    }
    // The emulated GitHub takes no pushes.
    let remote = format!("--state-remote=file://{}", origin.display());
    let script = format!("exec '{}' \"$@\" '{remote}'", env!("CARGO_BIN_EXE_canonry"));
    let canonry = program(place, "canonry-with-state", &script);
    let runner = [
        ("GITHUB_EVENT_NAME", "issues".to_owned()),
        ("GITHUB_EVENT_PATH", payload.display().to_string()),
        ("GITHUB_RUN_ID", run.to_owned()),
    ];
    run_step_as(
        place,
        "run",
        &runner,
        &[
            ("CANONRY", canonry.as_str()),
            ("GITHUB_TOKEN", TOKEN),
            ("CANONRY_GITHUB_API_URL", emulator.url().as_str()),
            ("REPOSITORY", REPO),
            ("COMMAND", "run"),
        ],
    )
}

/// The job summary of a run without settings, for a picture of it.
pub(crate) fn summary_of_a_shadow_run() -> String {
    let (world, event) = repeated_as("Saving the settings panics with E4711 on every second attempt", None);
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world));
    let left = run_event(&place, &emulator, &event, "1");
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
    assert!(left.summary.contains("<table>"), "it shows the comment: {}", left.summary);
    left.summary
}

#[test]
fn without_settings_the_action_says_in_its_summary_what_it_would_post() {
    let jq = Command::new("jq").arg("--version").output();
    assert!(jq.is_ok_and(|output| output.status.success()), "the Action uses jq, as every runner has it: install jq");
    let (world, event) = repeated(None);
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world));
    let left = run_event(&place, &emulator, &event, "1");
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
    for line in ["verdict=duplicate\n", "duplicate-of=1\n", "json="] {
        assert!(left.outputs.contains(line), "{line:?} is not among {}", left.outputs);
    }
    let web = "https://github.com/octo/cat/issues";
    let heading = format!("#### [#2]({web}/2) is a duplicate of [#1]({web}/1)\n");
    assert!(left.summary.contains(&heading), "{}", left.summary);
    let comment = "Nothing was posted. In the mode `suggest`, above the threshold, this comment would be:\n\n<table><tr><td>\n\n\
                   This looks like the same problem as #1";
    assert!(left.summary.contains(comment), "{}", left.summary);
    assert_readable(&left.summary);
    // The runner obeys commands in what a step prints, and the summary is rendered.
    assert!(!left.outputs.contains("::error::"), "{}", left.outputs);
    assert!(left.summary.contains("&lt;img"), "{}", left.summary);
    assert!(emulator.writes().is_empty(), "{:?}", emulator.writes());
}

#[test]
fn the_action_comments_once_and_keeps_no_secret_in_the_state() {
    let (world, event) = repeated(Some("triage: {mode: suggest}\n"));
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world));
    // The second run is the first one started again, on a machine without a cache; for the third the state is lost too.
    for (run, lost) in [("1", None), ("1", Some("runner")), ("2", Some("origin.git"))] {
        if let Some(lost) = lost {
            fs::remove_dir_all(place.path("runner")).expect("it was there");
            let _ = fs::remove_dir_all(place.path(lost));
        }
        let left = run_event(&place, &emulator, &event, run);
        assert_eq!(left.exit, Some(0), "{}", left.outputs);
        let world = emulator.world();
        let comments = world.comments_by(REPO, 2, OWN);
        assert_eq!(comments.len(), 1, "run {run}, lost {lost:?}");
        assert!(comments[0].body.starts_with("This looks like the same problem as #1"), "{}", comments[0].body);
        assert_eq!(world.issue(REPO, 2).labels, ["possible-duplicate"]);
    }
    let origin = place.path("origin.git");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(&origin).args(arguments).output().expect("git runs");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let state = git(&["cat-file", "blob", "refs/canonry/state:database-000"]);
    let holds = |words: &str| state.windows(words.len()).any(|window| window == words.as_bytes());
    assert!(holds("Saving ::error::the settings panics") && !holds(TOKEN), "the state is a database without the token");
    let copy = place.write("copy.db", &state);
    let database = format!("--db=sqlite:{}", copy.display());
    let emptied = place.canonry(&["deliveries", "show", "actions-2", &database]).succeeded();
    assert!(emptied.stdout.contains("The body was deleted after the delivery was handled."), "{}", emptied.stdout);
    let secrets = tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let store = Store::open_existing(&format!("sqlite:{}", copy.display()).parse().expect("a URL")).await;
        let store = store.expect("it is a database of this version");
        store.outbox().marker_secret([9; 32], Timestamp::now()).await.expect("stored")
    });
    assert_eq!(secrets, [9; 32], "there was no secret before");
    assert_eq!(git(&["rev-list", "--count", "refs/canonry/state"]), b"1\n", "the ref has no history");
    emulator.assert_no_unknown_routes();
}

#[test]
fn the_action_publishes_a_review_with_what_other_tools_found() {
    let mut world = World::new();
    world.repo(REPO);
    world.user("ann");
    world.collaborator(REPO, OWN, Permission::Write);
    world.token(TOKEN, OWN);
    world.commit(REPO, "main", &[("README.md", Some("# Cat\n"))]);
    world.commit(REPO, "topic", &[("src/app.js", Some("start();\ndebugger;\nfinsh();\n"))]);
    world.open_pull(REPO, "ann", "topic", NewPull::new("Add `$(touch pwned)` the app"));
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world));
    let spell = json!({"source": {"name": "Spell"}, "severity": "WARNING", "diagnostics": [
        {"message": "finsh is no word", "location": {"path": "src/app.js", "range": {"start": {"line": 3}}}}]});
    place.write("spell.json", spell.to_string());
    let given = [("PUBLISH", "true"), ("RDJSON_REPORTS", "spell.json")];
    let left = run_action(&place, &emulator, "review", "1", &given);
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
    assert!(left.summary.contains("2 findings, 2 new"), "{}", left.summary);
    let world = emulator.world();
    let mut said: Vec<_> =
        world.review_comments_by(REPO, 1, OWN).iter().map(|one| (one.path.clone(), one.line)).collect();
    said.sort();
    assert_eq!(said, [("src/app.js".to_owned(), Some(2)), ("src/app.js".to_owned(), Some(3))]);
    assert!(!place.path("pwned").exists());
    drop(world);

    // The cached database contains no secret, and the next run still recognises its own comments.
    let database = format!("sqlite:{}", place.path("runner/canonry-data/canonry.db").display());
    let kept = tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
        let store = Store::open_existing(&database.parse().expect("a URL")).await.expect("opens");
        let fresh = store.outbox().marker_secret([9; 32], Timestamp::now()).await.expect("stored");
        store.outbox().delete_marker_secret().await.expect("removed");
        let issued = store.outbox().issued_markers().await.expect("reads").len();
        store.disconnect().await;
        (fresh, issued)
    });
    assert!(kept.0 == [9; 32] && kept.1 >= 3, "{kept:?}");
    emulator.world().commit(REPO, "topic", &[("src/app.js", Some("start();\nfinish();\n"))]);
    place.write("spell.json", json!({"source": {"name": "Spell"}, "diagnostics": []}).to_string());
    let left = run_action(&place, &emulator, "review", "1", &given);
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
    assert!(left.summary.contains("0 new, 2 fixed"), "{}", left.summary);
    let world = emulator.world();
    let threads = &world.pull(REPO, 1).threads;
    assert!(threads.len() == 2 && threads.iter().all(|thread| thread.resolved_by.is_some()), "{threads:?}");
}

#[test]
fn the_action_reviews_a_forks_change_without_publishing_or_checking_out() {
    let copy = WorkingCopy::new();
    let base = copy.git(&["rev-parse", "main"]);
    let head = copy.write("src/app.js", &code("debugger;")).commit("Look closer");
    let place = &copy.place;
    fs::create_dir_all(place.path("srv/octo")).expect("a folder");
    fs::rename(copy.path(""), place.path("srv/octo/cat.git")).expect("the clone is ours");
    // A stand-in for `gh`, as far as the step uses it.
    program(place, "gh", &format!("echo {base} {head}"));
    let whole_path = place.path("src/app.js").display().to_string();
    place.write("lint.sarif", sarif(&[("no-steps", "error", &format!("file://{whole_path}"), 10)]));
    let emulator = Emulator::start_blocking(World::new());
    let server = format!("file://{}", place.path("srv").display());
    let given =
        [("SERVER", server.as_str()), ("PUBLISH", "true"), ("FROM_FORK", "true"), ("SARIF_REPORTS", "lint.sarif")];
    let left = run_action(place, &emulator, "review", "7", &given);
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
    assert!(left.outputs.contains("::notice::") && left.outputs.contains("sarif="), "{}", left.outputs);
    assert!(left.summary.contains("2 findings, 2 new"), "{}\n{}", left.summary, left.outputs);
    let report = fs::read_to_string(place.path("runner/canonry.sarif")).expect("a report");
    assert!(report.contains("no-steps") && report.contains("\"src/app.js\""), "{report}");
    assert!(emulator.requests().is_empty(), "nothing is asked of GitHub, and nothing is written");
    assert!(!place.path("runner/canonry-clone/src").exists(), "nothing is checked out");

    let strict = [&given[..], &[("FAIL_ON", "major")]].concat();
    let left = run_action(place, &emulator, "review", "7", &strict);
    assert_eq!(left.exit, Some(5), "{}", left.outputs);

    // The program that reads the change has no token, and no token remains in the folder of the commits.
    let recorder = recorder(place);
    let left = run_action(place, &emulator, "review", "7", &[&given[..], &[("CANONRY", recorder.as_str())]].concat());
    assert_eq!(left.exit, Some(0), "{}", left.outputs);
    let (arguments, tokens) = recorded(place);
    assert_eq!(tokens, "none none\n");
    assert!(arguments.contains(&"--no-publish".to_owned()) && !arguments.contains(&TOKEN.to_owned()), "{arguments:?}");
    let kept = fs::read_to_string(place.path("runner/canonry-clone/config")).expect("git's settings");
    assert!(!kept.contains("extraHeader") && !kept.contains(TOKEN), "{kept}");
}

#[test]
fn the_action_refuses_what_is_no_number_and_no_command() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(World::new()));
    for (command, number) in
        [("review", ""), ("review", "1; id"), ("review", "0x1"), ("approve", "1"), ("detect-new", "1")]
    {
        let left = run_action(&place, &emulator, command, number, &[]);
        assert_eq!(left.exit, Some(2), "{command} {number}: {}", left.outputs);
        assert!(left.outputs.contains("::error::"), "{}", left.outputs);
    }
    assert!(emulator.requests().is_empty());
}
