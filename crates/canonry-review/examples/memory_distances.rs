//! Measures how far past findings are from new code and from other findings, on judged review comments: the source of
//! the default distances of the compiled-in embedder.
//!
//! `cargo run --release -p canonry-review --example memory_distances`, from the repository's root; the data is in
//! `shared/bench/review` beside it, or in the folder `review` of `CANONRY_BENCH_DATA`.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use canonry_models::{Embedder as _, InputType, LocalEmbedder};
use serde_json::Value;

/// One judge's verdicts are used; the three differ little.
const JUDGE: &str = "openai_gpt-5.2";
/// The memories that a model gets by default.
const TOLD: usize = 5;
/// The characters of a text that go into a vector, as in a review.
const LONGEST_TEXT: usize = 1_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::var_os("CANONRY_BENCH_DATA").map_or_else(|| PathBuf::from("../shared/bench"), PathBuf::from);
    let folder = folder.join("review");
    if !folder.join("agreement.jsonl").exists() {
        return Err(format!(
            "there are no judged comments in {}: run this from the repository's root, or name the folder in CANONRY_BENCH_DATA",
            folder.display()
        )
        .into());
    }
    let read = |name: &str| -> Result<Vec<Value>, Box<dyn Error>> {
        let text = std::fs::read_to_string(folder.join(name))?;
        Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    };
    let embedder = LocalEmbedder::load()?;
    println!("embedder: {}\n", embedder.model_id());
    from_findings(&embedder, &read("agreement.jsonl")?).await?;
    from_code(&embedder, &read("labelled_comments.jsonl")?).await
}

