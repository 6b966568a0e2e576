//! The `ledger` benchmark: a linter's findings over pushes of real history, followed by `canonry review` and by others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use serde_json::Value;

use super::ledger_truth::{LedgerCounts, METHODS, PushFinding, PushSnapshot, PushTruth, compare, lines_of};
use super::{folder, release_binary};
use crate::process::quietly;

/// `cargo xtask bench ledger`: commits of a clone stand for pushes to pull requests, one pull request after the other.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench ledger", no_binary_name = true)]
struct LedgerOptions {
    /// A clone with its history; nothing in it is changed.
    #[arg(long)]
    clone: PathBuf,
    /// A shell command that prints SARIF about the files in its working directory; its exit status does not matter.
    #[arg(long)]
    lint: String,
    /// The first commit [default: the first of the history].
    #[arg(long)]
    from: Option<String>,
    #[arg(long, default_value = "HEAD")]
    to: String,
    /// Take every n-th commit, along first parents, as a push.
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// The pushes of one pull request.
    #[arg(long, default_value_t = 6)]
    pushes: usize,
}

/// The sums of all pull requests.
#[derive(Debug, Default)]
struct LedgerTotals {
    reviews: usize,
    forced_reviews: usize,
    pushed: LedgerCounts,
    /// After a force-push, where the clone still has the commit that was reviewed last.
    forced: LedgerCounts,
    /// After a force-push, in a clone that never had that commit.
    forgotten: LedgerCounts,
}

pub(crate) fn run(options: &[String]) -> Result<()> {
    let options = LedgerOptions::try_parse_from(options)?;
    ensure!(options.every > 0 && options.pushes > 1, "--every must be at least 1 and --pushes at least 2");
    let binary = release_binary()?;
    let folder = tempfile::Builder::new().prefix("ledger-").tempdir_in(folder()?)?;
    let folder = folder.path().canonicalize()?;
    let clone = folder.join("clone");
    let origin = options.clone.canonicalize().with_context(|| format!("there is no {}", options.clone.display()))?;
    quietly(Command::new("git").args(["clone", "--quiet", "--shared", "--no-checkout"]).arg(origin).arg(&clone))?;
    let commits = commits(&clone, &options)?;
    ensure!(commits.len() > 2, "{} commits are too few", commits.len());
    let settings = folder.join("settings.yml");
    fs::write(&settings, "review:\n  scope: all\n")?;
    let mut totals = LedgerTotals::default();
    for first in (0..commits.len() - 1).step_by(options.pushes) {
        let end = (first + options.pushes + 1).min(commits.len());
        let series = PushSeries {
            binary: &binary,
            lint: &options.lint,
            settings: &settings,
            folder: &folder,
            clone: &clone,
            base: &commits[first],
            pushes: &commits[first + 1..end],
            following: commits.get(end).map(String::as_str),
        };
        series.run(&mut totals)?;
        let done = format!("{} of {} commits", end - 1, commits.len() - 1);
        eprintln!("{done}: {} persisting, wrong {:?}", totals.pushed.persisting.all, totals.pushed.persisting.wrong);
    }
    for (when, counts) in
        [("push", &totals.pushed), ("force-push", &totals.forced), ("force-push, fresh clone", &totals.forgotten)]
    {
        counts.mistakes.iter().for_each(|mistake| eprintln!("{when}: {mistake}"));
    }
    print!("{}", table(&totals));
    Ok(())
}

fn git(clone: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(clone).args(["-c", "user.name=Bench", "-c", "user.email=bench@example.com"]);
    command.args(["-c", "commit.gpgsign=false", "-c", "core.autocrlf=false", "-c", "core.quotePath=false"]);
    command.args(["-c", "diff.renameLimit=10000"]);
    Ok(String::from_utf8_lossy(&quietly(command.args(arguments))?.stdout).into_owned())
}

