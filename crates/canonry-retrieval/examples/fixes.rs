//! Prints how often the fix of an issue is found among the pull requests merged later, with every reference to an issue
//! hidden. The truth are the pull requests that say which issue they fix.
//!
//! `fixes [--features FILE]`: with a file, also writes the features of each candidate, one JSON line for each issue, for
//! `training/fit_fixes.py`.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::PathBuf;

use canonry_domain::{
    Interval, ItemNumber, ItemRecord, ItemType, PullChanges, RepoName, fixed_issues, parse_import_value,
};
use canonry_retrieval::{FixIndex, FixQuery, MergedPull, bootstrap};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use regex::Regex;
use serde_json::{Value, json};

const SET: &str = "rust.jsonl.gz";
const DEPTH: usize = 20;

struct Hidden {
    reference: Regex,
    number: Regex,
}

impl Hidden {
    fn new() -> Self {
        let regex = |pattern: &str| Regex::new(pattern).expect("a pattern");
        Self {
            reference: regex(
                r"(?ix) (?:\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?)[:\s]+(?:issues?\s*)?)?
                (?: https?://\S*/(?:issues|pulls?|commits?)/\S+ | (?:[\w.-]+/[\w.-]+)?\#\d+ | \bgh-\d+ )",
            ),
            number: regex(
                r"(?i)\b(?:issues?|bugs?|pr|gh|ticket|pull[ _-]?request|fixme|xxx|todo)[\s_#:(-]*\d{2,}(?:-\d+)?\)?",
            ),
        }
    }

    fn hide(&self, text: &str) -> String {
        let text = self.reference.replace_all(text, " ");
        self.number.replace_all(&text, " ").into_owned()
    }
}

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let features = match arguments.next().as_deref() {
        Some("--features") => arguments.next().map(PathBuf::from),
        _ => None,
    };
    let folder = std::env::var_os("CANONRY_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let path = folder.join(SET);
    let file = File::open(&path).map_err(|error| {
        format!(
            "there is no {}: run this from the repository's root, or set CANONRY_BENCH_DATA ({error})",
            path.display()
        )
    })?;
    let mut records = Vec::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let line = line.map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        records.push(parse_import_value(&value).map_err(|error| error.to_string())?.record);
    }
    measure(records, features)
}

