//! The plans of a repository with their results, the form that makes one, and downloads of one.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{get, post};
use canonry_domain::PlanAge;
use canonry_server::{ConsoleOrder, last_closing_job};
use canonry_store::{CloseRunId, Job, PlanOrigin, PlanSummary};
use canonry_triage::{StoredPlan, age_of_plan, plan_csv, plan_json, plan_markdown, stored_plan};

use crate::console::Console;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::form::{PathFields, QueryFields};
use crate::layout::formatting::{TimeLabel, thousands, when};
use crate::layout::htmx::load_again;
use crate::layout::page::{NavSection, PageFrame, html, repo_path};
use crate::layout::paging::{Pager, cut_page, number, number_in, word};
use crate::plans::{actions, plan_page};
use crate::sign_in::visit::{MaintainerOf, ReaderOf, RepoVisit};

/// Plans per page: the rows of each plan are counted.
const PLANS: u32 = 25;
/// Seconds after which a browser without scripts reloads while a plan is being made.
const LOOK_AGAIN: u32 = 5;

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/r/{owner}/{name}/plans", get(list).post(actions::make))
        .route("/r/{owner}/{name}/plans/making", get(making))
        .route("/r/{owner}/{name}/plans/{id}", get(plan_page::show))
        .route("/r/{owner}/{name}/plans/{id}/rows", post(actions::decide_rows))
        .route("/r/{owner}/{name}/plans/{id}/rows/{type}/{number}", get(plan_page::row))
        .route("/r/{owner}/{name}/plans/{id}/progress", get(plan_page::progress))
        .route("/r/{owner}/{name}/plans/{id}/apply", post(actions::apply))
        .route("/r/{owner}/{name}/plans/{id}/stop", post(actions::stop))
        .route("/r/{owner}/{name}/plans/{id}/withdraw", post(actions::withdraw))
        .route("/r/{owner}/{name}/plans/{id}/undo", post(actions::undo))
        .route("/r/{owner}/{name}/plans/{id}/export.md", get(export_markdown))
        .route("/r/{owner}/{name}/plans/{id}/export.json", get(export_json))
        .route("/r/{owner}/{name}/plans/{id}/export.csv", get(export_csv))
}

#[derive(Template)]
#[template(path = "plans/list.html")]
struct PlansPage {
    page: PageFrame,
    path: String,
    of_graces: bool,
    plans: Vec<PlanLine>,
    pager: Pager,
    command: String,
    making: Option<MakingView>,
    can_maintain: bool,
}

#[derive(Template)]
#[template(path = "plans/making.html")]
struct MakingPart {
    path: String,
    making: MakingView,
}

struct MakingView {
    is_active: bool,
    words: String,
}

struct PlanLine {
    id: CloseRunId,
    href: String,
    made: TimeLabel,
    closes: String,
    skips: String,
    approved: String,
    excluded: String,
    class: &'static str,
    status: String,
    applied: Option<TimeLabel>,
    undone: Option<TimeLabel>,
}

async fn list(ReaderOf(at): ReaderOf, Query(query): QueryFields) -> PageResult {
    let of_graces = word(&query, "of") == "graces";
    let origin = if of_graces { PlanOrigin::Grace } else { PlanOrigin::Person };
    let before = number(&query, "before").map(CloseRunId::new);
    let mut plans = at.console.store.plans().list(at.repo.id, origin, before, PLANS + 1).await?;
    let next = cut_page(&mut plans, PLANS, |plan| ("before", plan.run.id.to_string()));
    let path = format!("{}/plans", repo_path(&at.repo));
    let mut lines = Vec::with_capacity(plans.len());
    for plan in &plans {
        lines.push(line(&at.console, &path, plan).await?);
    }
    let making = making_view(&at).await?;
    let mut page = at.page("Plans", NavSection::Plans);
    page.refresh = making.as_ref().filter(|making| making.is_active).map(|_| LOOK_AGAIN);
    html(&PlansPage {
        pager: Pager::new(
            "Pages of plans",
            &path,
            &[("of", if of_graces { "graces" } else { "" })],
            before.is_none(),
            next,
        ),
        command: format!("canonry plan-close --repo {}", at.repo.name),
        plans: lines,
        can_maintain: at.can_maintain(),
        of_graces,
        making,
        path,
        page,
    })
}

/// Whether a plan is still being made; once it exists the whole page is reloaded.
async fn making(ReaderOf(at): ReaderOf) -> PageResult {
    let path = format!("{}/plans", repo_path(&at.repo));
    match making_view(&at).await?.filter(|making| making.is_active) {
        Some(making) if at.visit.is_htmx => html(&MakingPart { path, making }),
        _ if at.visit.is_htmx => Ok(load_again()),
        _ => Ok(Redirect::to(&path).into_response()),
    }
}

