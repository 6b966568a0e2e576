//! `serve`: receives GitHub's webhooks and processes them until it is stopped.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use canonry_console::{ConsoleParts, console_routes};
use canonry_domain::RepoName;
use canonry_github::{Clock, SystemClock};
use canonry_mcp::{McpServer, mcp_routes};
use canonry_server::{
    ApiAccess, ApiParts, Metrics, Operations, Publish, ReviewParts, Schedules, ServeParts, Service, ServiceOptions,
    ServiceParts, TrustedProxy, api_routes, operations_routes, serve,
};
use canonry_store::{JobCaps, OpenOptions, Store};
use canonry_triage::{DEFAULT_INDEX_MEMORY, FixIndexes, LOOKUPS_AT_ONCE, Lookup};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use url::Url;

use crate::options::chat::Models;
use crate::options::service_models::ServiceModelOptions;
use crate::output::logging::LogFormat;
use crate::output::report::Report;
use crate::output::tables::counted;
use crate::run::interruption;
use crate::session::admin_token::{ADMIN_TOKEN, admin_token};
use crate::session::console_commands::console_commands;
use crate::session::console_secrets::{oauth_app, secret_of};
use crate::session::context::Context;
use crate::session::database::DatabaseOption;
use crate::session::github::{GithubOption, is_app};
use crate::session::mcp_access::TokenAccess;

/// The environment variables that contain secrets. They are never options, because every process can read another
/// process's arguments.
const WEBHOOK_SECRET: &str = "CANONRY_WEBHOOK_SECRET";
const METRICS_TOKEN: &str = "CANONRY_METRICS_TOKEN";

/// Database connections in addition to one for each worker: for webhooks, publishers, schedules and other requests.
const OTHER_CONNECTIONS: u32 = 8;
/// The service does not start if its clock and the database's clock differ by more than this. Leases last 20 seconds by
/// each process's own clock.
const MOST_SKEW: SignedDuration = SignedDuration::from_secs(10);
/// The service logs a warning if the two clocks differ by more than this.
const SOME_SKEW: SignedDuration = SignedDuration::from_secs(2);

