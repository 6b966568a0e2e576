//! The service as a whole: routes and workers, until it is told to stop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use canonry_github::{Clock, Secret};
use canonry_store::{JobCaps, Store};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::handler::JobHandler;
use crate::health::{healthz, readyz};
use crate::intake::{Intake, MAX_BODY, webhook};
use crate::worker::Worker;

/// How long jobs in hand may take to end after the service was told to stop.
const DRAIN: Duration = Duration::from_secs(30);

/// How long requests under way may take to be answered then. Storing a webhook takes milliseconds; an idle connection
/// must not hold up the end, and what was not answered GitHub can deliver again.
const HANG_UP: Duration = Duration::from_secs(2);

/// How the service runs.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// The secret that webhooks are signed with.
    pub secret: Secret,
    /// How many jobs this process does at once.
    pub workers: u32,
    /// How many jobs run at once, all processes together.
    pub caps: JobCaps,
    /// How often a job is tried before it is given up.
    pub tries: u32,
}

/// What the service did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Tries at jobs that came to an end.
    pub tries: u64,
    /// Whether every job in hand ended before the service did.
    pub drained: bool,
}

/// Takes webhooks in on `listener` and works on jobs until `stop` ends; then no worker looks for another job, and what is
/// in hand, or just being leased, may end within 30 seconds.
pub async fn serve(
    listener: TcpListener,
    store: Store,
    handler: Arc<dyn JobHandler>,
    clock: Arc<dyn Clock>,
    options: ServiceOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<Served> {
    let wake = Arc::new(Notify::new());
    let (stopping, stopped) = watch::channel(false);
    let mut workers = JoinSet::new();
    for _ in 0..options.workers {
        let worker = Worker {
            store: store.clone(),
            handler: Arc::clone(&handler),
            clock: Arc::clone(&clock),
            caps: options.caps,
            tries: options.tries,
        };
        workers.spawn(worker.run(Arc::clone(&wake), stopped.clone()));
    }
    let intake = Intake { store, secret: Arc::new(options.secret), clock, wake };
    let mut told = stopped.clone();
    let routes = axum::serve(listener, routes(intake)).with_graceful_shutdown(async move {
        // The sender lives until the end of this function; without it there is nothing to serve either.
        let _ = told.wait_for(|stop| *stop).await;
    });
    let mut routes = tokio::spawn(async move { routes.await });
    tokio::select! {
        () = stop => {}
        ended = &mut routes => return ended.map_err(io::Error::other)?.and(Err(io::Error::other("the listener ended by itself"))),
    }
    stopping.send_replace(true);
    let mut tries = 0;
    let working = tokio::time::timeout(DRAIN, async {
        while let Some(worker) = workers.join_next().await {
            tries += worker.map_err(io::Error::other)?;
        }
        Ok::<(), io::Error>(())
    });
    let (worked, answered) = tokio::join!(working, tokio::time::timeout(HANG_UP, &mut routes));
    match answered {
        Ok(ended) => ended.map_err(io::Error::other)??,
        Err(_) => routes.abort(),
    }
    let drained = worked.is_ok();
    if let Ok(worked) = worked {
        worked?;
    } else {
        tracing::warn!("some work did not end in time; it is begun again by whoever leases it next");
        workers.shutdown().await;
    }
    Ok(Served { tries, drained })
}

fn routes(intake: Intake) -> Router {
    let health = Router::new().route("/readyz", get(readyz)).with_state(intake.store.clone());
    Router::new()
        .route("/webhooks/github", post(webhook))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(intake)
        .route("/healthz", get(healthz))
        .merge(health)
}
