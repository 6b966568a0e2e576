//! The `embedding` benchmark: the compiled-in model beside onnxruntime, same texts, by kernels and threads.

use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::python::Python;
use super::watched::{Used, Watched, median, watched};
use super::{data, example, folder};

const TEXTS: usize = 400;
/// Texts with which onnxruntime's settings are compared.
const TRIAL_TEXTS: usize = 100;
/// In turns, so that other load on the machine affects all.
const ROUNDS: usize = 3;
/// Kernels that the processor does not have are skipped.
const KERNELS: [&str; 3] = ["amx", "avx512", PORTABLE];
const PORTABLE: &str = "portable";

#[derive(Debug, Default)]
struct Runs {
    speeds: Vec<Value>,
    first: Vec<f64>,
    peak_kib: Option<u64>,
}

/// One way to run texts with onnxruntime.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    threads: usize,
    workers: usize,
    /// Texts of one length bucket that are run together.
    batch: usize,
}

pub(crate) fn run() -> Result<()> {
    let corpus = data("rust.jsonl.gz")?;
    let folder = folder()?;
    let python = Python::install()?;
    let files = [("texts.jsonl", TEXTS), ("trial-texts.jsonl", TRIAL_TEXTS), ("one-text.jsonl", 1)];
    for (file, count) in files {
        let mut script = python.script("bench_texts.py");
        watched(script.arg(&corpus).arg(folder.join(file)).args(["--count", &count.to_string()]))?;
    }
    let [texts, trial, one] = files.map(|(file, _)| folder.join(file));
    let threads = available_parallelism().map_or(1, usize::from);
    let ours = |texts: &Path, kernels: &str, threads: usize| -> Result<Command> {
        let mut command = example("canonry-models", "embed_speed")?;
        command.arg(texts).args(["--kernels", kernels, "--threads", &threads.to_string()]);
        Ok(command)
    };
    let theirs = |texts: &Path, way: Way| {
        let mut command = python.script("onnx_speed.py");
        command.arg(&python.weights).arg(texts).arg("--model").arg(&python.model);
        for (option, value) in [("--threads", way.threads), ("--workers", way.workers), ("--batch", way.batch)] {
            command.arg(option).arg(value.to_string());
        }
        command
    };
    // Builds the example and the quantised model before any measurement, and finds the available kernels.
    let kernels: Vec<&str> = KERNELS
        .into_iter()
        .filter(|kernels| ours(&one, kernels, 1).is_ok_and(|mut run| watched(&mut run).is_ok()))
        .collect();
    ensure!(!kernels.is_empty(), "the example embed_speed does not run");
    watched(&mut theirs(&one, Way { threads: 1, workers: 1, batch: 1 }))?;

    println!("{TRIAL_TEXTS} texts, onnxruntime's ways to use {threads} threads\n");
    println!("| threads on each text | texts beside each other | texts together | texts/s |\n|---:|---:|---:|---:|");
    let mut best = (0.0, Way { threads: 1, workers: threads, batch: 1 });
    for way in ways(threads) {
        let rate = figures(&watched(&mut theirs(&trial, way))?.stdout)?["texts_per_s"].as_f64().unwrap_or(0.0);
        println!("| {} | {} | {} | {rate:.1} |", way.threads, way.workers, way.batch);
        if rate > best.0 {
            best = (rate, way);
        }
    }
    let best = best.1;
    let single = Way { threads: 1, workers: 1, batch: best.batch };

    let mut engines =
        vec![("Canonry".to_owned(), kernels[0], threads), ("Canonry, 1 thread".to_owned(), kernels[0], 1)];
    engines.extend(kernels[1..].iter().map(|kernels| (format!("Canonry, {}", label(kernels)), *kernels, threads)));
    let mut runs: Vec<(String, Runs)> = engines.iter().map(|(name, ..)| (name.clone(), Runs::default())).collect();
    let others = [("onnxruntime, best setting".to_owned(), best), ("onnxruntime, 1 thread".to_owned(), single)];
    runs.extend(others.iter().map(|(name, _)| (name.clone(), Runs::default())));
    for _ in 0..ROUNDS {
        for ((_, kernels, threads), (_, runs)) in engines.iter().zip(&mut runs) {
            runs.add(&mut ours(&texts, kernels, *threads)?, &mut ours(&one, kernels, *threads)?)?;
        }
        for ((_, way), (_, runs)) in others.iter().zip(&mut runs[engines.len()..]) {
            runs.add(&mut theirs(&texts, *way), &mut theirs(&one, *way))?;
        }
    }
    println!(
        "\n{TEXTS} texts, {threads} threads, kernels {}, medians of {ROUNDS} rounds in turns\n",
        label(kernels[0])
    );
    print!("{}", table(&runs, engines.len()));
    Ok(())
}

