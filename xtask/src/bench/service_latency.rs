//! The `service-latency` benchmark: from a stored webhook to the row in the outbox, with the index kept in memory and
//! with the index loaded for each item, as before.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::watched::{quantile, watched};
use super::{example, folder};
use crate::postgres::{Durability, PostgresServer};
use crate::process::step;

const SIZES: [usize; 3] = [1_000, 25_000, 100_000];
/// The memory that `canonry serve` gives its indexes by default; 0 is the behaviour before indexes were kept.
const KEPT_MB: &str = "400";
const NOT_KEPT_MB: &str = "0";
/// The number of processes, each of which starts cold, and the number of issues for each.
const KEPT: (usize, usize) = (4, 13);
const NOT_KEPT: (usize, usize) = (2, 5);

/// The result of one process.
#[derive(Debug)]
struct Run {
    milliseconds: Vec<f64>,
    resident_kib: u64,
    peak_kib: u64,
    index_bytes: u64,
}

impl Run {
    fn read(output: &str) -> Option<Self> {
        let printed: Value = serde_json::from_str(output).ok()?;
        Some(Self {
            milliseconds: printed["milliseconds"].as_array()?.iter().filter_map(Value::as_f64).collect(),
            resident_kib: printed["resident_kib"].as_u64().unwrap_or_default(),
            peak_kib: printed["peak_kib"].as_u64().unwrap_or_default(),
            index_bytes: printed["index_bytes"].as_u64()?,
        })
    }
}

/// The results of all processes of a kind, in milliseconds and KiB.
#[derive(Debug, Default, PartialEq)]
struct Latencies {
    cold: Vec<f64>,
    warm: Vec<f64>,
    resident_kib: u64,
    peak_kib: u64,
    index_bytes: u64,
}

pub(crate) fn run() -> Result<()> {
    let place = tempfile::Builder::new().prefix("latency-").tempdir_in(folder()?)?;
    let postgres = PostgresServer::start(Durability::Full)?;
    println!("{HEADER}");
    for engine in ["SQLite", "PostgreSQL"] {
        for items in SIZES {
            let folder = place.path().join(format!("{engine}-{items}"));
            std::fs::create_dir(&folder)?;
            let url = match engine {
                "SQLite" => format!("sqlite:{}", folder.join("bench.db").display()),
                _ => postgres.create_database(&format!("latency_{items}"))?,
            };
            let mut seed = example("canonry-server", "service_latency")?;
            step(
                &format!("{items} issues in {engine}"),
                seed.args(["seed", &url, &folder.display().to_string(), &items.to_string()]),
            )?;
            let mut from = 0;
            let before = measured(&url, &folder, NOT_KEPT_MB, NOT_KEPT, &mut from)?;
            let after = measured(&url, &folder, KEPT_MB, KEPT, &mut from)?;
            print!("{}", rows(engine, items, &before, &after));
            std::fs::remove_dir_all(&folder)?;
        }
    }
    Ok(())
}

fn measured(
    url: &str,
    snapshots: &Path,
    megabytes: &str,
    (processes, items): (usize, usize),
    from: &mut usize,
) -> Result<Latencies> {
    let mut all = Latencies::default();
    for _ in 0..processes {
        let mut command = example("canonry-server", "service_latency")?;
        command.args(["measure", url, &snapshots.display().to_string(), megabytes]);
        let output = watched(command.args([items.to_string(), from.to_string()]))?.stdout;
        *from += items;
        all.add(Run::read(output.trim()).with_context(|| output.clone())?);
    }
    Ok(all)
}

impl Latencies {
    fn add(&mut self, run: Run) {
        let mut milliseconds = run.milliseconds.into_iter();
        self.cold.extend(milliseconds.next());
        self.warm.extend(milliseconds);
        self.resident_kib = self.resident_kib.max(run.resident_kib);
        self.peak_kib = self.peak_kib.max(run.peak_kib);
        self.index_bytes = self.index_bytes.max(run.index_bytes);
    }
}

const HEADER: &str = "| engine | items | index | cold, p50 / p95 | warm, p50 / p95 | resident | peak | counted for the index |\n\
    |---|---:|---|---:|---:|---:|---:|---:|";

fn rows(engine: &str, items: usize, before: &Latencies, after: &Latencies) -> String {
    let row = |name: &str, of: &Latencies| {
        let (cold, warm) = (quantiles(&of.cold), quantiles(&of.warm));
        let [resident, peak] = [of.resident_kib, of.peak_kib].map(|kib| kib as f64 * 1024.0 / 1e6);
        let index = of.index_bytes as f64 / 1e6;
        format!("| {engine} | {items} | {name} | {cold} | {warm} | {resident:.0} MB | {peak:.0} MB | {index:.0} MB |\n")
    };
    let faster = quantile(&before.warm, 0.5) / quantile(&after.warm, 0.5);
    let name = format!("kept in memory ({faster:.0} times as fast)");
    row("loaded for each item", before) + &row(&name, after)
}

fn quantiles(milliseconds: &[f64]) -> String {
    format!("{:.0} / {:.0} ms", quantile(milliseconds, 0.5), quantile(milliseconds, 0.95))
}

#[cfg(test)]
mod tests {
    use super::{Latencies, Run, rows};

    #[test]
    fn the_first_issue_of_a_process_is_cold() {
        let mut all = Latencies::default();
        for cold in [900.0, 1_000.0] {
            let milliseconds = vec![cold, 40.0, 50.0, 60.0];
            all.add(Run { milliseconds, resident_kib: 1_000, peak_kib: 2_000, index_bytes: 500_000 });
        }
        assert_eq!((all.cold.as_slice(), all.warm.len()), ([900.0, 1_000.0].as_slice(), 6));
        let before = Latencies { warm: vec![2_000.0], ..Latencies::default() };
        let rows = rows("SQLite", 5, &before, &all);
        let expected =
            "| SQLite | 5 | kept in memory (40 times as fast) | 1000 / 1000 ms | 50 / 60 ms | 1 MB | 2 MB | 0 MB |\n";
        assert!(rows.ends_with(expected), "{rows}");
    }
}
