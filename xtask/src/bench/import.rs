//! The `import` benchmark: a real corpus into an empty database of each engine.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::{data, release_binary};
use crate::postgres::{Durability, PostgresServer};

/// The median of three is steady to a few per cent on an idle machine.
const RUNS: usize = 3;

/// Peak memory only grows, so the last reading misses at most what these last milliseconds add.
const MEMORY_INTERVAL: Duration = Duration::from_millis(20);

/// What one import took.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measurement {
    rows: u64,
    seconds: f64,
    /// `None` where the system has no `/proc`.
    peak_kib: Option<u64>,
}

pub(crate) fn run() -> Result<()> {
    let corpus = data("rust.jsonl.gz")?;
    let binary = &release_binary()?;
    // On the disk that the build lies on: a temporary folder is memory on many systems, where
    // durability costs nothing.
    let folder =
        tempfile::Builder::new().prefix("bench-").tempdir_in(binary.parent().context("canonry lies in no folder")?)?;
    let mut sqlite = Vec::new();
    for run in 0..RUNS {
        let path = folder.path().join(format!("{run}.db"));
        sqlite.push(measure(binary, &format!("sqlite:{}", path.display()), &corpus)?);
    }
    // Always a server of our own, since the settings of another are unknown.
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
    let began = Instant::now();
    let mut import = Command::new(binary)
        .args(["import", "--db", url, "--repo", "bench/rust", "--json"])
        .arg(corpus)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .context("canonry could not be started")?;
    let mut stdout = import.stdout.take().context("canonry has no stdout")?;
    // Read beside the watching, so that a long answer cannot fill the pipe and stop the import.
    let reader = thread::spawn(move || {
        let mut answer = String::new();
        stdout.read_to_string(&mut answer).map(|_| answer)
    });
    let peak_kib = watch(&mut import)?;
    let seconds = began.elapsed().as_secs_f64();
    let status = import.wait()?;
    let answer = match reader.join() {
        Ok(answer) => answer?,
        Err(_) => bail!("reading canonry's answer panicked"),
    };
    ensure!(status.success(), "canonry import failed ({status})\n{answer}");
    Ok(Measurement { rows: imported_rows(&answer)?, seconds, peak_kib })
}

/// Waits for the process to end; the most memory that it ever had in use.
fn watch(process: &mut Child) -> Result<Option<u64>> {
    let status = format!("/proc/{}/status", process.id());
    let mut peak = None;
    loop {
        if let Ok(status) = fs::read_to_string(&status) {
            peak = peak_memory(&status).max(peak);
        }
        if process.try_wait()?.is_some() {
            return Ok(peak);
        }
        thread::sleep(MEMORY_INTERVAL);
    }
}

fn peak_memory(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Every row must have arrived: a fast import that loses rows is no figure.
fn imported_rows(answer: &str) -> Result<u64> {
    let answer: serde_json::Value = serde_json::from_str(answer).context("canonry's answer")?;
    let stats = &answer["stats"];
    let read = stats["read"].as_u64().context("canonry's answer has no stats.read")?;
    ensure!(read > 0 && stats["inserted"].as_u64() == Some(read), "not every row was inserted: {stats}");
    Ok(read)
}

/// The run with the median time, with the highest memory of all.
fn summary(runs: &[Measurement]) -> Measurement {
    let mut runs = runs.to_vec();
    runs.sort_by(|left, right| left.seconds.total_cmp(&right.seconds));
    let peak_kib = runs.iter().filter_map(|run| run.peak_kib).max();
    Measurement { peak_kib, ..runs[runs.len() / 2] }
}

fn table(rows: &[(&str, Measurement)]) -> String {
    let mut table = String::from("| engine | rows | seconds | rows/s | peak memory |\n|---|---:|---:|---:|---:|\n");
    for (engine, measurement) in rows {
        let Measurement { rows, seconds, peak_kib } = *measurement;
        let memory =
            peak_kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{:.0} MB", kib as f64 * 1024.0 / 1e6));
        let rate = rows as f64 / seconds;
        table.push_str(&format!("| {engine} | {rows} | {seconds:.2} | {rate:.0} | {memory} |\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{Measurement, imported_rows, peak_memory, summary, table};

    fn measurement(seconds: f64, peak_kib: u64) -> Measurement {
        Measurement { rows: 1000, seconds, peak_kib: Some(peak_kib) }
    }

    #[test]
    fn the_kernels_peak_is_read() {
        let status = "Name:\tcanonry\nVmPeak:\t  999 kB\nVmHWM:\t   57344 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(peak_memory(status), Some(57344));
        assert_eq!(peak_memory("Name:\tzombie\n"), None);
    }

    #[test]
    fn an_import_that_lost_rows_is_no_figure() {
        let complete = r#"{"stats":{"read":3,"inserted":3,"failed":0}}"#;
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
            "| engine | rows | seconds | rows/s | peak memory |\n\
             |---|---:|---:|---:|---:|\n\
             | SQLite | 1000 | 2.00 | 500 | 102 MB |\n"
        );
    }
}
