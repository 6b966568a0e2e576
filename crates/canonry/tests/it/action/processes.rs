//! `canonry run` as real processes: killed at each step of a run, and two at once, with the state in a bare repository.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use canonry_testkit::github::{Emulator, Fault, Gate, NewIssue, World};
use serde_json::{Value, json};

use super::TOKEN;
use super::running::{OWN, REPO, repeated};
use crate::place::{ITEMS, Place, Ran, names_in};

const STATE: &str = "refs/canonry/state";
const SUGGEST: &str = "triage: {mode: suggest}\n";

/// Machines that know nothing of each other but the state.
struct Machines {
    place: Place,
    emulator: Emulator,
}

impl Machines {
    fn new(world: World) -> Self {
        let machines = Self { place: Place::new(), emulator: Emulator::start_blocking(world) };
        machines.git(&["init", "--quiet", "--bare", "."]);
        machines
    }

    fn git(&self, arguments: &[&str]) -> String {
        let origin = self.place.path("origin.git");
        fs::create_dir_all(&origin).expect("a folder");
        let mut git = Command::new("git");
        git.arg("-C").arg(origin).args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments);
        let output = git.output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    }

    /// Starts a run on a machine of its own.
    fn start(&self, event: &str, payload: &Value, run: &str) -> Child {
        let file = self.place.write(&format!("event-{run}.json"), payload.to_string());
        let data = self.place.path(&format!("machine-{run}"));
        fs::create_dir_all(&data).expect("a folder");
        let mut command = self.place.command(&["run", "--json", "--repo", REPO, "--event", event]);
        command
            .arg(format!("--state-remote=file://{}", self.place.path("origin.git").display()))
            .arg(format!("--db=sqlite:{}", data.join("canonry.db").display()))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GITHUB_TOKEN", TOKEN)
            .env("GITHUB_RUN_ID", run)
            .env("GITHUB_EVENT_PATH", file)
            .env("CANONRY_GITHUB_API_URL", self.emulator.url())
            .env("CANONRY_LOG", "info")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    fn comments(&self, number: u64) -> usize {
        self.emulator.world().comments_by(REPO, number, OWN).len()
    }

    fn state_files(&self) -> String {
        self.git(&["ls-tree", "--name-only", STATE])
    }

    /// Makes the lease in the state look as old as if its process had been killed hours ago.
    fn end_lease(&self) {
        let lease = self.git(&["cat-file", "blob", &format!("{STATE}:lease.json")]);
        let mut lease: Value = serde_json::from_str(&lease).expect("JSON");
        lease["until"] = json!("2020-01-01T00:00:00Z");
        let file = self.place.write("lease.json", lease.to_string());
        let id = self.git(&["hash-object", "-w", file.to_str().expect("UTF-8")]);
        let entries = self.git(&["ls-tree", STATE]);
        let others = entries.lines().filter(|entry| !entry.ends_with("\tlease.json"));
        let tree: String = others.map(|entry| format!("{entry}\n")).collect();
        let tree = self.place.write("tree", format!("{tree}100644 blob {id}\tlease.json\n"));
        let script = format!("git mktree < '{}'", tree.display());
        let mut sh = Command::new("sh");
        let made = sh.args(["-c", &script]).current_dir(self.place.path("origin.git")).output().expect("sh starts");
        let tree = String::from_utf8(made.stdout).expect("UTF-8").trim().to_owned();
        let commit = self.git(&["commit-tree", &tree, "-m", "A lease that is over"]);
        self.git(&["update-ref", STATE, &commit]);
    }
}

fn wait_for(gate: &mut Gate) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(gate.arrived());
}

