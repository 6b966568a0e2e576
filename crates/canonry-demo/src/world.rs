//! The demo's GitHub: the sample repositories with their people, their items, and the code of one of them.

use anyhow::{Context as _, Result};
use canonry_testkit::github::{CloseReason, NewIssue, Permission, Pull, World};
use canonry_testkit::samples::{ALL, BRINDLE, QUILLNOTE, Sample, TIDEPOOL};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::code;

/// Canonry's App on the demo's GitHub, and its account.
pub(crate) const APP_ID: u64 = 77;
pub(crate) const OWN: &str = "canonry[bot]";

/// The settings of each repository on its default branch: one closes duplicates, one only suggests, and one records
/// silently.
const BRINDLE_SETTINGS: &str = "triage: {mode: grace}\nclose: {graceHours: 48}\n\
    review: {enabled: true, triggers: {onSynchronize: true}}\nfeedback: {autoSuppress: {enabled: true}}\n";
pub(crate) const SUGGEST_SETTINGS: &str = "triage: {mode: suggest}\n";
const SHADOW_SETTINGS: &str = "triage: {mode: shadow}\n";

#[derive(Debug, Deserialize)]
struct SampleItem {
    #[serde(rename = "type")]
    kind: String,
    number: u64,
    title: String,
    body: String,
    state: String,
    state_reason: Option<String>,
    author: String,
    assignees: Vec<String>,
    labels: Vec<String>,
    comments: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
    closed_at: Option<Timestamp>,
    duplicate_of: Option<u64>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    diff: String,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    merged: bool,
}

/// The world at the beginning of the week. No webhook has been sent, and the App is not installed.
pub(crate) fn world(begins: Timestamp) -> Result<World> {
    let mut world = World::new();
    // Nothing else uses the limit, and a week is played in seconds.
    world.rate.limit = 10_000_000;
    for sample in &ALL {
        add(&mut world, sample, begins).with_context(|| format!("the sample {} cannot be read", sample.repo))?;
    }
    for (path, text) in code::AT_FIRST {
        world.get_mut(BRINDLE.repo).file(path, text);
    }
    for (sample, settings) in [(BRINDLE, BRINDLE_SETTINGS), (TIDEPOOL, SUGGEST_SETTINGS), (QUILLNOTE, SHADOW_SETTINGS)]
    {
        world.get_mut(sample.repo).file(".canonry.yml", settings);
    }
    world.now = begins;
    world.add_app(APP_ID, "canonry");
    Ok(world)
}

/// Sets the address of the App's webhooks, and installs the App for all three.
pub(crate) fn install(world: &mut World, webhooks: &str, secret: &str) {
    world.send_webhooks_to(webhooks, secret);
    let permissions = [
        ("issues", "write"),
        ("pull_requests", "write"),
        ("checks", "write"),
        ("contents", "write"),
        ("metadata", "read"),
    ];
    for sample in &ALL {
        let (owner, _) = sample.repo.split_once('/').expect("invariant: samples are named owner/name");
        world.install_app(owner, &permissions);
    }
}

fn add(world: &mut World, sample: &Sample, begins: Timestamp) -> Result<()> {
    let items: Vec<SampleItem> =
        sample.items.lines().map(serde_json::from_str).collect::<Result<_, serde_json::Error>>()?;
    let last = items.iter().map(|item| item.updated_at).max().unwrap_or(begins);
    // The samples' last day is the one before the week.
    let later = begins.duration_since(last) - SignedDuration::from_hours(3);
    world.now = items.first().map_or(begins, |item| item.created_at + later);
    world.repo(sample.repo);
    for login in sample.maintainers {
        world.collaborator(sample.repo, login, Permission::Maintain);
    }
    for login in sample.bots {
        world.bot(login);
    }
    for item in &items {
        open(world, sample, item, later);
    }
    for item in &items {
        close(world, sample, item, later);
    }
    // A reference to an item changes its time, so the times are set last.
    for item in &items {
        let issue = world.get_mut(sample.repo).issues.get_mut(&item.number).expect("invariant: just opened");
        issue.updated_at = item.updated_at + later;
        issue.comments = item.comments;
    }
    Ok(())
}

fn open(world: &mut World, sample: &Sample, item: &SampleItem, later: SignedDuration) {
    if !sample.bots.contains(&item.author.as_str()) {
        world.user(&item.author);
    }
    world.now = item.created_at + later;
    let pull = (item.kind == "pr").then(|| pull(item));
    let new = NewIssue {
        title: item.title.clone(),
        body: Some(item.body.clone()),
        labels: item.labels.clone(),
        assignees: item.assignees.clone(),
        pull,
    };
    let number = world.open(sample.repo, &item.author, new);
    assert_eq!(number, item.number, "the numbers of {} have a gap", sample.repo);
}

/// An old pull request has no commits, only its diff.
fn pull(item: &SampleItem) -> Pull {
    let added = item.diff.lines().filter(|line| line.starts_with('+')).count();
    let removed = item.diff.lines().count() - added;
    let patch = format!("@@ -1,{removed} +1,{added} @@\n{}", item.diff.trim_end());
    let pull = Pull {
        draft: item.draft,
        head_ref: format!("topic-{}", item.number),
        head_sha: format!("{:040x}", item.number),
        ..Pull::default()
    };
    item.files.iter().fold(pull, |pull, path| pull.file(path, &patch))
}

fn close(world: &mut World, sample: &Sample, item: &SampleItem, later: SignedDuration) {
    if item.state != "closed" {
        return;
    }
    world.now = item.closed_at.unwrap_or(item.updated_at) + later;
    let by = sample.maintainers[usize::try_from(item.number).unwrap_or_default() % sample.maintainers.len()];
    if item.merged {
        return world.merge(sample.repo, item.number, by);
    }
    let reason = match item.state_reason.as_deref() {
        Some("duplicate") => {
            let target = item.duplicate_of.map(|target| world.issue(sample.repo, target).id);
            CloseReason::Duplicate(target)
        }
        Some("completed") => CloseReason::Completed,
        _ => CloseReason::NotPlanned,
    };
    world.close(sample.repo, item.number, by, reason);
}