fn measure(records: Vec<ItemRecord>, features: Option<PathBuf>) -> Result<(), String> {
    let repo: RepoName = "rust-lang/rust".parse().map_err(|error| format!("{error}"))?;
    let (mut pulls, issues): (Vec<ItemRecord>, Vec<ItemRecord>) =
        records.into_iter().partition(|record| record.item_type == ItemType::Pr);
    pulls.sort_by_key(|pull| (pull.created_at, pull.number));
    let merged_at = |pull: &ItemRecord| pull.closed_at.flatten();
    pulls.retain(|pull| pull.created_at.is_some() && merged_at(pull).is_some());
    let mut truth: BTreeMap<ItemNumber, BTreeSet<ItemNumber>> = BTreeMap::new();
    for pull in &pulls {
        let text = format!("{}\n{}", pull.title, pull.body.as_deref().unwrap_or_default());
        for issue in fixed_issues(&repo, &text) {
            truth.entry(issue).or_default().insert(pull.number);
        }
    }
    let hidden = Hidden::new();
    let texts: Vec<(String, String, Option<PullChanges>)> = pulls
        .iter()
        .map(|pull| {
            let changes = pull.changes.as_ref().map(|changes| PullChanges {
                files: changes.files.iter().map(|file| hidden.number.replace_all(file, "").into_owned()).collect(),
                diff: hidden.hide(&changes.diff),
            });
            (hidden.hide(&pull.title), hidden.hide(pull.body.as_deref().unwrap_or_default()), changes)
        })
        .collect();
    let began = std::time::Instant::now();
    let index = FixIndex::new(pulls.iter().zip(&texts).map(|(pull, (title, body, changes))| MergedPull {
        number: pull.number,
        title,
        body,
        author: pull.author.as_ref(),
        changes: changes.as_ref(),
        created_at: pull.created_at.unwrap_or(Timestamp::UNIX_EPOCH),
        merged_at: merged_at(pull).unwrap_or(Timestamp::UNIX_EPOCH),
    }));
    let built = began.elapsed();
    let merged: BTreeMap<ItemNumber, Timestamp> =
        pulls.iter().filter_map(|pull| Some((pull.number, merged_at(pull)?))).collect();
    let mut queries: Vec<(&ItemRecord, Timestamp, BTreeSet<ItemNumber>)> = Vec::new();
    for issue in &issues {
        let Some(created) = issue.created_at else { continue };
        let Some(fixes) = truth.get(&issue.number) else { continue };
        let later: BTreeSet<ItemNumber> =
            fixes.iter().filter(|fix| merged.get(fix).is_some_and(|at| *at >= created)).copied().collect();
        if !later.is_empty() {
            queries.push((issue, created, later));
        }
    }
    queries.sort_by_key(|(issue, created, _)| (*created, issue.number));
    let mut file = match features {
        Some(path) => Some(BufWriter::new(File::create(path).map_err(|error| error.to_string())?)),
        None => None,
    };
    let half = queries.len() / 2;
    let mut ranks = Vec::new();
    let mut sure = Vec::new();
    let began = std::time::Instant::now();
    for (place, (issue, created, relevant)) in queries.iter().enumerate() {
        let (title, body) = (hidden.hide(&issue.title), hidden.hide(issue.body.as_deref().unwrap_or_default()));
        let query = FixQuery { title: &title, body: &body, author: issue.author.as_ref(), created_at: *created };
        if let Some(file) = &mut file {
            let candidates: Vec<Value> = index
                .features(&query)
                .into_iter()
                .map(|(number, features)| json!([relevant.contains(&number), features]))
                .collect();
            writeln!(file, "{}", json!({ "late": place >= half, "candidates": candidates }))
                .map_err(|error| error.to_string())?;
        }
        let ranked = index.rank(&query, DEPTH);
        ranks.push(ranked.iter().position(|fix| relevant.contains(&fix.number)));
        let first = ranked.first();
        sure.push(
            first
                .and_then(|fix| fix.confidence)
                .map(|of| (of.get(), relevant.contains(&first.expect("a first").number))),
        );
    }
    let each = began.elapsed() / u32::try_from(queries.len().max(1)).unwrap_or(u32::MAX);
    println!(
        "{} issues, {} merged pull requests; the index takes {:.1} s to build, a question {:.0} ms\n",
        queries.len(),
        index.len(),
        built.as_secs_f64(),
        each.as_secs_f64() * 1e3
    );
    println!("| issues | R@1 | R@5 | R@10 | R@20 | MRR |\n|---|---|---|---|---|---|");
    for (name, range) in [("earlier half, fitted on", 0..half), ("later half", half..queries.len())] {
        let ranks = &ranks[range];
        let share = |depth: usize| {
            let found: Vec<f64> =
                ranks.iter().map(|rank| f64::from(u8::from(rank.is_some_and(|rank| rank < depth)))).collect();
            let Interval { value, low, high } = bootstrap(&found, 1);
            format!("{value:.3} ({low:.3}–{high:.3})")
        };
        let reciprocal: Vec<f64> =
            ranks.iter().map(|rank| rank.map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0))).collect();
        println!("| {name} | {} | {} | {} | {} | {:.3} |", share(1), share(5), share(10), share(20), mean(&reciprocal));
    }
    println!("\n| confidence of the first, later half | given | right |\n|---|---|---|");
    for least in [0.5, 0.7, 0.9] {
        let given: Vec<bool> =
            sure[half..].iter().flatten().filter(|(of, _)| *of >= least).map(|(_, right)| *right).collect();
        let right = given.iter().filter(|right| **right).count();
        println!("| {least:.1} | {} | {:.3} |", given.len(), right as f64 / given.len().max(1) as f64);
    }
    Ok(())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