fn commits(clone: &Path, options: &LedgerOptions) -> Result<Vec<String>> {
    let resolve = |name: &str| -> Result<String> {
        Ok(git(clone, &["rev-parse", "--verify", &format!("{name}^{{commit}}")])?.trim().to_owned())
    };
    let all = git(clone, &["rev-list", "--first-parent", "--reverse", &resolve(&options.to)?])?;
    let from = options.from.as_deref().map(resolve).transpose()?;
    let begin = match &from {
        Some(from) => all.lines().position(|one| one == from).context("--from is no first parent of --to")?,
        None => 0,
    };
    Ok(all.lines().skip(begin).step_by(options.every).map(str::to_owned).collect())
}

/// The pushes of one pull request, which are reviewed into one database.
struct PushSeries<'a> {
    binary: &'a Path,
    lint: &'a str,
    settings: &'a Path,
    folder: &'a Path,
    clone: &'a Path,
    base: &'a str,
    pushes: &'a [String],
    /// The commit whose files the pull request has after a force-push.
    following: Option<&'a str>,
}

/// The files of a difference, with the former paths of renamed ones.
type ChangedPaths = (BTreeSet<String>, BTreeMap<String, String>);

impl PushSeries<'_> {
    fn run(&self, totals: &mut LedgerTotals) -> Result<()> {
        let database = self.folder.join(format!("{}.db", self.base));
        let touched = self.touched()?;
        let mut last: Option<PushSnapshot> = None;
        for commit in self.pushes {
            let now = self.reviewed(self.clone, commit, commit, self.base, &touched, &database)?;
            totals.reviews += 1;
            if let Some(before) = &last {
                totals.pushed.add(compare(before, &now, &self.truth(&before.commit, commit)?));
            }
            last = Some(now);
        }
        if let (Some(following), Some(before)) = (self.following, last) {
            let truth = self.truth(&before.commit, following)?;
            for (is_forgotten, counts) in [(false, &mut totals.forced), (true, &mut totals.forgotten)] {
                counts.add(self.forced(&before, following, &truth, is_forgotten, (&touched, &database))?);
                totals.forced_reviews += 1;
            }
        }
        Ok(())
    }

    /// All pushes as one commit on a newer base: the history is another one, and what git knows about the lines is not.
    fn forced(
        &self,
        before: &PushSnapshot,
        following: &str,
        truth: &PushTruth,
        is_forgotten: bool,
        (touched, database): (&BTreeSet<String>, &Path),
    ) -> Result<LedgerCounts> {
        let (base, tree) = (&self.pushes[0], format!("{following}^{{tree}}"));
        let head = git(self.clone, &["commit-tree", &tree, "-p", base, "-m", "All pushes"])?.trim().to_owned();
        let copy = self.folder.join("forced.db");
        for end in ["", "-wal", "-shm"] {
            let (from, to) = (format!("{}{end}", database.display()), format!("{}{end}", copy.display()));
            if Path::new(&from).exists() {
                fs::copy(from, to)?;
            } else if Path::new(&to).exists() {
                fs::remove_file(to)?;
            }
        }
        let fresh = self.folder.join("fresh");
        let clone = if is_forgotten {
            git(self.clone, &["update-ref", "refs/heads/forced", &head])?;
            let mut command = Command::new("git");
            command.args(["clone", "--quiet", "--no-local", "--no-checkout", "--single-branch", "--branch", "forced"]);
            quietly(command.arg(self.clone).arg(&fresh))?;
            &fresh
        } else {
            self.clone
        };
        let now = self.reviewed(clone, &head, following, base, touched, &copy)?;
        if is_forgotten {
            fs::remove_dir_all(&fresh)?;
        }
        Ok(compare(before, &now, truth))
    }

    /// The files that any push changes. A linter reports on all files; the others would only add findings that no
    /// method can get wrong.
    fn touched(&self) -> Result<BTreeSet<String>> {
        let mut touched = BTreeSet::new();
        let mut before = self.base;
        for commit in self.pushes.iter().map(String::as_str).chain(self.following) {
            touched.extend(self.changed(before, commit)?.0);
            before = commit;
        }
        Ok(touched)
    }

    fn changed(&self, before: &str, now: &str) -> Result<ChangedPaths> {
        let paths = git(self.clone, &["diff", "--name-only", "--no-renames", "-z", before, now])?;
        let renames = git(self.clone, &["diff", "--name-status", "-M", "--diff-filter=R", "-z", before, now])?;
        let renames: Vec<&str> = renames.split('\0').collect();
        let renames = renames.chunks_exact(3).map(|one| (one[2].to_owned(), one[1].to_owned()));
        Ok((paths.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect(), renames.collect()))
    }

    fn truth(&self, before: &str, now: &str) -> Result<PushTruth> {
        let (changed, renamed) = self.changed(before, now)?;
        let mut origins = BTreeMap::new();
        let range = format!("{before}..{now}");
        let there = git(self.clone, &["ls-tree", "-r", "-z", "--name-only", now])?;
        for path in there.split('\0').filter(|path| changed.contains(*path)) {
            // What blame finds in the commit before is the line's place there; the rest was written by the push.
            let blame = git(self.clone, &["blame", "-M", "-C", "--porcelain", &range, "--", path])?;
            let lines = lines_of(before, &blame).into_iter();
            origins.extend(lines.map(|(line, origin)| ((path.to_owned(), line), origin)));
        }
        Ok(PushTruth { changed, renamed, origins })
    }

    /// Checks a commit out, lints it and reviews the report.
    fn reviewed(
        &self,
        clone: &Path,
        head: &str,
        commit: &str,
        base: &str,
        touched: &BTreeSet<String>,
        database: &Path,
    ) -> Result<PushSnapshot> {
        git(clone, &["checkout", "--quiet", "--force", "--detach", head])?;
        git(clone, &["clean", "--quiet", "-ffdx"])?;
        let report = self.folder.join("report.sarif");
        let output = quietly(Command::new("sh").arg("-c").arg(format!("{} || true", self.lint)).current_dir(clone))?;
        let mut log: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("the linter printed no SARIF\n{}", String::from_utf8_lossy(&output.stderr)))?;
        keep_touched(&mut log, clone, touched);
        fs::write(&report, log.to_string())?;
        let mut command = Command::new(self.binary);
        command.args(["review", "--repo", "bench/ledger", "--pr", "1", "--no-publish", "--allow-gaps", "--quiet"]);
        command.args(["--base", base, "--head", head, "--format", "json", "--work-tree"]).arg(clone);
        command.arg("--config").arg(self.settings).arg("--sarif").arg(&report);
        let output = quietly(command.arg("--db").arg(format!("sqlite:{}", database.display())))?;
        let answer: Value = serde_json::from_slice(&output.stdout).context("canonry's answer")?;
        let files = touched.iter().filter_map(|path| {
            let bytes = fs::read(clone.join(path)).ok()?;
            let text = String::from_utf8_lossy(&bytes);
            Some((path.clone(), text.lines().map(str::to_owned).collect()))
        });
        Ok(PushSnapshot { commit: commit.to_owned(), findings: findings(&answer)?, files: files.collect() })
    }
}

