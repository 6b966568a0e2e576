//! The jobs of the service: queued, running, done and failed ones, and retrying them.

use std::collections::HashMap;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query};
use axum::routing::{get, post};
use canonry_domain::{GithubId, RepoName};
use canonry_server::{ConsoleOrder, JobView, RetryOutcome, is_close_order, repo_id_of, retry_job, retry_jobs};
use canonry_store::{Job, JobFilter, JobId, JobState, Repo};

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

/// Jobs that one click retries; the next click retries the rest.
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
    /// Whether the address limits the list to one repository.
    is_of_repo: bool,
    rows: Vec<JobListRow>,
    pager: Pager,
    has_dead: bool,
}

struct JobListRow {
    id: JobId,
    kind: String,
    /// Jobs with the same key run in order; the key says more than the kind.
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
    /// The page of the order's plan.
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
        about: JobView::from(job).work,
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
        about: JobView::from(&job).work,
        state: badge::job(job.state),
        repo: at.as_ref().map(|at| (at.repo.name.to_string(), repo_path(&at.repo))),
        error_heading: match job.state {
            JobState::Dead => "Error",
            JobState::Done => "Result",
            JobState::Queued | JobState::Running => "Error of the last attempt",
        },
        created: when(job.created_at, now),
        run_after: (job.state == JobState::Queued).then(|| when(job.run_after, now)),
        lease_until: job.lease_until.filter(|_| job.state == JobState::Running).map(|until| when(until, now)),
        finished: job.finished_at.filter(|_| is_over).map(|at| when(at, now)),
        // The payload may contain more than a maintainer is shown elsewhere.
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

/// Retries one job. A job that closes or reopens items is started again on its plan's page: it was confirmed for the
/// plan's contents of that day.
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
        RetryOutcome::LeftAlone => back_to(&here, &format!("Job {} is running or done. Nothing was queued.", job.id)),
        RetryOutcome::Order => {
            let plan = at.as_ref().and_then(|at| plan_path(at, &job)).unwrap_or(here);
            let words = format!(
                "Nothing was queued: job {} closes or reopens items, which needs a new confirmation. Start it again on this \
                 page.",
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
    visit.record(None, "retry failed jobs", form.one("repo").unwrap_or("all repositories")).await?;
    retry_all(&visit.console, repo, None, "/jobs").await
}

async fn retry_dead_of_repo(MaintainerOf(at): MaintainerOf, _: Form) -> PageResult {
    at.record("retry failed jobs", &at.repo.name.to_string()).await?;
    let back = format!("{}/jobs", repo_path(&at.repo));
    retry_all(&at.console, Some(at.repo.name.clone()), Some(&at.repo), &back).await
}

/// Queues failed jobs again, except closes and undos; only those of `only` if the name may have belonged to another
/// repository.
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
            "{queued} queued again. {} not queued: start closes and undos again on their plans' pages.",
            counted(orders, "job")
        ),
    };
    Ok(back_to(back, &words))
}

fn plan_path(at: &RepoVisit, job: &Job) -> Option<String> {
    let plan = ConsoleOrder::of(job).and_then(|order| order.plan())?;
    Some(format!("{}/plans/{plan}", repo_path(&at.repo)))
}

/// Whether a job under the repository's name is about it: the name may have belonged to another repository when the
/// job was stored.
fn is_about(job: &Job, repo: &Repo) -> bool {
    repo_id_of(job).is_none_or(|id| repo.github_id == Some(id))
}

async fn find(console: &Console, path: &HashMap<String, String>) -> Result<Job, PageError> {
    let id = JobId::new(number_in(path, "id")?);
    console.store.jobs().get(id).await?.ok_or(PageError::NotFound)
}

/// The repository of a job or delivery, if this person maintains it; others may not see it. It is found by id, and by
/// name only if there is no id, as in the job itself. Only operators see what belongs to no known repository.
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
        Role::Maintainer | Role::Operator => RepoVisit::new(visit.clone(), repo, role).await.map(Some),
    }
}

fn pretty(payload: &serde_json::Value) -> String {
    serde_json::to_string_pretty(payload).unwrap_or_default()
}