async fn making_view(at: &RepoVisit) -> Result<Option<MakingView>, PageError> {
    let job = last_closing_job(&at.console.store, &at.repo).await?;
    let Some(job) = job.filter(|job| matches!(ConsoleOrder::of(job), Some(ConsoleOrder::Plan(_)))) else {
        return Ok(None);
    };
    Ok(said_of(&job))
}

fn said_of(job: &Job) -> Option<MakingView> {
    match (job.state.is_active(), &job.error) {
        (true, None) => Some(MakingView { is_active: true, words: "Making a plan…".to_owned() }),
        (true, Some(why)) => Some(MakingView { is_active: true, words: format!("A plan is queued: {why}") }),
        (false, Some(why)) => Some(MakingView { is_active: false, words: format!("No plan was made: {why}") }),
        (false, None) => None,
    }
}

async fn line(console: &Console, path: &str, plan: &PlanSummary) -> Result<PlanLine, PageError> {
    let (now, totals) = (console.now(), &plan.totals);
    let (class, status) = match () {
        () if totals.applied > 0 && totals.undone >= totals.applied => ("mute", "undone".to_owned()),
        () if totals.applied > 0 && totals.undone > 0 => {
            ("warn", format!("{} closed, {} reopened", thousands(totals.applied), thousands(totals.undone)))
        }
        () if totals.applied > 0 && totals.left == 0 => ("good", format!("{} closed", thousands(totals.applied))),
        () if totals.ended() > 0 && totals.left == 0 => (
            "warn",
            format!("nothing closed: {} skipped, {} failed", thousands(totals.skipped), thousands(totals.failed)),
        ),
        () if plan.apply.is_some() => {
            ("info", format!("{} closed, {} left", thousands(totals.applied), thousands(totals.left)))
        }
        () if totals.closes == 0 => ("mute", "nothing to close".to_owned()),
        () => match age_of_plan(&console.store, &plan.run, now).await? {
            PlanAge::Good { .. } => ("info", "to review".to_owned()),
            PlanAge::TooOld => ("mute", "expired".to_owned()),
            PlanAge::Overtaken { by } => ("mute", format!("replaced by plan {by}")),
            PlanAge::RuledSince { .. } => ("mute", "outdated by a ruling".to_owned()),
        },
    };
    Ok(PlanLine {
        id: plan.run.id,
        href: format!("{path}/{}", plan.run.id),
        made: when(plan.run.created_at, now),
        closes: thousands(totals.closes),
        skips: thousands(totals.skips()),
        approved: thousands(totals.approved),
        excluded: thousands(totals.excluded),
        class,
        status,
        // A running apply has no end time yet; the status shows its progress.
        applied: plan.apply.as_ref().and_then(|apply| apply.finished_at).map(|at| when(at, now)),
        undone: plan.undos.last().map(|undo| when(undo.finished_at.unwrap_or(undo.created_at), now)),
    })
}

async fn export_markdown(MaintainerOf(at): MaintainerOf, Path(path): PathFields) -> PageResult {
    let plan = whole_plan(&at, &path).await?;
    Ok(file("text/markdown; charset=utf-8", "md", &plan, plan_markdown(&plan)))
}

async fn export_json(MaintainerOf(at): MaintainerOf, Path(path): PathFields) -> PageResult {
    let plan = whole_plan(&at, &path).await?;
    Ok(file("application/json", "json", &plan, plan_json(&plan)))
}

async fn export_csv(MaintainerOf(at): MaintainerOf, Path(path): PathFields) -> PageResult {
    let plan = whole_plan(&at, &path).await?;
    Ok(file("text/csv; charset=utf-8", "csv", &plan, plan_csv(&plan)))
}

/// Every row with both of its items. That is much more than a page reads, so not every reader may load it.
async fn whole_plan(at: &RepoVisit, path: &HashMap<String, String>) -> Result<StoredPlan, PageError> {
    let id = CloseRunId::new(number_in(path, "id")?);
    stored_plan(&at.console.store, &at.repo, id).await?.ok_or(PageError::NotFound)
}

/// A file to download, never to display: it contains text of strangers.
fn file(kind: &'static str, ending: &str, plan: &StoredPlan, text: String) -> Response {
    let name = format!("attachment; filename=\"plan-{}.{ending}\"", plan.run.id);
    let name = HeaderValue::try_from(name).unwrap_or(HeaderValue::from_static("attachment"));
    ([(CONTENT_TYPE, HeaderValue::from_static(kind)), (CONTENT_DISPOSITION, name)], text).into_response()
}
