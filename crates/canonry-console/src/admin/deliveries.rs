//! The webhooks that arrived, the state of each, and replaying one.

use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::routing::{get, post};
use canonry_domain::{GithubId, ItemNumber, RepoName};
use canonry_server::{DeliveryView, ReplayError, replay, repo_id_of};
use canonry_store::{Delivery, DeliveryFilter, DeliveryState, JobFilter, JobId, Repo};
use jiff::Timestamp;
use serde::Deserialize;

use crate::admin::jobs::of_whose;
use crate::admin::work_lists::{WorkList, WorkListKind};
use crate::console::Console;
use crate::layout::badge;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{Form, QueryFields};
use crate::layout::formatting::{Badge, TimeLabel, when};
use crate::layout::page::{NavSection, PageFrame, back_to, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, in_path, place, place_in};
use crate::sign_in::visit::{MaintainerOf, OperatorOnly, RepoVisit, SignedIn, Visit};

/// The most characters of a body that are shown: GitHub's largest bodies are 25 MB.
const LONGEST_BODY: usize = 200_000;
const DELIVERIES: WorkListKind = WorkListKind {
    title: "Deliveries",
    section: NavSection::Deliveries,
    tail: "/deliveries",
    command: "canonry deliveries list",
    options: &["state", "event"],
    label: "Pages of deliveries",
    filters: &["state", "event"],
};

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/deliveries", get(of_all))
        .route("/deliveries/{id}", get(one))
        .route("/deliveries/{id}/replay", post(again))
        .route("/r/{owner}/{name}/deliveries", get(of_repo))
}

#[derive(Template)]
#[template(path = "admin/deliveries.html")]
struct DeliveriesPage {
    page: PageFrame,
    path: String,
    state: String,
    event: String,
    repo: String,
    is_of_repo: bool,
    rows: Vec<DeliveryListRow>,
    pager: Pager,
}

struct DeliveryListRow {
    href: String,
    event: String,
    repo: Option<String>,
    number: Option<ItemNumber>,
    state: Badge,
    reason: Option<String>,
    at: TimeLabel,
}

impl DeliveriesPage {
    fn is_filtered(&self) -> bool {
        !self.state.is_empty() || !self.event.is_empty() || !self.repo.is_empty()
    }
}

#[derive(Template)]
#[template(path = "admin/delivery.html")]
struct DeliveryPage {
    page: PageFrame,
    id: String,
    href: String,
    event: String,
    repo: Option<(String, String)>,
    number: Option<ItemNumber>,
    state: Badge,
    reason: Option<String>,
    received: TimeLabel,
    finished: Option<TimeLabel>,
    jobs: Vec<(JobId, Badge)>,
    can_replay: bool,
    is_operator: bool,
    body: Option<DeliveryBody>,
}

enum DeliveryBody {
    Whole(String),
    Beginning(String),
    Gone,
}

async fn of_all(OperatorOnly(visit): OperatorOnly, Query(query): QueryFields) -> PageResult {
    list(&visit.console, WorkList::of_all(&DELIVERIES, &visit, &query), None).await
}

async fn of_repo(MaintainerOf(at): MaintainerOf, Query(query): QueryFields) -> PageResult {
    list(&at.console, WorkList::of_repo(&DELIVERIES, &at, &query), Some(&at)).await
}

async fn list(console: &Console, list: WorkList<'_>, of: Option<&RepoVisit>) -> PageResult {
    let before: Option<(Timestamp, String)> = place_in(list.word("before"));
    let state: Option<DeliveryState> = list.word("state").parse().ok();
    let is_first = before.is_none();
    let filter = DeliveryFilter {
        state,
        event: Some(list.word("event").to_owned()).filter(|event| !event.is_empty()),
        repo: list.repo.parse::<RepoName>().ok(),
        before,
    };
    let mut deliveries = console.store.deliveries().list(&filter, PAGE + 1).await?;
    let last = cut_page(&mut deliveries, PAGE, |last| place(last.received_at, &last.id));
    if let Some(at) = of {
        deliveries = about(at, deliveries).await?;
    }
    html(&DeliveriesPage {
        state: state.map(DeliveryState::as_str).unwrap_or_default().to_owned(),
        event: list.word("event").to_owned(),
        repo: list.chosen_repo().to_owned(),
        is_of_repo: list.is_of_repo,
        rows: deliveries.into_iter().map(|delivery| row(console, delivery)).collect(),
        pager: list.pager(is_first, last),
        page: list.page,
        path: list.path,
    })
}

fn row(console: &Console, delivery: Delivery) -> DeliveryListRow {
    DeliveryListRow {
        event: DeliveryView::from(&delivery).title,
        href: delivery_path(&delivery.id),
        repo: delivery.repo.as_ref().map(ToString::to_string),
        number: delivery.number,
        state: badge::delivery(delivery.state),
        reason: delivery.reason,
        at: when(delivery.received_at, console.now()),
    }
}

