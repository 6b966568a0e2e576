//! What the comments of other reviewers come to.

use canonry_domain::review::{BotRecord, LineRange, RemarkAuthor, RemarkThread, RepoPath, Severity, ShownAs};
use canonry_store::FindingId;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::run::report::ReportedFinding;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct RefereeReport {
    /// The comments that were weighed.
    pub remarks: usize,
    /// The problems that a bot names in an open thread, most likely wanted first.
    pub problems: Vec<RefereedProblem>,
    /// How many problems have no open thread any more.
    pub settled: usize,
    /// The record of each bot in this repository, this change included.
    pub records: Vec<BotRecord>,
}

/// One problem, by everybody who names it.
#[derive(Debug, Clone, PartialEq)]
pub struct RefereedProblem {
    /// Canonry's own findings of it.
    pub findings: Vec<FindingId>,
    pub path: RepoPath,
    pub lines: Option<LineRange>,
    /// Canonry's title, otherwise what the remark says that is most like the others.
    pub text: String,
    pub witnesses: Vec<RemarkWitness>,
    /// The log-odds that people want to know it.
    pub rank: f64,
}

/// Who names a problem, where and when.
#[derive(Debug, Clone, PartialEq)]
pub struct RemarkWitness {
    pub author: RemarkAuthor,
    pub lines: Option<LineRange>,
    pub link: Option<String>,
    pub said_at: Option<Timestamp>,
    pub thread: RemarkThread,
}

impl RefereedProblem {
    /// The names of those who name it, each once; bots first.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<(bool, String)> =
            self.witnesses.iter().map(|one| (!one.author.is_bot, one.author.login.key())).collect();
        names.sort();
        names.dedup();
        names.into_iter().map(|(_, name)| name).collect()
    }
}

impl RefereeReport {
    /// The open thread in which a bot already names a finding at its lines, so that no second thread is needed. A finding
    /// that is not shown at its line has none, and neither has a critical one: that is always shown there.
    pub fn thread_of(&self, one: &ReportedFinding) -> Option<&RemarkWitness> {
        self.open_thread(one).filter(|_| may_point(one))
    }

    /// The open thread in which a bot already names a finding at its lines, wherever the finding is shown.
    pub(crate) fn open_thread(&self, one: &ReportedFinding) -> Option<&RemarkWitness> {
        let (id, lines) = one.id.zip(one.sighting.finding.lines)?;
        let problem = self.problems.iter().find(|problem| problem.findings.contains(&id))?;
        let is_it = |by: &&RemarkWitness| {
            let is_there = by.lines.is_some_and(|there| there.overlaps(lines));
            by.author.is_bot && by.thread.is_open() && by.link.is_some() && is_there
        };
        problem.witnesses.iter().find(is_it)
    }

    pub(crate) fn document(&self) -> Value {
        let problems = self.problems.iter().map(|one| {
            let witnesses = one.witnesses.iter().map(|by| {
                json!({
                    "author": by.author.login.key(), "bot": by.author.is_bot, "link": by.link, "said_at": by.said_at,
                    "resolved": by.thread.is_resolved, "outdated": by.thread.is_outdated,
                })
            });
            json!({
                "findings": one.findings.iter().map(|id| id.get()).collect::<Vec<i64>>(),
                "path": one.path,
                "line": one.lines.map(|lines| lines.first),
                "text": one.text,
                "rank": (one.rank * 100.0).round() / 100.0,
                "witnesses": witnesses.collect::<Vec<Value>>(),
            })
        });
        json!({
            "comments": self.remarks,
            "problems": problems.collect::<Vec<Value>>(),
            "settled": self.settled,
            "bots": bot_documents(&self.records),
        })
    }
}

/// Whether a review may point to another bot's thread instead of posting a finding at its line.
pub(crate) fn may_point(one: &ReportedFinding) -> bool {
    one.shown == ShownAs::Inline && one.sighting.finding.severity != Severity::Critical
}

/// The records of bots for scripts.
pub fn bot_documents(records: &[BotRecord]) -> Vec<Value> {
    let document = |one: &BotRecord| {
        let interval = one.share.interval();
        json!({
            "login": one.login.key(), "comments": one.remarks, "agreed": one.agreed, "right": one.share.right,
            "wrong": one.share.wrong, "share": one.share.value(), "interval": [interval.low, interval.high],
        })
    };
    records.iter().map(document).collect()
}
