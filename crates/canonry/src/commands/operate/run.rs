//! `run`: handles one event of GitHub Actions and what is due, then ends.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use canonry_domain::RepoName;
use canonry_github::{GitHub, SystemClock};
use canonry_review::Remote;
use canonry_server::{
    DatabasePlace, RunEvent, RunOnce, RunReport, Schedules, Service, ServiceMaker, ServiceParts, StateKeeper, StateRef,
    run_summary,
};
use canonry_store::{DatabaseUrl, Store};
use canonry_triage::DEFAULT_INDEX_MEMORY;
use jiff::SignedDuration;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use crate::options::service_models::ServiceModelOptions;
use crate::output::exit::{Exit, WrongUsage};
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::run::interruption;
use crate::session::console_secrets::secret_of;
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::{GithubOption, is_app};
use crate::session::published_pull::MARKER_SECRET;

/// Outside of `refs/heads`, so that clones do not fetch it.
const STATE_REF: &str = "refs/canonry/state";
/// The value of `--state-ref` for a database that stays where it is.
const NO_STATE: &str = "none";
/// GitHub keeps no run waiting for longer than this without a result that anybody needs.
const PATIENCE: SignedDuration = SignedDuration::from_mins(20);
/// A job that fails is tried again by this run or a later one.
const TRIES: u32 = 10;

/// Triage in GitHub Actions, without a server.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Triage in GitHub Actions, without a server.\n\n\
        The event comes from GITHUB_EVENT_NAME and GITHUB_EVENT_PATH and goes through the same handlers, gates and outbox as in \
        `canonry serve`. Then everything that is due is done: announced closes, reactions, objections, the nightly sync. On a \
        schedule only that happens. The job summary (GITHUB_STEP_SUMMARY) shows the result.\n\n\
        Between two runs the database is kept in the repository, in a git ref that clones do not fetch (--state-ref). It \
        contains no secrets, and vectors are left out: they stay in the folder of --db, which a workflow may cache, and are \
        computed again if they are missing. One run at a time has the state; others wait. A run that is killed loses nothing: \
        the next run finds its event in the state and its comments on GitHub.\n\n\
        With a state ref, --db must be named: a run puts the database of the state into that file, and deletes the file at \
        the end. A database that no run put there is refused.\n\n\
        CANONRY_MARKER_SECRET, if it is set to the same secret in every run, signs comments, so that nobody else with the same \
        account can imitate them. See docs/action.md for the workflow file.",
    before_help = "Example:\n  GITHUB_TOKEN=... canonry run --db sqlite:/tmp/canonry/canonry.db\n  \
        GITHUB_TOKEN=... canonry run --repo octo/cat --event schedule --state-ref none"
)]
pub(crate) struct Args {
    /// The repository
    #[arg(long, value_name = "OWNER/NAME", env = "GITHUB_REPOSITORY")]
    repo: RepoName,
    /// The event's name, such as issues or schedule
    #[arg(long, value_name = "NAME", env = "GITHUB_EVENT_NAME", default_value = "schedule")]
    event: String,
    /// The file with the event's payload; a schedule needs none
    #[arg(long, value_name = "FILE", env = "GITHUB_EVENT_PATH")]
    payload: Option<PathBuf>,
    /// The git ref that keeps the database between two runs, or `none` to keep it only in the file of --db
    #[arg(long, value_name = "REF", default_value = STATE_REF, value_parser = state_ref)]
    state_ref: String,
    /// The repository that has the state ref, as an https:// or file:// address [default: the repository itself]
    #[arg(long, value_name = "URL")]
    state_remote: Option<String>,
    /// How many minutes the run may work before it leaves the rest to the next one
    #[arg(long, value_name = "MINUTES", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=350))]
    time_limit: u32,
    #[command(flatten)]
    models: ServiceModelOptions,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

fn state_ref(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte));
    let is_ref = text.starts_with("refs/") && is_plain && !text.contains("..") && !text.ends_with(['/', '.']);
    if text == NO_STATE || is_ref {
        Ok(text.to_owned())
    } else {
        Err("it must be `none` or begin with refs/".to_owned())
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let stop = interruption()?;
    let chosen = args.database.choose()?;
    if chosen.data_folder.is_some() && args.state_ref != NO_STATE {
        let words = "a run with a state ref deletes its database at the end and never uses the default one; \
                     name a file with --db sqlite:PATH";
        bail!(WrongUsage(words.to_owned()));
    }
    chosen.create_data_folder()?;
    let DatabaseUrl::Sqlite(database) = chosen.url else {
        let words = "`canonry run` keeps its data in a SQLite database; for PostgreSQL use `canonry serve`";
        bail!(WrongUsage(words.to_owned()));
    };
    let Some(github) = args.github.service_client()? else {
        bail!("GITHUB_TOKEN is not set; set it to the job's token: GITHUB_TOKEN: ${{{{ github.token }}}}");
    };
    let event = event(&args, context)?;
    // Not beside the database: a cache of that folder would grow with every run.
    let folder = tempfile::Builder::new().prefix("canonry-state-").tempdir()?;
    let keeper = match args.state_ref.as_str() {
        NO_STATE => None,
        name => Some(keeper(&args, &github, folder.path(), name, &event.id).await?),
    };
    let once = RunOnce {
        repo: args.repo.clone(),
        database,
        keeper,
        clock: Arc::new(SystemClock),
        schedules: if is_app() { Schedules::App } else { Schedules::Token },
        tries: TRIES,
        time_limit: SignedDuration::from_mins(i64::from(args.time_limit)),
    };
    let make: ServiceMaker<'_> =
        Box::new(|store| Box::pin(async { service(&args, github, store).await.map_err(Into::into) }));
    let done = once.handle(event, make, Box::pin(stop)).await?;
    summarise(&args.repo, &done)?;
    Ok(report(&args.repo, &done))
}

