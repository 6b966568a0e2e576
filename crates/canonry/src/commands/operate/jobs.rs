//! `jobs`: the work that is owed, done and given up.

use anyhow::{Result, bail};
use canonry_domain::RepoName;
use canonry_server::{ApplyOrder, ConsoleOrder, RetryOutcome, UndoOrder, retry_job, retry_jobs};
use canonry_store::{Job, JobFilter, JobId, JobState};
use comfy_table::Table;
use serde_json::{Value, json};

use crate::output::exit::Refused;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;

/// List jobs, show one, or have one tried again.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  canonry jobs list --state dead\n  canonry jobs show 12\n  canonry jobs retry 12\n  \
    canonry jobs retry --state dead --repo octo/cat"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List jobs, the latest first
    List(ListArgs),
    /// Show a job
    Show(OneArgs),
    /// Queue a job that was given up, or end the wait of one that is to be tried again; or all that were given up
    Retry(RetryArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only those in this state: queued, running, done or dead
    #[arg(long, value_name = "STATE")]
    state: Option<JobState>,
    /// Only those about this repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<RepoName>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, clap::Args)]
struct OneArgs {
    /// The job's number, as `canonry jobs list` shows it
    #[arg(value_name = "ID")]
    id: i64,
    #[command(flatten)]
    database: DatabaseOption,
}

#[derive(Debug, clap::Args)]
struct RetryArgs {
    /// The job's number, as `canonry jobs list` shows it
    #[arg(value_name = "ID", required_unless_present = "state", conflicts_with = "state")]
    id: Option<i64>,
    /// All jobs in this state instead: dead, or queued for those that wait for their next try
    #[arg(long, value_name = "STATE", value_parser = retriable)]
    state: Option<JobState>,
    /// Only those about this repository
    #[arg(long, value_name = "OWNER/NAME", requires = "state")]
    repo: Option<RepoName>,
    #[command(flatten)]
    database: DatabaseOption,
}

/// A state in which jobs can be tried again.
fn retriable(text: &str) -> Result<JobState, String> {
    match text.parse()? {
        state @ (JobState::Dead | JobState::Queued) => Ok(state),
        state => Err(format!("a job that is {} cannot be tried again; use dead or queued", state.as_str())),
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    match args.action {
        Action::List(args) => {
            let store = args.database.open_existing().await?;
            let filter = JobFilter { state: args.state, repo: args.repo, ..JobFilter::default() };
            let jobs = store.jobs().list(&filter, args.limit).await?;
            store.disconnect().await;
            Ok(report(&jobs).with("jobs", jobs.iter().map(job_document).collect::<Vec<_>>()))
        }
        Action::Show(args) => {
            let store = args.database.open_existing().await?;
            let Some(job) = store.jobs().get(JobId::new(args.id)).await? else {
                bail!("there is no job {}; see `canonry jobs list`", args.id);
            };
            store.disconnect().await;
            let document = job_document(&job);
            Ok(report(&[job]).with("job", document))
        }
        Action::Retry(args) => match args.id {
            Some(id) => retry(JobId::new(id), &args.database, context).await,
            None => retry_all(&args, context).await,
        },
    }
}

async fn retry_all(args: &RetryArgs, context: &Context) -> Result<Report> {
    let store = args.database.open_known(context).await?;
    let filter = JobFilter { state: args.state, repo: args.repo.clone(), ..JobFilter::default() };
    let retried = retry_jobs(&store, filter, |_| true, usize::MAX, context.now).await?;
    store.disconnect().await;
    let mut text = format!("Queued {} again.\n", counted(retried.queued, "job"));
    if retried.orders > 0 {
        let orders = counted(retried.orders, "order");
        text += &format!(
            "Left alone: {orders} to close or to open items again, each for the day it was given; `canonry jobs retry ID` \
             tells how to give one anew.\n"
        );
    }
    Ok(Report::new(json!({ "queued": retried.queued, "orders_left": retried.orders }), text))
}

async fn retry(id: JobId, database: &DatabaseOption, context: &Context) -> Result<Report> {
    let store = database.open_known(context).await?;
    let Some(job) = store.jobs().get(id).await? else { bail!("there is no job {id}; see `canonry jobs list`") };
    let retried = retry_job(&store, &job, context.now).await?;
    let job = store.jobs().get(id).await?.unwrap_or(job);
    store.disconnect().await;
    match (retried, job.state, &job.delivery_id) {
        (RetryOutcome::Queued, ..) => {
            Ok(Report::new(json!({ "queued": 1 }), format!("Queued job {id} again.\n")).with("job", job_document(&job)))
        }
        (RetryOutcome::Order, ..) => bail!(Refused(give_anew(&job))),
        (RetryOutcome::LeftAlone, JobState::Done, Some(delivery)) => {
            bail!("job {id} is done; to do it once more: canonry deliveries replay {delivery}")
        }
        (RetryOutcome::LeftAlone, state, _) => {
            bail!("job {id} is {}; only one that waits or was given up can be tried again", state.as_str())
        }
    }
}

/// Why an order is not tried again, and what to do instead.
fn give_anew(job: &Job) -> String {
    let id = job.id;
    let why = format!(
        "job {id} is an order to close or to open items again, which was for the day it was given ({}), so that nothing \
         was queued",
        job.created_at
    );
    let (Some(repo), Some(plan)) = (&job.repo, ConsoleOrder::of(job).and_then(|order| order.plan())) else {
        return format!("{why}; make a new plan with `canonry plan-close`");
    };
    let command = match ConsoleOrder::of(job) {
        Some(ConsoleOrder::Undo(UndoOrder { item: Some((_, number)), reason, .. })) => {
            format!("undo-close --repo {repo} --run {plan} --item {number} --reason {reason}")
        }
        Some(ConsoleOrder::Undo(UndoOrder { reason, .. })) => {
            format!("undo-close --repo {repo} --run {plan} --reason {reason}")
        }
        Some(ConsoleOrder::Apply(ApplyOrder { approved_only: true, .. })) => {
            format!("apply-close --repo {repo} --run {plan} --approved-only --yes")
        }
        _ => format!("apply-close --repo {repo} --run {plan} --yes"),
    };
    format!(
        "{why}; if plan {plan} still says what you want (`canonry plan show --repo {repo} --run {plan}`), give it anew: \
         canonry {command}"
    )
}

fn report(jobs: &[Job]) -> Report {
    let text = if jobs.is_empty() { "There are none.\n".to_owned() } else { format!("{}\n", jobs_table(jobs)) };
    Report::new(json!({ "jobs": jobs.len() }), text)
}

pub(crate) fn jobs_table(jobs: &[Job]) -> Table {
    let mut shown = table(["job", "kind", "about", "state", "tries", "not before", "error"]);
    for job in jobs {
        let error = job.error.as_deref().map(one_line).unwrap_or_default();
        let (state, tries) = (job.state.as_str().to_owned(), job.attempts.to_string());
        shown.add_row([
            job.id.to_string(),
            one_line(job.kind.as_str()),
            one_line(&about(job)),
            state,
            tries,
            job.run_after.to_string(),
            error,
        ]);
    }
    shown
}

/// What a job is about, by the repository's name: its key has only the repository's id.
fn about(job: &Job) -> String {
    match (&job.repo, job.key.split_once('#')) {
        (Some(repo), Some((_, number))) => format!("{repo}#{number}"),
        (Some(repo), None) => repo.to_string(),
        (None, _) => job.key.clone(),
    }
}

pub(crate) fn job_document(job: &Job) -> Value {
    json!({
        "id": job.id.get(), "delivery": job.delivery_id, "key": job.key, "repo": job.repo, "kind": job.kind.as_str(),
        "payload": job.payload, "state": job.state.as_str(), "attempts": job.attempts, "run_after": job.run_after,
        "lease_until": job.lease_until, "error": job.error, "created_at": job.created_at,
        "finished_at": job.finished_at,
    })
}
