//! `cargo xtask bench`: measures a release build and prints Markdown for docs/benchmarks.md.

mod action;
mod check;
mod console;
mod embedding;
mod fixes;
mod import;
mod judge;
mod judge_model;
mod judge_speed;
mod ledger;
mod ledger_truth;
mod pipeline;
mod python;
mod referee;
mod retrieval;
mod review;
mod review_project;
mod scale;
mod service;
mod service_burst;
mod service_latency;
mod service_load;
mod service_process;
mod watched;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;

use crate::process::{cargo, root};

/// A benchmark: its name, and the function that runs it and prints its table.
type Benchmark = (&'static str, fn() -> Result<()>);

const BENCHMARKS: [Benchmark; 15] = [
    ("import", import::run),
    ("retrieval", retrieval::run),
    ("fixes", fixes::run),
    ("check", check::run),
    ("judge", judge::run),
    ("judge-speed", judge_speed::run),
    ("embedding", embedding::run),
    ("scale", scale::run),
    ("pipeline", pipeline::run),
    ("service", service::run),
    ("service-latency", service_latency::run),
    ("action", action::run),
    ("review", review::run),
    ("referee", referee::run),
    ("console", console::run),
];

/// A benchmark that is told what to measure: its name, and the function that takes its options.
type BenchmarkWithOptions = (&'static str, fn(&[String]) -> Result<()>);

/// Benchmarks that need a server or a clone, which are not part of a whole run.
const WITH_OPTIONS: [BenchmarkWithOptions; 2] = [("judge-model", judge_model::run), ("ledger", ledger::run)];

/// The names that `cargo xtask bench NAME` accepts.
pub(crate) fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(BENCHMARKS.iter().map(|(name, _)| *name).chain(WITH_OPTIONS.map(|(name, _)| name)))
}

pub(crate) fn bench(name: Option<&str>, more: &[String]) -> Result<()> {
    if let Some((_, run)) = WITH_OPTIONS.iter().find(|(one, _)| name == Some(*one)) {
        return run(more);
    }
    if !more.is_empty() {
        bail!("only {} take options", WITH_OPTIONS.map(|(name, _)| name).join(" and "));
    }
    for (benchmark, run) in BENCHMARKS {
        if name.is_none_or(|name| name == benchmark) {
            eprintln!("==> {benchmark}");
            run().with_context(|| format!("benchmark \"{benchmark}\""))?;
        }
    }
    Ok(())
}

/// The folder of benchmark corpora, which is not part of the repository.
fn data(file: &str) -> Result<PathBuf> {
    let folder = std::env::var_os("CANONRY_BENCH_DATA")
        .filter(|value| !value.is_empty())
        .map_or_else(|| root().join("../shared/bench"), PathBuf::from);
    let path = folder.join(file);
    if !path.is_file() {
        bail!(
            "the data is absent: there is no {}; put the corpora into shared/bench beside the \
             repository, or set CANONRY_BENCH_DATA to their folder",
            path.display()
        );
    }
    Ok(path.canonicalize()?)
}

/// The folder that benchmarks keep between runs: vectors, and the Python they compare with.
fn folder() -> Result<PathBuf> {
    let folder = root().join("target/bench");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Builds `canonry` for release and gets its path from cargo; or uses an existing program, to compare versions.
fn release_binary() -> Result<PathBuf> {
    match std::env::var_os("CANONRY_BENCH_BINARY").filter(|value| !value.is_empty()) {
        Some(binary) => Ok(PathBuf::from(binary)),
        None => built(&["--package", "canonry"], "canonry"),
    }
}

/// An example program, built for release, to be run in the root of the workspace; or an existing one from the folder
/// that CANONRY_BENCH_EXAMPLES names.
fn example(package: &str, name: &str) -> Result<Command> {
    let program = match std::env::var_os("CANONRY_BENCH_EXAMPLES").filter(|value| !value.is_empty()) {
        Some(folder) => PathBuf::from(folder).join(name),
        None => built(&["--package", package, "--example", name], name)?,
    };
    let mut command = Command::new(program);
    command.current_dir(root());
    Ok(command)
}

fn built(what: &[&str], name: &str) -> Result<PathBuf> {
    let output = cargo()
        .args(["build", "--release", "--quiet"])
        .args(what)
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cargo could not be started")?;
    if !output.status.success() {
        bail!("the release build of {name} failed ({})", output.status);
    }
    executable(&String::from_utf8_lossy(&output.stdout), name)
        .with_context(|| format!("cargo built no program named {name}"))
}

fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .find(|message| message["target"]["name"] == name && message["executable"].is_string())
        .and_then(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::executable;

    #[test]
    fn the_program_is_found_among_cargos_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"canonry"},"executable":null}"#,
            "\nnot JSON\n",
            r#"{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"canonry"},"executable":"/t/canonry"}"#,
            "\n",
        );
        assert_eq!(executable(messages, "canonry").as_deref(), Some(Path::new("/t/canonry")));
        assert_eq!(executable(messages, "absent"), None);
    }
}