/// Leaves the results in these files in the report, with paths that do not depend on the folder.
fn keep_touched(log: &mut Value, clone: &Path, touched: &BTreeSet<String>) {
    let root = format!("file://{}/", clone.display());
    for run in log["runs"].as_array_mut().into_iter().flatten() {
        let Some(results) = run["results"].as_array_mut() else { continue };
        results.retain_mut(|result| {
            let Some(uri) = result.pointer_mut("/locations/0/physicalLocation/artifactLocation/uri") else {
                return false;
            };
            let path = uri.as_str().unwrap_or_default();
            let path = path.strip_prefix(&root).unwrap_or(path);
            let path = path.strip_prefix("./").unwrap_or(path).to_owned();
            let is_touched = touched.contains(&path);
            *uri = path.into();
            is_touched
        });
    }
}

/// The findings that the linter reports at this push and that have a line.
fn findings(answer: &Value) -> Result<Vec<PushFinding>> {
    let all = answer["findings"].as_array().context("canonry listed no findings")?;
    let reported = all.iter().filter(|one| one["reported"] == true && one["status"] != "fixed");
    let finding = |one: &Value| {
        let rules = one["witnesses"].as_array().into_iter().flatten().filter_map(|by| by["rule"].as_str());
        let rules: BTreeSet<&str> = rules.collect();
        Some(PushFinding {
            id: one["id"].as_i64(),
            rule: rules.into_iter().collect::<Vec<_>>().join(" "),
            path: one["path"].as_str()?.to_owned(),
            line: u32::try_from(one["line"].as_u64()?).ok()?,
            is_new: matches!(one["status"].as_str()?, "new" | "reopened"),
            code_unchanged: one["code_unchanged"] == true,
        })
    };
    Ok(reported.filter_map(finding).collect())
}

