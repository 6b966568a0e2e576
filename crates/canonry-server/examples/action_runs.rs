//! Measures runs of `canonry run` on an emulated GitHub.
//!
//! `cargo xtask bench action` runs it: `action_runs PROGRAM FOLDER ITEMS`. The first run fetches and embeds everything; then
//! issues are opened, one for each run: some with the cache of vectors from before, some with yesterday's.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the figures are what this program is for")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use canonry_testkit::github::{Emulator, NewIssue, Permission, World};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

const REPO: &str = "tide/pool";
const TOKEN: &str = "ghp_bench";
const EVENTS: usize = 6;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [program, folder, items] = arguments.as_slice() else { return Err("action_runs PROGRAM FOLDER ITEMS".into()) };
    let (folder, items) = (Path::new(folder), items.parse::<usize>()?);
    let emulator = Emulator::start_blocking(world(items));
    let origin = folder.join("origin.git");
    git(folder, &["init", "--quiet", "--bare", &origin.display().to_string()])?;
    let runs = Runs { program, folder, emulator: &emulator };
    let first = runs.run("schedule", &json!({}), 0)?;
    eprintln!("first run: {first}");
    let kept = folder.join("kept");
    copy(&folder.join("data"), &kept)?;
    let (mut same, mut older) = (Vec::new(), Vec::new());
    for event in 0..EVENTS {
        let payload = open_duplicate(&emulator, event, items);
        // Half of the runs find the vectors of the first run only, as a cache that is saved once a day has them.
        if event % 2 == 1 {
            std::fs::remove_dir_all(folder.join("data"))?;
            copy(&kept, &folder.join("data"))?;
        }
        let run = runs.run("issues", &payload, event + 1)?;
        eprintln!("event {event}: {run}");
        if event % 2 == 1 { older.push(run) } else { same.push(run) }
    }
    let mut idle = Vec::new();
    for run in 0..EVENTS / 2 {
        idle.push(runs.run("schedule", &json!({}), EVENTS + 1 + run)?);
    }
    let cache = sh(&folder.join("data"), "tar -c . | gzip -1 | wc -c")?;
    // On a machine without a cache every vector is computed again.
    std::fs::remove_dir_all(folder.join("data"))?;
    let payload = open_duplicate(&emulator, EVENTS, items);
    let bare = runs.run("issues", &payload, 2 * EVENTS)?;
    let state = git(&origin, &["ls-tree", "-l", "refs/canonry/state"])?;
    let sizes = state.lines().filter_map(|line| line.split_whitespace().nth(3)?.parse::<u64>().ok());
    let transferred =
        "git rev-list --objects refs/canonry/state | git pack-objects --quiet --compression=1 --stdout | wc -c";
    println!(
        "{}",
        json!({
            "first": first, "same_cache": same, "older_cache": older, "idle": idle, "no_cache": bare,
            "state_bytes": sizes.sum::<u64>(),
            "transferred_bytes": sh(&origin, transferred)?,
            "cache_bytes": cache,
        })
    );
    Ok(())
}

struct Runs<'a> {
    program: &'a str,
    folder: &'a Path,
    emulator: &'a Emulator,
}

impl Runs<'_> {
    /// One run: its seconds and its requests to GitHub.
    fn run(&self, event: &str, payload: &Value, run: usize) -> Result<Value, Failure> {
        let file = self.folder.join("event.json");
        std::fs::write(&file, payload.to_string())?;
        std::fs::create_dir_all(self.folder.join("data"))?;
        let (asked, began, worked) = (self.emulator.requests().len(), Instant::now(), cpu_of_children());
        let output = Command::new(self.program)
            .args(["run", "--json", "--repo", REPO, "--event", event])
            .arg(format!("--state-remote=file://{}", self.folder.join("origin.git").display()))
            .arg(format!("--db=sqlite:{}", self.folder.join("data/canonry.db").display()))
            .env("GITHUB_TOKEN", TOKEN)
            .env("GITHUB_RUN_ID", run.to_string())
            .env("GITHUB_EVENT_PATH", &file)
            .env("CANONRY_GITHUB_API_URL", self.emulator.url())
            .output()?;
        if !output.status.success() {
            return Err(format!("the run failed: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let printed: Value = serde_json::from_slice(&output.stdout)?;
        let verdict = &printed["events"][0]["verdict"]["verdict"];
        let requests = self.emulator.requests().len() - asked;
        let cpu = cpu_of_children() - worked;
        Ok(json!({ "seconds": began.elapsed().as_secs_f64(), "cpu": cpu, "requests": requests, "verdict": verdict }))
    }
}

/// The processor seconds of all programs that this one started and that ended, git among them.
fn cpu_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // cutime and cstime, in hundredths of a second.
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    (ticks(13) + ticks(14)) / 100.0
}

/// Issues with made-up words. Most are closed, as in a repository of some age.
fn world(items: usize) -> World {
    let mut world = World::new();
    world.repo(REPO);
    world.user("ann");
    world.user("ben");
    world.collaborator(REPO, "canonry-bot", Permission::Write);
    world.token(TOKEN, "canonry-bot");
    world.rate.limit = 10_000_000;
    for item in 0..items {
        let (title, body) = text(item);
        world.advance(60);
        world.open(REPO, "ann", NewIssue::new(&title, &body));
    }
    world.send_webhooks_to("http://127.0.0.1:9/", "none");
    world.get_mut(REPO).file(".canonry.yml", "triage: {mode: suggest}\n");
    world
}

/// Opens an earlier issue again; the payload of its event.
fn open_duplicate(emulator: &Emulator, event: usize, items: usize) -> Value {
    let mut world = emulator.world();
    let (title, body) = text(items / 2 + event);
    world.advance(60);
    // The same person would be taken for one who reports something that recurs.
    world.open(REPO, "ben", NewIssue::new(&format!("Again: {title}"), &body));
    world.deliveries.last().map(|delivery| delivery.payload.clone()).unwrap_or_default()
}

fn text(item: usize) -> (String, String) {
    let words =
        ["harbour", "anchor", "tide", "sail", "current", "buoy", "keel", "mast", "pier", "gull", "reef", "swell"];
    let word = |salt: usize| words[(item.wrapping_mul(2_654_435_761).wrapping_add(salt * 97)) / 7 % words.len()];
    let title = format!("The {} stops at the {} when the {} is {}", word(1), word(2), word(3), item % 977);
    let mut body =
        format!("Since version {}.{} it fails with E{item} in `{}_{}::start`.", item % 9, item % 31, word(4), item);
    for line in 0..12 {
        body += &format!(
            " The {} of the {} does not reach the {} in case {}.",
            word(line + 5),
            word(line + 6),
            word(line + 7),
            item + line
        );
    }
    (title, body)
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// The number that a command prints.
fn sh(folder: &Path, script: &str) -> Result<u64, Failure> {
    let output = Command::new("sh").args(["-c", script]).current_dir(folder).output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    if copied.success() { Ok(()) } else { Err("the folder could not be copied".into()) }
}
