//! Commands that use GitHub, with an emulated one.

use canonry_domain::{CurrentThreshold, ThresholdSource, TriageMode, TriageReason};
use canonry_store::{Store, TriageAction, TriageActionKind};
use canonry_testkit::github::{CloseReason, Emulator, Fault, NewIssue, Permission, TEST_APP_PRIVATE_KEY, World};
use insta::assert_snapshot;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::place::{Place, Ran};

const REPO: &str = "octo/cat";

/// A repository with two issues and a pull request, and a token that may read it.
pub(crate) fn world() -> World {
    let mut world = World::new();
    world.repo(REPO);
    for login in ["mona", "hubot", "zoe"] {
        world.user(login);
    }
    world.collaborator(REPO, "mona", Permission::Write);
    world.token("t0ken", "mona");
    world.open(REPO, "zoe", NewIssue::new("Crash on start", "It crashes.").label("bug"));
    world.advance(60);
    world.open(REPO, "hubot", NewIssue::new("Does not start", "See title."));
    world.advance(60);
    world.open(REPO, "mona", NewIssue::new("Start again", "Fixes #1").pull(canonry_testkit::github::Pull::default()));
    world.advance(3_600);
    world
}

fn canonry(place: &Place, emulator: &Emulator, arguments: &[&str]) -> Ran {
    let mut command = place.command(arguments);
    command.env("CANONRY_GITHUB_API_URL", emulator.url()).env("GITHUB_TOKEN", "t0ken");
    Ran::of(command.output().expect("the program starts"))
}

fn item(place: &Place, number: &str) -> Value {
    place.canonry(&["show", "--repo", REPO, "--number", number, "--json"]).succeeded().json()["item"].clone()
}

#[test]
fn sync_brings_everything_in_and_then_almost_nothing() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    assert_snapshot!(place.shown(&canonry(&place, &emulator, &["sync", "--repo", REPO])), @"
    exit 0
    Fetched 3 items of octo/cat.
    new  changed  unchanged
    ───────────────────────
      3        0          0

    Changes of 1 pull request stored.
    ");
    assert_snapshot!(place.shown(&canonry(&place, &emulator, &["sync", "--repo", REPO])), @r"
    exit 0
    Nothing new in octo/cat.
    ");
    assert_snapshot!(place.shown_json(&canonry(&place, &emulator, &["sync", "--repo", REPO, "--json"])), @r#"
    exit 0
    {
      "schema_version": 1,
      "command": "sync",
      "run_id": "[RUN]",
      "repo": "octo/cat",
      "stats": {
        "fetched": 0,
        "inserted": 0,
        "updated": 0,
        "content_changed": 0,
        "unchanged": 0,
        "pages": 0,
        "changes_stored": 0,
        "changes_left": 0,
        "base_branches_stored": 0
      },
      "dry_run": false,
      "not_modified": true,
      "renamed_from": null
    }
    "#);
    emulator.world().edit_body(REPO, 1, "zoe", "It crashes every time.");
    let edited = canonry(&place, &emulator, &["sync", "--repo", REPO, "--json"]).succeeded().json();
    assert_eq!(edited["stats"]["content_changed"], 1, "{edited}");
    assert_eq!(item(&place, "1")["content_version"], 2);
}

#[test]
fn a_dry_run_says_what_would_come_and_writes_nothing() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    place.canonry(&["init"]).succeeded();
    assert_snapshot!(place.shown(&canonry(&place, &emulator, &["sync", "--repo", REPO, "--dry-run", "--type", "issue"])), @"
    exit 0
    Would store 2 items of octo/cat.
    new  changed  unchanged
    ───────────────────────
      2        0          0
    ");
    assert!(
        place
            .canonry(&["export", "--repo", REPO])
            .failed()
            .starts_with("octo/cat is not in the database, which is empty")
    );
}

#[test]
fn since_is_a_span_or_a_date_and_nothing_else() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    for since in ["3d", "2026-02-01"] {
        canonry(&place, &emulator, &["sync", "--repo", REPO, "--since", since]).succeeded();
    }
    let asked =
        emulator.requests().iter().filter_map(|request| request.query("since").map(str::to_owned)).collect::<Vec<_>>();
    assert!(asked.iter().any(|since| since.starts_with("2026-02-01T00:00:00")), "{asked:?}");
    for arguments in [&["sync", "--repo", REPO, "--since", "bad-date"][..], &["sync", "--repo", "invalid"]] {
        assert_eq!(canonry(&place, &emulator, arguments).exit, Some(2), "{arguments:?}");
    }
}

#[test]
fn refresh_brings_new_items_and_on_request_the_changes_of_known_ones() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    let unknown = canonry(&place, &emulator, &["refresh", "--repo", REPO]);
    assert!(unknown.failed().starts_with("there is no database at "), "{unknown:?}");
    canonry(&place, &emulator, &["sync", "--repo", REPO]).succeeded();
    {
        let mut world = emulator.world();
        world.edit_title(REPO, 1, "zoe", "Crash on every start");
        world.open(REPO, "zoe", NewIssue::new("Another", "One more."));
    }
    assert_snapshot!(place.shown(&canonry(&place, &emulator, &["refresh", "--repo", REPO])), @"
    exit 0
    Fetched 1 item of octo/cat.
    new  changed  unchanged
    ───────────────────────
      1        0          0
    ");
    assert_eq!(
        (item(&place, "1")["title"].as_str(), item(&place, "4")["title"].as_str()),
        (Some("Crash on start"), Some("Another"))
    );
    let known =
        canonry(&place, &emulator, &["refresh", "--repo", REPO, "--refresh-known", "--json"]).succeeded().json();
    assert_eq!((&known["stats"]["inserted"], &known["stats"]["updated"]), (&json!(0), &json!(1)), "{known}");
    assert_eq!(item(&place, "1")["title"], "Crash on every start");
}

#[test]
fn outcomes_and_items_that_left_are_found_on_request() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    canonry(&place, &emulator, &["maintainers", "refresh", "--repo", REPO]).succeeded();
    canonry(&place, &emulator, &["sync", "--repo", REPO]).succeeded();
    {
        let mut world = emulator.world();
        world.comment(REPO, 2, "mona", "Duplicate of #1");
        world.close(REPO, 2, "mona", CloseReason::Duplicate(None));
        world.delete(REPO, 3, "mona");
    }
    let ran = canonry(&place, &emulator, &["sync", "--repo", REPO, "--outcomes", "--sweep"]);
    assert_snapshot!(place.shown(&ran), @"
    exit 0
    Fetched 2 items of octo/cat.
    new  changed  unchanged
    ───────────────────────
      0        2          0

    Closed duplicates without a known target: 1; found now: 1.
      #2 is a duplicate of #1

    Checked 3 items; 1 left the repository.
      #3 deleted
    ");
    assert_eq!(
        (item(&place, "2")["duplicate_of"].as_i64(), item(&place, "3")["gone"].as_str()),
        (Some(1), Some("deleted"))
    );
    let shown = place.canonry(&["show", "--repo", REPO, "--number", "2", "--json"]).json();
    assert_eq!(shown["outcome"]["state_reason"], "duplicate", "{shown}");
}

#[test]
fn maintainers_are_who_may_push() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    let document = canonry(&place, &emulator, &["maintainers", "refresh", "--repo", REPO, "--json"]).succeeded().json();
    assert_eq!(document["maintainers"]["source"], "github");
    assert_eq!(document["maintainers"]["logins"], json!(["mona"]));
}

