//! The process that is killed: the whole service on the test's database and GitHub, with a fast clock.

use std::sync::Arc;
use std::time::Duration;

use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, ScaledClock, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{
    Metrics, Operations, ReviewParts, Schedules, ServeParts, Service, ServiceOptions, ServiceParts, operations_routes,
    serve,
};
use canonry_store::{JobCaps, Store};
use canonry_testkit::github::TEST_APP_PRIVATE_KEY;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::chaos::life::{APP_ID, FACTOR, REASONING, SECRET};
use crate::world::topics::Topics;

pub(crate) const DATABASE: &str = "CANONRY_CHAOS_CHILD_DATABASE";
pub(crate) const API: &str = "CANONRY_CHAOS_CHILD_API";
pub(crate) const ANCHOR: &str = "CANONRY_CHAOS_CHILD_ANCHOR";
/// Printed before the address.
pub(crate) const LISTENING: &str = "the child listens at ";

/// Several times the usual answer time here, and short enough that a hanging GitHub does not make the test hang.
const PATIENCE: Duration = Duration::from_millis(700);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the process that the tests of this program kill"]
#[expect(clippy::print_stdout, reason = "how it tells its parent where it listens")]
async fn serves() {
    let read = |name: &str| std::env::var(name).expect("told by the parent");
    tracing_subscriber::fmt()
        .json()
        .log_internal_errors(false)
        .with_env_filter("warn,canonry=debug,canonry_server=debug,canonry_triage=debug,canonry_github=debug,canonry_store=debug,canonry_models=debug")
        .with_writer(std::io::stderr)
        .init();
    let anchor: Timestamp = read(ANCHOR).parse().expect("a time");
    let clock: Arc<dyn Clock> = Arc::new(ScaledClock::new(anchor, FACTOR));
    let store = Store::open(&read(DATABASE).parse().expect("a URL"), clock.now()).await.expect("opens");
    let key = AppKey::new(&APP_ID.to_string(), &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key");
    let options = ClientOptions {
        api: read(API).parse().expect("a URL"),
        clock: Arc::clone(&clock),
        request_timeout: PATIENCE,
        ..ClientOptions::new(Auth::App(key))
    };
    let github = GitHub::new(options).expect("a client");
    let (metrics, wake_publisher) = (Metrics::new(), Arc::new(Notify::new()));
    let service = Arc::new(Service::new(ServiceParts {
        store: store.clone(),
        github: Some(github.clone()),
        is_app: true,
        detectors: Arc::new(Topics::new(REASONING)),
        reviewers: ReviewParts::default(),
        clock: Arc::clone(&clock),
        monthly_cost: None,
        prices: None,
        retrieval: RetrievalMode::Dense,
        wake_publisher: Arc::clone(&wake_publisher),
    }));
    let routes = operations_routes(Operations {
        store: store.clone(),
        github: Some(github),
        clock: Arc::clone(&clock),
        metrics: metrics.clone(),
        metrics_token: None,
    });
    let parts =
        ServeParts { metrics, publisher: Some(service.clone()), wake_publisher, routes, ..ServeParts::new(service) };
    let caps = JobCaps { per_repo: 4, in_all: 12 };
    let options = ServiceOptions {
        secret: Secret::new(SECRET),
        workers: 4,
        caps,
        tries: 10,
        schedules: Schedules::App,
        trusted_proxies: Vec::new(),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    println!("{LISTENING}http://{}", listener.local_addr().expect("bound"));
    serve(listener, store, parts, clock, options, Box::pin(std::future::pending())).await.expect("serves");
}
