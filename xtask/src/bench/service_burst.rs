//! The burst of the `service` benchmark: 10,000 deliveries at once, processed in order and within limits.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::service_load::{Load, SignedWebhook, about, example, post};
use super::service_process::{canonry, resident_kib};
use crate::process::quietly;

const ITEMS: usize = 500;
const REPOS: usize = 5;
/// The events of each issue, in order; twenty for each of 500 make 10,000.
const STORY: [&str; 20] = [
    "opened",
    "labeled",
    "assigned",
    "edited",
    "milestoned",
    "locked",
    "unlocked",
    "unlabeled",
    "labeled",
    "closed",
    "reopened",
    "unassigned",
    "assigned",
    "labeled",
    "pinned",
    "unpinned",
    "demilestoned",
    "closed",
    "reopened",
    "closed",
];
const CONNECTIONS: usize = 64;
const WORKERS: usize = 4;
/// A slower drain is an error.
const DRAIN_LIMIT: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Burst {
    rate: f64,
    p99: f64,
    /// From the first delivery to the end of the last job.
    drained: f64,
    idle_kib: u64,
    accepted_kib: u64,
    peak_kib: u64,
    ends: String,
}

pub(crate) fn burst(binary: &Path, database: &str, folder: &Path) -> Result<Burst> {
    let example = example("issues", "opened")?;
    let story: Vec<Vec<SignedWebhook>> = (0..ITEMS)
        .map(|item| STORY.iter().map(|action| about(&example, &repo(item), item + 1, action)).collect())
        .collect();
    let server = canonry(binary, database, WORKERS, &folder.join("burst.log"))?;
    let (peak, ended, id) = (AtomicU64::new(0), AtomicBool::new(false), server.id());
    let idle_kib = resident_kib(id).unwrap_or(0);
    let began = Instant::now();
    let (load, accepted_kib, drained) = thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                peak.fetch_max(resident_kib(id).unwrap_or(0), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(20));
            }
        });
        let result = accept_and_drain(&server.door, &story, binary, database, began, || resident_kib(id).unwrap_or(0));
        ended.store(true, Ordering::Relaxed);
        result
    })?;
    server.stop()?;
    let ends = check_order(&jobs(binary, database, &[])?)?;
    let peak_kib = peak.into_inner();
    Ok(Burst { rate: load.rate(), p99: load.quantile(0.99), drained, idle_kib, accepted_kib, peak_kib, ends })
}

fn repo(item: usize) -> String {
    format!("octo/cat-{}", item % REPOS)
}

fn accept_and_drain(
    door: &super::service_load::Door,
    story: &[Vec<SignedWebhook>],
    binary: &Path,
    database: &str,
    began: Instant,
    resident: impl Fn() -> u64,
) -> Result<(Load, u64, f64)> {
    // One connection sends all events of an item one after the other, as GitHub would.
    let load = post(*door, CONNECTIONS, "issues", |connection, number| {
        let items = (story.len() + CONNECTIONS - 1 - connection) / CONNECTIONS;
        let (chapter, at) = (number / items, number % items);
        let item = connection + at * CONNECTIONS;
        Some((story.get(item)?.get(chapter)?, format!("burst-{item:03}-{chapter:02}")))
    })?;
    let accepted_kib = resident();
    ensure!(load.deliveries == ITEMS * STORY.len(), "only {} were sent", load.deliveries);
    loop {
        let is_empty =
            |state| Ok::<bool, anyhow::Error>(jobs(binary, database, &["--state", state, "--limit", "1"])?.is_empty());
        if is_empty("queued")? && is_empty("running")? {
            return Ok((load, accepted_kib, began.elapsed().as_secs_f64()));
        }
        ensure!(began.elapsed() < DRAIN_LIMIT, "the burst is not worked off after {} s", DRAIN_LIMIT.as_secs());
        thread::sleep(LOOK);
    }
}

/// The jobs of webhooks, as the command line lists them.
fn jobs(binary: &Path, database: &str, filter: &[&str]) -> Result<Vec<Value>> {
    let mut command = Command::new(binary);
    command.args(["jobs", "list", "--json", "--db", database]);
    command.args(if filter.is_empty() { &["--limit", "1000000"] } else { filter });
    let document: Value = serde_json::from_slice(&quietly(&mut command)?.stdout)?;
    let jobs = document["jobs"].as_array().context("an answer without jobs")?;
    Ok(jobs.iter().filter(|job| job["kind"] == "webhook").cloned().collect())
}

