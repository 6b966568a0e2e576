//! A repository of 25,000 items: all of them are stored, however the first run ends, with few requests and little
//! memory.

use std::process::Child;
use std::time::Duration;

use canonry_testkit::github::{Emulator, NewIssue, Permission, World};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::place::{Place, Ran};

const REPO: &str = "octo/cat";
const ITEMS: i64 = 25_000;
/// Items that people change while the list is read.
const EDITED: i64 = 50;
/// A page contains a hundred items.
const REQUESTS_AT_FIRST: usize = 260;
const REQUESTS_AFTERWARDS: usize = 5;
const MEMORY: u64 = 200 << 20;

fn world() -> World {
    let mut world = World::new();
    world.repo(REPO);
    world.user("mona");
    world.user("zoe");
    world.collaborator(REPO, "mona", Permission::Write);
    world.token("t0ken", "mona");
    let body = "It stops, and nothing in the log says why. ".repeat(12);
    for number in 1..=ITEMS {
        world.advance(37);
        world.open(REPO, "zoe", NewIssue::new(&format!("Problem {number}"), &body));
    }
    world.advance(3_600);
    world
}

fn start(place: &Place, emulator: &Emulator) -> Child {
    let mut command = place.command(&["sync", "--repo", REPO, "--json"]);
    command.env("CANONRY_GITHUB_API_URL", emulator.url()).env("GITHUB_TOKEN", "t0ken");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.spawn().expect("the program starts")
}

/// The peak memory of a process so far, in bytes.
fn peak(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// Runs a sync to its end; returns its document and its peak memory.
fn sync(place: &Place, emulator: &Emulator) -> (Value, u64) {
    let mut child = start(place, emulator);
    let mut most = 0;
    while child.try_wait().expect("it is our child").is_none() {
        most = most.max(peak(&child).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    (Ran::of(child.wait_with_output().expect("it ends")).succeeded().json(), most)
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are quoted in docs/benchmarks.md")]
fn twenty_five_thousand_items_arrive_although_the_first_run_is_killed() {
    let (place, emulator) = (Place::new(), Emulator::start_blocking(world()));
    let mut child = start(&place, &emulator);
    while emulator.requests().len() < 100 {
        assert!(child.try_wait().expect("it is our child").is_none(), "it ended before it could be killed");
        std::thread::sleep(Duration::from_millis(5));
    }
    {
        let mut world = emulator.world();
        world.advance(60);
        for step in 1..=EDITED {
            // Some of them were already read, some not yet.
            let number = u64::try_from(step * (ITEMS / EDITED)).expect("a small number");
            world.edit_body(REPO, number, "zoe", "Edited while it was read.");
        }
    }
    let id = i32::try_from(child.id()).expect("process ids are small");
    kill(Pid::from_raw(id), Signal::SIGKILL).expect("our child is there");
    assert_eq!(child.wait().expect("it has ended").code(), None, "it ended before it could be killed");
    let before = emulator.requests().len();

    let (document, memory) = sync(&place, &emulator);
    let requests = emulator.requests().len();
    assert!(requests <= REQUESTS_AT_FIRST, "{before} requests until the kill and {} after it", requests - before);
    assert!(requests - before < 200, "the second run started over");
    assert!(memory < MEMORY, "{} MiB", memory >> 20);
    eprintln!("{requests} requests ({before} before the kill), {} MiB, {}", memory >> 20, document["stats"]);

    emulator.forget_requests();
    let (_, _) = sync(&place, &emulator);
    assert!(
        emulator.requests().len() <= REQUESTS_AFTERWARDS,
        "{} requests right afterwards",
        emulator.requests().len()
    );

    let exported = place.canonry(&["export", "--repo", REPO]).succeeded().stdout;
    let items: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(items.len(), usize::try_from(ITEMS).expect("small"));
    let edited = items.iter().filter(|item| item["body"] == "Edited while it was read.").count();
    assert_eq!(edited, usize::try_from(EDITED).expect("small"));
}
