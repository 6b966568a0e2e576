//! The state of a plan: whether it may be applied, what pauses Canonry, and which phrase confirms an action.

use canonry_config::ParsedSettings;
use canonry_domain::{ApplyForecast, PlanAge};
use canonry_store::{BrakeKind, CloseRunId, GraceState, PlanSummary, PlanTotals};
use canonry_triage::{PlanForecast, closes_begun, forecast_apply};
use jiff::Timestamp;

use crate::layout::errors::PageError;
use crate::layout::formatting::{counted, length, thousands, when};
use crate::plans::progress::ProgressView;
use crate::sign_in::visit::RepoVisit;

/// Why a plan cannot be started again.
pub(crate) const WORKED_ON: &str = "an apply or undo of this plan is running; wait until it ends";

pub(crate) struct PlanBanner {
    pub(crate) class: &'static str,
    pub(crate) words: String,
}

pub(crate) struct ApplyView {
    /// What an apply would close, or why it cannot.
    pub(crate) headline: String,
    /// The daily limit of closes without approval, and when the plan expires.
    pub(crate) limit: Option<String>,
    /// With only the approved rows, and with every row that is not excluded.
    pub(crate) approved: ApplyForecast,
    pub(crate) all: ApplyForecast,
    pub(crate) phrase: String,
    pub(crate) phrase_approved: String,
    pub(crate) refused: Option<String>,
    /// What a ruling since the plan keeps open, if the rest can be applied.
    pub(crate) ruled: Option<String>,
    /// Whether a new plan would contain what this one can no longer close.
    pub(crate) needs_new_plan: bool,
    /// Closes that began and can only be cancelled, in words.
    pub(crate) begun: Option<String>,
}

impl ApplyView {
    pub(crate) const fn can_begin(&self) -> bool {
        self.refused.is_none()
    }
}

pub(crate) struct UndoView {
    pub(crate) count: String,
    pub(crate) phrase: String,
}

pub(crate) fn apply_phrase(at: &RepoVisit, count: u64) -> String {
    format!("close {count} in {}", at.repo.name)
}

pub(crate) fn undo_phrase(at: &RepoVisit, count: u64) -> String {
    format!("reopen {count} in {}", at.repo.name)
}

/// Why a plan may not be applied now; `None` if it may.
pub(crate) async fn why_not_applied(
    at: &RepoVisit,
    plan: &PlanSummary,
    settings: &ParsedSettings,
    age: &PlanAge<CloseRunId>,
    progress: Option<&ProgressView>,
) -> Result<Option<String>, PageError> {
    let store = &at.console.store;
    if plan.totals.left == 0 {
        return Ok(Some("nothing is left to close".to_owned()));
    }
    if progress.is_some_and(|progress| progress.is_active) {
        return Ok(Some(WORKED_ON.to_owned()));
    }
    if let Some(grace) =
        store.close().grace_of_plan(plan.run.id).await?.filter(|grace| grace.state == GraceState::Waiting)
    {
        return Ok(Some(format!("it belongs to the announced close of #{}, which runs by itself", grace.number)));
    }
    if let Some(words) = age.refusal(plan.run.id) {
        return Ok(Some(words));
    }
    if store.close().brake_in_force(at.repo.id, BrakeKind::Pause).await?.is_some() {
        return Ok(Some("Canonry is paused in this repository; resume it on the overview page first".to_owned()));
    }
    if let Some(section) = settings.unsafe_to_close_by() {
        return Ok(Some(format!(
            "section `{section}` of `.canonry.yml` has an error; fix it first (see the settings page)"
        )));
    }
    if store.repos().maintainers(at.repo.id).await?.is_none() {
        return Ok(Some(format!(
            "the maintainers of {0} are unknown, and their items are never closed; run `canonry maintainers refresh --repo {0}`",
            at.repo.name
        )));
    }
    Ok(None)
}

/// The number of unfinished closes that no apply will continue, because the plan can never be applied again or the
/// rows were excluded since. Closes that a pause or an error in the settings stops can still be finished.
pub(crate) async fn begun_in_vain(
    at: &RepoVisit,
    plan: &PlanSummary,
    age: &PlanAge<CloseRunId>,
    progress: Option<&ProgressView>,
) -> Result<usize, PageError> {
    let store = &at.console.store;
    let is_over = plan.totals.left == 0 || age.refusal(plan.run.id).is_some();
    if !is_over
        || progress.is_some_and(|progress| progress.is_active)
        || store.close().brake_in_force(at.repo.id, BrakeKind::Pause).await?.is_some()
    {
        return Ok(0);
    }
    let grace = store.close().grace_of_plan(plan.run.id).await?;
    if grace.is_some_and(|grace| grace.state == GraceState::Waiting) {
        return Ok(0);
    }
    Ok(closes_begun(store, &at.repo, plan.run.id).await?)
}

