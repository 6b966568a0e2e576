//! Runs that are stopped in the middle, two runs at once, and readers that stop early.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Child;

use canonry_store::{ItemCounts, NEWEST_SCHEMA, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::on_both_engines;
use canonry_testkit::samples::TIDEPOOL;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::place::{Place, Ran, names_in};

/// Enough batches that the first is visible long before the last.
const ITEMS: u64 = 12_000;

/// Each kill costs a batch of at least a thousand items; some must remain for the end.
fn kills() -> u32 {
    if std::env::var_os("CANONRY_SOAK").is_some() { 6 } else { 1 }
}

fn send(child: &Child, signal: Signal) {
    let id = i32::try_from(child.id()).expect("process ids are small");
    kill(Pid::from_raw(id), signal).expect("our child is there");
}

async fn count(database: &TestDatabase) -> u64 {
    let url = database.url().parse().expect("valid");
    let Ok(store) = Store::open_existing(&url).await else {
        return 0;
    };
    let counts = match store.repos().find(&"octo/cat".parse().expect("valid")).await.expect("it answers") {
        Some(repo) => store.corpus().item_counts(repo.id).await.expect("it answers"),
        None => ItemCounts::default(),
    };
    store.disconnect().await;
    counts.total()
}

on_both_engines! {
    async fn an_import_that_was_killed_is_completed_by_running_it_again(database: TestDatabase) {
        let place = Place::new();
        let body = "A body that takes some room. ".repeat(20);
        let lines: String = (1..=ITEMS).map(|number| format!("{}\n", json!({"number": number, "title": format!("Item {number}"), "body": body}))).collect();
        place.write("items.jsonl", lines);
        let arguments = ["import", "--repo", "octo/cat", "items.jsonl", "--json", "--db", database.url()];

        let mut kept = 0;
        for _ in 0..kills() {
            let mut child = place.start(&arguments);
            let mut seen = kept;
            while seen == kept && child.try_wait().expect("it is our child").is_none() {
                seen = count(&database).await;
            }
            send(&child, Signal::SIGKILL);
            assert_eq!(child.wait().expect("it has ended").code(), None, "it ended before it could be killed");
            let before = std::mem::replace(&mut kept, count(&database).await);
            assert!((before + 1..ITEMS).contains(&kept), "{kept} after {before}");
        }

        let again = place.canonry(&arguments).succeeded().json();
        assert_eq!(again["stats"], json!({"read": ITEMS, "inserted": ITEMS - kept, "updated": 0, "unchanged": kept, "failed": 0}));
        assert_eq!(count(&database).await, ITEMS);
        let third = place.canonry(&arguments).succeeded().json();
        assert_eq!(third["stats"]["unchanged"], ITEMS);
    }

    async fn several_programs_may_start_at_once(database: TestDatabase) {
        database.emptied().await;
        let place = Place::new();
        let started: Vec<Child> = (0..4).map(|_| place.start(&["init", "--json", "--db", database.url()])).collect();
        for child in started {
            let ran = Ran::of(child.wait_with_output().expect("it ends")).succeeded();
            assert_eq!(ran.json()["schema"]["after"], NEWEST_SCHEMA.0, "{ran:?}");
        }
        place.canonry(&["doctor", "--db", database.url(), "--offline"]).succeeded();
    }

    async fn two_imports_at_once_lose_nothing(database: TestDatabase) {
        let place = Place::new();
        for (file, numbers) in [("odd.jsonl", 1..1_200), ("all.jsonl", 1..1_500)] {
            let lines: String = numbers.map(|number| format!("{}\n", json!({"number": number, "title": "t"}))).collect();
            place.write(file, lines);
        }
        let started = ["odd.jsonl", "all.jsonl"].map(|file| place.start(&["import", "--repo", "octo/cat", file, "--json", "--db", database.url()]));
        let mut inserted = 0;
        for child in started {
            let document = Ran::of(child.wait_with_output().expect("it ends")).succeeded().json();
            inserted += document["stats"]["inserted"].as_u64().expect("a count");
        }
        assert_eq!((inserted, count(&database).await), (1_499, 1_499));
    }
}

#[test]
fn an_interrupted_command_says_so_and_ends_at_once() {
    let place = Place::new();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        // It waits for a standard input that never ends. Its first log line says that it listens for signals.
        let mut child = place.start(&["import", "--repo", "octo/cat", "-", "-vv"]);
        let mut errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut line = String::new();
        while !line.contains("listening for signals") {
            line.clear();
            assert!(errors.read_line(&mut line).expect("text") > 0, "it ended");
        }
        send(&child, signal);
        let mut rest = String::new();
        errors.read_to_string(&mut rest).expect("text");
        assert_eq!(child.wait().expect("it ends").code(), Some(1), "{rest}");
        assert!(
            rest.ends_with(
                "error: interrupted; what was stored is kept, and running the command again continues from there\n"
            ),
            "{rest}"
        );
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let place = Place::new();
    place.write("items.jsonl", TIDEPOOL.items);
    place.canonry(&["import", "items.jsonl"]).succeeded();
    for arguments in [
        &["export", "--repo", "tidepool/tidepool"][..],
        &["export", "--repo", "tidepool/tidepool", "--json"],
        &["completions", "bash"],
        &["config", "schema"],
    ] {
        let mut child = place.start(arguments);
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_exact(&mut [0; 10]).expect("at least ten bytes");
        drop(stdout);
        let ran = Ran::of(child.wait_with_output().expect("it ends"));
        assert_eq!((ran.exit, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn an_export_that_fails_leaves_the_older_file_and_nothing_else() {
    let place = Place::with_items();
    place.write("out.jsonl", "older\n");
    assert_eq!(place.canonry(&["export", "--repo", "octo/dog", "-o", "out.jsonl"]).exit, Some(1));
    assert_eq!(std::fs::read_to_string(place.path("out.jsonl")).expect("still there"), "older\n");
    assert_eq!(
        place.canonry(&["export", "--repo", "octo/cat", "-o", "no/such/folder.jsonl"]).failed(),
        "the file no/such/folder.jsonl cannot be written; check the folder and its permissions: No such file or directory (os error 2)"
    );
    assert_eq!(names_in(&place.path("")), [".local", "items.jsonl", "out.jsonl", "tmp"]);
    // A device is written directly.
    place.canonry(&["export", "--repo", "octo/cat", "-o", "/dev/null"]).succeeded();
    assert!(!std::fs::metadata("/dev/null").expect("it is there").is_file());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_its_target_is_replaced() {
    let place = Place::with_items();
    place.write("target.jsonl", "older\n");
    std::os::unix::fs::symlink(place.path("target.jsonl"), place.path("link.jsonl")).expect("the folder takes links");
    place.canonry(&["export", "--repo", "octo/cat", "-o", "link.jsonl"]).succeeded();
    assert!(std::fs::symlink_metadata(place.path("link.jsonl")).expect("it is there").is_symlink());
    assert_eq!(std::fs::read_to_string(place.path("target.jsonl")).expect("it is there").lines().count(), 3);
}