/// Run the service: webhooks, triage, reviews, console.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Run the service: webhooks, triage, reviews, console.\n\n\
        Point the App's webhook at http://HOST/webhooks/github and put its secret into CANONRY_WEBHOOK_SECRET. A \
        webhook is answered once it is stored; a kill at any moment loses nothing. Each new issue and pull request is \
        compared with the open ones. What happens then is up to the mode in the repository's .canonry.yml: shadow, the \
        default, only records it; suggest writes a comment and the label possible-duplicate where the score reaches the \
        threshold. The threshold is learned from what people then do with the issues; see `canonry thresholds` and \
        `canonry show`.\n\n\
        Pull requests are reviewed when review.triggers of that file says so: by Canonry's own rules, and by the reviewers \
        llm and command where the file names them and these options define them. Commits are fetched with git into a \
        temporary folder.\n\n\
        GITHUB_TOKEN, or CANONRY_APP_ID and CANONRY_APP_PRIVATE_KEY, are needed to read repositories and to write; \
        without them webhooks are recorded as in the mode shadow, and nothing is fetched or written.\n\n\
        Any number of processes may serve one PostgreSQL database; one may serve a SQLite database. /healthz answers \
        while the program runs, /readyz while the database can be written too. /metrics is for Prometheus: without \
        CANONRY_METRICS_TOKEN only from this machine, with it for whoever sends the token. \
        /api/repos/OWNER/NAME/check answers what `canonry check --json` prints, /api/repos/OWNER/NAME/triage/threshold-state what \
        `canonry thresholds --json` prints, and /mcp what coding agents ask: to GitHub tokens that can read the repository and \
        to CANONRY_ADMIN_TOKEN.\n\n\
        The console is at the same address. An operator signs in with CANONRY_ADMIN_TOKEN; where that is not set the first \
        start makes a token and writes it to the file admin-token, which only its user can read: beside a SQLite database, \
        with PostgreSQL in the data folder; on a terminal it is shown once. Others sign in with GitHub when \
        CANONRY_OAUTH_CLIENT_ID and CANONRY_OAUTH_CLIENT_SECRET are set, with the permissions that GitHub gives them: \
        whoever can push to a repository is its maintainer.\n\n\
        SIGTERM and Ctrl-C stop it: no new work is started, and running work has 30 seconds to end.",
    before_help = "Example:\n  CANONRY_WEBHOOK_SECRET=... GITHUB_TOKEN=... canonry serve --listen 0.0.0.0:8080\n  \
        CANONRY_WEBHOOK_SECRET=... canonry serve --db postgres://canonry@db/canonry --provider anthropic \\\n    \
        --input-price 3 --output-price 15 --monthly-cost 20"
)]
pub(crate) struct Args {
    /// The address to listen at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// The public address of the console, where it is another one, such as https://HOST
    #[arg(long, value_name = "URL", env = "CANONRY_PUBLIC_URL")]
    public_url: Option<Url>,
    /// A proxy in front of the service whose X-Forwarded-For is trusted, as address or network such as 10.0.0.0/8; may be
    /// repeated
    #[arg(long = "trusted-proxy", value_name = "CIDR", env = "CANONRY_TRUSTED_PROXIES", value_delimiter = ',')]
    trusted_proxies: Vec<TrustedProxy>,
    /// A repository whose drafts anybody may check at /check/OWNER/NAME, without signing in; may be repeated. The
    /// page shows titles, so it is closed while the repository is not public on GitHub
    #[arg(long = "public-check", value_name = "OWNER/NAME")]
    public_checks: Vec<RepoName>,
    /// How many jobs this process runs at once; with 0 it only stores webhooks, for other processes to work on
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(0..=64))]
    workers: u32,
    /// How many jobs of one repository run at once in all processes together; one of them is kept for webhooks
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_repo: u32,
    /// How many jobs run at once in all processes together
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    max_jobs: u32,
    /// How often a job is tried before it counts as failed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// How much memory the indexes of repositories may take, in MB; the least recently used is dropped first. With 0 none
    /// is kept, and each new item reads its repository's index from disk
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_INDEX_MEMORY)]
    index_memory: u32,
    /// The format of the log on stderr: json (one object per line) or text
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "json", hide_possible_values = true)]
    log_format: LogFormat,
    #[command(flatten)]
    models: ServiceModelOptions,
    #[command(flatten)]
    github: GithubOption,
    #[command(flatten)]
    database: DatabaseOption,
}

