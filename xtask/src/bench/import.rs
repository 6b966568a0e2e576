//! The `import` benchmark: a real corpus into an empty database of each engine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::watched::{Used, watched};
use super::{data, folder, release_binary};
use crate::postgres::{Durability, PostgresServer};

/// The median of three is steady to a few per cent on an idle machine.
const RUNS: usize = 3;

/// The measurements of one import.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measurement {
    rows: u64,
    seconds: f64,
    used: Used,
}

pub(crate) fn run() -> Result<()> {
    let corpus = data("rust.jsonl.gz")?;
    let binary = &release_binary()?;
    // On the disk of the build: a temporary folder is in memory on many systems, where durability costs nothing.
    let folder = tempfile::Builder::new().prefix("import-").tempdir_in(folder()?)?;
    let mut sqlite = Vec::new();
    for run in 0..RUNS {
        let path = folder.path().join(format!("{run}.db"));
        sqlite.push(measure(binary, &format!("sqlite:{}", path.display()), &corpus)?);
    }
    // Always our own server, because the settings of another are unknown.
    let server = PostgresServer::start(Durability::Full)?;
    let mut postgres = Vec::new();
    for run in 0..RUNS {
        let url = server.create_database(&format!("bench_{run}"))?;
        postgres.push(measure(binary, &url, &corpus)?);
    }
    print!("{}", table(&[("SQLite", summary(&sqlite)), ("PostgreSQL", summary(&postgres))]));
    Ok(())
}

fn measure(binary: &Path, url: &str, corpus: &Path) -> Result<Measurement> {
    let run =
        watched(Command::new(binary).args(["import", "--db", url, "--repo", "bench/rust", "--json"]).arg(corpus))?;
    Ok(Measurement { rows: imported_rows(&run.stdout)?, seconds: run.seconds, used: run.used })
}

/// Every row must have arrived: a fast import that loses rows must not be measured. A number that occurs twice in the
/// file is inserted by its first row and updated, or found unchanged, by its second.
fn imported_rows(answer: &str) -> Result<u64> {
    let answer: serde_json::Value = serde_json::from_str(answer).context("canonry's answer")?;
    let stats = &answer["stats"];
    let read = stats["read"].as_u64().context("canonry's answer has no stats.read")?;
    let arrived: u64 = ["inserted", "updated", "unchanged"].iter().filter_map(|way| stats[way].as_u64()).sum();
    ensure!(read > 0 && arrived == read, "not every row arrived: {stats}");
    Ok(read)
}

/// The run with the median time, with the highest memory of all.
fn summary(runs: &[Measurement]) -> Measurement {
    let mut runs = runs.to_vec();
    runs.sort_by(|left, right| left.seconds.total_cmp(&right.seconds));
    let peak_kib = runs.iter().filter_map(|run| run.used.peak_kib).max();
    let middle = runs[runs.len() / 2];
    Measurement { used: Used { peak_kib, ..middle.used }, ..middle }
}

fn table(rows: &[(&str, Measurement)]) -> String {
    let mut table = String::from(
        "| engine | rows | seconds | rows/s | processor time | peak memory |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for (engine, measurement) in rows {
        let Measurement { rows, seconds, used } = *measurement;
        let rate = rows as f64 / seconds;
        let (cpu, memory) = (used.cpu(), used.memory());
        table.push_str(&format!("| {engine} | {rows} | {seconds:.2} | {rate:.0} | {cpu} | {memory} |\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{Measurement, Used, imported_rows, summary, table};

    fn measurement(seconds: f64, peak_kib: u64) -> Measurement {
        let used = Used { cpu_seconds: Some(seconds / 2.0), peak_kib: Some(peak_kib) };
        Measurement { rows: 1000, seconds, used }
    }

    #[test]
    fn an_import_that_lost_rows_is_no_figure() {
        let complete = r#"{"stats":{"read":3,"inserted":2,"updated":1,"unchanged":0,"failed":0}}"#;
        assert_eq!(imported_rows(complete).expect("all arrived"), 3);
        for lost in [r#"{"stats":{"read":3,"inserted":2,"failed":1}}"#, r#"{"stats":{"read":0,"inserted":0}}"#] {
            let error = imported_rows(lost).expect_err("rows are missing").to_string();
            assert!(error.contains("not every row"), "{error}");
        }
    }

    #[test]
    fn the_table_has_the_median_time_and_the_highest_memory() {
        let runs = [measurement(3.0, 10), measurement(1.0, 100_000), measurement(2.0, 20)];
        assert_eq!(summary(&runs), measurement(2.0, 100_000));
        assert_eq!(
            table(&[("SQLite", summary(&runs))]),
            "| engine | rows | seconds | rows/s | processor time | peak memory |\n\
             |---|---:|---:|---:|---:|---:|\n\
             | SQLite | 1000 | 2.00 | 500 | 1.0 s | 102 MB |\n"
        );
    }
}
