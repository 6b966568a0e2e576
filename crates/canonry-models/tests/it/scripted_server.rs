//! A small scripted server on loopback, and a clock that advances only when a caller waits.
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it set it up")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use canonry_models::Clock;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

pub(crate) const KEY: &str = "sk-test-very-secret";

/// What the server does with one request.
pub(crate) enum Step {
    /// The default answer, which also applies after the end of the script.
    Good,
    Answer(u16, Option<&'static str>, String),
    /// A stream of these parts, each after a pause.
    Stream(Duration, Vec<String>),
    Hang,
}

pub(crate) struct Server {
    decide: Box<dyn Fn(&Value) -> Step + Send + Sync>,
    pub(crate) requests: Mutex<Vec<(String, HeaderMap, Value)>>,
}

impl Server {
    pub(crate) async fn start(
        script: impl IntoIterator<Item = Step>,
        good: fn(&Value) -> Value,
    ) -> (Arc<Self>, String) {
        let script: Mutex<VecDeque<Step>> = Mutex::new(script.into_iter().collect());
        Self::start_deciding(move |request| match script.lock().unwrap().pop_front().unwrap_or(Step::Good) {
            Step::Good => Step::Answer(200, None, good(request).to_string()),
            step => step,
        })
        .await
    }

    /// A server that decides by the request what it does.
    pub(crate) async fn start_deciding(decide: impl Fn(&Value) -> Step + Send + Sync + 'static) -> (Arc<Self>, String) {
        let server = Arc::new(Self { decide: Box::new(decide), requests: Mutex::default() });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(Arc::clone(&server));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, address)
    }

    pub(crate) fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn answer(State(server): State<Arc<Server>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap();
    server.requests.lock().unwrap().push((uri.path().to_owned(), headers, request.clone()));
    match (server.decide)(&request) {
        Step::Good => unreachable!("the script replaces it"),
        Step::Answer(status, retry_after, body) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            if let Some(value) = retry_after {
                response.headers_mut().insert("retry-after", value.parse().unwrap());
            }
            response
        }
        Step::Stream(pause, parts) => {
            let parts = futures_util::stream::iter(parts).then(move |part| async move {
                tokio::time::sleep(pause).await;
                Ok::<_, std::convert::Infallible>(part)
            });
            ([("content-type", "text/event-stream; charset=utf-8")], Body::from_stream(parts)).into_response()
        }
        Step::Hang => std::future::pending().await,
    }
}

pub(crate) struct Waits {
    began: Timestamp,
    pub(crate) waits: Mutex<Vec<Duration>>,
}

impl Default for Waits {
    fn default() -> Self {
        Self { began: "2026-01-01T00:00:00Z".parse().unwrap(), waits: Mutex::default() }
    }
}

impl Clock for Waits {
    fn now(&self) -> Timestamp {
        let waited: Duration = self.waits.lock().unwrap().iter().sum();
        self.began + SignedDuration::try_from(waited).unwrap()
    }

    fn sleep_until(&self, _: Timestamp) -> BoxFuture<'_, ()> {
        unreachable!("models wait for a while and not for a moment")
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()> {
        self.waits.lock().unwrap().push(pause);
        Box::pin(std::future::ready(()))
    }
}
