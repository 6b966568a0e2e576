//! The `check` benchmark: how often a draft is recognised, on the public sets, and how long an answer takes among 25,000
//! issues.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::service_process::{ADMIN_TOKEN, canonry_at, free_address};
use super::watched::quantile;
use super::{data, example, folder, release_binary};
use crate::process::step;

const ITEMS: &str = "25000";
/// The repository of `service_latency seed`.
const REPO: &str = "tide/pool";
/// Drafts that are asked about once the index is in memory, and runs of the command line.
const WARM: usize = 60;
const COLD: usize = 9;

pub(crate) fn run() -> Result<()> {
    data("rust.jsonl.gz")?;
    let vectors = folder()?.join("vectors");
    let mut embed = example("canonry-models", "embed_sets")?;
    embed.arg(&vectors).args(["rust.pr", "rails.pr", "rust.issue"]);
    step("vectors of the sets, by the compiled-in model", &mut embed)?;
    step("drafts", example("canonry-triage", "check_replay")?.arg("--vectors").arg(&vectors))?;
    speed()
}

fn speed() -> Result<()> {
    let binary = release_binary()?;
    let place = tempfile::Builder::new().prefix("check-").tempdir_in(folder()?)?;
    let url = format!("sqlite:{}", place.path().join("bench.db").display());
    let mut seed = example("canonry-server", "service_latency")?;
    step(&format!("{ITEMS} issues"), seed.args(["seed", &url]).arg(place.path()).arg(ITEMS))?;
    // The first run writes the snapshot of the index.
    cold(&binary, &url, 0)?;
    let runs: Vec<f64> = (0..COLD).map(|run| cold(&binary, &url, run)).collect::<Result<_>>()?;
    println!("\n| `check` among {ITEMS} issues in SQLite | first | p50 | p95 |\n|---|---:|---:|---:|");
    print_row("command line, cold, with a snapshot of the index", None, &runs);
    let mut stdio = warm_over_stdio(&binary, &url)?;
    print_row("`check_draft` of `canonry mcp`, warm", Some(stdio.remove(0)), &stdio);
    let address = free_address()?;
    let server = canonry_at(&binary, &url, 0, address, &place.path().join("log"))?;
    let mut api = (0..=WARM)
        .map(|at| post(address, &format!("/api/repos/{REPO}/check"), &draft(at)))
        .collect::<Result<Vec<_>>>()?;
    print_row("`POST /api/repos/O/N/check`, warm", Some(api.remove(0)), &api);
    let path = format!("/mcp?repo={REPO}");
    let mcp = (0..WARM).map(|at| post(address, &path, &call(at))).collect::<Result<Vec<_>>>()?;
    print_row("`check_draft` at `/mcp`, warm", None, &mcp);
    server.stop()
}

fn print_row(name: &str, first: Option<f64>, milliseconds: &[f64]) {
    let first = first.map_or_else(String::new, |first| format!("{first:.0} ms"));
    let [half, most] = [0.5, 0.95].map(|share| quantile(milliseconds, share));
    println!("| {name} | {first} | {half:.0} ms | {most:.0} ms |");
}

/// A draft of a hundred words, another for each number.
fn draft(at: usize) -> Value {
    let words = ["stream", "cursor", "folder", "packet", "window", "branch", "socket", "letter", "signal", "carpet"];
    let word = |place: usize| words[(at * 7 + place * 3 + place * place) % words.len()];
    let sentence = |from: usize| (from..from + 12).map(word).collect::<Vec<_>>().join(" ");
    let body: String = (0..8).map(|line| format!("{} {}.\n", sentence(line * 5), at + line)).collect();
    let body = format!(
        "{body}\n```\nerror[E{:04}]: the {} was dropped\n  at src/part_{at}.rs:{}:17\n```\n",
        1_000 + at,
        word(1),
        40 + at
    );
    json!({ "title": format!("The {} stops after the {} ({at})", word(2), word(5)), "body": body, "author": null, "changes": null })
}

fn call(at: usize) -> Value {
    let draft = draft(at);
    let arguments = json!({ "title": draft["title"], "body": draft["body"] });
    json!({ "jsonrpc": "2.0", "id": at, "method": "tools/call", "params": { "name": "check_draft", "arguments": arguments } })
}

/// The milliseconds of one run of the command line.
fn cold(binary: &Path, url: &str, at: usize) -> Result<f64> {
    let draft = draft(at);
    let text = |key: &str| draft[key].as_str().unwrap_or_default().to_owned();
    let mut command = Command::new(binary);
    command.args(["check", "--db", url, "--repo", REPO, "--title", &text("title"), "--body", &text("body"), "--json"]);
    let began = Instant::now();
    let output = command.output()?;
    let milliseconds = began.elapsed().as_secs_f64() * 1e3;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    ensure!(answer["stats"]["compared"].as_u64() >= Some(25_000), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(milliseconds)
}

/// The milliseconds of each call of one session; the first loads the index.
fn warm_over_stdio(binary: &Path, url: &str) -> Result<Vec<f64>> {
    let mut command = Command::new(binary);
    command
        .args(["mcp", "--db", url, "--repo", REPO])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut process = command.spawn()?;
    let mut input = process.stdin.take().context("a pipe")?;
    let mut output = BufReader::new(process.stdout.take().context("a pipe")?);
    let mut ask = |message: &Value| -> Result<f64> {
        let (began, mut answer) = (Instant::now(), String::new());
        writeln!(input, "{message}")?;
        input.flush()?;
        output.read_line(&mut answer)?;
        ensure!(answer.contains("\"result\"") && !answer.contains("\"isError\":true"), "{answer}");
        Ok(began.elapsed().as_secs_f64() * 1e3)
    };
    let client = json!({ "name": "bench", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    ask(&json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }))?;
    let milliseconds = (0..=WARM).map(|at| ask(&call(at))).collect::<Result<Vec<_>>>()?;
    drop(input);
    process.wait()?;
    Ok(milliseconds)
}

/// The milliseconds of one request, with its connection.
fn post(address: SocketAddr, path: &str, body: &Value) -> Result<f64> {
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {ADMIN_TOKEN}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let (began, mut answer) = (Instant::now(), String::new());
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request.as_bytes())?;
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"compared\":25"), "{answer}");
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::{call, draft};

    #[test]
    fn every_draft_is_another_text() {
        let texts: std::collections::BTreeSet<String> = (0..60).map(|at| draft(at).to_string()).collect();
        assert_eq!(texts.len(), 60);
        assert_eq!(call(3)["params"]["arguments"]["title"], draft(3)["title"]);
    }
}
