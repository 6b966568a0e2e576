//! The progress of an apply or undo of a plan, refreshed every two seconds while it runs.

use canonry_domain::ItemNumber;
use canonry_server::{ConsoleOrder, closing_jobs_of};
use canonry_store::{Job, JobState, PlanSummary};

use crate::layout::errors::PageError;
use crate::layout::formatting::{TimeLabel, counted, thousands, when};
use crate::sign_in::visit::RepoVisit;

pub(crate) struct ProgressView {
    pub(crate) path: String,
    pub(crate) is_active: bool,
    pub(crate) class: &'static str,
    pub(crate) heading: String,
    pub(crate) words: String,
    pub(crate) done: u64,
    pub(crate) all: u64,
    pub(crate) note: Option<String>,
    pub(crate) by: String,
    pub(crate) since: TimeLabel,
    pub(crate) job: String,
    /// The address of the form that stops it, for maintainers.
    pub(crate) stop: Option<String>,
}

/// The latest apply or undo of a plan; `None` if none was started here.
pub(crate) async fn progress_view(at: &RepoVisit, plan: &PlanSummary) -> Result<Option<ProgressView>, PageError> {
    let jobs = closing_jobs_of(&at.console.store, &at.repo, plan.run.id).await?;
    // A running job comes before a finished one that was queued later.
    let job = jobs.iter().find(|job| job.state.is_active()).or(jobs.first());
    let Some(job) = job else { return Ok(None) };
    let stop = at.console.store.plans().stop_of_apply(plan.run.id).await?;
    let is_stopping = job.state.is_active() && stop.is_some_and(|(asked_at, _)| asked_at >= job.created_at);
    Ok(view(at, plan, job, is_stopping))
}

fn view(at: &RepoVisit, plan: &PlanSummary, job: &Job, is_stopping: bool) -> Option<ProgressView> {
    let totals = &plan.totals;
    let mut can_stop = false;
    let (action, by, words, done, all) = match ConsoleOrder::of(job)? {
        ConsoleOrder::Apply(order) => {
            can_stop = job.state.is_active() && !order.only_takes_back && !is_stopping && at.can_maintain();
            let left = if order.approved_only { totals.left_approved } else { totals.left };
            let words = format!(
                "{} closed, {} skipped, {} failed, {} left.",
                thousands(totals.applied),
                thousands(totals.skipped),
                thousands(totals.failed),
                thousands(left)
            );
            let action = if order.only_takes_back { "Cancelling unfinished closes" } else { "Applying the plan" };
            (action.to_owned(), order.by, words, totals.ended(), totals.ended() + left)
        }
        ConsoleOrder::Undo(order) => {
            let number = order.item.map(|(_, number): (_, ItemNumber)| number);
            let action = number.map_or_else(|| "Undoing the plan".to_owned(), |number| format!("Reopening #{number}"));
            let words = format!("{} of {} reopened.", thousands(totals.undone), counted(totals.applied, "closed item"));
            let all = if number.is_some() { totals.applied.min(totals.undone + 1) } else { totals.applied };
            (action, order.by, words, totals.undone, all)
        }
        ConsoleOrder::Plan(_) | ConsoleOrder::Canonicalize(_) | ConsoleOrder::CancelGrace(_) => return None,
    };
    let (class, heading) = match job.state {
        _ if is_stopping => ("warn", format!("{action}: stopping")),
        JobState::Queued if job.attempts == 0 && job.error.is_none() => ("info", format!("{action}: queued")),
        JobState::Queued => ("warn", format!("{action}: waiting")),
        JobState::Running => ("info", action),
        JobState::Done if job.error.is_some() => ("warn", format!("{action}: ended")),
        JobState::Done => ("good", format!("{action}: done")),
        JobState::Dead => ("bad", format!("{action}: failed")),
    };
    let base = crate::layout::page::repo_path(&at.repo);
    Some(ProgressView {
        path: format!("{base}/plans/{}/progress", plan.run.id),
        is_active: job.state.is_active(),
        class,
        heading,
        words,
        done,
        all,
        note: job.error.clone(),
        by: crate::layout::formatting::by(by.as_ref()),
        since: when(job.created_at, at.console.now()),
        job: job.id.to_string(),
        stop: can_stop.then(|| format!("{base}/plans/{}/stop", plan.run.id)),
    })
}
