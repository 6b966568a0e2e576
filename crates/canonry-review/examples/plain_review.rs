//! Does the least that any review must do: it reads `git diff` to its end, and parses a SARIF file.
//!
//! `cargo run --release -p canonry-review --example plain_review -- CLONE BASE HEAD REPORT`
#![expect(clippy::print_stdout, reason = "the counts are what this program is for")]

use std::error::Error;
use std::process::Command;

use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [clone, base, head, report] = &arguments[..] else { return Err("CLONE BASE HEAD REPORT".into()) };
    let diff = Command::new("git").args(["-C", clone, "diff", "-M", &format!("{base}...{head}")]).output()?;
    if !diff.status.success() {
        return Err(String::from_utf8_lossy(&diff.stderr).into());
    }
    let is_added = |line: &&[u8]| line.starts_with(b"+") && !line.starts_with(b"+++ ");
    let lines = diff.stdout.split(|byte| *byte == b'\n').filter(is_added).count();
    let log: Value = serde_json::from_slice(&std::fs::read(report)?)?;
    let results = log["runs"][0]["results"].as_array().map_or(0, Vec::len);
    println!("{}", serde_json::json!({ "lines": lines, "results": results }));
    Ok(())
}
