//! The whole service: routes, workers, publishers and schedules, until it is stopped.

use canonry_boxed::boxed;
use futures_util::future::BoxFuture;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use canonry_github::{Clock, Secret};
use canonry_store::{JobCaps, JobScope, Store};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::admin::health::{Readiness, healthz, readyz};
use crate::admin::metrics::{Metrics, count_webhooks};
use crate::github_writes::publisher::{PUBLISHERS, Publish, keep_publishing};
use crate::http::connections::{ConnectionLimits, serve_connections};
use crate::http::trusted_proxies::{TrustedProxies, TrustedProxy};
use crate::intake::webhook_route::{WebhookIntake, webhook};
use crate::jobs::job_handler::JobHandler;
use crate::jobs::job_signals::wake_on_signals;
use crate::jobs::scheduler::{Scheduler, Schedules};
use crate::jobs::worker::Worker;
use crate::review::review_folder::remove_left_over_review_folders;

/// How long running work may take to end after the service was told to stop.
pub const DRAIN: Duration = Duration::from_secs(30);

/// How long requests under way may take to be answered after that. Storing a webhook takes milliseconds, and GitHub
/// can redeliver a webhook that was not answered.
const HANG_UP: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct ServiceOptions {
    pub secret: Secret,
    pub workers: u32,
    /// How many jobs run at once, in all processes together.
    pub caps: JobCaps,
    /// How many tries a job gets before it fails.
    pub tries: u32,
    pub schedules: Schedules,
    /// The proxies in front of the service, which forward the client's address.
    pub trusted_proxies: Vec<TrustedProxy>,
}

pub struct ServeParts {
    pub handler: Arc<dyn JobHandler>,
    pub metrics: Metrics,
    /// Sends the writes that handlers put into the outbox; without it nothing is sent.
    pub publisher: Option<Arc<dyn Publish>>,
    /// Notified by handlers that put something into the outbox.
    pub wake_publisher: Arc<Notify>,
    /// Notified by routes that have queued a job.
    pub wake_worker: Arc<Notify>,
    /// Further routes, such as `/metrics`.
    pub routes: Router,
}

impl ServeParts {
    /// A service that only accepts webhooks and runs jobs.
    pub fn new(handler: Arc<dyn JobHandler>) -> Self {
        Self {
            handler,
            metrics: Metrics::new(),
            publisher: None,
            wake_publisher: Arc::default(),
            wake_worker: Arc::default(),
            routes: Router::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeSummary {
    pub tries: u64,
    /// Whether all running work ended before the service did.
    pub drained: bool,
}

/// Accepts webhooks on `listener` and runs jobs until `stop` ends. Then nothing new begins, and running work, or work
/// just being leased, may end within 30 seconds.
///
/// Neither the database nor GitHub has to be reachable all the time: webhooks are refused while they cannot be
/// stored, and everything else is retried.
#[boxed]
pub async fn serve(
    listener: TcpListener,
    store: Store,
    parts: ServeParts,
    clock: Arc<dyn Clock>,
    options: ServiceOptions,
    stop: BoxFuture<'_, ()>,
) -> io::Result<ServeSummary> {
    // Nothing waits for it.
    tokio::task::spawn_blocking(remove_left_over_review_folders);
    let wake = parts.wake_worker;
    let (stopping, stopped) = watch::channel(false);
    let handler = parts.metrics.measured(parts.handler, Arc::clone(&clock));
    // Each counts the tries that it has finished.
    let mut loops: JoinSet<u64> = JoinSet::new();
    for number in 0..options.workers {
        // Half of the workers are always free for webhooks, however many syncs there are.
        let scope = if number < (options.workers / 2).max(1) { JobScope::All } else { JobScope::Caused };
        let worker = Worker {
            store: store.clone(),
            handler: Arc::clone(&handler),
            clock: Arc::clone(&clock),
            caps: options.caps,
            tries: options.tries,
            scope,
        };
        loops.spawn(worker.run(Arc::clone(&wake), stopped.clone()));
    }
    if let Some(publisher) = parts.publisher {
        for number in 0..PUBLISHERS {
            let (publisher, clock) = (Arc::clone(&publisher), Arc::clone(&clock));
            let wake = Arc::clone(&parts.wake_publisher);
            let publishing = keep_publishing(publisher, clock, wake, number == 0, stopped.clone());
            loops.spawn(async move {
                publishing.await;
                0
            });
        }
    }
    if options.schedules != Schedules::Off {
        let scheduler = Scheduler { store: store.clone(), clock: Arc::clone(&clock), schedules: options.schedules };
        let scheduling = scheduler.run(Arc::clone(&wake), stopped.clone());
        loops.spawn(async move {
            scheduling.await;
            0
        });
    }
    // Ends with this function: the listener has no unfinished work.
    let mut signals = JoinSet::new();
    signals.spawn(wake_on_signals(store.clone(), Arc::clone(&clock), Arc::clone(&wake)));
    let intake = WebhookIntake::new(&store, Arc::new(options.secret), &clock, wake);
    let routes = routes(intake, Readiness::new(store, clock), parts.metrics).merge(parts.routes);
    let proxies = TrustedProxies(options.trusted_proxies);
    let mut routes = tokio::spawn(serve_connections(listener, routes, ConnectionLimits::USUAL, proxies, stopped));
    tokio::select! {
        () = stop => {}
        ended = &mut routes => {
            let by_itself = || io::Error::other("the listener ended by itself");
            return Err(ended.err().map_or_else(by_itself, io::Error::other));
        }
    }
    stopping.send_replace(true);
    let mut tries = 0;
    let working = tokio::time::timeout(DRAIN, async {
        while let Some(ended) = loops.join_next().await {
            tries += ended.map_err(io::Error::other)?;
        }
        Ok::<(), io::Error>(())
    });
    let (worked, answered) = tokio::join!(working, tokio::time::timeout(HANG_UP, &mut routes));
    match answered {
        Ok(ended) => ended.map_err(io::Error::other)?,
        Err(_) => routes.abort(),
    }
    let drained = worked.is_ok();
    if let Ok(worked) = worked {
        worked?;
    } else {
        tracing::warn!("some jobs did not end in time; the next worker that leases them starts them again");
        loops.shutdown().await;
    }
    Ok(ServeSummary { tries, drained })
}

fn routes(intake: WebhookIntake, readiness: Readiness, metrics: Metrics) -> Router {
    let health = Router::new().route("/readyz", get(readyz)).with_state(readiness).route("/healthz", get(healthz));
    Router::new()
        .route("/webhooks/github", post(webhook))
        .route_layer(from_fn_with_state(metrics, count_webhooks))
        .with_state(intake)
        .merge(health)
}
