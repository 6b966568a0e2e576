//! `POST /webhooks/github`: checks a webhook, stores it with its job, and only then accepts it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, BodyDataStream};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use canonry_github::webhook::verify_signature;
use canonry_github::{Clock, Secret};
use canonry_store::{DeliveryReceipt, PackedText, Store};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::sync::Notify;
use url::form_urlencoded;

use crate::http::body_budget::{BodyBudget, BodyPermit};
use crate::intake::classify_webhook::{ClassifiedWebhook, classify_webhook};
use crate::intake::webhook_batches::WebhookBatches;

/// GitHub sends no larger webhook.
const MAX_BODY: usize = 25 * 1024 * 1024;
/// GitHub waits ten seconds for an answer, so a sender that needs as long for the body alone is not GitHub. By the
/// machine's own clock: this is about the network, not about Canonry's time.
const BODY_PATIENCE: Duration = Duration::from_secs(10);
/// How long the rest of a refused body is read.
const REFUSED_PATIENCE: Duration = Duration::from_secs(2);
/// A delivery's id is a UUID; a much longer text is not one.
const MAX_ID: usize = 100;
/// The most memory that is allocated for a declared body that has not arrived yet.
const SET_ASIDE: usize = 64 * 1024;
/// Hashing and reading more than this takes milliseconds, for which other requests would wait.
const LONG: usize = 256 * 1024;
/// Seconds after which a sender may try again: a full budget is free again in less.
const TRY_AGAIN: &str = "5";

#[derive(Clone)]
pub(crate) struct WebhookIntake {
    secret: Arc<Secret>,
    budget: BodyBudget,
    batches: WebhookBatches,
    wake: Arc<Notify>,
}

impl WebhookIntake {
    /// An intake that stores webhooks until the last clone is dropped and everything is answered.
    pub(crate) fn new(store: &Store, secret: Arc<Secret>, clock: &Arc<dyn Clock>, wake: Arc<Notify>) -> Self {
        Self { secret, budget: BodyBudget::new(), batches: WebhookBatches::start(store, clock), wake }
    }
}

/// A refusal, with a text for readers of the App's list of deliveries.
type Refusal = (StatusCode, String);

pub(crate) async fn webhook(State(intake): State<WebhookIntake>, request: Request) -> Response {
    match take_in(&intake, request).await {
        Ok(accepted) => {
            let word = match accepted {
                DeliveryReceipt::Queued | DeliveryReceipt::Requeued => {
                    intake.wake.notify_one();
                    "queued"
                }
                DeliveryReceipt::Ignored => "ignored",
                DeliveryReceipt::Known(state) => state.as_str(),
            };
            (StatusCode::ACCEPTED, Json(json!({ "state": word }))).into_response()
        }
        Err((status, reason)) => {
            tracing::warn!(status = status.as_u16(), reason, "a webhook is refused");
            let answer = (status, Json(json!({ "error": reason })));
            if status == StatusCode::SERVICE_UNAVAILABLE {
                ([(RETRY_AFTER, TRY_AGAIN)], answer).into_response()
            } else {
                answer.into_response()
            }
        }
    }
}

async fn take_in(intake: &WebhookIntake, request: Request) -> Result<DeliveryReceipt, Refusal> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers;
    let (bytes, held) = tokio::time::timeout(BODY_PATIENCE, read(intake, &headers, body))
        .await
        .map_err(|_| (StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive".to_owned()))??;
    let (webhook, body) = if bytes.len() > LONG {
        let secret = Arc::clone(&intake.secret);
        let checking = tokio::task::spawn_blocking(move || check(&secret, &headers, bytes));
        checking
            .await
            .map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "the webhook could not be read".to_owned()))??
    } else {
        check(&intake.secret, &headers, bytes)?
    };
    let (id, event, action) = (webhook.id.clone(), webhook.event.clone(), webhook.action.clone());
    let accepted = intake.batches.store(webhook, body, held).await.map_err(|_| {
        (StatusCode::SERVICE_UNAVAILABLE, "the webhook could not be stored; deliver it again later".to_owned())
    })?;
    tracing::info!(delivery = id, event, action, ?accepted, "a webhook is accepted");
    Ok(accepted)
}