/// rten chooses the portable kernels, and it has code for AVX-512 too.
fn label(kernels: &str) -> &str {
    if kernels == PORTABLE { "rten: AVX-512, AVX2, NEON or plain code" } else { kernels }
}

/// Candidates for the fastest way: threads that share a text or take one each, texts one by one or padded together.
fn ways(threads: usize) -> Vec<Way> {
    let mut ways = Vec::new();
    for batch in [1, 8, 32] {
        ways.push(Way { threads, workers: 1, batch });
        if threads > 1 {
            ways.push(Way { threads: 1, workers: threads, batch });
        }
    }
    ways
}

fn figures(stdout: &str) -> Result<Value> {
    serde_json::from_str(stdout).context("the figures")
}

impl Runs {
    fn add(&mut self, many: &mut Command, one: &mut Command) -> Result<()> {
        let Watched { stdout, used, .. } = watched(many)?;
        self.speeds.push(figures(&stdout)?);
        self.peak_kib = self.peak_kib.max(used.peak_kib);
        self.first.push(watched(one)?.seconds);
        Ok(())
    }

    fn figure(&self, name: &str) -> f64 {
        median(self.speeds.iter().filter_map(|speed| speed[name].as_f64()))
    }
}

/// The first engine is our best one. Those from `others` on are not ours, and the first of them is the best of those.
fn table(engines: &[(String, Runs)], others: usize) -> String {
    const RATES: [&str; 5] = ["texts_per_s", "texts_per_cpu_s", "short_per_s", "medium_per_s", "long_per_s"];
    let mut table = String::from(
        "| engine | texts/s | per CPU-second | short/s | medium/s | long/s | whole program with one text | peak memory |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for (engine, runs) in engines {
        let rates = RATES.map(|name| format!("{:.1}", runs.figure(name))).join(" | ");
        let first = median(runs.first.iter().copied());
        let memory = Used { peak_kib: runs.peak_kib, cpu_seconds: None }.memory();
        table.push_str(&format!("| {engine} | {rates} | {first:.2} s | {memory} |\n"));
    }
    // The best value of each column: the fastest way by the clock may not use the least processor time.
    let best = |name| engines[others..].iter().map(|(_, runs)| runs.figure(name)).fold(0.0, f64::max);
    let ratios = RATES.map(|name| format!("{:.2}", engines[0].1.figure(name) / best(name))).join(" | ");
    table.push_str(&format!("| Canonry, as a multiple of the better onnxruntime | {ratios} | | |\n"));
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Runs, Way, table, ways};

    #[test]
    fn the_ratio_is_to_the_better_of_the_others() {
        let runs = |rate: f64| Runs {
            speeds: vec![json!({"texts_per_s": rate, "texts_per_cpu_s": rate / 2.0, "short_per_s": rate * 4.0,
                "medium_per_s": rate, "long_per_s": rate / 4.0})],
            first: vec![0.5],
            peak_kib: Some(100_000),
        };
        let engines = [("a", 90.0), ("a1", 500.0), ("b", 60.0), ("c", 100.0)];
        let table = table(&engines.map(|(name, rate)| (name.to_owned(), runs(rate))), 2);
        assert!(table.contains("| a | 90.0 | 45.0 | 360.0 | 90.0 | 22.5 | 0.50 s | 102 MB |"), "{table}");
        assert!(table.contains("| 0.90 | 0.90 | 0.90 | 0.90 | 0.90 |"), "{table}");
    }

    #[test]
    fn all_ways_use_all_threads() {
        assert!(ways(4).iter().all(|way| way.threads * way.workers == 4));
        assert_eq!(ways(1).len(), 3);
        assert!(ways(2).contains(&Way { threads: 1, workers: 2, batch: 8 }));
    }
}
