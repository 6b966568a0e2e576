//! The `review` benchmark: a large change with a linter's report, reviewed, pushed to and reviewed again.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::review_project::{FILES, RESULTS, ReviewProject};
use super::watched::{Used, Watched, watched};
use super::{example, folder, release_binary};
use crate::process::step;

/// The median of three is steady to a few per cent on an idle machine.
const RUNS: usize = 3;

pub(crate) fn run() -> Result<()> {
    let binary = &release_binary()?;
    // On the disk of the build: a temporary folder is in memory on many systems, where storing costs nothing.
    let folder = tempfile::Builder::new().prefix("review-").tempdir_in(folder()?)?;
    let project = ReviewProject::build(folder.path())?;
    let (mut plain, mut first, mut pushed, mut again) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        let database = folder.path().join(format!("{run}.db"));
        let review = |head: &str, report: &Path| reviewed(binary, &project, &database, head, report);
        plain.push(plainly(&project)?);
        let (answer, took) = review(ReviewProject::FIRST, &project.first_report)?;
        expect(&answer, "full", FILES, "new")?;
        first.push(took);
        let (answer, took) = review(ReviewProject::PUSHED, &project.pushed_report)?;
        expect(&answer, "incremental", project.files_pushed, "moved")?;
        pushed.push(took);
        let (answer, took) = review(ReviewProject::PUSHED, &project.pushed_report)?;
        expect(&answer, "incremental", 0, "same")?;
        again.push(took);
    }
    let size = std::fs::metadata(&project.first_report)?.len() as f64 / 1e6;
    println!("{FILES} files, {} added lines, {RESULTS} results ({size:.1} MB of SARIF)\n", project.lines);
    print!(
        "{}",
        table(&[
            ("`git diff` and the SARIF parsed, nothing else", summary(&plain)),
            ("first `canonry review`", summary(&first)),
            ("after a push to every tenth file", summary(&pushed)),
            ("again, nothing pushed", summary(&again)),
        ])
    );
    println!();
    step("findings followed across a push", &mut example("canonry-review", "tracking_speed")?)
}

fn plainly(project: &ReviewProject) -> Result<Watched> {
    let mut command = example("canonry-review", "plain_review")?;
    command.arg(&project.clone).args([ReviewProject::BASE, ReviewProject::FIRST]).arg(&project.first_report);
    let run = watched(&mut command)?;
    let answer: Value = serde_json::from_str(&run.stdout).context("the plain program's answer")?;
    ensure!(answer["results"] == RESULTS && answer["lines"] == project.lines, "not everything was read: {answer}");
    Ok(run)
}

fn reviewed(
    binary: &Path,
    project: &ReviewProject,
    database: &Path,
    head: &str,
    report: &Path,
) -> Result<(Value, Watched)> {
    let mut command = Command::new(binary);
    command.args(["review", "--repo", "bench/review", "--base", ReviewProject::BASE, "--head", head, "--pr", "1"]);
    command.args(["--no-publish", "--format", "json", "--quiet", "--work-tree"]).arg(&project.clone);
    command
        .args(["--reviewer", "builtin"])
        .arg("--sarif")
        .arg(report)
        .arg("--db")
        .arg(format!("sqlite:{}", database.display()));
    let run = watched(&mut command)?;
    let answer = serde_json::from_str(&run.stdout).context("canonry's answer")?;
    Ok((answer, run))
}

/// A fast review that loses findings, or reads the wrong files, must not be measured.
fn expect(answer: &Value, mode: &str, files: usize, status: &str) -> Result<()> {
    let (run, read, statuses) = (&answer["run"], &answer["coverage"]["files_read"], &answer["counts"]["by_status"]);
    ensure!(run["mode"] == mode && *read == files, "the review was {run}, and {read} files were read");
    let moved_or_same = ["moved", "same"].iter().filter_map(|one| statuses[one].as_u64()).sum::<u64>();
    let as_wanted = match status {
        // A push to some files moves their findings.
        "moved" => statuses["moved"] != 0 && moved_or_same == RESULTS as u64,
        status => statuses[status] == RESULTS,
    };
    ensure!(
        as_wanted && (status == "new" || statuses["new"] == 0),
        "{RESULTS} findings should be {status}: {statuses}"
    );
    Ok(())
}

/// The run with the median time, with the highest memory of all.
fn summary(runs: &[Watched]) -> (f64, Used) {
    let mut runs: Vec<&Watched> = runs.iter().collect();
    runs.sort_by(|left, right| left.seconds.total_cmp(&right.seconds));
    let peak_kib = runs.iter().filter_map(|run| run.used.peak_kib).max();
    let middle = runs[runs.len() / 2];
    (middle.seconds, Used { peak_kib, ..middle.used })
}

fn table(rows: &[(&str, (f64, Used))]) -> String {
    let mut table = String::from("| | seconds | processor time | peak memory |\n|---|---:|---:|---:|\n");
    for (name, (seconds, used)) in rows {
        table.push_str(&format!("| {name} | {seconds:.2} | {} | {} |\n", used.cpu(), used.memory()));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{RESULTS, Used, Watched, expect, summary, table};

    #[test]
    fn a_review_that_lost_findings_is_no_figure() {
        let answer = |mode: &str, read: usize, statuses: serde_json::Value| json!({"run": {"mode": mode}, "coverage": {"files_read": read}, "counts": {"by_status": statuses}});
        let all = RESULTS as u64;
        expect(&answer("full", 3, json!({"new": all, "same": 0})), "full", 3, "new").expect("complete");
        let pushed = json!({"new": 0, "moved": 10, "same": all - 10});
        expect(&answer("incremental", 3, pushed), "incremental", 3, "moved").expect("complete");
        for (wrong, status) in [
            (answer("full", 3, json!({"new": all - 1})), "new"),
            (answer("incremental", 3, json!({"new": all})), "new"),
            (answer("full", 4, json!({"new": all})), "new"),
            (answer("full", 3, json!({"new": 1, "moved": 1, "same": all - 1})), "moved"),
            (answer("full", 3, json!({"new": 0, "moved": 0, "same": all})), "moved"),
        ] {
            assert!(expect(&wrong, "full", 3, status).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_table_has_the_median_time_and_the_highest_memory() {
        let run = |seconds: f64, peak: u64| Watched {
            stdout: String::new(),
            seconds,
            used: Used { cpu_seconds: Some(seconds / 2.0), peak_kib: Some(peak) },
        };
        let runs = [run(3.0, 10), run(1.0, 100_000), run(2.0, 20)];
        let expected =
            "| | seconds | processor time | peak memory |\n|---|---:|---:|---:|\n| x | 2.00 | 1.0 s | 102 MB |\n";
        assert_eq!(table(&[("x", summary(&runs))]), expected);
    }
}
