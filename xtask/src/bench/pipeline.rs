//! The `pipeline` benchmark: from texts to every issue's neighbours, beside a Python script that does the same.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::python::Python;
use super::watched::{Watched, watched};
use super::{data, folder, release_binary};

pub(crate) fn run() -> Result<()> {
    let corpus = data("rust.jsonl.gz")?;
    let folder = folder()?;
    let python = Python::install()?;
    let binary = release_binary()?;
    let place = tempfile::Builder::new().prefix("pipeline-").tempdir_in(&folder)?;
    let items = place.path().join("items.jsonl");
    watched(python.script("bench_texts.py").arg(&corpus).arg(&items).arg("--rows"))?;

    let mut rows = Vec::new();
    let canonry = |arguments: &[&str], file: Option<&Path>| {
        let mut command = Command::new(&binary);
        command.args(arguments).args(["--repo", "bench/rust", "--quiet"]).args(file);
        // The snapshot of the index is beside it, so it belongs only to this run.
        watched(command.arg("--db").arg(format!("sqlite:{}", place.path().join("bench.db").display())))
    };
    rows.push(("canonry import", canonry(&["import"], Some(&items))?));
    rows.push(("canonry embed", canonry(&["embed", "--type", "issue"], None)?));
    let candidates = ["candidates", "--type", "issue", "--state", "all", "--source-state", "all"];
    rows.push(("canonry candidates", canonry(&candidates, None)?));
    let mut script = python.script("python_pipeline.py");
    script.arg(&python.weights).arg(&items).arg("--model").arg(&python.model);
    script.arg("--out").arg(place.path().join("neighbours.jsonl"));
    rows.push(("Python", watched(&mut script)?));
    println!("{} issues\n", fs::read_to_string(&items)?.lines().count());
    print!("{}", table(&rows)?);
    Ok(())
}

fn table(rows: &[(&str, Watched)]) -> Result<String> {
    let mut table = String::from("| | wall | processor time | peak memory |\n|---|---:|---:|---:|\n");
    for (name, Watched { seconds, used, .. }) in rows {
        table.push_str(&format!("| {name} | {seconds:.1} s | {} | {} |\n", used.cpu(), used.memory()));
    }
    let (_, python) = rows.last().context("no row of Python's")?;
    table.push_str(&format!("\nWithin the Python script: {}\n", python.stdout.trim()));
    Ok(table)
}