/// The body, and its memory permit. A refused body is read to its end and discarded: a sender that is cut off while
/// it sends does not get the answer.
async fn read(intake: &WebhookIntake, headers: &HeaderMap, body: Body) -> Result<(Vec<u8>, BodyPermit), Refusal> {
    let mut arriving = body.into_data_stream();
    let declared = header(headers, CONTENT_LENGTH.as_str()).and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
    let refusal = match begin(intake, headers, declared) {
        Ok(mut held) => match collect(&mut arriving, &mut held, declared).await {
            Ok(bytes) => return Ok((bytes, held)),
            Err(refusal) => refusal,
        },
        Err(refusal) => refusal,
    };
    let throwing_away = async {
        let mut thrown_away = 0;
        while let Some(Ok(chunk)) = arriving.next().await {
            thrown_away += chunk.len();
            if thrown_away > 2 * MAX_BODY {
                break;
            }
        }
    };
    // A sender that slow delays only itself.
    let _ = tokio::time::timeout(REFUSED_PATIENCE, throwing_away).await;
    Err(refusal)
}

/// Checks that need no body. A request without a signature uses no memory.
fn begin(intake: &WebhookIntake, headers: &HeaderMap, declared: usize) -> Result<BodyPermit, Refusal> {
    if header(headers, SIGNATURE).is_none() {
        check_signature(&intake.secret, headers, &[])?;
    }
    if declared > MAX_BODY {
        return Err(too_large());
    }
    intake.budget.begin().ok_or_else(too_busy)
}