#[test]
fn a_process_that_is_killed_at_any_request_loses_and_doubles_nothing() {
    let comment = || Fault::on("POST", "/**/comments");
    let label = || Fault::on("POST", "/**/labels");
    let steps = [
        ("before it reads anything", Fault::on("GET", "/**").hold()),
        ("before the comment is posted", comment().hold()),
        ("after the comment, before its answer", comment().hold_answer()),
        ("before the label", label().hold()),
        ("after the label, before its answer", label().hold_answer()),
    ];
    for (step, (fault, mut gate)) in steps {
        let (world, event) = repeated(Some(SUGGEST));
        let machines = Machines::new(world);
        machines.emulator.fault(fault);
        let mut killed = machines.start("issues", &event, "1");
        wait_for(&mut gate);
        killed.kill().expect("it runs");
        assert_eq!(killed.wait().expect("it has ended").code(), None, "killed {step}");
        gate.release();
        assert!(machines.state_files().contains("event-actions-1.json"), "{step}");
        machines.end_lease();

        let next = machines.start("schedule", &json!({}), "2").wait_with_output().expect("it ends");
        let next = Ran::of(next).succeeded();
        let events = next.json()["events"].clone();
        assert_eq!((&events[0]["number"], &events[0]["state"]), (&json!(2), &json!("done")), "killed {step}: {next:?}");
        assert_eq!(machines.comments(2), 1, "killed {step}");
        assert_eq!(machines.emulator.world().issue(REPO, 2).labels, ["possible-duplicate"], "killed {step}");
        assert_eq!(machines.state_files(), "README.md\ndatabase-000", "killed {step}");
        // What a workflow caches does not grow with every run, and has no texts.
        let cached = names_in(&machines.place.path("machine-2"));
        assert!(
            cached.iter().all(|name| ["canonry.vectors", "canonry.db.index"].contains(&name.as_str())),
            "{cached:?}"
        );
        machines.emulator.assert_no_unknown_routes();
    }
}