fn table(totals: &LedgerTotals) -> String {
    let mut table = format!("{} reviews of pushes, {} after a force-push\n\n", totals.reviews, totals.forced_reviews);
    table.push_str(&format!("| findings | count | {} |\n|---|---:|---:|---:|---:|\n", METHODS.join(" | ")));
    let pushed = &totals.pushed;
    for (name, counts) in [
        ("persisting, called new", pushed.persisting),
        ("… in files that the push changed", pushed.changed),
        ("… in renamed files", pushed.renamed),
        ("… in code that moved to another file", pushed.other_file),
        ("… after a force-push", totals.forced.persisting),
        ("… after a force-push, in a fresh clone", totals.forgotten.persisting),
        ("on new text, called known", pushed.written),
    ] {
        let shares: Vec<String> = counts.wrong.iter().map(|wrong| share(*wrong, counts.all)).collect();
        table.push_str(&format!("| {name} | {} | {} |\n", counts.all, shares.join(" | ")));
    }
    table.push_str(&format!(
        "\nCanonry follows {} findings on new text as the same finding with changed code, {} persisting findings likewise, \
         and takes {} persisting findings for another one of the same rule.\n",
        pushed.written_followed, pushed.persisting_changed, pushed.swapped
    ));
    table
}

/// A share in per cent, with Wilson's 95 % interval.
fn share(wrong: usize, all: usize) -> String {
    if all == 0 {
        return "–".to_owned();
    }
    let (count, share, z) = (all as f64, wrong as f64 / all as f64, 1.96_f64);
    let scale = 1.0 + z * z / count;
    let centre = (share + z * z / (2.0 * count)) / scale;
    let half = z * (share * (1.0 - share) / count + z * z / (4.0 * count * count)).sqrt() / scale;
    let (low, high) = ((centre - half).clamp(0.0, share), (centre + half).clamp(share, 1.0));
    format!("{wrong} ({:.2} %, {:.2}–{:.2})", 100.0 * share, 100.0 * low, 100.0 * high)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::{findings, keep_touched, share};

    #[test]
    fn shares_have_wilsons_interval() {
        assert_eq!(share(0, 0), "–");
        assert_eq!(share(0, 10), "0 (0.00 %, 0.00–27.75)");
        assert_eq!(share(1, 10), "1 (10.00 %, 1.79–40.42)");
    }

    #[test]
    fn a_report_keeps_the_results_in_the_touched_files() {
        let result = |uri: &str| json!({"locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}}}]});
        let mut log = json!({"runs": [{"results": [result("file:///c/a.py"), result("b.py"), result("./c.py"), {}]}]});
        keep_touched(&mut log, Path::new("/c"), &["a.py".to_owned(), "c.py".to_owned()].into());
        assert_eq!(log, json!({"runs": [{"results": [result("a.py"), result("c.py")]}]}));
    }

    #[test]
    fn fixed_findings_and_those_without_a_line_do_not_count() {
        let finding = |status: &str, line: Option<u32>| {
            json!({"id": 7, "path": "a.py", "line": line, "status": status, "reported": status != "fixed",
                "code_unchanged": true, "witnesses": [{"rule": "B"}, {"rule": "A"}]})
        };
        let answer = json!({"findings": [finding("moved", Some(3)), finding("fixed", Some(4)), finding("new", None)]});
        let all = findings(&answer).expect("findings");
        assert_eq!((all.len(), all[0].rule.as_str(), all[0].is_new), (1, "A B", false));
    }
}
