//! `POST /webhooks/github`: checked, stored with its job, and only then accepted.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest as _, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use canonry_github::webhook::{parse_event, verify_signature};
use canonry_github::{Clock, Secret};
use canonry_store::{Accepted, Store};
use serde_json::json;
use tokio::sync::Notify;

use crate::sorting::sort;

/// GitHub sends no webhook that is larger.
pub(crate) const MAX_BODY: usize = 25 * 1024 * 1024;
/// GitHub waits ten seconds for an answer; who needs longer than this for the body is not GitHub.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// A delivery's id is a UUID; what is much longer is none.
const MAX_ID: usize = 100;

/// What the intake needs.
#[derive(Clone)]
pub(crate) struct Intake {
    pub(crate) store: Store,
    pub(crate) secret: Arc<Secret>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Wakes a worker when there is a new job.
    pub(crate) wake: Arc<Notify>,
}

/// A no, in words for whoever looks at the App's list of deliveries.
type Refusal = (StatusCode, String);

pub(crate) async fn webhook(State(intake): State<Intake>, request: Request) -> Response {
    match take_in(&intake, request).await {
        Ok(accepted) => {
            let word = match accepted {
                Accepted::Queued | Accepted::Requeued => {
                    intake.wake.notify_one();
                    "queued"
                }
                Accepted::Ignored => "ignored",
                Accepted::Known(state) => state.as_str(),
            };
            (StatusCode::ACCEPTED, Json(json!({ "state": word }))).into_response()
        }
        Err((status, message)) => {
            tracing::warn!(status = status.as_u16(), message, "a webhook is refused");
            (status, Json(json!({ "error": message }))).into_response()
        }
    }
}

async fn take_in(intake: &Intake, request: Request) -> Result<Accepted, Refusal> {
    let headers = request.headers().clone();
    let body = tokio::time::timeout(BODY_PATIENCE, Bytes::from_request(request, &()))
        .await
        .map_err(|_| (StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive".to_owned()))?
        .map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {MAX_BODY} bytes"))
            }
            status => (status, "the body could not be read".to_owned()),
        })?;
    // Before anything else is looked at: nobody but GitHub learns what we make of a request.
    verify_signature(&intake.secret, &body, header(&headers, "x-hub-signature-256"))
        .map_err(|error| (StatusCode::UNAUTHORIZED, error.to_string()))?;
    let name = required(&headers, "x-github-event")?;
    let id = required(&headers, "x-github-delivery")?;
    let event = parse_event(name, &body).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let text = std::str::from_utf8(&body)
        .map_err(|_| (StatusCode::BAD_REQUEST, "the webhook's body is not UTF-8".to_owned()))?;
    let sorted = sort(id, &event);
    let accepted = intake.store.accept_delivery(&sorted.delivery(text), intake.clock.now()).await;
    let accepted = accepted.map_err(|error| {
        tracing::error!(delivery = id, %error, "a webhook could not be stored; GitHub was told so");
        (StatusCode::SERVICE_UNAVAILABLE, "the webhook could not be stored; deliver it again later".to_owned())
    })?;
    tracing::info!(delivery = id, event = name, action = event.action, ?accepted, "a webhook is accepted");
    Ok(accepted)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn required<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Refusal> {
    header(headers, name)
        .map(str::trim)
        .filter(|value| (1..=MAX_ID).contains(&value.len()))
        .ok_or_else(|| (StatusCode::BAD_REQUEST, format!("the header {name} is missing, or is none of GitHub's")))
}