/// The event of this run. A run that is started again has the same id, and handles its event once.
fn event(args: &Args, context: &Context) -> Result<RunEvent> {
    let payload = match &args.payload {
        Some(file) => std::fs::read_to_string(file).with_context(|| {
            format!("the event's payload cannot be read from {}; check GITHUB_EVENT_PATH", file.display())
        })?,
        None => "{}".to_owned(),
    };
    let run = std::env::var("GITHUB_RUN_ID").ok().filter(|id| !id.trim().is_empty());
    let id = match run {
        Some(run) => format!("actions-{run}"),
        None if args.payload.is_some() => {
            let digest = Sha256::new().chain_update(args.event.as_bytes()).chain_update([0]).chain_update(&payload);
            format!("event-{}", &canonry_domain::hex_digits(digest.finalize())[..32])
        }
        None => format!("run-{}", context.run_id),
    };
    let event = RunEvent { id, name: args.event.clone(), payload };
    if event.is_webhook() && args.payload.is_none() {
        let name = &args.event;
        bail!(WrongUsage(format!(
            "the event {name} needs its payload: set GITHUB_EVENT_PATH, or name the file with --payload"
        )));
    }
    Ok(event)
}

async fn keeper(args: &Args, github: &GitHub, folder: &Path, name: &str, run: &str) -> Result<StateKeeper> {
    let (url, token) = match &args.state_remote {
        Some(url) => (url.clone(), None),
        None => (github.clone_url(&args.repo), Some(github.git_token(&args.repo).await?)),
    };
    let token = token.as_ref().map(canonry_github::Secret::expose);
    let remote = Remote::new(&url, token).map_err(|error| WrongUsage(format!("--state-remote: {error}")))?;
    let state = StateRef::open(folder, &remote, name).await?;
    let run = format!("{run}-{:08x}", rand::random::<u32>());
    Ok(StateKeeper { state, clock: Arc::new(SystemClock), run, patience: PATIENCE })
}

/// The same service as `serve` runs, with its database kept elsewhere.
async fn service(args: &Args, github: GitHub, store: Store) -> Result<Service> {
    let (models, reviewers) = args.models.load()?;
    let detectors = args.models.detectors(models, &store, &args.database, DEFAULT_INDEX_MEMORY).await?;
    let parts = ServiceParts {
        store,
        github: Some(github),
        is_app: is_app(),
        detectors,
        reviewers,
        clock: Arc::new(SystemClock),
        monthly_cost: args.models.monthly_cost(),
        prices: args.models.prices(),
        retrieval: args.models.mode(),
        wake_publisher: Arc::new(Notify::new()),
    };
    let marker_secret = secret_of(MARKER_SECRET);
    Ok(Service::new(parts).with_database_in(DatabasePlace::Portable { marker_secret }))
}

fn summarise(repo: &RepoName, run: &RunReport) -> Result<()> {
    use std::io::Write as _;
    let Some(file) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|file| !file.is_empty()) else { return Ok(()) };
    let server = std::env::var("GITHUB_SERVER_URL").unwrap_or_else(|_| "https://github.com".to_owned());
    let mut summary = std::fs::OpenOptions::new().append(true).create(true).open(&file)?;
    Ok(summary.write_all(run_summary(run, &format!("{server}/{repo}")).as_bytes())?)
}

fn report(repo: &RepoName, run: &RunReport) -> Report {
    let done = run.done.unwrap_or_default();
    let mut text = String::new();
    for event in &run.events {
        let about = event.number.map(|number| format!(" #{number}")).unwrap_or_default();
        let why = event.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        text += &format!("{} {}{about}: {}{why}\n", event.event, event.action.as_deref().unwrap_or(""), event.state);
        if let Some(verdict) = &event.verdict {
            let target = verdict.duplicate_of.map(|target| format!(" of #{target}")).unwrap_or_default();
            text += &format!("  verdict: {}{target} ({})\n", verdict.verdict, verdict.reason);
        }
    }
    text += &format!("Done: {}, {}.\n", counted(done.jobs, "job"), counted(done.writes, "write"));
    if run.done.is_none() {
        text += "Interrupted; the next run continues.\n";
    } else if done.is_cut_short {
        text += "The time limit was reached; the next run continues.\n";
    }
    let stats =
        json!({ "jobs": done.jobs, "failed": done.failed, "writes": done.writes, "cut_short": done.is_cut_short });
    let exit = if done.failed > 0 { Exit::SomeFailed } else { Exit::Done };
    Report::new(stats, text).with("events", &run.events).of(repo).ending(exit)
}
