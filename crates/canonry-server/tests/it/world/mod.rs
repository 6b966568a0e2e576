//! The world for the tests of the service: an emulated GitHub, a store, a service between the two, and one clock for
//! all. Each of the other files adds what one kind of test needs.

pub(crate) mod actions_world;
pub(crate) mod clocks;
pub(crate) mod close_world;
pub(crate) mod interrupted;
pub(crate) mod job_world;
pub(crate) mod mention_world;
pub(crate) mod plain;
pub(crate) mod review_world;
pub(crate) mod topics;
pub(crate) mod triage_world;
pub(crate) mod whole_service;

use std::sync::Arc;
use std::time::Duration;

use canonry_domain::{GithubId, ItemNumber};
use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{
    AttemptEnd, JobHandler, ReviewParts, Schedules, ServeParts, ServeSummary, Service, ServiceOptions, ServiceParts,
    Worker, serve,
};
use canonry_store::{JobCaps, JobScope, Repo, Store};
use canonry_testkit::github::{Emulator, TEST_APP_PRIVATE_KEY};
use canonry_triage::DetectorSource;
use jiff::SignedDuration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::world::plain::Plain;
use crate::world::topics::Topics;

pub(crate) const TOKEN: &str = "ghp_emulatedTokenOfCanonry0123456789abcd";
pub(crate) const APP_ID: u64 = 4711;
pub(crate) const CAPS: JobCaps = JobCaps { per_repo: 2, in_all: 8 };
/// The secret that signs webhooks.
pub(crate) const SECRET: &str = "the tide comes in";

/// Canonry's identity on GitHub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum As {
    App,
    Token,
    /// The service has no credentials.
    Nobody,
}

impl As {
    pub(crate) fn login(self) -> &'static str {
        match self {
            Self::App => "canonry[bot]",
            Self::Token | Self::Nobody => "canonry-bot",
        }
    }
}

/// The parts of a world's service.
pub(crate) struct WorldBuilder {
    who: As,
    detectors: Arc<dyn DetectorSource>,
    retrieval: RetrievalMode,
    reviewers: ReviewParts,
    longest_wait: Option<SignedDuration>,
}

pub(crate) struct ServiceWorld {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) github: GitHub,
    pub(crate) service: Arc<Service>,
    pub(crate) wake: Arc<Notify>,
    builder: WorldBuilder,
}

impl WorldBuilder {
    pub(crate) fn new(who: As) -> Self {
        let (detectors, retrieval) = (Arc::new(Plain::new()), RetrievalMode::Hybrid);
        Self { who, detectors, retrieval, reviewers: ReviewParts::default(), longest_wait: None }
    }

    /// Items are compared and judged by the topics in their titles.
    pub(crate) fn topics(self) -> Self {
        let detectors = Arc::new(Topics::new("Both stop at the same wave."));
        Self { detectors, retrieval: RetrievalMode::Dense, ..self }
    }

    /// Items are compared and judged by these.
    pub(crate) fn detectors(self, detectors: Arc<dyn DetectorSource>, retrieval: RetrievalMode) -> Self {
        Self { detectors, retrieval, ..self }
    }

    pub(crate) fn reviewers(self, reviewers: ReviewParts) -> Self {
        Self { reviewers, ..self }
    }

    pub(crate) fn longest_wait(self, longest: SignedDuration) -> Self {
        Self { longest_wait: Some(longest), ..self }
    }