/// Compares two descriptions: of the same wanted comment, of another one of the same pull request, and of another pull
/// request.
async fn from_findings(embedder: &LocalEmbedder, lines: &[Value]) -> Result<(), Box<dyn Error>> {
    let matched: Vec<&Value> = lines.iter().filter(|line| line["judge"] == JUDGE && line["matches"].is_u64()).collect();
    let texts: Vec<String> = matched.iter().map(|line| cut(text(line, "text"))).collect();
    let queries = embedder.embed(&texts, InputType::Query).await?;
    let memories = embedder.embed(&texts, InputType::Document).await?;
    let (mut same, mut beside, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
    for (one, query) in queries.iter().enumerate() {
        for (other, memory) in memories.iter().enumerate() {
            let (a, b) = (matched[one], matched[other]);
            if one == other || (a["pull"] == b["pull"] && a["tool"] == b["tool"]) {
                continue;
            }
            let pairs = match (a["pull"] == b["pull"], a["matches"] == b["matches"]) {
                (true, true) => &mut same,
                (true, false) => &mut beside,
                (false, _) => &mut elsewhere,
            };
            pairs.push(distance(query, memory));
        }
    }
    println!(
        "From a finding ({} comments; pairs: {} same, {} beside, {} elsewhere)",
        matched.len(),
        same.len(),
        beside.len(),
        elsewhere.len()
    );
    println!(
        "| distance | same problem | other problem of the pull request | other pull request | right of those within, without the last |"
    );
    println!("|---|--:|--:|--:|--:|");
    for farthest in steps(10, 60) {
        let within = |pairs: &[f64]| pairs.iter().filter(|distance| **distance <= farthest).count() as f64;
        let share = |pairs: &[f64]| 100.0 * within(pairs) / pairs.len() as f64;
        let right = 100.0 * within(&same) / (within(&same) + within(&beside)).max(1.0);
        let (a, b, c) = (share(&same), share(&beside), share(&elsewhere));
        println!("| {farthest:.2} | {a:.1} % | {b:.1} % | {c:.2} % | {right:.1} % |");
    }
    println!();
    Ok(())
}

/// Compares code that a comment quotes with the text of the same comment among all comments of its repository: in the
/// same file, and in another one.
async fn from_code(embedder: &LocalEmbedder, lines: &[Value]) -> Result<(), Box<dyn Error>> {
    let good: Vec<&Value> = lines.iter().filter(|line| line["label"] == "good").collect();
    let words: Vec<String> = good
        .iter()
        .map(|line| format!("{}\n\n{}", cut(&without_code(text(line, "text")).0), text(line, "path")))
        .collect();
    let memories = embedder.embed(&words, InputType::Document).await?;
    let mut repos: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, line) in good.iter().enumerate() {
        repos.entry(repo(line)).or_default().push(at);
    }
    let quoting: Vec<(usize, String)> = good
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, without_code(text(line, "text")).1?)))
        .filter(|(at, _)| without_code(text(good[*at], "text")).0.split_whitespace().count() >= 5)
        .collect();
    for (what, moved) in [("the same file", false), ("another file", true)] {
        let path = |at: usize| {
            let own = text(good[at], "path");
            let name = own.rsplit('/').next().unwrap_or(own);
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            if moved { format!("pkg/elsewhere/module_{}.{ending}", at % 7) } else { own.to_owned() }
        };
        let asked: Vec<String> = quoting.iter().map(|(at, code)| format!("{}\n{}", path(*at), cut(code))).collect();
        let queries = embedder.embed(&asked, InputType::Query).await?;
        let ranked: Vec<(usize, Vec<(f64, usize)>)> = queries
            .iter()
            .zip(&quoting)
            .map(|(query, (at, _))| {
                let others = &repos[repo(good[*at])];
                let mut near: Vec<(f64, usize)> =
                    others.iter().map(|other| (distance(query, &memories[*other]), *other)).collect();
                near.sort_by(|one, other| one.0.total_cmp(&other.0));
                (*at, near)
            })
            .collect();
        let sizes: usize = ranked.iter().map(|(_, near)| near.len()).sum();
        println!(
            "From code in {what} ({} quotes; {} memories each on average)",
            ranked.len(),
            sizes / ranked.len().max(1)
        );
        println!("| distance | told of its own comment | others told of, of {TOLD} |");
        println!("|---|--:|--:|");
        for farthest in steps(30, 90) {
            let (mut found, mut others) = (0_usize, 0_usize);
            for (at, near) in &ranked {
                let told: Vec<usize> = near
                    .iter()
                    .take(TOLD)
                    .filter(|(distance, _)| *distance <= farthest)
                    .map(|(_, other)| *other)
                    .collect();
                // Two equal texts are one comment.
                let is_own = |other: &&usize| words[**other] == words[*at];
                let own = told.iter().filter(is_own).count();
                found += usize::from(own > 0);
                others += told.len() - own;
            }
            let (share, noise) = (100.0 * found as f64 / ranked.len() as f64, others as f64 / ranked.len() as f64);
            println!("| {farthest:.2} | {share:.1} % | {noise:.2} |");
        }
        println!();
    }
    Ok(())
}

fn steps(from: u32, to: u32) -> impl Iterator<Item = f64> {
    (from..=to).step_by(5).map(|hundredths| f64::from(hundredths) / 100.0)
}

fn text<'a>(line: &'a Value, key: &str) -> &'a str {
    line[key].as_str().unwrap_or_default()
}

/// `owner/name` of the pull request's address.
fn repo(line: &Value) -> &str {
    let pull = text(line, "pull").trim_start_matches("https://github.com/");
    pull.split("/pull/").next().unwrap_or(pull)
}

/// The text of a comment, and the first code that it quotes.
fn without_code(comment: &str) -> (String, Option<String>) {
    let mut parts = comment.split("```");
    let mut words = parts.next().unwrap_or_default().to_owned();
    let mut code = None;
    while let Some(block) = parts.next() {
        let inside = block.split_once('\n').map_or("", |(_, inside)| inside);
        if code.is_none() && !inside.trim().is_empty() {
            code = Some(inside.to_owned());
        }
        words.push_str(parts.next().unwrap_or_default());
    }
    (words, code)
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

fn distance(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { 1.0 - dot(one, other) / lengths } else { 1.0 }
}