/// Every delivery has one finished job, and the jobs of one item were stored and finished in the order they were
/// sent.
fn check_order(jobs: &[Value]) -> Result<String> {
    ensure!(jobs.len() == ITEMS * STORY.len(), "{} jobs are stored", jobs.len());
    let mut ends: HashMap<&str, usize> = HashMap::new();
    let mut items: HashMap<&str, Vec<(&str, i64, &str)>> = HashMap::new();
    for job in jobs {
        let text = |name: &str| job[name].as_str().with_context(|| format!("a job without {name}: {job}"));
        *ends.entry(text("state")?).or_default() += 1;
        let id = job["id"].as_i64().context("a job without an id")?;
        items.entry(text("key")?).or_default().push((text("delivery")?, id, text("finished_at")?));
    }
    ensure!(items.len() == ITEMS, "{} items", items.len());
    for (key, mut jobs) in items {
        jobs.sort_unstable();
        ensure!(jobs.len() == STORY.len(), "{key} has {} jobs", jobs.len());
        for pair in jobs.windows(2) {
            let (before, after) = (pair[0], pair[1]);
            if before.1 >= after.1 || moment(before.2)? > moment(after.2)? {
                bail!("{key}: {after:?} came before {before:?}");
            }
        }
    }
    let mut ends: Vec<String> = ends.into_iter().map(|(state, count)| format!("{count} {state}")).collect();
    ends.sort();
    Ok(ends.join(", "))
}

/// RFC 3339 in UTC with any number of decimals, normalized so that text order is time order.
fn moment(text: &str) -> Result<String> {
    let text = text.strip_suffix('Z').with_context(|| format!("{text} is not in UTC"))?;
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    Ok(format!("{seconds}.{fraction:0<9}"))
}

pub(crate) fn table(rows: &[(&str, Burst)]) -> String {
    let mut table = String::from(
        "| burst | accepted/s | p99 | all jobs ended after | jobs | memory idle | when all were accepted | at most |\n\
         |---|---:|---:|---:|---|---:|---:|---:|\n",
    );
    for (engine, burst) in rows {
        let megabytes = |kib: u64| kib as f64 * 1024.0 / 1e6;
        table.push_str(&format!(
            "| {engine} | {:.0} | {:.1} ms | {:.1} s | {} | {:.0} MB | {:.0} MB | {:.0} MB |\n",
            burst.rate,
            burst.p99,
            burst.drained,
            burst.ends,
            megabytes(burst.idle_kib),
            megabytes(burst.accepted_kib),
            megabytes(burst.peak_kib)
        ));
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ITEMS, STORY, check_order, moment};

    fn jobs() -> Vec<Value> {
        let item = |item: usize| {
            (0..STORY.len()).map(move |chapter| {
                json!({
                    "id": chapter * ITEMS + item, "delivery": format!("burst-{item:03}-{chapter:02}"),
                    "key": format!("octo/cat#{item}"), "state": "done",
                    "finished_at": format!("2026-01-01T00:00:{chapter:02}.5Z"),
                })
            })
        };
        (0..ITEMS).flat_map(item).collect()
    }

    #[test]
    fn an_order_that_was_not_kept_is_seen() {
        let mut all = jobs();
        assert_eq!(check_order(&all).expect("in order"), "10000 done");
        all[25]["finished_at"] = json!("2026-01-01T00:00:01Z");
        let error = check_order(&all).expect_err("it ended before the one before it").to_string();
        assert!(error.contains("burst-001-05"), "{error}");
        let mut all = jobs();
        let (first, second) = (all[0]["id"].clone(), all[1]["id"].clone());
        (all[0]["id"], all[1]["id"]) = (second, first);
        assert!(check_order(&all).is_err());
        assert!(check_order(&all[1..]).is_err());
    }

    #[test]
    fn moments_compare_whatever_their_digits() {
        assert!(moment("2026-01-01T00:00:01Z").expect("UTC") < moment("2026-01-01T00:00:01.000001Z").expect("UTC"));
        assert!(moment("2026-01-01T00:00:01.1Z").expect("UTC") > moment("2026-01-01T00:00:01.09Z").expect("UTC"));
    }
}
