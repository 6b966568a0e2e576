//! Canonry's health, in one line.

use canonry_store::{QueueStatus, RepoAccess, RepoAttention};
use jiff::{SignedDuration, Timestamp};

use crate::layout::formatting::{Badge, capital, counted, length};

/// A job is late if it is due for longer than this and not started.
const LATE: SignedDuration = SignedDuration::from_mins(5);

pub(crate) struct Health {
    pub(crate) badge: Badge,
    pub(crate) words: String,
}

/// `queue` is given only for operators.
pub(crate) fn health(repos: &[&RepoAttention], queue: Option<&QueueStatus>, now: Timestamp) -> Health {
    let count = |is_so: fn(&RepoAttention) -> bool| repos.iter().filter(|repo| is_so(repo)).count() as u64;
    let failed = queue.map_or_else(|| repos.iter().map(|repo| repo.failed_jobs).sum(), |queue| queue.dead);
    let late = queue.and_then(|queue| queue.oldest_due).map(|due| due.duration_until(now)).filter(|wait| *wait > LATE);
    let repositories = |count: u64, what: &str| {
        let noun = if count == 1 { "repository" } else { "repositories" };
        (count > 0).then(|| format!("{count} {noun} {what}"))
    };
    let troubles: Vec<String> = [
        repositories(count(|repo| !matches!(repo.access, RepoAccess::Active | RepoAccess::Archived)), "without access"),
        repositories(count(|repo| repo.breaker), "with automatic closes stopped"),
        repositories(count(|repo| repo.paused), "paused"),
        (failed > 0).then(|| counted(failed, "failed job")),
        late.map(|wait| format!("the oldest due job waits for {}", length(wait))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let (badge, state) = match troubles.is_empty() {
        true => (Badge::new("good", "Healthy"), "No failed jobs, nothing paused".to_owned()),
        false => (Badge::new("warn", "Needs attention"), capital(&troubles.join(", "))),
    };
    let queued = queue.map(|queue| {
        let running = if queue.running > 0 { format!(", {} running", queue.running) } else { String::new() };
        format!(" {} queued{running}.", counted(queue.queued, "job"))
    });
    Health { badge, words: format!("{state}.{}", queued.unwrap_or_default()) }
}
