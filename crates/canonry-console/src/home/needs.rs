//! What needs a person: announced closes, plans to review, answers, failed jobs, and problems that stop Canonry.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use canonry_domain::{ItemNumber, PLAN_LIFETIME, PlanAge};
use canonry_store::{NextClose, Repo, RepoAccess, RepoAttention, RepoScope};
use canonry_triage::age_of_plan;
use jiff::Timestamp;

use crate::items::announced_closes::being_cancelled;
use crate::layout::errors::PageError;
use crate::layout::formatting::{TimeLabel, counted, item_path, when};
use crate::layout::page::repo_path;
use crate::sign_in::visit::Visit;

/// Announced closes that are listed one by one.
const CLOSES: u32 = 5;

pub(crate) struct Needs {
    pub(crate) closes: Vec<CloseLine>,
    pub(crate) lines: Vec<NeedLine>,
    /// Announced closes that are not listed one by one.
    more_closes: u64,
}

pub(crate) struct CloseLine {
    pub(crate) number: ItemNumber,
    pub(crate) title: String,
    pub(crate) href: String,
    pub(crate) target: ItemNumber,
    pub(crate) target_href: String,
    pub(crate) due: TimeLabel,
    pub(crate) reason: Option<String>,
    /// Shown if the page is about several repositories.
    pub(crate) repo: Option<String>,
    /// The address of the form that cancels it, for maintainers.
    pub(crate) cancel: Option<String>,
    /// Whether a cancellation is queued.
    pub(crate) is_cancelled: bool,
}

pub(crate) struct NeedLine {
    pub(crate) words: String,
    pub(crate) repo: Option<String>,
    /// The address of the action, and its button's text.
    pub(crate) action: Option<(String, &'static str)>,
    /// Whether it stands for announced closes, which are counted one by one.
    is_closes: bool,
}

/// A repository with what needs a person there, and whether the reader may act on it.
pub(crate) struct AttendedRepo {
    pub(crate) attention: RepoAttention,
    pub(crate) can_maintain: bool,
}

impl Needs {
    pub(crate) fn is_empty(&self) -> bool {
        self.closes.is_empty() && self.lines.is_empty()
    }

    pub(crate) fn total(&self) -> u64 {
        let lines = self.lines.iter().filter(|line| !line.is_closes).count();
        (self.closes.len() + lines) as u64 + self.more_closes
    }
}

impl NeedLine {
    pub(crate) fn new(words: impl Into<String>, repo: Option<String>, action: Option<(String, &'static str)>) -> Self {
        Self { words: words.into(), repo, action, is_closes: false }
    }
}

/// Plans from before this time have expired.
pub(crate) fn plans_since(now: Timestamp) -> Timestamp {
    now.checked_sub(PLAN_LIFETIME).unwrap_or(Timestamp::MIN)
}

/// What needs a person in these repositories. `repos` are all repositories of the scope that need one. Their names
/// are shown if the page is about several.
pub(crate) async fn needs(
    visit: &Visit,
    scope: RepoScope<'_>,
    repos: &[AttendedRepo],
    is_of_several: bool,
) -> Result<Needs, PageError> {
    let closes = visit.console.store.console().next_closes(scope, CLOSES).await?;
    let mut needs = Needs { closes: Vec::new(), lines: Vec::new(), more_closes: 0 };
    for of in repos {
        let listed = closes.iter().filter(|close| close.repo.id == of.attention.repo.id).count() as u64;
        let more = of.attention.announced.saturating_sub(listed);
        needs.more_closes += more;
        let name = is_of_several.then(|| of.attention.repo.name.to_string());
        if more > 0 {
            let words = format!("{} more", counted(more, "announced close"));
            let action = Some((format!("{}/announced", repo_path(&of.attention.repo)), "Show all"));
            needs.lines.push(NeedLine { is_closes: true, ..NeedLine::new(words, name.clone(), action) });
        }
        add_lines(visit, of, name.as_ref(), &mut needs.lines).await?;
    }
    let mut cancelled = BTreeMap::new();
    for close in &closes {
        if let Entry::Vacant(entry) = cancelled.entry(close.repo.id) {
            entry.insert(being_cancelled(&visit.console, &close.repo.name).await?);
        }
    }
    let can_cancel = |repo: &Repo| repos.iter().any(|of| of.can_maintain && of.attention.repo.id == repo.id);
    let line = |close: NextClose| {
        let path = repo_path(&close.repo);
        CloseLine {
            number: close.number,
            title: close.title,
            href: item_path(&path, close.item_type, close.number),
            target: close.target,
            target_href: item_path(&path, close.item_type, close.target),
            due: when(close.due_at, visit.console.now()),
            is_cancelled: cancelled[&close.repo.id].contains(&(close.item_type, close.number)),
            reason: close.reason,
            cancel: can_cancel(&close.repo).then(|| format!("{path}/graces/{}/cancel", close.id)),
            repo: is_of_several.then(|| close.repo.name.to_string()),
        }
    };
    needs.closes = closes.into_iter().map(line).collect();
    Ok(needs)
}

async fn add_lines(
    visit: &Visit,
    of: &AttendedRepo,
    name: Option<&String>,
    lines: &mut Vec<NeedLine>,
) -> Result<(), PageError> {
    let (attention, path) = (&of.attention, repo_path(&of.attention.repo));
    let mut add = |words: String, tail: &str, link| {
        lines.push(NeedLine::new(words, name.cloned(), Some((format!("{path}{tail}"), link))));
    };
    if let Some(id) = attention.plan.filter(|_| attention.undecided > 0)
        && let Some(plan) = visit.console.store.plans().summary(attention.repo.id, id).await?
    {
        match age_of_plan(&visit.console.store, &plan.run, visit.console.now()).await? {
            PlanAge::Good { .. } => {
                let words = format!("Plan {id}: {} to review", counted(attention.undecided, "row"));
                add(words, &format!("/plans/{id}"), "Review");
            }
            PlanAge::RuledSince { .. } => {
                add(format!("Plan {id} is out of date: a ruling changed its clusters"), "/plans", "Make a new plan");
            }
            // Nothing was urgent, and a new plan will show the current state.
            PlanAge::TooOld | PlanAge::Overtaken { .. } => {}
        }
    }
    if of.can_maintain && attention.unanswered > 0 {
        add(format!("{} to answer", counted(attention.unanswered, "case")), "/adjudicate", "Answer");
    }
    if of.can_maintain && attention.failed_jobs > 0 {
        add(counted(attention.failed_jobs, "failed job"), "/jobs?state=dead", "Show");
    }
    if attention.breaker {
        add("Automatic closes stopped after several objections".to_owned(), "", "Show");
    }
    if attention.paused {
        add("Paused: Canonry writes nothing".to_owned(), "", "Show");
    }
    let lost = match attention.access {
        RepoAccess::Active | RepoAccess::Archived => None,
        RepoAccess::Removed => Some("Canonry lost access: install the GitHub App again"),
        RepoAccess::Suspended => Some("The GitHub App is suspended"),
        RepoAccess::Deleted => Some("The repository was deleted on GitHub"),
    };
    if let Some(lost) = lost {
        add(lost.to_owned(), "", "Show");
    }
    Ok(())
}
