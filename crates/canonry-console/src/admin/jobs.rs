//! The work of the service: what waits, runs, is done or was given up, and trying it again.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::routing::{get, post};
use canonry_domain::{GithubId, ItemNumber, ItemType, RepoName};
use canonry_server::{ConsoleOrder, RetryOutcome, is_close_order, repo_id_of, retry_job, retry_jobs};
use canonry_store::{Job, JobFilter, JobId, JobKind, JobState, Repo};

use crate::admin::deliveries::delivery_path;
use crate::admin::work_lists::{WorkList, WorkListKind};
use crate::console::Console;
use crate::layout::badge;
use crate::layout::errors::{PageError, PageResult};
use crate::layout::filters;
use crate::layout::form::{Form, PathFields, QueryFields};
use crate::layout::formatting::{Badge, TimeLabel, counted, when};
use crate::layout::page::{NavSection, PageFrame, back_to, html, repo_path};
use crate::layout::paging::{PAGE, Pager, cut_page, number_in};
use crate::sign_in::roles::Role;
use crate::sign_in::visit::{MaintainerOf, OperatorOnly, RepoVisit, SignedIn, Visit};

/// Jobs that one click tries again; what is left is tried by the next.
const RETRIED_AT_ONCE: usize = 500;
const JOBS: WorkListKind = WorkListKind {
    title: "Jobs",
    section: NavSection::Jobs,
    tail: "/jobs",
    command: "canonry jobs list",
    options: &["state"],
    label: "Pages of jobs",
    filters: &["state", "kind"],
};

pub(crate) fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/jobs", get(of_all))
        .route("/jobs/retry", post(retry_dead))
        .route("/jobs/{id}", get(one))
        .route("/jobs/{id}/retry", post(retry))
        .route("/r/{owner}/{name}/jobs", get(of_repo))
        .route("/r/{owner}/{name}/jobs/retry", post(retry_dead_of_repo))
}

#[derive(Template)]
#[template(path = "admin/jobs.html")]
struct JobsPage {
    page: PageFrame,
    path: String,
    state: String,
    kind: String,
    repo: String,
    /// Whether the list is of one repository by its address.
    is_of_repo: bool,
    rows: Vec<JobListRow>,
    pager: Pager,
    has_dead: bool,
}

struct JobListRow {
    id: JobId,
    kind: String,
    /// What it goes in order with, which says more than its kind.
    key: String,
    about: String,
    repo: Option<String>,
    state: Badge,
    attempts: i64,
    error: Option<String>,
    at: TimeLabel,
}

impl JobsPage {
    fn is_filtered(&self) -> bool {
        !self.state.is_empty() || !self.kind.is_empty() || !self.repo.is_empty()
    }
}

#[derive(Template)]
#[template(path = "admin/job.html")]
struct JobPage {
    page: PageFrame,
    id: JobId,
    kind: String,
    about: String,
    key: String,
    state: Badge,
    attempts: i64,
    repo: Option<(String, String)>,
    delivery: Option<(String, String)>,
    error: Option<String>,
    error_heading: &'static str,
    created: TimeLabel,
    run_after: Option<TimeLabel>,
    lease_until: Option<TimeLabel>,
    finished: Option<TimeLabel>,
    payload: Option<String>,
    can_retry: bool,
    /// The page of the plan whose order it is.
    plan: Option<String>,
}

async fn of_all(OperatorOnly(visit): OperatorOnly, Query(query): QueryFields) -> PageResult {
    list(&visit.console, WorkList::of_all(&JOBS, &visit, &query), None).await
}

async fn of_repo(MaintainerOf(at): MaintainerOf, Query(query): QueryFields) -> PageResult {
    list(&at.console, WorkList::of_repo(&JOBS, &at, &query), Some(&at.repo)).await
}

async fn list(console: &Console, list: WorkList<'_>, of: Option<&Repo>) -> PageResult {
    let before = list.word("before").parse().ok().map(JobId::new);
    let state: Option<JobState> = list.word("state").parse().ok();
    let filter = JobFilter {
        state,
        repo: list.repo.parse::<RepoName>().ok(),
        kind: Some(list.word("kind").to_owned()).filter(|kind| !kind.is_empty()),
        before,
        ..JobFilter::default()
    };
    let mut jobs = console.store.jobs().list(&filter, PAGE + 1).await?;
    let last = cut_page(&mut jobs, PAGE, |last| last.id.to_string());
    jobs.retain(|job| of.is_none_or(|of| is_about(job, of)));
    html(&JobsPage {
        state: state.map(JobState::as_str).unwrap_or_default().to_owned(),
        kind: list.word("kind").to_owned(),
        repo: list.chosen_repo().to_owned(),
        is_of_repo: list.is_of_repo,
        has_dead: jobs.iter().any(|job| job.state == JobState::Dead && !is_close_order(job)),
        rows: jobs.iter().map(|job| row(console, job)).collect(),
        pager: list.pager(before.is_none(), last),
        page: list.page,
        path: list.path,
    })
}