    pub(crate) async fn start(
        self,
        emulator: &Arc<Emulator>,
        clock: Arc<dyn Clock>,
        database_url: &str,
    ) -> ServiceWorld {
        let store = Store::open(&database_url.parse().expect("a URL"), clock.now()).await.expect("opens");
        let auth = match self.who {
            As::App => Auth::App(AppKey::new(&APP_ID.to_string(), &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key")),
            As::Token | As::Nobody => Auth::Token(Secret::new(TOKEN)),
        };
        let mut options = ClientOptions {
            api: emulator.url().parse().expect("a URL"),
            clock: Arc::clone(&clock),
            jitter: Arc::new(|| 0.0),
            request_timeout: Duration::from_secs(10),
            ..ClientOptions::new(auth)
        };
        if let Some(longest) = self.longest_wait {
            options.longest_wait = longest;
        }
        let (github, wake) = (GitHub::new(options).expect("a client"), Arc::new(Notify::new()));
        let service = self.service(store.clone(), &github, &clock, &wake);
        ServiceWorld { emulator: Arc::clone(emulator), store, clock, github, service, wake, builder: self }
    }

    fn service(&self, store: Store, github: &GitHub, clock: &Arc<dyn Clock>, wake: &Arc<Notify>) -> Arc<Service> {
        Arc::new(self.plain_service(store, github, clock, wake))
    }

    fn plain_service(&self, store: Store, github: &GitHub, clock: &Arc<dyn Clock>, wake: &Arc<Notify>) -> Service {
        Service::new(ServiceParts {
            store,
            github: (self.who != As::Nobody).then(|| github.clone()),
            is_app: self.who == As::App,
            detectors: Arc::clone(&self.detectors),
            reviewers: self.reviewers.clone(),
            clock: Arc::clone(clock),
            monthly_cost: None,
            prices: None,
            retrieval: self.retrieval,
            wake_publisher: Arc::clone(wake),
        })
    }
}

impl ServiceWorld {
    /// A repository of the emulated GitHub, stored with its id.
    pub(crate) async fn known_repo(&self, name: &str) -> Repo {
        let id = self.emulator.world().get(name).id;
        let repo = self.store.repos().ensure(&name.parse().expect("a name"), self.clock.now()).await.expect("stored");
        let id = GithubId(i64::try_from(id).expect("small"));
        self.store.repos().identify(repo.id, id, &repo.name).await.expect("stored").expect("its own name")
    }

    /// A service with its own connections, like another process.
    pub(crate) async fn another_service(&self, database_url: &str) -> Arc<Service> {
        let store = Store::open(&database_url.parse().expect("a URL"), self.clock.now()).await.expect("opens");
        self.builder.service(store, &self.github, &self.clock, &Arc::new(Notify::new()))
    }

    pub(crate) fn worker(&self, handler: Arc<dyn JobHandler>, caps: JobCaps, scope: JobScope) -> Worker {
        Worker { store: self.store.clone(), handler, clock: Arc::clone(&self.clock), caps, tries: 3, scope }
    }

    pub(crate) async fn work_once(&self, owner: &str, caps: JobCaps, scope: JobScope) -> Option<AttemptEnd> {
        self.worker(self.service.clone(), caps, scope).work_once(owner, 0.0).await.expect("works")
    }

    /// The parts of a service that also publishes.
    pub(crate) fn publishing_parts(&self) -> ServeParts {
        ServeParts {
            publisher: Some(self.service.clone()),
            wake_publisher: Arc::clone(&self.wake),
            ..ServeParts::new(self.service.clone())
        }
    }
}

pub(crate) fn service_options(workers: u32, caps: JobCaps, schedules: Schedules) -> ServiceOptions {
    ServiceOptions { secret: Secret::new(SECRET), workers, caps, tries: 3, schedules, trusted_proxies: Vec::new() }
}

pub(crate) struct Running {
    pub(crate) url: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<ServeSummary>>,
}

impl Running {
    pub(crate) async fn start(store: Store, parts: ServeParts, clock: Arc<dyn Clock>, schedules: Schedules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        Self::on(listener, store, parts, clock, service_options(2, CAPS, schedules))
    }

    pub(crate) fn on(
        listener: TcpListener,
        store: Store,
        parts: ServeParts,
        clock: Arc<dyn Clock>,
        options: ServiceOptions,
    ) -> Self {
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            serve(listener, store, parts, clock, options, Box::pin(stopped)).await
        });
        Self { url, stop, task }
    }

    /// Stops it, calls `then`, and waits for its end.
    pub(crate) async fn stop_and(self, then: impl FnOnce()) -> ServeSummary {
        self.stop.send(()).expect("it listens");
        then();
        let ended = tokio::time::timeout(Duration::from_secs(60), self.task).await.expect("it ends");
        ended.expect("runs").expect("serves")
    }

    pub(crate) async fn stop(self) -> ServeSummary {
        self.stop_and(|| {}).await
    }
}

pub(crate) fn item(number: u64) -> ItemNumber {
    ItemNumber::new(i64::try_from(number).expect("small")).expect("positive")
}

/// Waits until the condition is true.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}
