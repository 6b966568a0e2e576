//! `jobs`: the service's jobs: queued, running, done and failed.

use anyhow::{Result, bail};
use canonry_domain::RepoName;
use canonry_server::{ApplyOrder, ConsoleOrder, JobView, RetryOutcome, UndoOrder, retry_job, retry_jobs};
use canonry_store::{Job, JobFilter, JobId, JobState};
use serde_json::json;

use crate::output::exit::Refused;
use crate::output::moments::date;
use crate::output::printable::one_line;
use crate::output::report::Report;
use crate::output::tables::{Table, counted, table};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;

/// List, show or retry jobs.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example:\n  canonry jobs list --state dead\n  canonry jobs show 12\n  canonry jobs retry 12\n  \
    canonry jobs retry --state dead --repo octo/cat"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List jobs, the latest first
    #[command(before_help = "Example:\n  canonry jobs list --state dead")]
    List(ListArgs),
    /// Show a job
    #[command(before_help = "Example:\n  canonry jobs show 12")]
    Show(OneArgs),
    /// Retry a failed job, or one that waits for its next try; or all of them
    #[command(before_help = "Example:\n  canonry jobs retry 12\n  canonry jobs retry --state dead --repo octo/cat")]
    Retry(RetryArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Only those in this state: queued, running, done or dead (failed)
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
    /// All jobs in this state instead: dead (failed), or queued (waiting for their next try)
    #[arg(long, value_name = "STATE", value_parser = retriable)]
    state: Option<JobState>,
    /// Only those about this repository
    #[arg(long, value_name = "OWNER/NAME", requires = "state")]
    repo: Option<RepoName>,
    #[command(flatten)]
    database: DatabaseOption,
}

/// Parses a state in which jobs can be retried.
fn retriable(text: &str) -> Result<JobState, String> {
    match text.parse()? {
        state @ (JobState::Dead | JobState::Queued) => Ok(state),
        state => Err(format!("{} jobs cannot be retried; use dead or queued", state.as_str())),
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    match args.action {
        Action::List(args) => {
            let store = args.database.open_existing().await?;
            let filter = JobFilter { state: args.state, repo: args.repo, ..JobFilter::default() };
            let jobs = store.jobs().list(&filter, args.limit).await?;
            store.disconnect().await;
            Ok(report(&jobs, context).with("jobs", jobs.iter().map(JobView::from).collect::<Vec<_>>()))
        }
        Action::Show(args) => {
            let store = args.database.open_existing().await?;
            let Some(job) = store.jobs().get(JobId::new(args.id)).await? else {
                bail!("there is no job {}; see `canonry jobs list`", args.id);
            };
            store.disconnect().await;
            Ok(report(std::slice::from_ref(&job), context).with("job", JobView::from(&job)))
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
            "Not queued: {orders} to close or reopen items, which need a new confirmation; `canonry jobs retry ID` shows the \
             command to run instead.\n"
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
            Ok(Report::new(json!({ "queued": 1 }), format!("Queued job {id} again.\n"))
                .with("job", JobView::from(&job)))
        }
        (RetryOutcome::Order, ..) => bail!(Refused(order_again(&job))),
        (RetryOutcome::LeftAlone, JobState::Done, Some(delivery)) => {
            bail!("job {id} is done; to run it again: canonry deliveries replay {delivery}")
        }
        (RetryOutcome::LeftAlone, state, _) => {
            bail!("job {id} is {}; only failed or waiting jobs can be retried", state.as_str())
        }
    }
}

/// Explains why an order is not retried, and names the command to run instead.
fn order_again(job: &Job) -> String {
    let why =
        format!("job {} is an order of {} to close or reopen items and is not retried", job.id, date(job.created_at));
    let Some(plan) = ConsoleOrder::of(job).and_then(|order| order.plan()) else {
        return format!("{why}; make a new plan with `canonry plan-close`");
    };
    let command = match ConsoleOrder::of(job) {
        Some(ConsoleOrder::Undo(UndoOrder { item: Some((_, number)), reason, .. })) => {
            format!("undo {plan} --item {number} --reason {reason}")
        }
        Some(ConsoleOrder::Undo(UndoOrder { reason, .. })) => {
            format!("undo {plan} --reason {reason}")
        }
        Some(ConsoleOrder::Apply(ApplyOrder { approved_only: true, .. })) => {
            format!("apply {plan} --approved-only --yes")
        }
        _ => format!("apply {plan} --yes"),
    };
    format!("{why}; read `canonry plan show {plan}`, then run: canonry {command}")
}

fn report(jobs: &[Job], context: &Context) -> Report {
    let text = if jobs.is_empty() { "No jobs.\n".to_owned() } else { format!("{}\n", jobs_table(jobs, context)) };
    Report::new(json!({ "jobs": jobs.len() }), text)
}

pub(crate) fn jobs_table(jobs: &[Job], context: &Context) -> Table {
    let mut shown = table(["job", "work", "about", "state", "tries", "not before", "error"]);
    for job in jobs.iter().map(JobView::from) {
        shown.add_row([
            job.id.to_string(),
            one_line(&job.work),
            one_line(&job.about),
            job.state.to_owned(),
            job.attempts.to_string(),
            context.when(job.run_after),
            job.error.map(one_line).unwrap_or_default(),
        ]);
    }
    shown
}