fn row(console: &Console, job: &Job) -> JobListRow {
    JobListRow {
        id: job.id,
        kind: job.kind.to_string(),
        key: job.key.clone(),
        about: about(job),
        repo: job.repo.as_ref().map(ToString::to_string),
        state: badge::job(job.state),
        attempts: job.attempts,
        error: job.error.clone(),
        at: when(job.finished_at.unwrap_or(job.created_at), console.now()),
    }
}

async fn one(SignedIn(visit): SignedIn, Path(path): PathFields) -> PageResult {
    let job = find(&visit.console, &path).await?;
    let at = of_whose(&visit, repo_id_of(&job), job.repo.as_ref(), false).await?;
    let (now, title) = (visit.console.now(), format!("Job {}", job.id));
    let page = match &at {
        Some(at) => at.page(&title, NavSection::Jobs),
        None => visit.page(&title, NavSection::Jobs),
    };
    let is_over = matches!(job.state, JobState::Done | JobState::Dead);
    html(&JobPage {
        page: page.cli(format!("canonry jobs show {}", job.id)),
        about: about(&job),
        state: badge::job(job.state),
        repo: at.as_ref().map(|at| (at.repo.name.to_string(), repo_path(&at.repo))),
        error_heading: match job.state {
            JobState::Dead => "Why it was given up",
            JobState::Done => "Why there was nothing more to do",
            JobState::Queued | JobState::Running => "Why the last try did not do it",
        },
        created: when(job.created_at, now),
        run_after: (job.state == JobState::Queued).then(|| when(job.run_after, now)),
        lease_until: job.lease_until.filter(|_| job.state == JobState::Running).map(|until| when(until, now)),
        finished: job.finished_at.filter(|_| is_over).map(|at| when(at, now)),
        // It may hold more than a maintainer is shown elsewhere.
        payload: visit.session.is_operator.then(|| pretty(&job.payload)).filter(|text| text != "null"),
        can_retry: matches!(job.state, JobState::Dead | JobState::Queued) && !is_close_order(&job),
        plan: at.as_ref().and_then(|at| plan_path(at, &job)),
        id: job.id,
        kind: job.kind.to_string(),
        key: job.key,
        attempts: job.attempts,
        delivery: job.delivery_id.map(|id| (delivery_path(&id), id)),
        error: job.error,
    })
}

/// Tries one job again. An order to close or to open again is given anew on its plan's page: it was for what its words said
/// on that day.
async fn retry(SignedIn(visit): SignedIn, Path(path): PathFields, _: Form) -> PageResult {
    let job = find(&visit.console, &path).await?;
    let at = of_whose(&visit, repo_id_of(&job), job.repo.as_ref(), true).await?;
    let here = format!("/jobs/{}", job.id);
    if !is_close_order(&job) {
        visit.record(at.as_ref().map(|at| at.repo.id), "retry job", &job.id.to_string()).await?;
    }
    Ok(match retry_job(&visit.console.store, &job, visit.console.now()).await? {
        RetryOutcome::Queued => {
            visit.console.wake_worker.notify_one();
            back_to(&here, &format!("Job {} is queued again.", job.id))
        }
        RetryOutcome::LeftAlone => {
            back_to(&here, &format!("Job {} runs or is done, so that it is left alone.", job.id))
        }
        RetryOutcome::Order => {
            let plan = at.as_ref().and_then(|at| plan_path(at, &job)).unwrap_or(here);
            let words = format!(
                "Nothing was queued: job {} is an order to close or to open items again, which is for the day it was given. \
                 If the plan still says what you want, give it anew.",
                job.id
            );
            back_to(&plan, &words)
        }
    })
}

async fn retry_dead(OperatorOnly(visit): OperatorOnly, form: Form) -> PageResult {
    let repo = match form.one("repo") {
        Some(name) => Some(name.parse::<RepoName>().map_err(|error| PageError::BadForm(error.to_string()))?),
        None => None,
    };
    visit.record(None, "retry given up jobs", form.one("repo").unwrap_or("all repositories")).await?;
    retry_all(&visit.console, repo, None, "/jobs").await
}

async fn retry_dead_of_repo(MaintainerOf(at): MaintainerOf, _: Form) -> PageResult {
    at.record("retry given up jobs", &at.repo.name.to_string()).await?;
    let back = format!("{}/jobs", repo_path(&at.repo));
    retry_all(&at.console, Some(at.repo.name.clone()), Some(&at.repo), &back).await
}

