//! Whether the process lives, and whether it can do its work.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use canonry_store::Store;

/// A database that takes longer to answer is of no use to a webhook, which GitHub gives ten seconds.
const PATIENCE: Duration = Duration::from_secs(3);

/// `GET /healthz`: the process lives.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: the database answers.
pub(crate) async fn readyz(State(store): State<Store>) -> (StatusCode, &'static str) {
    match tokio::time::timeout(PATIENCE, store.ping()).await {
        Ok(Ok(())) => (StatusCode::OK, "ready\n"),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the database does not answer");
            (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n")
        }
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database takes too long to answer\n"),
    }
}
