//! The running server and its handle.

use canonry_boxed::boxed;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use serde_json::Value;
use tokio::sync::oneshot;

use super::fault::Fault;
use super::script::{ModelRequest, Reply, Script};
use crate::connection::{Connection, CuttableListener};

/// The prefix of every path.
const BASE: &str = "/v1";
/// More than the largest request that a test sends.
const LARGEST_BODY: usize = 64 << 20;

/// A scripted model, which serves on 127.0.0.1 from its own thread until it is dropped, so that it answers while a
/// test blocks on a child process.
///
/// Dropping it panics if there was a request without a scripted answer.
pub struct ModelServer {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[boxed]
impl ModelServer {
    /// Serves an empty script on a free port.
    pub async fn start() -> Self {
        Self::start_blocking()
    }

    /// The same for tests without a runtime.
    pub fn start_blocking() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let address = listener.local_addr().expect("a bound socket has an address");
        let script = Arc::new(Mutex::new(Script::default()));
        let (stop, stopped) = oneshot::channel::<()>();
        let state = Arc::clone(&script);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime for the server").block_on(run(listener, state, stopped));
        });
        Self { address, script, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL, for `--embed-base-url` and `--base-url`.
    pub fn base_url(&self) -> String {
        format!("http://{}{BASE}", self.address)
    }

    /// Texts that contain this get this vector, filled up with zeros; the newest matching rule wins.
    pub fn vector_for(&self, contains: &str, vector: Vec<f32>) {
        self.lock().vector_for(contains, vector);
    }

    /// The next chat request gets this answer; several are used in order.
    pub fn answer_next(&self, text: impl Into<String>) {
        self.lock().answer_next(text.into());
    }

    /// Chat requests with a matching prompt get this answer, once the ordered answers are used up; the newest
    /// matching rule wins.
    pub fn answer_when(&self, fits: impl Fn(&str) -> bool + Send + 'static, text: impl Into<String>) {
        let text = text.into();
        self.answer_by(move |request| fits(&request.prompt()).then(|| text.clone()));
    }

    /// Chat requests get the answer of this function, if it returns one, once the ordered answers are used up; the
    /// newest matching rule wins.
    pub fn answer_by(&self, rule: impl Fn(&ModelRequest) -> Option<String> + Send + 'static) {
        self.lock().answer_by(Box::new(rule));
    }

    /// Second readings confirm every finding, once the ordered answers are used up.
    pub fn confirm_findings(&self) {
        self.answer_by(|request| super::second_reading::confirmed_second_reading(&request.prompt()));
    }

    /// Requests with this field in their body are refused with status 400 and these words.
    pub fn refuse(&self, field: &str, said: &str) {
        self.lock().refuse(field, said);
    }

    /// The next request gets this fault; several are used in order.
    pub fn fault_once(&self, fault: Fault) {
        self.lock().fault_once(fault);
    }

    /// Every request that contains this text gets this fault; with an empty text, every request.
    pub fn fault_when(&self, contains: &str, fault: Fault) {
        self.lock().fault_when(contains, fault);
    }

    pub fn clear_faults(&self) {
        self.lock().clear_faults();
    }

    /// Every request so far, in order of arrival.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.lock().requests.clone()
    }

    /// Every text that was to be embedded so far.
    pub fn embedded_texts(&self) -> Vec<String> {
        self.lock().requests.iter().flat_map(ModelRequest::texts).collect()
    }

    pub fn forget_requests(&self) {
        self.lock().requests.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        lock(&self.script)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            // An error means that the server has already ended.
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if !std::thread::panicking() {
            let unanswered = &self.lock().unanswered;
            assert!(unanswered.is_empty(), "the script has no answer for: {}", unanswered.join("; "));
        }
    }
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    // If a test fails while it holds the lock, its own message must not be hidden by a poisoned lock.
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn run(listener: std::net::TcpListener, script: Arc<Mutex<Script>>, stopped: oneshot::Receiver<()>) {
    let listener = tokio::net::TcpListener::from_std(listener).expect("a socket for the runtime");
    let router = Router::new().fallback(serve).with_state(script);
    let service = router.into_make_service_with_connect_info::<Connection>();
    let server = axum::serve(CuttableListener(listener), service);
    tokio::select! {
        result = async { server.await } => result.expect("serving on loopback does not fail"),
        _ = stopped => {}
    }
}

async fn serve(
    State(script): State<Arc<Mutex<Script>>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, LARGEST_BODY).await else { return Response::new(Body::empty()) };
    let authorization = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
    let request = ModelRequest {
        path: parts.uri.path().strip_prefix(BASE).unwrap_or(parts.uri.path()).to_owned(),
        authorization: authorization.map(str::to_owned),
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    };
    let reply = lock(&script).reply(&request);
    match reply {
        Reply::Answer { status, retry_after, body } => {
            let mut response = Response::builder().status(status).header("content-type", "application/json");
            if let Some(seconds) = retry_after {
                response = response.header("retry-after", seconds);
            }
            response.body(Body::from(body)).expect("invariant: these headers are well-formed")
        }
        Reply::Hang => std::future::pending().await,
        Reply::Drop => {
            connection.cut();
            Response::new(Body::empty())
        }
    }
}
