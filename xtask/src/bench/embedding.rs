//! The `embedding` benchmark: the compiled-in model beside onnxruntime, same weights, texts and threads.

use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::python::Python;
use super::watched::{Used, Watched, median, watched};
use super::{data, example, folder};

const TEXTS: usize = 800;
/// In turns, so that whatever else the machine does falls on both.
const ROUNDS: usize = 3;

/// The runs of one engine.
#[derive(Debug, Default)]
struct Runs {
    speeds: Vec<Value>,
    first: Vec<f64>,
    peak_kib: Option<u64>,
}

pub(crate) fn run() -> Result<()> {
    let corpus = data("rust.jsonl.gz")?;
    let folder = folder()?;
    let python = Python::install()?;
    let (texts, one) = (folder.join("texts.jsonl"), folder.join("one-text.jsonl"));
    for (file, count) in [(&texts, TEXTS), (&one, 1)] {
        let mut script = python.script("bench_texts.py");
        watched(script.arg(&corpus).arg(file).args(["--count", &count.to_string()]))?;
    }
    let threads = available_parallelism().map_or(1, usize::from).to_string();
    let ours = |texts: &Path| -> Result<Command> {
        let mut command = example("canonry-models", "embed_speed")?;
        command.arg(texts).args(["--threads", &threads]);
        Ok(command)
    };
    // The ways to keep all cores busy with onnxruntime; the better one is what we are compared with.
    let ways = [
        ("onnxruntime, all threads on each text", ["--threads", &threads, "--workers", "1"]),
        ("onnxruntime, a thread for each text", ["--threads", "1", "--workers", &threads]),
    ];
    let theirs = |texts: &Path, way: &[&str; 4]| {
        let mut command = python.script("onnx_speed.py");
        command.arg(&python.weights).arg(texts).arg("--model").arg(&python.model);
        command.args(way);
        command
    };
    // Builds the example and the quantised model, so that neither is part of a figure.
    watched(&mut ours(&one)?)?;
    watched(&mut theirs(&one, &ways[0].1))?;

    let mut engines: Vec<(String, Runs)> = vec![("Canonry".to_owned(), Runs::default())];
    engines.extend(ways.iter().map(|(name, _)| ((*name).to_owned(), Runs::default())));
    for _ in 0..ROUNDS {
        engines[0].1.add(&mut ours(&texts)?, &mut ours(&one)?)?;
        for (at, (_, way)) in ways.iter().enumerate() {
            engines[at + 1].1.add(&mut theirs(&texts, way), &mut theirs(&one, way))?;
        }
    }
    println!("{TEXTS} texts, {threads} threads, medians of {ROUNDS} rounds in turns\n");
    print!("{}", table(&engines));
    Ok(())
}

impl Runs {
    fn add(&mut self, many: &mut Command, one: &mut Command) -> Result<()> {
        let Watched { stdout, used, .. } = watched(many)?;
        self.speeds.push(serde_json::from_str(&stdout).context("the figures")?);
        self.peak_kib = self.peak_kib.max(used.peak_kib);
        self.first.push(watched(one)?.seconds);
        Ok(())
    }

    fn figure(&self, name: &str) -> f64 {
        median(self.speeds.iter().filter_map(|speed| speed[name].as_f64()))
    }
}

fn table(engines: &[(String, Runs)]) -> String {
    let mut table = String::from(
        "| engine | texts/s | texts per CPU-second | whole program with one text | peak memory |\n|---|---:|---:|---:|---:|\n",
    );
    for (engine, runs) in engines {
        let (rate, work) = (runs.figure("texts_per_s"), runs.figure("texts_per_cpu_s"));
        let first = median(runs.first.iter().copied());
        let memory = Used { peak_kib: runs.peak_kib, cpu_seconds: None }.memory();
        table.push_str(&format!("| {engine} | {rate:.1} | {work:.1} | {first:.2} s | {memory} |\n"));
    }
    let best = |name| engines[1..].iter().map(|(_, runs)| runs.figure(name)).fold(0.0, f64::max);
    let ratio = |name| engines[0].1.figure(name) / best(name);
    let (rate, work) = (ratio("texts_per_s"), ratio("texts_per_cpu_s"));
    table.push_str(&format!("| ratio to the better onnxruntime | {rate:.2} | {work:.2} | | |\n"));
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Runs, table};

    #[test]
    fn the_ratio_is_to_the_better_of_the_others() {
        let runs = |rate: f64| Runs {
            speeds: vec![json!({"texts_per_s": rate, "texts_per_cpu_s": rate / 2.0})],
            first: vec![0.5],
            peak_kib: Some(100_000),
        };
        let engines = [("a".to_owned(), runs(90.0)), ("b".to_owned(), runs(60.0)), ("c".to_owned(), runs(100.0))];
        let table = table(&engines);
        assert!(table.contains("| a | 90.0 | 45.0 | 0.50 s | 102 MB |"), "{table}");
        assert!(table.contains("| 0.90 | 0.90 |"), "{table}");
    }
}