#[test]
fn a_rename_is_followed() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    canonry(&place, &emulator, &["sync", "--repo", REPO]).succeeded();
    emulator.world().rename_repo(REPO, "octo/tiger", "mona");
    let renamed = canonry(&place, &emulator, &["sync", "--repo", REPO, "--json"]).succeeded().json();
    assert_eq!((&renamed["repo"], &renamed["renamed_from"]), (&json!("octo/tiger"), &json!(REPO)), "{renamed}");
    place.canonry(&["show", "--repo", "octo/tiger", "--number", "1"]).succeeded();
}

#[test]
fn what_github_refuses_is_one_sentence_without_the_token() {
    // The program waits by the machine's clock, so the reset of the limit must be in its future.
    let mut world = world();
    world.follows_wall_clock = true;
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world));
    let mut command = place.command(&["sync", "--repo", REPO, "--github-api", &emulator.url()]);
    let missing = Ran::of(command.output().expect("the program starts"));
    assert_eq!(
        missing.failed(),
        "GITHUB_TOKEN is not set; set it to a token that can read the repository, or set CANONRY_APP_ID and CANONRY_APP_PRIVATE_KEY"
    );
    let wrong = Ran::of(command.env("GITHUB_TOKEN", "ghp_wrong_0ne").output().expect("the program starts"));
    assert!(wrong.failed().starts_with("GitHub does not accept the token"), "{wrong:?}");
    let absent = canonry(&place, &emulator, &["sync", "--repo", "octo/dog"]);
    assert!(
        absent.failed().starts_with("GitHub has no repository octo/dog, or this token cannot see it"),
        "{absent:?}"
    );
    emulator.world().leave_requests("mona", 0);
    let exhausted = canonry(&place, &emulator, &["sync", "--repo", REPO]);
    assert!(exhausted.failed().starts_with("GitHub's rate limit is used up until "), "{exhausted:?}");
    for ran in [missing, wrong, absent, exhausted] {
        assert!(!format!("{ran:?}").contains("ghp_wrong") && !format!("{ran:?}").contains("t0ken"), "{ran:?}");
    }
}

