//! Runs the built-in rules on changes of the past, and prints what they find.
//!
//! `cargo run -p canonry-review --example rules_on_changes -- FILE…`, where each file has one JSON object per line:
//! `{"number", "files": [PATH…], "diff": "+added\n-removed\n…"}`, or `{"path", "text"}` for one new file.
#![expect(clippy::print_stdout, reason = "the findings are what this program is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

use canonry_domain::review::RepoPath;
use canonry_review::reviewers::{FileToRead, read_with_rules};
use canonry_review::{ChangeKind, ContentKind, FileChange};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut changes, mut lines, mut by_rule) = (0_usize, 0_usize, BTreeMap::<String, usize>::new());
    for file in std::env::args().skip(1) {
        for row in BufReader::new(File::open(&file)?).lines() {
            let row: Value = serde_json::from_str(&row?)?;
            let Some((path, text)) = added_text(&row) else { continue };
            let Ok(path) = RepoPath::exact(&path) else { continue };
            changes += 1;
            lines += text.lines().count();
            let change = new_file(path, &text);
            let read = FileToRead { change: &change, text: Some(&text), bytes: Some(text.len() as u64) };
            for found in read_with_rules(&[read]).reported {
                let rule = found.rule.unwrap_or_default();
                *by_rule.entry(rule.clone()).or_default() += 1;
                let first = found.lines.map_or(0, |lines| lines.first);
                let line = text.lines().nth((first as usize).saturating_sub(1)).unwrap_or_default();
                let line: String = line.chars().take(200).collect();
                println!(
                    "{}",
                    json!({"of": file, "number": row["number"], "path": change.path.as_str(), "rule": rule, "line": first,
                        "severity": found.severity.to_string(), "said": found.title, "message": found.message, "text": line})
                );
            }
        }
    }
    println!("{}", json!({"changes": changes, "lines": lines, "by_rule": by_rule}));
    Ok(())
}

/// The lines that a row adds, as one file. A diff over several files does not say where one ends: the kind of file that
/// is most frequent stands for all.
fn added_text(row: &Value) -> Option<(String, String)> {
    if let (Some(path), Some(text)) = (row["path"].as_str(), row["text"].as_str()) {
        return Some((path.to_owned(), text.to_owned()));
    }
    let files: Vec<&str> = row["files"].as_array()?.iter().filter_map(Value::as_str).collect();
    let diff = row["diff"].as_str()?;
    let extension = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let mut counts = BTreeMap::<String, usize>::new();
    for path in &files {
        *counts.entry(extension(path)).or_default() += 1;
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let path = if let [only] = files[..] { only.to_owned() } else { format!("several/files.{most}") };
    let added: Vec<&str> = diff.lines().filter_map(|line| line.strip_prefix('+')).collect();
    Some((path, format!("{}\n", added.join("\n"))))
}

fn new_file(path: RepoPath, text: &str) -> FileChange {
    FileChange {
        kind: ChangeKind::Modified,
        path,
        old_path: None,
        content: ContentKind::Text,
        blob: None,
        hunks: Vec::new(),
        added: (1..).zip(text.lines().map(str::to_owned)).collect(),
        removed: 0,
    }
}