/// Queues what was given up again, of `only` alone where the name may have been another repository's; orders are left.
async fn retry_all(console: &Console, repo: Option<RepoName>, only: Option<&Repo>, back: &str) -> PageResult {
    let filter = JobFilter { state: Some(JobState::Dead), repo, ..JobFilter::default() };
    let is_wanted = |job: &Job| only.is_none_or(|only| is_about(job, only));
    let retried = retry_jobs(&console.store, filter, is_wanted, RETRIED_AT_ONCE, console.now()).await?;
    let (queued, orders) = (retried.queued, retried.orders);
    console.wake_worker.notify_one();
    let queued = counted(queued, "job");
    let words = match orders {
        0 => format!("{queued} queued again."),
        _ => format!(
            "{queued} queued again. Left alone: {} to close or to open items again; give them anew on their plans' pages.",
            counted(orders, "order")
        ),
    };
    Ok(back_to(back, &words))
}

fn plan_path(at: &RepoVisit, job: &Job) -> Option<String> {
    let plan = ConsoleOrder::of(job).and_then(|order| order.plan())?;
    Some(format!("{}/plans/{plan}", repo_path(&at.repo)))
}

/// Whether a job under the repository's name is about it: the name may have been another's when the job was stored.
fn is_about(job: &Job, repo: &Repo) -> bool {
    repo_id_of(job).is_none_or(|id| repo.github_id == Some(id))
}

async fn find(console: &Console, path: &HashMap<String, String>) -> Result<Job, PageError> {
    let id = JobId::new(number_in(path, "id")?);
    console.store.jobs().get(id).await?.ok_or(PageError::NotFound)
}

/// The repository that something is about, if this person may look after it; nothing else is theirs to see. It is the one
/// with that id, and only without one the one of that name, as for the work itself. What is about no known repository is
/// the operators'.
pub(crate) async fn of_whose(
    visit: &Visit,
    id: Option<GithubId>,
    name: Option<&RepoName>,
    is_action: bool,
) -> Result<Option<RepoVisit>, PageError> {
    let repo = match (id, name) {
        (Some(id), _) => visit.console.store.repos().by_github_id(id).await?,
        (None, Some(name)) => visit.console.store.repos().find(name).await?,
        (None, None) => None,
    };
    let Some(repo) = repo else {
        return if visit.session.is_operator { Ok(None) } else { Err(PageError::NotFound) };
    };
    let role = visit.console.roles.of(&visit.console, &visit.session, &repo, is_action).await?;
    match role {
        Role::Reader => Err(PageError::Forbidden("maintainers of this repository")),
        Role::Maintainer | Role::Operator => {
            Ok(Some(RepoVisit { console: visit.console.clone(), repo, role, visit: visit.clone() }))
        }
    }
}

fn about(job: &Job) -> String {
    let item = |item_type: ItemType, number: ItemNumber| match item_type {
        ItemType::Issue => format!("issue #{number}"),
        ItemType::Pr => format!("pull request #{number}"),
    };
    match ConsoleOrder::of(job) {
        Some(ConsoleOrder::Apply(order)) if order.only_takes_back => {
            return format!("take back what was begun of plan {}", order.plan.get());
        }
        Some(ConsoleOrder::Apply(order)) => return format!("close what plan {} says", order.plan.get()),
        Some(ConsoleOrder::Undo(order)) => {
            let what = order.item.map_or_else(|| "everything".to_owned(), |(kind, number)| item(kind, number));
            return format!("open again {what} of plan {}", order.plan.get());
        }
        Some(ConsoleOrder::CancelGrace(order)) => {
            return format!("call the announced close of {} off", item(order.item_type, order.number));
        }
        Some(ConsoleOrder::Plan(_) | ConsoleOrder::Canonicalize(_)) | None => {}
    }
    job.kind.known().map_or_else(|| job.kind.to_string(), |kind| kind_in_words(kind).to_owned())
}

const fn kind_in_words(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Webhook => "do what a webhook asks for",
        JobKind::Sync => "bring the repository up to date",
        JobKind::Review => "review a pull request",
        JobKind::Triage => "look again at an item that changed",
        JobKind::Reactions => "read what people think of comments",
        JobKind::Recover => "ask GitHub for deliveries that failed",
        JobKind::Grace => "close what nobody objected to",
        JobKind::Objections => "ask what people think of closes",
        // Orders say more, unless they are of a form that this version does not know.
        JobKind::ApplyClose => "close what a plan says",
        JobKind::UndoClose => "open again what a plan closed",
        JobKind::Plan => "make a plan",
        JobKind::Canonicalize => "bring the clusters up to date",
        JobKind::CancelGrace => "call an announced close off",
    }
}

fn pretty(payload: &serde_json::Value) -> String {
    serde_json::to_string_pretty(payload).unwrap_or_default()
}