#[test]
fn two_processes_at_once_take_turns() {
    let (mut world, first) = repeated(Some(SUGGEST));
    let (title, body) = (world.issue(REPO, 1).title.clone(), world.issue(REPO, 1).body.clone());
    world.user("ben");
    world.open(REPO, "ben", NewIssue::new(&title, body.as_deref().unwrap_or_default()));
    let second = world.deliveries.last().expect("an event").payload.clone();
    let machines = Machines::new(world);
    let (fault, mut gate) = Fault::on("POST", "/**/comments").hold();
    machines.emulator.fault(fault);
    let one = machines.start("issues", &first, "1");
    wait_for(&mut gate);
    let mut two = machines.start("issues", &second, "2");
    // It stays open: the run goes on writing to it.
    let mut lines = BufReader::new(two.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let waits = lines.any(|line| line.contains("another run has the state"));
    assert!(waits, "the second run did not wait");
    assert_eq!((machines.comments(2), machines.comments(3)), (0, 0));
    gate.release();
    for run in [one, two] {
        Ran::of(run.wait_with_output().expect("it ends")).succeeded();
    }
    assert_eq!((machines.comments(2), machines.comments(3)), (1, 1));
    assert_eq!(machines.state_files(), "README.md\ndatabase-000");
    drop(lines);
}

/// The next run on the same machine may begin as soon as the state is given back.
#[test]
fn a_process_has_put_its_files_away_when_it_gives_the_state_back() {
    let (world, event) = repeated(Some(SUGGEST));
    let machines = Machines::new(world);
    let (data, listing) = (machines.place.path("machine-1"), machines.place.path("listing"));
    fs::create_dir_all(machines.place.path("origin.git/hooks")).expect("a folder");
    // Each push is listed over the one before; the last one gives the state back.
    let script = format!("#!/bin/sh\nls '{}' > '{}'\n", data.display(), listing.display());
    let hook = machines.place.write("origin.git/hooks/pre-receive", script);
    fs::set_permissions(hook, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let run = machines.start("issues", &event, "1").wait_with_output().expect("it ends");
    Ran::of(run).succeeded();
    assert_eq!(machines.state_files(), "README.md\ndatabase-000");
    let listed = fs::read_to_string(listing).expect("git ran the hook");
    let names: Vec<&str> = listed.lines().filter(|name| *name != "canonry.db.index").collect();
    assert_eq!(names, ["canonry.vectors"]);
}

/// Whoever cancels a run that waits does not have to kill it.
#[test]
fn a_process_that_waits_for_another_one_can_be_stopped() {
    let (world, event) = repeated(Some(SUGGEST));
    let machines = Machines::new(world);
    let (fault, mut gate) = Fault::on("POST", "/**/comments").hold();
    machines.emulator.fault(fault);
    let one = machines.start("issues", &event, "1");
    wait_for(&mut gate);
    let mut two = machines.start("schedule", &json!({}), "2");
    let mut lines = BufReader::new(two.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("another run has the state")), "the second run did not wait");
    let told = Command::new("kill").args(["-TERM", &two.id().to_string()]).status();
    assert!(told.expect("kill starts").success());
    let said: Vec<String> = lines.collect();
    assert_eq!(two.wait().expect("it ends").code(), Some(1));
    assert!(said.iter().any(|line| line.contains("the run was stopped while another run had the state")), "{said:?}");
    gate.release();
    Ran::of(one.wait_with_output().expect("it ends")).succeeded();
    assert_eq!(machines.comments(2), 1);
}

/// What a person reads who tries the command, or whose workflow lacks something.
#[test]
fn a_run_says_what_is_missing() {
    let machines = Machines::new(repeated(None).0);
    let place = &machines.place;
    let run = |more: &[&str], given: &[(&str, &str)]| {
        let mut command = place.command(&[&["run", "--repo", REPO][..], more].concat());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("CANONRY_GITHUB_API_URL", machines.emulator.url()).envs(given.iter().copied());
        place.shown(&Ran::of(command.output().expect("it starts")))
    };
    let (token, own) = ([("GITHUB_TOKEN", TOKEN)], "--db=sqlite:run.db");
    let remote = |name: &str| format!("--state-remote=file://{}", place.path(name).display());
    // A database that somebody works with.
    place.write("items.jsonl", ITEMS);
    place.canonry(&["import", "--repo", REPO, "items.jsonl", "--db=sqlite:mine.db"]).succeeded();
    let shown = [
        run(&[], &token),
        run(&["--db=sqlite:mine.db", &remote("origin.git")], &token),
        run(&[own], &[]),
        run(&[own, "--event", "issues"], &token),
        run(&[own, "--event", "issues", "--payload", "none.json"], &token),
        run(&["--db", "postgres://localhost/canonry"], &token),
        run(&[own, "--state-ref", "heads/state"], &token),
        run(&[own, &remote("elsewhere.git")], &token),
    ];
    let kept = place.canonry(&["show", "1", "--repo", REPO, "--json", "--db=sqlite:mine.db"]).succeeded();
    assert_eq!(kept.json()["repo"], REPO);
    insta::assert_snapshot!(shown.concat(), @r#"
    exit 2
    --- stderr
    error: a run with a state ref deletes its database at the end and never uses the default one; name a file with --db sqlite:PATH
    exit 1
    --- stderr
    error: mine.db is not the database of a run, and this run would delete it; name another file with --db, or remove it
    exit 1
    --- stderr
    error: GITHUB_TOKEN is not set; set it to the job's token: GITHUB_TOKEN: ${{ github.token }}
    exit 2
    --- stderr
    error: the event issues needs its payload: set GITHUB_EVENT_PATH, or name the file with --payload
    exit 1
    --- stderr
    error: the event's payload cannot be read from none.json; check GITHUB_EVENT_PATH: No such file or directory (os error 2)
    exit 2
    --- stderr
    error: `canonry run` keeps its data in a SQLite database; for PostgreSQL use `canonry serve`
    exit 2
    --- stderr
    error: invalid value 'heads/state' for '--state-ref <REF>': it must be `none` or begin with refs/

    For more information, try '--help'.
    exit 1
    --- stderr
    error: failed to find the state: git says "fatal: '[HERE]/elsewhere.git' does not appear to be a git repository"; check that the token may write contents
    "#);
}
