//! The steps of the Action, executed like on a runner.

mod installing;
mod processes;
pub(crate) mod running;
mod workflow;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::packages::{ACTION, steps, yaml};
use crate::place::Place;

const TOKEN: &str = "t0ken";

/// The result of a step: its status, its outputs together with everything it printed, and the job's summary.
struct Left {
    exit: Option<i32>,
    outputs: String,
    summary: String,
}

/// Runs a step of the Action. The runner sets every variable that the step declares; `given` contains the values of
/// the expressions, and a missing input has its default.
fn run_step(place: &Place, id: &str, given: &[(&str, &str)]) -> Left {
    run_step_as(place, id, &[], given)
}

/// The same with more of the variables that every runner sets.
fn run_step_as(place: &Place, id: &str, runner: &[(&str, String)], given: &[(&str, &str)]) -> Left {
    let document = yaml(ACTION);
    let step = steps(&document).into_iter().find(|step| step["id"] == id).expect("the step");
    let script = place.write("step.sh", step["run"].as_str().expect("a script"));
    fs::create_dir_all(place.path("runner")).expect("a folder");
    let (outputs, summary) = (place.write("outputs", ""), place.write("summary.md", ""));
    let mut bash = Command::new("bash");
    bash.args(["--noprofile", "--norc", "-eo", "pipefail"])
        .arg(script)
        .env_clear()
        .env("PATH", format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap_or_default()))
        .env("HOME", place.path(""))
        .env("RUNNER_TEMP", place.path("runner"))
        .env("GITHUB_OUTPUT", &outputs)
        .env("GITHUB_STEP_SUMMARY", &summary)
        .envs(runner.iter().map(|(name, value)| (name, value)))
        .current_dir(place.path(""));
    let variables = step["env"].as_object().expect("variables");
    for (name, value) in variables {
        let value = value.as_str().expect("a text");
        let input = value.strip_prefix("${{ inputs.").and_then(|rest| rest.strip_suffix(" }}"));
        let value = input.map_or(value, |input| document["inputs"][input]["default"].as_str().unwrap_or_default());
        bash.env(name, if value.contains("${{") { "" } else { value });
    }
    for (name, value) in given {
        assert!(variables.contains_key(*name), "the step declares no {name}");
        bash.env(name, value);
    }
    let output = bash.output().expect("bash starts");
    let read = |path: &Path| fs::read_to_string(path).expect("a text");
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    Left { exit: output.status.code(), outputs: read(&outputs) + &said, summary: read(&summary) }
}

/// Writes a program that the steps find on their path.
fn program(place: &Place, name: &str, script: &str) -> String {
    fs::create_dir_all(place.path("bin")).expect("a folder");
    let path = place.write(&format!("bin/{name}"), format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path.display().to_string()
}