async fn collect(arriving: &mut BodyDataStream, held: &mut BodyPermit, declared: usize) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::with_capacity(declared.min(SET_ASIDE));
    while let Some(chunk) = arriving.next().await {
        let chunk = chunk.map_err(|_| (StatusCode::BAD_REQUEST, "the body could not be read".to_owned()))?;
        let length = bytes.len() + chunk.len();
        if length > MAX_BODY {
            return Err(too_large());
        }
        if !held.grow_to(length) {
            return Err(too_busy());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Checks whether the webhook comes from GitHub, and classifies it.
fn check(secret: &Secret, headers: &HeaderMap, bytes: Vec<u8>) -> Result<(ClassifiedWebhook, PackedText), Refusal> {
    // Before any other check: only GitHub learns how we treat a request.
    check_signature(secret, headers, &bytes)?;
    let event = required(headers, "x-github-event")?;
    let id = required(headers, "x-github-delivery")?;
    let bytes = if is_form(headers) { payload_of_form(&bytes)? } else { bytes };
    let text = String::from_utf8(bytes)
        .map_err(|_| (StatusCode::BAD_REQUEST, "the webhook's body is not UTF-8".to_owned()))?;
    let webhook = classify_webhook(id, event, &text).map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    Ok((webhook, PackedText::pack(&text)))
}

/// Whether the webhook uses the content type that GitHub offers first.
fn is_form(headers: &HeaderMap) -> bool {
    let media_type = header(headers, CONTENT_TYPE.as_str()).unwrap_or_default().split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

/// The JSON in GitHub's form. The signature is over the form.
fn payload_of_form(bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let payload = form_urlencoded::parse(bytes).find(|(name, _)| name == "payload");
    let (_, payload) =
        payload.ok_or_else(|| (StatusCode::BAD_REQUEST, "the form has no field named payload".to_owned()))?;
    Ok(payload.into_owned().into_bytes())
}

const SIGNATURE: &str = "x-hub-signature-256";

fn check_signature(secret: &Secret, headers: &HeaderMap, bytes: &[u8]) -> Result<(), Refusal> {
    verify_signature(secret, bytes, header(headers, SIGNATURE))
        .map_err(|error| (StatusCode::UNAUTHORIZED, error.to_string()))
}

fn too_large() -> Refusal {
    (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {MAX_BODY} bytes"))
}

fn too_busy() -> Refusal {
    let reason = "too many webhooks at once; deliver it again later";
    (StatusCode::SERVICE_UNAVAILABLE, reason.to_owned())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::{Body, Bytes};
    use axum::extract::{Request, State};
    use axum::http::StatusCode;
    use axum::response::Response;
    use canonry_github::{Clock, Secret, SystemClock};
    use canonry_store::Store;
    use canonry_testkit::database::TestDatabase;
    use futures_util::{StreamExt as _, stream};
    use hmac::{Hmac, KeyInit as _, Mac as _};
    use jiff::Timestamp;
    use sha2::Sha256;
    use tokio::sync::Notify;

    use super::{MAX_BODY, WebhookIntake, webhook};

    async fn intake(database: &TestDatabase) -> WebhookIntake {
        let store = Store::open(&database.url().parse().expect("a URL"), Timestamp::now()).await.expect("opens");
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        WebhookIntake::new(&store, Arc::new(Secret::new("tide")), &clock, Arc::new(Notify::new()))
    }

    fn signature(body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"tide").expect("any key");
        mac.update(body);
        let digits = canonry_domain::hex_digits(mac.finalize().into_bytes());
        format!("sha256={digits}")
    }

    async fn post(intake: &WebhookIntake, signature: &str, body: Body) -> Response {
        let request = Request::builder().header("x-hub-signature-256", signature);
        let request = request.header("x-github-event", "ping").header("x-github-delivery", "d1");
        webhook(State(intake.clone()), request.body(body).expect("a request")).await
    }

    /// A body of which this much arrives, and then nothing.
    fn stalled(bytes: usize) -> Body {
        let some = Bytes::from(vec![b' '; bytes]);
        Body::from_stream(stream::once(async { Ok::<_, std::io::Error>(some) }).chain(stream::pending()))
    }

    #[tokio::test]
    async fn who_sends_too_slowly_is_not_waited_for() {
        let database = TestDatabase::sqlite();
        let intake = intake(&database).await;
        tokio::time::pause();
        for signature in ["sha256=00", &signature(b"")] {
            let answer = post(&intake, signature, stalled(10)).await;
            assert_eq!(answer.status(), StatusCode::REQUEST_TIMEOUT);
        }
    }

    #[tokio::test]
    async fn a_body_of_unknown_length_has_the_same_limit() {
        let database = TestDatabase::sqlite();
        let intake = intake(&database).await;
        let chunks = stream::repeat(Bytes::from(vec![b' '; 1024 * 1024])).take(26).map(Ok::<_, std::io::Error>);
        let answer = post(&intake, "sha256=00", Body::from_stream(chunks)).await;
        assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[tokio::test]
    async fn slow_senders_of_large_bodies_leave_room_for_the_others() {
        let database = TestDatabase::sqlite();
        let intake = intake(&database).await;
        let mut slow = Vec::new();
        for _ in 0..5 {
            let intake = intake.clone();
            slow.push(tokio::spawn(async move { post(&intake, "sha256=00", stalled(MAX_BODY)).await }));
            tokio::task::yield_now().await;
        }
        let large = || Body::from(vec![b' '; MAX_BODY]);
        let answer = post(&intake, "sha256=00", large()).await;
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer.headers()["retry-after"], "5");
        assert_eq!(post(&intake, &signature(b"{}"), Body::from("{}")).await.status(), StatusCode::ACCEPTED);
        for slow in slow {
            slow.abort();
            assert!(slow.await.expect_err("it waits").is_cancelled());
        }
        assert_eq!(post(&intake, "sha256=00", large()).await.status(), StatusCode::UNAUTHORIZED);
    }
}
