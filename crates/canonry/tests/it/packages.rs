//! Compares the packages that cannot be run here with the program: the Action, the release, the image, the unit, the
//! App.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use canonry_github::{APP_EVENTS, APP_PERMISSIONS};
use serde_json::{Value, json};

use crate::place::Place;

pub(crate) const ACTION: &str = "action.yml";
pub(crate) const RELEASE: &str = ".github/workflows/release.yml";
const CI: &str = ".github/workflows/ci.yml";
const UNIT: &str = "packages/canonry.service";
const CONTAINERFILE: &str = "packages/Containerfile";
const MANIFEST: &str = "packages/app-manifest.json";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn text(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub(crate) fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&text(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Every step of the Action, or of all jobs of a workflow.
pub(crate) fn steps(document: &Value) -> Vec<&Value> {
    let lists: Vec<&Value> = match document["jobs"].as_object() {
        Some(jobs) => jobs.values().map(|job| &job["steps"]).collect(),
        None => vec![&document["runs"]["steps"]],
    };
    lists.into_iter().flat_map(|list| list.as_array().expect("a list of steps")).collect()
}

#[test]
fn scripts_take_what_others_wrote_from_the_environment_alone() {
    for file in [ACTION, RELEASE, CI] {
        let document = yaml(file);
        let scripts: Vec<&str> = steps(&document).into_iter().filter_map(|step| step["run"].as_str()).collect();
        assert!(scripts.len() >= 2, "{file}: {scripts:?}");
        for script in scripts {
            // GitHub pastes an expression's value into the script before bash reads it.
            assert!(!script.contains("${{"), "{file}: an expression in a script:\n{script}");
        }
    }
}

/// An entry has all vectors, and a repository has room for a few dozen.
#[test]
fn runs_save_one_cache_a_day() {
    let document = yaml(ACTION);
    let step = |name: &str| steps(&document).into_iter().find(|step| step["name"] == name).expect("the step");
    let (restore, save) = (step("Restore the cache"), step("Save the cache"));
    assert_eq!(restore["with"]["key"], save["with"]["key"]);
    let key = save["with"]["key"].as_str().expect("a key");
    assert!(key.contains("inputs.command == 'run' && inputs.state != 'none' && steps.install.outputs.day ||"), "{key}");
    let condition = save["if"].as_str().expect("a condition");
    assert!(
        condition.contains("steps.run.outcome == 'success' && steps.cache.outputs.cache-hit != 'true'"),
        "{condition}"
    );
}

#[test]
fn the_actions_inputs_are_declared_described_and_used() {
    let document = yaml(ACTION);
    let inputs = document["inputs"].as_object().expect("inputs");
    let declared: BTreeSet<&str> = inputs.keys().map(String::as_str).collect();
    let source = text(ACTION);
    let used: BTreeSet<&str> = source
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split("inputs.").skip(1))
        .map(|rest| rest.split(|character: char| !(character.is_ascii_alphanumeric() || character == '-')).next())
        .map(|name| name.expect("a split has a first part"))
        .collect();
    assert_eq!(declared, used);
    for (name, input) in inputs {
        let description = input["description"].as_str().unwrap_or_default();
        assert!(description.ends_with('.'), "{name} is not described: {description:?}");
        assert!(input.get("default").is_some() || input["required"] == true, "{name} has no default");
    }
    for (name, output) in document["outputs"].as_object().expect("outputs") {
        assert_eq!(output["value"], format!("${{{{ steps.run.outputs.{name} }}}}"));
        assert!(source.contains(&format!("{name}=")), "nothing sets the output {name}");
    }
}

#[test]
fn the_action_installs_its_own_version_and_checks_nothing_out() {
    let document = yaml(ACTION);
    assert_eq!(document["inputs"]["version"]["default"], format!("v{}", env!("CARGO_PKG_VERSION")));
    let used: Vec<&str> = steps(&document).into_iter().filter_map(|step| step["uses"].as_str()).collect();
    assert!(used.iter().all(|action| action.starts_with("actions/cache/")), "{used:?}");
    assert!(!text(ACTION).contains("git checkout"));
}

#[test]
fn what_others_wrote_is_used_by_commit() {
    let workflows = root().join(".github/workflows");
    let mut files = vec![root().join(ACTION)];
    files.extend(fs::read_dir(workflows).expect("a folder").map(|entry| entry.expect("an entry").path()));
    let mut seen = 0;
    for file in files {
        let source = fs::read_to_string(&file).expect("a text");
        for line in source.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("uses: "))
        {
            let (action, version) = line.split_once(" # v").unwrap_or_else(|| panic!("without a version: {line}"));
            let (_, commit) = action.split_once('@').unwrap_or_else(|| panic!("without a commit: {line}"));
            assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "not a commit: {line}");
            assert_eq!(version.split('.').filter(|part| part.parse::<u32>().is_ok()).count(), 3, "{line}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
}

#[test]
fn only_the_jobs_that_publish_may_write() {
    let document = yaml(RELEASE);
    assert_eq!(document["permissions"], json!({"contents": "read"}));
    let jobs = document["jobs"].as_object().expect("jobs");
    for (name, job) in jobs {
        let expected = match name.as_str() {
            "publish" => json!({"contents": "write", "id-token": "write", "attestations": "write"}),
            "registries" => {
                json!({"contents": "write", "id-token": "write", "packages": "write", "attestations": "write"})
            }
            _ => Value::Null,
        };
        assert_eq!(job["permissions"], expected, "{name}");
        assert!(job["timeout-minutes"].is_number(), "{name} may run for ever");
    }
    for name in ["publish", "registries"] {
        assert_eq!(jobs[name]["if"], "github.ref_type == 'tag' && github.event_name == 'push'");
        assert!(jobs[name]["environment"].is_string(), "{name} asks a maintainer");
    }
    // A secret is in the environment of the one step that needs it.
    let steps: Vec<&Value> =
        steps(&document).into_iter().filter(|step| step.to_string().contains("secrets.")).collect();
    let names: Vec<&str> = steps.iter().filter_map(|step| step["name"].as_str()).collect();
    assert_eq!(names, ["npm", "Homebrew tap", "Crates"]);
}

#[test]
fn every_change_and_every_release_is_tested_as_here() {
    let tests = |document: &Value, job: &str| {
        let steps = document["jobs"][job]["steps"].as_array().cloned().unwrap_or_default();
        steps.iter().any(|step| step["run"] == "bash .ci/run" && step.get("if").is_none())
    };
    let release = yaml(RELEASE);
    assert!(tests(&release, "test"));
    for (job, needs) in [
        ("build", json!("test")),
        ("crates", json!("test")),
        ("package", json!("build")),
        ("image", json!("build")),
        ("publish", json!(["build", "package", "image", "crates"])),
        ("registries", json!("publish")),
    ] {
        assert_eq!(release["jobs"][job]["needs"], needs, "{job}");
    }

    let ci = yaml(CI);
    assert!(tests(&ci, "test") && ci["jobs"]["test"]["timeout-minutes"].is_number());
    assert_eq!(ci["permissions"], json!({"contents": "read"}));
    assert_eq!(ci["on"], json!({"pull_request": {}, "push": {"branches": ["main"]}}), "never pull_request_target");
    let jobs = ci["jobs"].as_object().expect("jobs");
    assert!(jobs.values().all(|job| job.get("permissions").is_none()), "no job may do more");
    let pictures = steps(&ci).into_iter().find(|step| step["with"]["path"] == "target/screenshots").expect("a step");
    assert_eq!(pictures["if"], "always()");
    assert!(text(".ci/run").contains("\nexport CI=true\n"), "what cannot be had fails there");
}

#[test]
fn packages_are_built_by_the_profile_that_is_for_them() {
    assert!(text("Cargo.toml").contains("\n[profile.dist]\n"));
    for file in [RELEASE, CONTAINERFILE] {
        let built: Vec<String> = text(file)
            .lines()
            .filter(|line| line.contains("cargo build") && line.contains("--profile"))
            .map(str::to_owned)
            .collect();
        assert!(built.len() == 1 && built[0].contains("--profile dist --locked"), "{file}: {built:?}");
        assert!(text(file).contains("/dist/canonry") && !text(file).contains("--release"), "{file}");
    }
}

#[test]
fn the_action_fetches_the_archives_that_a_release_makes() {
    let document = yaml(RELEASE);
    let made: BTreeMap<String, String> = document["jobs"]["build"]["strategy"]["matrix"]["include"]
        .as_array()
        .expect("a matrix")
        .iter()
        .map(|row| (row["target"].as_str().expect("a target").into(), row["archive"].as_str().expect("a kind").into()))
        .collect();
    let word = |line: &str, name: &str| -> Option<String> {
        let rest = line.split_once(&format!("{name}="))?.1;
        rest.split([' ', ';']).next().map(str::to_owned)
    };
    let fetched: BTreeMap<String, String> =
        text(ACTION).lines().filter_map(|line| Some((word(line, " target")?, word(line, " archive")?))).collect();
    assert_eq!(made, fetched);
    assert!(text(ACTION).contains("file=\"canonry-$VERSION-$target.$archive\""));
    let names = "canonry-${{ github.ref_type == 'tag' && github.ref_name || 'untagged' }}-${{ matrix.target }}";
    assert!(text(RELEASE).contains(&format!("NAME: {names}\n")));
    assert!(text(RELEASE).contains(&format!("test \"${{#archives[@]}}\" -eq {}", made.len())));
}

#[test]
fn what_is_packed_lies_in_the_repository() {
    let release = text(RELEASE);
    let containerfile = text(CONTAINERFILE);
    let copied = release
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("cp "))
        .chain(containerfile.lines().filter_map(|line| line.strip_prefix("COPY ")))
        .filter(|line| !line.starts_with("--from") && *line != ". .");
    let mut seen = 0;
    for line in copied {
        let words: Vec<&str> = line.split_whitespace().collect();
        for file in words[..words.len() - 1].iter().filter(|word| !word.contains('$')) {
            assert!(root().join(file).is_file(), "there is no {file}");
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}

/// Docker's patterns are relative to the folder of the file; git's have a slash before them.
#[test]
fn an_image_is_built_from_all_of_the_repository_and_from_nothing_beside_it() {
    let patterns: Vec<String> = text(".dockerignore")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| format!("--exclude=/{line}"))
        .collect();
    for kept_out in ["target", ".git", "*.env", "*.pem", "admin-token"] {
        assert!(patterns.contains(&format!("--exclude=/{kept_out}")), "{kept_out}");
    }
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--ignored"]).args(&patterns).current_dir(root());
    let left_out = git.output().expect("git runs");
    assert!(left_out.status.success(), "{}", String::from_utf8_lossy(&left_out.stderr));
    assert_eq!(String::from_utf8_lossy(&left_out.stdout), "", "the build misses these");
    assert!(!root().join(".containerignore").exists(), "podman would read it instead");
}

#[test]
fn the_manifest_asks_for_what_the_code_needs_and_no_more() {
    let manifest: Value = serde_json::from_str(&text(MANIFEST)).expect("JSON");
    let permissions: BTreeMap<&str, &str> = APP_PERMISSIONS.into();
    assert_eq!(manifest["default_permissions"], json!(permissions));
    assert_eq!(manifest["default_events"], json!(APP_EVENTS));
    assert_eq!(manifest["public"], false);
    assert_eq!(manifest["hook_attributes"]["url"], "https://CANONRY-HOST/webhooks/github");
    for document in ["docs/service.md", "docs/security.md"] {
        let words = text(document).replace('\n', " ");
        for event in APP_EVENTS {
            let mut name = event.replace('_', " ");
            name[..1].make_ascii_uppercase();
            assert!(words.contains(&format!("*{name}*")), "{document} does not name the event {name}");
        }
    }
}

#[test]
fn a_stop_leaves_the_service_the_time_it_takes() {
    let unit = text(UNIT);
    let settings: BTreeMap<&str, &str> = unit.lines().filter_map(|line| line.split_once('=')).collect();
    let seconds: u64 = settings["TimeoutStopSec"].parse().expect("seconds");
    let drain = canonry_server::DRAIN.as_secs();
    assert!(seconds > drain, "{seconds} s, while the service drains for {drain} s");
    assert!(text(CONTAINERFILE).contains(&format!("up to {drain} seconds: stop with --time {seconds}")));
}

/// Uses systemd's own parser if it is installed, and otherwise checks the part of its grammar that a unit of this
/// kind uses.
#[expect(clippy::print_stdout, reason = "whoever looks is told who read it")]
#[test]
fn systemd_understands_the_unit() {
    let unit = text(UNIT);
    let started = "ExecStart=/usr/local/bin/canonry ";
    assert!(unit.contains(started), "where the unit's own words install it");
    let place = Place::new();
    let here = unit.replace(started, &format!("ExecStart={} ", env!("CARGO_BIN_EXE_canonry")));
    let file = place.write("canonry.service", here);
    assert_is_a_unit(&unit);
    let verify = ["verify", "--man=no", "--recursive-errors=no"];
    let read_by = match Command::new("systemd-analyze").args(verify).arg(&file).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.is_empty(), "systemd-analyze: {said}");
            "systemd-analyze"
        }
        Err(_) => "this test alone, since there is no systemd-analyze here",
    };
    println!("the unit was read by {read_by}");
}

/// Sections, and settings whose names and values are on one line.
fn assert_is_a_unit(unit: &str) {
    let mut sections = Vec::new();
    for line in unit.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(section);
            continue;
        }
        let (name, _) = line.split_once('=').unwrap_or_else(|| panic!("neither a section nor a setting: {line}"));
        assert!(!sections.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{line}");
        assert!(!line.ends_with('\\'), "it goes on: {line}");
    }
    assert_eq!(sections, ["Unit", "Service", "Install"]);
}
