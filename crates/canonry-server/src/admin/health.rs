//! Liveness and readiness: whether the process runs, and whether it can write to the database.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use canonry_github::Clock;
use canonry_store::Store;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// GitHub gives a webhook ten seconds, so a slower database cannot serve webhooks.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long an answer is reused, so that health checks write to the database at most once a second.
const KEPT: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(crate) struct Readiness {
    store: Store,
    clock: Arc<dyn Clock>,
    /// The last answer and its time. Concurrent requests wait for the same answer.
    latest: Arc<Mutex<Option<(Instant, ReadyAnswer)>>>,
}

type ReadyAnswer = (StatusCode, &'static str);

impl Readiness {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, latest: Arc::default() }
    }

    async fn find_out(&self) -> ReadyAnswer {
        match tokio::time::timeout(PATIENCE, self.store.check_writable(self.clock.now())).await {
            Ok(Ok(())) => (StatusCode::OK, "ready\n"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the database cannot be written to");
                (StatusCode::SERVICE_UNAVAILABLE, "the database cannot be written to\n")
            }
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database takes too long to answer\n"),
        }
    }
}

/// `GET /healthz`: the process runs.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the database can be written to.
pub(crate) async fn readyz(State(readiness): State<Readiness>) -> ReadyAnswer {
    let mut latest = readiness.latest.lock().await;
    match *latest {
        Some((at, answer)) if at.elapsed() < KEPT => answer,
        _ => {
            let answer = readiness.find_out().await;
            *latest = Some((Instant::now(), answer));
            answer
        }
    }
}
