//! The week: the issues that arrive, and what people do about them.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use canonry_testkit::github::{CloseReason, NewIssue};
use canonry_testkit::samples::{BRINDLE, QUILLNOTE, Sample, TIDEPOOL};
use serde::Deserialize;

use crate::demo::Demo;
use crate::pull_requests::{Pulls, first_pull, first_pull_is_answered, other_pulls, patterns_are_rejected};
use crate::world::{OWN, SUGGEST_SETTINGS};

pub const BRINDLE_REPO: &str = BRINDLE.repo;
pub const TIDEPOOL_REPO: &str = TIDEPOOL.repo;
pub(crate) const QUILLNOTE_REPO: &str = QUILLNOTE.repo;
const HOUR: i64 = 60;
const DAY: i64 = 24 * HOUR;
/// A little before now.
pub(crate) const END: i64 = 7 * DAY - HOUR;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Arrival {
    pub(crate) key: String,
    minute: i64,
    author: String,
    title: String,
    body: String,
    labels: Vec<String>,
    pub(crate) duplicate_of: Option<u64>,
}

#[derive(Debug)]
pub struct Week {
    /// Each arrival by its key, with its repository and its number.
    pub(crate) arrived: BTreeMap<String, (&'static str, u64, Arrival)>,
    pub(crate) pulls: Pulls,
}

impl Week {
    pub fn number(&self, key: &str) -> Result<u64> {
        self.arrived.get(key).map(|(_, number, _)| *number).with_context(|| format!("{key} has not arrived"))
    }
}

/// Plays the week, from the installation to the evening of the seventh day.
pub(crate) async fn play(demo: &Demo, on_minute: &(dyn Fn(u64) + Send + Sync)) -> Result<Week> {
    let week = Week { arrived: BTreeMap::new(), pulls: Pulls::default() };
    let mut teller = Teller { demo, on_minute, waiting: arrivals()?, week };
    monday(&mut teller).await?;
    tuesday(&mut teller).await?;
    wednesday(&mut teller).await?;
    thursday(&mut teller).await?;
    friday_and_after(&mut teller).await?;
    Ok(teller.week)
}

async fn monday(story: &mut Teller<'_>) -> Result<()> {
    story.until(9 * HOUR + 55).await?;
    story.close(BRINDLE_REPO, "spam", "ottilie", CloseReason::NotPlanned).await?;
    story.until(12 * HOUR + 40).await?;
    // Not a duplicate, and its author says so.
    story.comment(TIDEPOOL_REPO, "battery-ios", "sol-iversen", "/canonry not a duplicate").await?;
    story.until(14 * HOUR + 30).await?;
    story.duplicate(BRINDLE_REPO, "gzip-2", "ramonvd").await?;
    story.week.pulls.line_ends = Some(first_pull(story.demo).await?);
    story.until(16 * HOUR).await?;
    story.thumb_down(BRINDLE_REPO, "frozen-thumb", "mikko-r")?;
    story.until(17 * HOUR).await?;
    story.duplicate(TIDEPOOL_REPO, "malformed", "mirela-k").await?;
    story.until(DAY).await
}

async fn tuesday(story: &mut Teller<'_>) -> Result<()> {
    story.until(DAY + 3 * HOUR).await?;
    story.duplicate(BRINDLE_REPO, "gzip-3", "ramonvd").await?;
    story.until(DAY + 4 * HOUR).await?;
    story.duplicate(TIDEPOOL_REPO, "sync-once", "jonasbrandt").await?;
    story.until(DAY + 7 * HOUR).await?;
    // A maintainer knows what no similarity can show.
    let target = story.truth("sniff-vague")?;
    story.comment(BRINDLE_REPO, "sniff-vague", "kpetrov", &format!("@canonry duplicate of #{target}")).await?;
    story.until(DAY + 9 * HOUR + 30).await?;
    story.duplicate(BRINDLE_REPO, "gzip-4", "ramonvd").await?;
    first_pull_is_answered(story.demo, &mut story.week.pulls).await?;
    story.until(2 * DAY).await
}

async fn wednesday(story: &mut Teller<'_>) -> Result<()> {
    story.until(2 * DAY + 4 * HOUR + 10).await?;
    story.duplicate(TIDEPOOL_REPO, "sleep", "sadeo").await?;
    story.until(2 * DAY + 6 * HOUR).await?;
    story.duplicate(BRINDLE_REPO, "gzip-5", "kpetrov").await?;
    other_pulls(story.demo, &mut story.week.pulls).await?;
    story.until(3 * DAY).await
}

async fn thursday(story: &mut Teller<'_>) -> Result<()> {
    story.until(3 * DAY + 2 * HOUR).await?;
    // Closed after its grace; its author disagrees.
    let number = story.week.number("sort-reopened")?;
    story.demo.people(|world| {
        world.comment(
            BRINDLE_REPO,
            number,
            "dana-kl",
            "Mine has no nulls from a database, the cells are simply empty. Please look again.",
        );
        world.reopen(BRINDLE_REPO, number, "dana-kl");
    });
    story.demo.settle().await?;
    story.until(3 * DAY + 3 * HOUR + 30).await?;
    story.duplicate(BRINDLE_REPO, "gzip-6", "ramonvd").await?;
    story.duplicate(TIDEPOOL_REPO, "revoke", "hwright-t").await?;
    story.until(3 * DAY + 5 * HOUR).await?;
    // A maintainer is assigned: it stays open.
    let number = story.week.number("plugin-3")?;
    story.demo.people(|world| world.assign(BRINDLE_REPO, number, "ottilie", "kpetrov"));
    story.demo.settle().await?;
    story.until(3 * DAY + 8 * HOUR).await?;
    // The maintainers of quillnote have watched it for days. It was right each time, so they let it comment.
    for key in ["word-paste", "back", "pdf"] {
        story.duplicate(QUILLNOTE_REPO, key, "annikav").await?;
    }
    story.demo.people(|world| world.push(QUILLNOTE_REPO, "main", "annikav", ".canonry.yml", SUGGEST_SETTINGS));
    story.demo.settle().await?;
    patterns_are_rejected(story.demo, &mut story.week.pulls).await?;
    story.until(4 * DAY).await
}

async fn friday_and_after(story: &mut Teller<'_>) -> Result<()> {
    story.until(4 * DAY + 7 * HOUR).await?;
    // Three suggestions were wrong: each of these issues was a separate problem, and is fixed.
    for (key, by) in [("battery-ios", "sadeo"), ("half-sync", "jonasbrandt"), ("resubscribe", "sadeo")] {
        story.close(TIDEPOOL_REPO, key, by, CloseReason::Completed).await?;
    }
    for day in 5..7 {
        story.until(day * DAY).await?;
    }
    story.until(END).await
}

/// All arrivals, in order of time.
fn arrivals() -> Result<Vec<(&'static str, Arrival)>> {
    let mut all = Vec::new();
    for Sample { repo, week, .. } in [BRINDLE, TIDEPOOL, QUILLNOTE] {
        for line in week.lines() {
            all.push((repo, serde_json::from_str::<Arrival>(line)?));
        }
    }
    all.sort_by_key(|(_, arrival)| arrival.minute);
    // Reversed, because arrivals are taken from the end.
    all.reverse();
    Ok(all)
}

struct Teller<'demo> {
    demo: &'demo Demo,
    on_minute: &'demo (dyn Fn(u64) + Send + Sync),
    waiting: Vec<(&'static str, Arrival)>,
    week: Week,
}

impl Teller<'_> {
    /// Plays all arrivals until this minute.
    async fn until(&mut self, minute: i64) -> Result<()> {
        while self.waiting.last().is_some_and(|(_, next)| next.minute <= minute) {
            let Some((repo, arrival)) = self.waiting.pop() else { break };
            self.demo.until(arrival.minute).await?;
            let number = self.demo.people(|world| {
                world.user(&arrival.author);
                let new = NewIssue { labels: arrival.labels.clone(), ..NewIssue::new(&arrival.title, &arrival.body) };
                world.open(repo, &arrival.author, new)
            });
            self.week.arrived.insert(arrival.key.clone(), (repo, number, arrival));
            self.demo.settle().await?;
        }
        (self.on_minute)(minute.unsigned_abs());
        self.demo.until(minute).await
    }