/// The deliveries of this repository: its name may have belonged to another repository when they came.
async fn about(at: &RepoVisit, deliveries: Vec<Delivery>) -> Result<Vec<Delivery>, PageError> {
    if at.visit.session.is_operator {
        return Ok(deliveries);
    }
    let mut own = Vec::new();
    for delivery in deliveries {
        if is_told_of(&at.repo, repo_id(&at.console, &delivery.id).await?) {
            own.push(delivery);
        }
    }
    Ok(own)
}

/// Whether a delivery with this repository id is about the repository. A delivery whose body was deleted has no id,
/// and its repository is unknown, unless the stored repository has no id either.
fn is_told_of(repo: &Repo, told: Option<GithubId>) -> bool {
    repo.github_id == told
}

/// GitHub's id of the delivery's repository, from its job or its body.
async fn repo_id(console: &Console, id: &str) -> Result<Option<GithubId>, PageError> {
    let filter = JobFilter { delivery: Some(id.to_owned()), ..JobFilter::default() };
    if let Some(told) = console.store.jobs().list(&filter, 1).await?.first().and_then(repo_id_of) {
        return Ok(Some(told));
    }
    let body = console.store.deliveries().payload(id).await?;
    let told: Option<PayloadSubject> = body.and_then(|body| serde_json::from_str(&body).ok());
    Ok(told.and_then(|told| told.repository).map(|repository| GithubId(repository.id)))
}

#[derive(Deserialize)]
struct PayloadSubject {
    repository: Option<PayloadRepository>,
}

#[derive(Deserialize)]
struct PayloadRepository {
    id: i64,
}

/// The delivery's repository, if this person maintains it.
async fn whose(visit: &Visit, delivery: &Delivery, is_action: bool) -> Result<Option<RepoVisit>, PageError> {
    let id = repo_id(&visit.console, &delivery.id).await?;
    let at = of_whose(visit, id, delivery.repo.as_ref(), is_action).await?;
    match at {
        Some(at) if !visit.session.is_operator && !is_told_of(&at.repo, id) => Err(PageError::NotFound),
        at => Ok(at),
    }
}

pub(crate) fn delivery_path(id: &str) -> String {
    format!("/deliveries/{}", in_path(id))
}

async fn one(SignedIn(visit): SignedIn, Path(id): Path<String>, Query(query): QueryFields) -> PageResult {
    let delivery = visit.console.store.deliveries().get(&id).await?.ok_or(PageError::NotFound)?;
    let at = whose(&visit, &delivery, false).await?;
    let (now, is_operator) = (visit.console.now(), visit.session.is_operator);
    let page = match &at {
        Some(at) => at.page("Delivery", NavSection::Deliveries),
        None => visit.page("Delivery", NavSection::Deliveries),
    };
    let filter = JobFilter { delivery: Some(id.clone()), ..JobFilter::default() };
    let jobs = visit.console.store.jobs().list(&filter, 9).await?;
    let body = match is_operator && query.contains_key("body") {
        true => Some(body(visit.console.store.deliveries().payload(&id).await?)),
        false => None,
    };
    html(&DeliveryPage {
        page: page.cli(format!("canonry deliveries show {id}")),
        event: DeliveryView::from(&delivery).title,
        repo: at.as_ref().map(|at| (at.repo.name.to_string(), repo_path(&at.repo))),
        number: delivery.number,
        state: badge::delivery(delivery.state),
        reason: delivery.reason,
        received: when(delivery.received_at, now),
        finished: delivery.finished_at.map(|at| when(at, now)),
        jobs: jobs.into_iter().map(|job| (job.id, badge::job(job.state))).collect(),
        can_replay: delivery.state != DeliveryState::Queued,
        is_operator,
        body,
        href: delivery_path(&id),
        id,
    })
}

fn body(stored: Option<String>) -> DeliveryBody {
    let Some(text) = stored else { return DeliveryBody::Gone };
    let text = match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(value) => serde_json::to_string_pretty(&value).unwrap_or(text),
        Err(_) => text,
    };
    match text.char_indices().nth(LONGEST_BODY) {
        Some((end, _)) => DeliveryBody::Beginning(text[..end].to_owned()),
        None => DeliveryBody::Whole(text),
    }
}

async fn again(SignedIn(visit): SignedIn, Path(id): Path<String>, _: Form) -> PageResult {
    let delivery = visit.console.store.deliveries().get(&id).await?.ok_or(PageError::NotFound)?;
    let at = whose(&visit, &delivery, true).await?;
    visit.record(at.map(|at| at.repo.id), "replay delivery", &id).await?;
    let here = delivery_path(&id);
    match replay(&visit.console.store, &id, visit.console.now()).await {
        Ok(()) => {
            visit.console.wake_worker.notify_one();
            Ok(back_to(&here, "Delivery queued again."))
        }
        Err(ReplayError::Store(error)) => Err(error.into()),
        Err(error) => Err(PageError::BadForm(error.to_string())),
    }
}
