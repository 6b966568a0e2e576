//! One plan for review: its rows grouped by the item that stays open, the selected row as a pair, and the plan's
//! actions.

use std::collections::HashMap;

use askama::Template;
use axum::extract::{Path, Query};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use canonry_domain::{ItemNumber, ItemType, ONLY_EXCLUDE};
use canonry_server::is_being_applied;
use canonry_store::{CloseRunId, PlanSummary, PlanTotals};
use canonry_triage::age_of_plan;

use crate::admin::repo_settings::settings_of;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{PathFields, QueryFields};
use crate::layout::formatting::{counted, thousands};
use crate::layout::htmx::load_again;
use crate::layout::page::{NavSection, PageFrame, html, html_with, repo_path};
use crate::layout::paging::{PAGE, number_in};
use crate::plans::pair::{PairView, pair_view};
use crate::plans::progress::{ProgressView, progress_view};
use crate::plans::rows::{TargetGroup, groups, rows_of};
use crate::plans::selection::{PlanSelection, RowFilter, read_item};
use crate::plans::state::{ApplyView, PlanBanner, UndoView, apply_view, banners, undo_phrase};
use crate::sign_in::visit::{ReaderOf, RepoVisit};

/// Seconds after which a browser without scripts reloads the progress of an apply.
const LOOK_AGAIN: u32 = 5;

#[derive(Template)]
#[template(path = "plans/plan_page.html")]
pub(crate) struct PlanPage {
    pub(crate) page: PageFrame,
    pub(crate) review: PlanView,
}

#[derive(Template)]
#[template(path = "plans/plan_body.html")]
pub(crate) struct PlanBodyPart {
    pub(crate) page: PageFrame,
    pub(crate) review: PlanView,
}

#[derive(Template)]
#[template(path = "plans/pair.html")]
struct PairPart {
    page: PageFrame,
    pair: PairView,
}

#[derive(Template)]
#[template(path = "plans/progress.html")]
struct ProgressPart {
    page: PageFrame,
    progress: ProgressView,
}

