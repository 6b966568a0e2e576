//! The clone and the reports for the `review` benchmark, created for each run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::process::quietly;

pub(crate) const FILES: usize = 500;
pub(crate) const RESULTS: usize = 5_000;

/// Lines of a file before the change, and lines that the change adds: 50,000 in all.
const LINES: usize = 100;

/// The push adds a line at the top of each file whose number is divisible by this.
const PUSHED_EACH: usize = 10;

/// A clone with a large change on a branch, and a push on top of it.
pub(crate) struct ReviewProject {
    pub(crate) clone: PathBuf,
    pub(crate) first_report: PathBuf,
    pub(crate) pushed_report: PathBuf,
    pub(crate) lines: usize,
    pub(crate) files_pushed: usize,
}

impl ReviewProject {
    pub(crate) const BASE: &str = "main";
    pub(crate) const FIRST: &str = "first";
    pub(crate) const PUSHED: &str = "pushed";

    pub(crate) fn build(folder: &Path) -> Result<Self> {
        let clone = folder.join("clone");
        fs::create_dir_all(clone.join("src"))?;
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.arg("-C").arg(&clone).args(["-c", "user.name=Bench", "-c", "user.email=bench@example.com"]);
            command.args(["-c", "commit.gpgsign=false", "-c", "core.autocrlf=false"]).args(arguments);
            quietly(&mut command).map(drop)
        };
        let commit = |branch: &str, text: &dyn Fn(usize) -> String| -> Result<()> {
            git(&["checkout", "--quiet", "-b", branch])?;
            for file in 0..FILES {
                fs::write(clone.join(path(file)), text(file)).context("a file of the clone")?;
            }
            git(&["add", "--all", "."])?;
            git(&["commit", "--quiet", "--message", branch])
        };
        git(&["init", "--quiet", "--initial-branch=unborn"])?;
        let changed = |file: usize| code(file, 0) + &code(file, LINES);
        commit(Self::BASE, &|file| code(file, 0))?;
        commit(Self::FIRST, &changed)?;
        let top = |file: usize| if is_pushed(file) { "import { call } from './calls.js';\n" } else { "" };
        commit(Self::PUSHED, &|file| top(file).to_owned() + &changed(file))?;
        let write = |name: &str, shift: &dyn Fn(usize) -> usize| -> Result<PathBuf> {
            let path = folder.join(name);
            fs::write(&path, report(shift).to_string())?;
            Ok(path)
        };
        Ok(Self {
            first_report: write("first.sarif", &|_| 0)?,
            pushed_report: write("pushed.sarif", &|file| usize::from(is_pushed(file)))?,
            lines: FILES * LINES,
            files_pushed: (0..FILES).filter(|file| is_pushed(*file)).count(),
            clone,
        })
    }
}

fn is_pushed(file: usize) -> bool {
    file.is_multiple_of(PUSHED_EACH)
}

fn path(file: usize) -> String {
    format!("src/part{file}.js")
}

/// Lines that differ from each other, as in real code.
fn code(file: usize, from: usize) -> String {
    (from..from + LINES)
        .map(|line| format!("  const value{line} = call{}(part{file}, {}, \"step {line}\");\n", line % 9, line * file))
        .collect()
}

/// A linter's report with results spread over the added lines of all files, as long as real reports.
fn report(shift: &dyn Fn(usize) -> usize) -> Value {
    let rule = |at: usize| format!("no-call-{}", at % 25);
    let result = |at: usize| {
        let (file, nth) = (at % FILES, at / FILES);
        let line = LINES + 1 + nth * (LINES * FILES / RESULTS) + shift(file);
        json!({
            "ruleId": rule(nth * 7 + file),
            "level": "warning",
            "message": {"text": format!("Unexpected call of {}.\nCalls of this kind are slow; use the shared value of step {nth}.", rule(nth))},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": path(file), "uriBaseId": "ROOT", "index": file},
                "region": {"startLine": line, "startColumn": 3, "endLine": line, "endColumn": 40},
            }}],
            "partialFingerprints": {"primaryLocationLineHash": format!("{:016x}:1", at * 0x9e37_79b9)},
        })
    };
    let rules: Vec<Value> = (0..25)
        .map(|at| json!({"id": rule(at), "shortDescription": {"text": "No calls"}, "properties": {"tags": ["performance"]}}))
        .collect();
    let artifacts: Vec<Value> = (0..FILES).map(|file| json!({"location": {"uri": path(file)}})).collect();
    json!({
        "version": "2.1.0",
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "runs": [{
            "tool": {"driver": {"name": "bench-lint", "rules": rules}},
            "artifacts": artifacts,
            "results": (0..RESULTS).map(result).collect::<Vec<Value>>(),
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::{FILES, LINES, RESULTS, report};

    #[test]
    fn every_result_is_on_an_added_line_of_its_own() {
        let log = report(&|_| 0);
        let results = log["runs"][0]["results"].as_array().expect("results");
        let place = |result: &serde_json::Value| {
            let at = &result["locations"][0]["physicalLocation"];
            (at["artifactLocation"]["uri"].to_string(), at["region"]["startLine"].as_u64().expect("a line"))
        };
        let mut places: Vec<_> = results.iter().map(place).collect();
        places.sort();
        places.dedup();
        assert_eq!((places.len(), FILES * LINES), (RESULTS, 50_000));
        let added = LINES as u64 + 1..=2 * LINES as u64;
        assert!(places.iter().all(|(_, line)| added.contains(line)));
    }
}
