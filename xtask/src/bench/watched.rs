//! Runs a program and measures its time, processor time and memory.

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// Processor time and peak memory only grow, so the last reading misses at most what these last milliseconds add.
const INTERVAL: Duration = Duration::from_millis(5);

/// The measurements of one run, and its output.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Watched {
    pub(crate) stdout: String,
    pub(crate) seconds: f64,
    pub(crate) used: Used,
}

/// The system's counters of a process; `None` without `/proc`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Used {
    pub(crate) cpu_seconds: Option<f64>,
    pub(crate) peak_kib: Option<u64>,
}

impl Used {
    pub(crate) fn memory(self) -> String {
        self.peak_kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{:.0} MB", kib as f64 * 1024.0 / 1e6))
    }

    pub(crate) fn cpu(self) -> String {
        self.cpu_seconds.map_or_else(|| "unknown".to_owned(), |seconds| format!("{seconds:.1} s"))
    }
}

/// Runs a program to its end; its stderr goes to the terminal, and its failure is returned as an error.
pub(crate) fn watched(command: &mut Command) -> Result<Watched> {
    let program = command.get_program().to_owned();
    let began = Instant::now();
    let mut process = command
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .with_context(|| format!("{program:?} could not be started"))?;
    let mut stdout = process.stdout.take().context("the program has no stdout")?;
    // Read on another thread, so that a long output cannot fill the pipe and block the program.
    let reader = thread::spawn(move || {
        let mut answer = String::new();
        stdout.read_to_string(&mut answer).map(|_| answer)
    });
    let used = watch(&mut process)?;
    let seconds = began.elapsed().as_secs_f64();
    let status = process.wait()?;
    let stdout = match reader.join() {
        Ok(answer) => answer?,
        Err(_) => bail!("reading the answer of {program:?} panicked"),
    };
    ensure!(status.success(), "{program:?} failed ({status})\n{stdout}");
    Ok(Watched { stdout, seconds, used })
}

fn watch(process: &mut Child) -> Result<Used> {
    let folder = format!("/proc/{}", process.id());
    let mut used = Used::default();
    loop {
        if let Ok(status) = fs::read_to_string(format!("{folder}/status")) {
            used.peak_kib = peak_memory(&status).max(used.peak_kib);
        }
        if let Ok(stat) = fs::read_to_string(format!("{folder}/stat")) {
            used.cpu_seconds = processor_time(&stat).or(used.cpu_seconds);
        }
        if process.try_wait()?.is_some() {
            return Ok(used);
        }
        thread::sleep(INTERVAL);
    }
}

/// The peak memory of a process, in KiB.
pub(crate) fn peak_memory(status: &str) -> Option<u64> {
    kib(status, "VmHWM:")
}

/// The current memory of a process, in KiB.
pub(crate) fn resident_memory(status: &str) -> Option<u64> {
    kib(status, "VmRSS:")
}

fn kib(status: &str, name: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// User and system time, which Linux reports in hundredths of a second.
pub(crate) fn processor_time(stat: &str) -> Option<f64> {
    // The program's name may contain spaces and brackets; the fields after it do not.
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / 100.0)
}

/// A single disturbed run does not change the median.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value that this share of all is not above.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{median, peak_memory, processor_time, resident_memory, watched};

    #[test]
    fn the_kernels_peak_is_read() {
        let status = "Name:\tcanonry\nVmPeak:\t  999 kB\nVmHWM:\t   57344 kB\nVmRSS:\t 1 kB\n";
        assert_eq!((peak_memory(status), resident_memory(status)), (Some(57344), Some(1)));
        assert_eq!(peak_memory("Name:\tzombie\n"), None);
    }

    #[test]
    fn the_kernels_times_are_read_whatever_the_program_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 9 9 20 0 3 0 1 2 3";
        assert_eq!(processor_time(stat), Some(3.0));
        assert_eq!(processor_time("7 (a"), None);
    }

    #[test]
    fn the_answer_is_kept_and_a_failure_is_told() {
        let run = watched(Command::new("sh").args(["-c", "echo said"])).expect("it succeeds");
        assert_eq!(run.stdout, "said\n");
        let error = watched(Command::new("sh").args(["-c", "echo why; exit 3"])).expect_err("it fails").to_string();
        assert!(error.contains("why") && error.contains('3'), "{error}");
    }

    #[test]
    fn one_disturbed_run_does_not_move_the_median() {
        assert_eq!(median([1.0, 90.0, 2.0]), 2.0);
    }
}