#[test]
fn doctor_asks_github_about_the_token() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    place.canonry(&["init"]).succeeded();
    let checked = |ran: &Ran, name: &str| {
        let checks = ran.json()["checks"].clone();
        let check = checks.as_array().expect("a list").iter().find(|check| check["name"] == name).cloned();
        check.unwrap_or_else(|| panic!("doctor does not look at the {name}"))
    };
    let token = |ran: &Ran| checked(ran, "github token");
    emulator.world().now = Timestamp::now() - SignedDuration::from_hours(96);
    let ran = canonry(&place, &emulator, &["doctor", "--json"]);
    let trouble = "this machine's clock is 4 days ahead of GitHub's, so nothing is closed";
    assert_eq!((ran.exit, &checked(&ran, "clock")["message"]), (Some(1), &json!(trouble)));
    emulator.world().follows_wall_clock = true;
    let ran = canonry(&place, &emulator, &["doctor", "--json"]);
    assert_eq!(checked(&ran, "clock")["status"], json!("ok"));
    assert_eq!((ran.exit, &token(&ran)["message"]), (Some(0), &json!("GitHub accepts it, as mona")));
    emulator.fault(Fault::on("GET", "/user").nth(1).times(1).answer(503));
    let ran = canonry(&place, &emulator, &["doctor", "--json"]);
    assert_eq!((ran.exit, &token(&ran)["status"]), (Some(0), &json!("warn")), "{ran:?}");
    let mut command = place.command(&["doctor", "--json", "--github-api", &emulator.url()]);
    let ran = Ran::of(command.env("GITHUB_TOKEN", "ghp_wrong_0ne").output().expect("the program starts"));
    assert_eq!((ran.exit, &token(&ran)["status"]), (Some(1), &json!("fail")), "{ran:?}");
    assert!(!ran.stdout.contains("ghp_wrong"), "{ran:?}");
}

#[test]
fn doctor_tells_of_a_budget_without_prices() {
    let place = Place::with_items();
    place.canonry(&["embed", "--repo", REPO]).succeeded();
    let asked = ["detect-new", "--repo", REPO, "--type", "issue", "--number", "1", "--json"];
    let triage_id = place.canonry(&asked).succeeded().json()["triage_id"].as_i64().expect("a record");
    let action = TriageAction {
        triage_id,
        mode: TriageMode::Suggest,
        component: None,
        threshold: CurrentThreshold::Silent,
        source: ThresholdSource::Configured,
        action: TriageActionKind::Recorded,
        reason: TriageReason::NoPrices.into(),
        comment_key: None,
    };
    let url = format!("sqlite:{}", place.database().display()).parse().expect("a URL");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let store = Store::open_existing(&url).await.expect("opens");
        store.duplicates().record_triage_action(&action, Timestamp::now()).await.expect("written");
        store.disconnect().await;
    });
    let ran = place.canonry(&["doctor", "--json"]);
    let checks = ran.json()["checks"].clone();
    let budget = checks.as_array().expect("a list").iter().find(|check| check["name"] == "budget").expect("told");
    assert_eq!((ran.exit, &budget["status"]), (Some(1), &json!("fail")), "{ran:?}");
    assert!(budget.to_string().contains("--input-price"), "{budget}");
    let shown = place.canonry(&["show", "--repo", REPO, "--type", "issue", "--number", "1"]).succeeded();
    assert!(shown.stdout.contains("no comment: the model's prices are not configured"), "{shown:?}");
}

#[test]
fn doctor_asks_github_about_the_app() {
    let mut world = world();
    world.add_app(77, "canonry");
    // The App signs with the current time.
    world.follows_wall_clock = true;
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world));
    place.canonry(&["init"]).succeeded();
    let told = |id: &str, key: &str, more: &[&str]| {
        let mut command = place.command(&["doctor", "--github-api", &emulator.url()]);
        // As in every command, an App has priority over a token.
        command
            .args(more)
            .env("CANONRY_APP_ID", id)
            .env("CANONRY_APP_PRIVATE_KEY", key)
            .env("GITHUB_TOKEN", "ghp_0ther");
        let ran = Ran::of(command.output().expect("the program starts"));
        assert!(!format!("{ran:?}").contains("nonsense"), "{ran:?}");
        let lines: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("github ")).collect();
        format!("exit {}: {}", ran.exit.expect("it ended"), lines.join(", "))
    };
    let broken = "-----BEGIN RSA PRIVATE KEY-----\nnonsense";
    assert_snapshot!(told("77", TEST_APP_PRIVATE_KEY, &[]), @"exit 0: ok    github app    GitHub accepts it, as canonry[bot]");
    assert_snapshot!(told("77", TEST_APP_PRIVATE_KEY, &["--offline"]), @"exit 0: ok    github app    CANONRY_APP_ID and a key are set; not checked with GitHub");
    assert_snapshot!(told("1", TEST_APP_PRIVATE_KEY, &[]), @"exit 1: fail  github app    GitHub does not accept the App's key: it is wrong, expired or revoked; check CANONRY_APP_ID, its private key, and this machine's clock");
    assert_snapshot!(told("77", "", &[]), @"exit 1: fail  github app    CANONRY_APP_ID is set without a key; set CANONRY_APP_PRIVATE_KEY to the App's private key");
    assert_snapshot!(told("77", broken, &["--offline"]), @"exit 1: fail  github app    the GitHub client cannot start: the App's private key is not an RSA key in PEM form; download a new one from the App's settings");
}