pub(crate) async fn banners(at: &RepoVisit) -> Result<Vec<PlanBanner>, PageError> {
    let mut banners = Vec::new();
    for kind in [BrakeKind::Pause, BrakeKind::Breaker] {
        if let Some(brake) = at.console.store.close().brake_in_force(at.repo.id, kind).await? {
            let by = brake.set_by.map(|by| format!(" by @{by}")).unwrap_or_default();
            let since = when(brake.set_at, at.console.now()).in_words();
            let words = match kind {
                BrakeKind::Pause => format!("Paused{by} {since}: nothing is written to GitHub in this repository."),
                BrakeKind::Breaker => format!(
                    "Automatic closing stopped {since}: people objected to several closes. A plan that you apply still runs."
                ),
            };
            banners.push(PlanBanner { class: "warn", words });
        }
    }
    Ok(banners)
}

fn time_left(until: Timestamp, now: Timestamp) -> String {
    match length(now.duration_until(until)) {
        length if length.is_empty() => "less than a minute".to_owned(),
        length => length,
    }
}

pub(crate) async fn apply_view(
    at: &RepoVisit,
    plan: &PlanSummary,
    settings: &ParsedSettings,
    age: &PlanAge<CloseRunId>,
    progress: Option<&ProgressView>,
) -> Result<ApplyView, PageError> {
    let totals = &plan.totals;
    let refused = why_not_applied(at, plan, settings, age, progress).await?;
    let most = settings.config.close.max_per_day;
    let forecast = forecast_apply(&at.console.store, &at.repo, plan.run.id, most, at.console.now()).await?;
    let PlanForecast { approved_only: approved, all, left, closed_today } = forecast;
    let ruled = (left.ruled_since > 0).then(|| {
        format!(
            "{} will stay open: a ruling about the cluster was made after this plan, for example by an undo.",
            counted(left.ruled_since, "row")
        )
    });
    let begun = begun_in_vain(at, plan, age, progress).await?;
    let is_stale = totals.left > 0 && matches!(age, PlanAge::TooOld | PlanAge::RuledSince { .. });
    Ok(ApplyView {
        headline: match &refused {
            _ if progress.is_some_and(|progress| progress.is_active) => {
                format!("{} left to close.", counted(totals.left, "row"))
            }
            _ if totals.left == 0 => nothing_left(totals),
            Some(why) => {
                // The button beside it makes the new plan.
                let why = why.split_once("; make a new plan").map_or(why.as_str(), |(why, _)| why);
                format!("This plan cannot be applied: {why}.")
            }
            None if all.closes == 0 => "The daily limit is reached. Approve rows to close them now.".to_owned(),
            None => format!(
                "Apply can close {}: {} approved, {} not reviewed.",
                counted(all.closes, "item"),
                thousands(approved.closes),
                thousands(all.closes - approved.closes)
            ),
        },
        // The breaker does not count here: it stops automatic closes, not what a person applies.
        limit: refused.is_none().then(|| {
            let wait = if all.kept_back > 0 { format!(", {} wait", thousands(all.kept_back)) } else { String::new() };
            let expires = match age {
                PlanAge::Good { until } => format!(" Expires in {}.", time_left(*until, at.console.now())),
                _ => String::new(),
            };
            format!(
                "Without approval: at most {} a day, {} used{wait}.{expires}",
                thousands(u64::from(most)),
                thousands(closed_today)
            )
        }),
        phrase: apply_phrase(at, all.closes),
        phrase_approved: apply_phrase(at, approved.closes),
        approved,
        all,
        needs_new_plan: is_stale || (ruled.is_some() && refused.is_none()),
        ruled: ruled.filter(|_| refused.is_none()),
        refused,
        begun: (begun > 0).then(|| counted(begun as u64, "close")),
    })
}

fn nothing_left(totals: &PlanTotals) -> String {
    let reopened = if totals.undone > 0 { format!(", {} reopened", thousands(totals.undone)) } else { String::new() };
    match totals.applied {
        0 => "Nothing is left to close.".to_owned(),
        closed => format!("{} closed{reopened}. Nothing is left to close.", thousands(closed)),
    }
}