impl Args {
    pub(crate) const fn log_format(&self) -> LogFormat {
        self.log_format
    }
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Report> {
    let Some(secret) = secret_of(WEBHOOK_SECRET) else {
        bail!(
            "{WEBHOOK_SECRET} is not set; set it to the webhook's secret. Without an App yet, any long random text does: /setup \
             creates the App and shows the secret"
        );
    };
    let (models, reviewers) = args.models.load()?;
    let stop = interruption()?;
    let connections = OpenOptions { connections: args.workers + OTHER_CONNECTIONS };
    let store = args.database.open_with(connections, context).await?;
    if let Some(skew) = store.clock_skew(Timestamp::now()).await? {
        check_clock(skew)?;
    }
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen at {}; choose another address with --listen", args.listen))?;
    let address = listener.local_addr()?;
    let (parts, schedules) = parts(&args, models, reviewers, &store, address).await?;
    let caps = JobCaps { per_repo: args.max_per_repo, in_all: args.max_jobs };
    let options = ServiceOptions {
        secret,
        workers: args.workers,
        caps,
        tries: args.tries,
        schedules,
        trusted_proxies: args.trusted_proxies,
    };
    tracing::info!(%address, run_id = %context.run_id, workers = args.workers, "listening at http://{address}");
    let served = serve(listener, store.clone(), parts, Arc::new(SystemClock), options, Box::pin(stop)).await?;
    store.disconnect().await;
    let mut text = format!("Stopped after {}.\n", counted(served.tries, "job"));
    if !served.drained {
        text += "Some jobs did not end in time; the next start runs them again.\n";
    }
    Ok(Report::new(json!({ "jobs": served.tries, "drained": served.drained }), text))
}

/// Builds the parts of the service and chooses its schedules.
async fn parts(
    args: &Args,
    models: Models,
    reviewers: ReviewParts,
    store: &Store,
    address: SocketAddr,
) -> Result<(ServeParts, Schedules)> {
    let console_url = args.public_url.clone().map_or_else(|| Url::parse(&format!("http://{address}")), Ok)?;
    let github = args.github.service_client()?;
    let (is_app, clock): (bool, Arc<dyn Clock>) = (is_app(), Arc::new(SystemClock));
    let schedules = match (&github, is_app) {
        (None, _) => {
            tracing::warn!("without GITHUB_TOKEN or an App everything is only recorded, as in the mode shadow");
            Schedules::Alone
        }
        (Some(_), true) => Schedules::App,
        (Some(_), false) => Schedules::Token,
    };
    let detectors = args.models.detectors(models, store, &args.database, args.index_memory).await?;
    let (metrics, wake_publisher, wake_worker) = (Metrics::new(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let api = args.github.api().clone();
    let access = Arc::new(ApiAccess::new(store.clone(), api, secret_of(ADMIN_TOKEN), Arc::clone(&clock)));
    let lookup = Arc::new(Lookup {
        store: store.clone(),
        detectors: Arc::clone(&detectors),
        clock: Arc::clone(&clock),
        mode: args.models.mode(),
        fixes: FixIndexes::default(),
        places: Semaphore::new(LOOKUPS_AT_ONCE),
    });
    let console = console_routes(ConsoleParts {
        store: store.clone(),
        github: github.clone(),
        github_api: args.github.api().clone(),
        clock: Arc::clone(&clock),
        oauth: oauth_app()?,
        public_url: args.public_url.clone(),
        admin_token: admin_token(store, &args.database, &console_url).await?,
        form_key: canonry_console::form_key(store).await?,
        one_time_codes: None,
        wake_worker: Arc::clone(&wake_worker),
        wake_publisher: Arc::clone(&wake_publisher),
        version: env!("CARGO_PKG_VERSION"),
        commands: console_commands(),
        lookup: Some(Arc::clone(&lookup)),
        public_checks: args.public_checks.clone(),
    });
    let mcp =
        McpServer::new(Arc::clone(&lookup), Arc::new(TokenAccess(Arc::clone(&access))), env!("CARGO_PKG_VERSION"));
    let routes = operations_routes(Operations {
        store: store.clone(),
        github: github.clone(),
        clock: Arc::clone(&clock),
        metrics: metrics.clone(),
        metrics_token: secret_of(METRICS_TOKEN),
    })
    .merge(mcp_routes(mcp))
    .merge(api_routes(ApiParts { access, lookup }))
    .merge(console);
    let writes = github.is_some();
    let service = Arc::new(Service::new(ServiceParts {
        store: store.clone(),
        github,
        is_app,
        detectors,
        reviewers,
        clock,
        monthly_cost: args.models.monthly_cost(),
        prices: args.models.prices(),
        retrieval: args.models.mode(),
        wake_publisher: Arc::clone(&wake_publisher),
    }));
    let publisher = writes.then(|| Arc::clone(&service) as Arc<dyn Publish>);
    Ok((ServeParts { handler: service, metrics, publisher, wake_publisher, wake_worker, routes }, schedules))
}

/// Compares this machine's clock with the database's clock. Processes whose clocks differ treat each other's jobs as
/// abandoned.
fn check_clock(skew: SignedDuration) -> Result<()> {
    let seconds = skew.abs().as_secs();
    if skew.abs() > MOST_SKEW {
        bail!("this machine's clock and the database's differ by {seconds} seconds; set both with NTP");
    }
    if skew.abs() > SOME_SKEW {
        tracing::warn!(seconds, "this machine's clock and the database's differ; set both with NTP");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::check_clock;

    #[test]
    fn a_clock_that_is_too_far_off_is_refused() {
        for seconds in [0, 3, -3, 10, -10] {
            check_clock(SignedDuration::from_secs(seconds)).expect("near enough");
        }
        for seconds in [11, -11] {
            let refused = check_clock(SignedDuration::from_secs(seconds)).expect_err("too far off").to_string();
            assert!(refused.starts_with("this machine's clock and the database's differ by 11 seconds"), "{refused}");
        }
    }
}
