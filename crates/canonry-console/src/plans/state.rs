//! How a plan stands: whether it may be applied, what holds Canonry back, and what must be typed to go on.

use canonry_config::ParsedSettings;
use canonry_domain::{ApplyForecast, PlanAge};
use canonry_store::{BrakeKind, CloseRunId, GraceState, PlanSummary};
use canonry_triage::{PlanForecast, closes_begun, forecast_apply};
use jiff::Timestamp;

use crate::layout::errors::PageError;
use crate::layout::formatting::{counted, length, thousands, when};
use crate::plans::progress::ProgressView;
use crate::sign_in::visit::RepoVisit;

/// Why a plan is not begun again.
pub(crate) const WORKED_ON: &str = "it is being worked on already; wait until that has ended";

pub(crate) struct PlanBanner {
    pub(crate) class: &'static str,
    pub(crate) words: String,
}

pub(crate) struct ApplyView {
    /// With the approved rows alone, and with every row that nobody excluded.
    pub(crate) approved: ApplyForecast,
    pub(crate) all: ApplyForecast,
    pub(crate) phrase: String,
    pub(crate) phrase_approved: String,
    pub(crate) refused: Option<String>,
    pub(crate) waits: Option<String>,
    /// What a ruling since the plan keeps open, where the rest can be applied.
    pub(crate) ruled: Option<String>,
    /// Whether a new plan would have what this one cannot close any more.
    pub(crate) needs_new_plan: bool,
    /// What was begun and can only be taken back, in words.
    pub(crate) begun: Option<String>,
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

/// Why a plan may not be applied now; `None` when it may.
pub(crate) async fn why_not_applied(
    at: &RepoVisit,
    plan: &PlanSummary,
    settings: &ParsedSettings,
    age: &PlanAge<CloseRunId>,
    progress: Option<&ProgressView>,
) -> Result<Option<String>, PageError> {
    let store = &at.console.store;
    if plan.totals.left == 0 {
        return Ok(Some("nothing of this plan is left to close".to_owned()));
    }
    if progress.is_some_and(|progress| progress.is_active) {
        return Ok(Some(WORKED_ON.to_owned()));
    }
    if let Some(grace) =
        store.close().grace_of_plan(plan.run.id).await?.filter(|grace| grace.state == GraceState::Waiting)
    {
        return Ok(Some(format!("it belongs to the grace of #{}, which closes it by itself", grace.number)));
    }
    if let Some(words) = age.refusal(plan.run.id) {
        return Ok(Some(words));
    }
    if store.close().brake_in_force(at.repo.id, BrakeKind::Pause).await?.is_some() {
        return Ok(Some("Canonry is paused in this repository; resume it on the summary page first".to_owned()));
    }
    if let Some(section) = settings.unsafe_to_close_by() {
        return Ok(Some(format!(
            "the section `{section}` of `.canonry.yml` has a mistake, and nothing is closed by guesses; the settings page names it"
        )));
    }
    if store.repos().maintainers(at.repo.id).await?.is_none() {
        return Ok(Some(format!(
            "nobody knows who maintains {0}, and maintainers' items are never closed; run `canonry maintainers refresh --repo {0}`",
            at.repo.name
        )));
    }
    Ok(None)
}

/// How many closes were begun, and not ended, that no apply will go on with: the plan never gets good again, or they
/// were excluded since. Those that a pause or a mistake in the settings keeps can still be carried out.
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

pub(crate) async fn banners(
    at: &RepoVisit,
    plan: &PlanSummary,
    age: &PlanAge<CloseRunId>,
) -> Result<Vec<PlanBanner>, PageError> {
    let (store, now) = (&at.console.store, at.console.now());
    let mut banners = Vec::new();
    if plan.totals.left > 0 {
        banners.push(match (age, age.refusal(plan.run.id)) {
            (PlanAge::Good { until }, _) => PlanBanner {
                class: "good",
                words: format!("This plan can be applied for another {}.", left(*until, now)),
            },
            (_, words) => {
                let words = words.unwrap_or_default();
                // The button beside it makes the plan.
                let words = words.split_once("; make a new plan").map_or(words.as_str(), |(why, _)| why);
                PlanBanner { class: "bad", words: format!("This plan cannot be applied any more: {words}.") }
            }
        });
    }
    for (kind, words, more) in [
        (BrakeKind::Pause, "Paused: nothing is written to GitHub in this repository", ""),
        (
            BrakeKind::Breaker,
            "People objected to several closes: nothing is closed by itself",
            " A plan that a maintainer applies still is carried out.",
        ),
    ] {
        if let Some(brake) = store.close().brake_in_force(at.repo.id, kind).await? {
            let by = brake.set_by.map(|by| format!(" by @{by}")).unwrap_or_default();
            banners.push(PlanBanner {
                class: "warn",
                words: format!("{words}. It was stopped{by} {}.{more}", when(brake.set_at, now).in_words()),
            });
        }
    }
    Ok(banners)
}

fn left(until: Timestamp, now: Timestamp) -> String {
    match length(now.duration_until(until)) {
        length if length.is_empty() => "moment".to_owned(),
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
    // The breaker says nothing here: it holds back what Canonry closes by itself, and not what a person applies.
    let waits = (all.kept_back > 0).then(|| {
        format!(
            "At most {} a day are closed without a person's approval, and {} in the last 24 hours. {} of the {} unreviewed rows can be closed now; {} wait. Approved rows do not count.",
            counted(u64::from(most), "item"),
            if closed_today == 1 { "1 was".to_owned() } else { format!("{} were", thousands(closed_today)) },
            thousands(all.closes - approved.closes),
            thousands(left.unapproved),
            thousands(all.kept_back)
        )
    });
    let ruled = (left.ruled_since > 0).then(|| {
        format!(
            "{} will be left open: somebody ruled about the cluster after this plan was made, for example by an undo.",
            counted(left.ruled_since, "row")
        )
    });
    let begun = begun_in_vain(at, plan, age, progress).await?;
    let is_stale = totals.left > 0 && matches!(age, PlanAge::TooOld | PlanAge::RuledSince { .. });
    Ok(ApplyView {
        phrase: apply_phrase(at, all.closes),
        phrase_approved: apply_phrase(at, approved.closes),
        approved,
        all,
        needs_new_plan: is_stale || (ruled.is_some() && refused.is_none()),
        waits: waits.filter(|_| totals.left > 0),
        ruled: ruled.filter(|_| refused.is_none()),
        refused,
        begun: (begun > 0).then(|| counted(begun as u64, "close")),
    })
}