pub(crate) struct PlanView {
    pub(crate) plans: String,
    pub(crate) path: String,
    pub(crate) id: CloseRunId,
    /// Whether the address names a row: then a narrow screen shows the row instead of the list.
    pub(crate) has_row: bool,
    pub(crate) totals: PlanTotals,
    pub(crate) can_maintain: bool,
    /// Why rows can only be excluded now.
    pub(crate) only_exclude: Option<&'static str>,
    pub(crate) banners: Vec<PlanBanner>,
    pub(crate) said: Option<PlanBanner>,
    pub(crate) tabs: Vec<PlanTab>,
    pub(crate) reasons: Vec<ReasonChoice>,
    pub(crate) groups: Vec<TargetGroup>,
    pub(crate) pair: Option<PairView>,
    pub(crate) first: Option<String>,
    pub(crate) next: Option<String>,
    pub(crate) progress: Option<ProgressView>,
    pub(crate) apply: ApplyView,
    pub(crate) undo: Option<UndoView>,
    /// How the current row gets the focus: after a decision, not when the page is opened. A swapped-in part must not
    /// take the focus from a field in which a person is typing, so there the console's own script decides.
    pub(crate) focus: Option<&'static str>,
    /// Whether rows that are ticked in the browser stay ticked.
    pub(crate) keeps_ticks: bool,
    pub(crate) fields: Vec<(&'static str, String)>,
}

pub(crate) struct PlanTab {
    pub(crate) name: &'static str,
    pub(crate) words: &'static str,
    pub(crate) count: String,
    pub(crate) href: String,
    pub(crate) is_here: bool,
}

pub(crate) struct ReasonChoice {
    pub(crate) value: &'static str,
    pub(crate) words: String,
    pub(crate) is_here: bool,
}

#[derive(Default)]
pub(crate) struct PlanPageRequest {
    pub(crate) selection: PlanSelection,
    pub(crate) row: Option<(ItemType, ItemNumber)>,
    pub(crate) said: Option<PlanBanner>,
    pub(crate) focus: bool,
}

pub(crate) async fn show(ReaderOf(at): ReaderOf, Path(path): PathFields, Query(query): QueryFields) -> PageResult {
    let plan = plan_of(&at, &path).await?;
    let asked = PlanPageRequest { selection: look_of(&query), ..PlanPageRequest::default() };
    html(&page(&at, &plan, asked).await?)
}

/// A row. For htmx only the pair, or the pair with the list if requested; otherwise the whole page.
pub(crate) async fn row(
    ReaderOf(at): ReaderOf,
    headers: HeaderMap,
    Path(path): PathFields,
    Query(query): QueryFields,
) -> PageResult {
    let plan = plan_of(&at, &path).await?;
    let (Some(item_type), Some(number)) = (path.get("type"), path.get("number")) else {
        return Err(PageError::NotFound);
    };
    let (item_type, number) = read_item(&format!("{item_type}/{number}")).ok_or(PageError::NotFound)?;
    let reviewed = at.console.store.plans().row(&plan, item_type, number).await?.ok_or(PageError::NotFound)?;
    let selection = look_of(&query);
    let asked =
        PlanPageRequest { selection: selection.clone(), row: Some((item_type, number)), ..PlanPageRequest::default() };
    // The links of the list contain the view of the texts, so the list must follow a change of the view.
    if at.visit.is_htmx && headers.get("hx-target").is_some_and(|target| target == "review") {
        let review = PlanView { keeps_ticks: true, ..review(&at, &plan, asked).await? };
        return html(&PlanBodyPart { page: at.page("Plan", NavSection::Plans), review });
    }
    if at.visit.is_htmx {
        let settings = settings_of(&at.console, at.repo.id).await?;
        let pair = pair_view(&at, &plan, &settings, reviewed, &selection).await?;
        return html(&PairPart { page: at.page("Plan", NavSection::Plans), pair });
    }
    html(&page(&at, &plan, PlanPageRequest { focus: true, ..asked }).await?)
}

/// The progress of an apply or undo. When it has ended the whole page is reloaded.
pub(crate) async fn progress(ReaderOf(at): ReaderOf, Path(path): PathFields) -> PageResult {
    let plan = plan_of(&at, &path).await?;
    let progress = progress_view(&at, &plan).await?;
    match progress.filter(|progress| progress.is_active) {
        Some(progress) if at.visit.is_htmx => {
            html(&ProgressPart { page: at.page("Plan", NavSection::Plans), progress })
        }
        _ if at.visit.is_htmx => Ok(load_again()),
        _ => Ok(axum::response::Redirect::to(&plan_path(&at, plan.run.id)).into_response()),
    }
}

/// The plan that a path names, if it belongs to the repository.
pub(crate) async fn plan_of(at: &RepoVisit, path: &HashMap<String, String>) -> Result<PlanSummary, PageError> {
    let id = CloseRunId::new(number_in(path, "id")?);
    at.console.store.plans().summary(at.repo.id, id).await?.ok_or(PageError::NotFound)
}

pub(crate) fn plan_path(at: &RepoVisit, id: CloseRunId) -> String {
    format!("{}/plans/{id}", repo_path(&at.repo))
}

/// The page with a sentence about why an action was refused.
pub(crate) async fn refused(
    at: &RepoVisit,
    plan: &PlanSummary,
    selection: PlanSelection,
    words: impl Into<String>,
) -> PageResult {
    refused_at(at, plan, selection, None, words.into()).await
}

/// The same beside the row of the action.
pub(crate) async fn refused_at(
    at: &RepoVisit,
    plan: &PlanSummary,
    selection: PlanSelection,
    row: Option<(ItemType, ItemNumber)>,
    words: String,
) -> PageResult {
    let said = Some(PlanBanner { class: "bad", words });
    let asked = PlanPageRequest { selection, said, row, focus: at.visit.is_htmx };
    if at.visit.is_htmx {
        // htmx would not show another status.
        let review = review(at, plan, asked).await?;
        return html(&PlanBodyPart { page: at.page("Plan", NavSection::Plans), review });
    }
    let page = page(at, plan, asked).await?;
    html_with(StatusCode::UNPROCESSABLE_ENTITY, &page).map_err(PageError::Render)
}

pub(crate) async fn page(at: &RepoVisit, plan: &PlanSummary, asked: PlanPageRequest) -> Result<PlanPage, PageError> {
    let review = review(at, plan, asked).await?;
    let (id, name) = (plan.run.id, &at.repo.name);
    let mut page =
        at.page(&format!("Plan {id}"), NavSection::Plans).cli(format!("canonry plan show {id} --repo {name}"));
    page.refresh = review.progress.as_ref().filter(|progress| progress.is_active).map(|_| LOOK_AGAIN);
    Ok(PlanPage { page, review })
}

pub(crate) async fn review(
    at: &RepoVisit,
    plan: &PlanSummary,
    PlanPageRequest { selection, row, said, focus }: PlanPageRequest,
) -> Result<PlanView, PageError> {
    let settings = settings_of(&at.console, at.repo.id).await?;
    let path = plan_path(at, plan.run.id);
    let (selection, mut rows) = rows_of(&at.console, plan, selection, row).await?;
    let next =
        (rows.len() > PAGE as usize).then(|| rows.truncate(PAGE as usize)).and_then(|()| rows.last()).map(|last| {
            PlanSelection { after: Some((last.row.item_type, last.row.number)), ..selection.clone() }.link(&path)
        });
    let chosen = match row {
        Some((item_type, number)) => at.console.store.plans().row(plan, item_type, number).await?,
        None => rows.first().cloned(),
    };
    let current = chosen.as_ref().map(|chosen| (chosen.row.item_type, chosen.row.number));
    let pair = match chosen {
        Some(chosen) => Some(pair_view(at, plan, &settings, chosen, &selection).await?),
        None => None,
    };
    let tab = |show: RowFilter| PlanTab {
        name: show.as_str(),
        words: show.in_words(),
        count: thousands(show.count(&plan.totals)),
        href: PlanSelection { show, by_line: selection.by_line, ..PlanSelection::default() }.link(&path),
        is_here: selection.show == show,
    };
    let reasons = plan.totals.skips.iter().map(|(reason, count)| ReasonChoice {
        value: reason.as_str(),
        words: format!("{} ({})", reason.in_words(), thousands(*count)),
        is_here: selection.reason == Some(*reason),
    });
    let progress = progress_view(at, plan).await?;
    let age = age_of_plan(&at.console.store, &plan.run, at.console.now()).await?;
    let apply = apply_view(at, plan, &settings, &age, progress.as_ref()).await?;
    let undone = plan.totals.can_be_undone();
    Ok(PlanView {
        banners: banners(at).await?,
        tabs: RowFilter::EACH.into_iter().map(tab).collect(),
        reasons: if selection.show == RowFilter::Skips { reasons.collect() } else { Vec::new() },
        groups: groups(at, &path, rows, &selection, current).await?,
        first: selection.after.map(|_| PlanSelection { after: None, ..selection.clone() }.link(&path)),
        undo: (undone > 0 && at.can_maintain())
            .then(|| UndoView { count: counted(undone, "item"), phrase: undo_phrase(at, undone) }),
        plans: format!("{}/plans", repo_path(&at.repo)),
        id: plan.run.id,
        has_row: row.is_some(),
        totals: plan.totals.clone(),
        can_maintain: at.can_maintain(),
        only_exclude: is_being_applied(&at.console.store, &at.repo, plan.run.id).await?.then_some(ONLY_EXCLUDE),
        keeps_ticks: false,
        fields: selection.fields(),
        path,
        said,
        pair,
        next,
        progress,
        apply,
        focus: focus.then_some(if at.visit.is_htmx { "data-focus" } else { "autofocus" }),
    })
}

fn look_of(query: &HashMap<String, String>) -> PlanSelection {
    PlanSelection::of(|name| query.get(name).map(String::as_str))
}