    fn truth(&self, key: &str) -> Result<u64> {
        let (_, _, arrival) = self.week.arrived.get(key).with_context(|| format!("{key} has not arrived"))?;
        arrival.duplicate_of.with_context(|| format!("{key} repeats nothing"))
    }

    /// A maintainer closes it as a duplicate of its true original.
    async fn duplicate(&self, repo: &str, key: &str, by: &str) -> Result<()> {
        let target = self.truth(key)?;
        let id = self.demo.people(|world| world.issue(repo, target).id);
        self.close(repo, key, by, CloseReason::Duplicate(Some(id))).await
    }

    async fn close(&self, repo: &str, key: &str, by: &str, reason: CloseReason) -> Result<()> {
        let number = self.week.number(key)?;
        self.demo.people(|world| world.close(repo, number, by, reason));
        self.demo.settle().await
    }

    async fn comment(&self, repo: &str, key: &str, by: &str, text: &str) -> Result<()> {
        let number = self.week.number(key)?;
        self.demo.people(|world| world.comment(repo, number, by, text));
        self.demo.settle().await
    }

    /// A person disagrees with Canonry's comment. A reaction has no webhook; it is found by polling.
    fn thumb_down(&self, repo: &str, key: &str, by: &str) -> Result<()> {
        let number = self.week.number(key)?;
        self.demo.people(|world| {
            let comment = world.comments_by(repo, number, OWN).first().map(|comment| comment.id);
            let comment = comment.with_context(|| format!("nothing was said about {key}"))?;
            world.react_to_comment(repo, comment, by, "-1");
            Ok(())
        })
    }
}
