//! An emulated GitHub with one repository, a store, and a service between the two.

use std::sync::Arc;
use std::time::Duration;

use canonry_domain::GithubId;
use canonry_github::outbox::Outbox;
use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{
    Ended, JobHandler, ReviewParts, Schedules, ServeParts, Served, Service, ServiceOptions, ServiceParts, Worker, serve,
};
use canonry_store::{JobCaps, JobScope, Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, Permission, TEST_APP_PRIVATE_KEY, World};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::clocks::WaitingMoves;
use crate::plain::Plain;

pub(crate) const REPO: &str = "tide/pool";
pub(crate) const OWN: &str = "canonry-bot";
const TOKEN: &str = "ghp_emulatedTokenOfCanonry0123456789abcd";
pub(crate) const CAPS: JobCaps = JobCaps { per_repo: 2, in_all: 8 };

/// Who Canonry is on GitHub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum As {
    App,
    Token,
    /// Nobody: the service has no credentials.
    Nobody,
}

pub(crate) struct Setting {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    pub(crate) repo: Repo,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) github: GitHub,
    pub(crate) service: Arc<Service>,
    pub(crate) wake: Arc<Notify>,
}

impl Setting {
    pub(crate) async fn new(database: &TestDatabase, who: As) -> Self {
        let mut world = World::new();
        world.repo(REPO);
        world.user("ann");
        world.token(TOKEN, OWN);
        world.collaborator(REPO, OWN, Permission::Write);
        world.add_app(4711, "canonry");
        world.install_app("tide", &[("issues", "write"), ("metadata", "read"), ("contents", "read")]);
        // Nobody listens there: a test says itself what came of a delivery.
        world.send_webhooks_to("http://127.0.0.1:9/webhooks/github", "secret");
        let (now, id) = (world.now, world.get(REPO).id);
        let emulator = Arc::new(Emulator::start(world).await);
        let store = Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
        let repo = store.repos().ensure(&REPO.parse().expect("a name"), now).await.expect("stored");
        let id = GithubId(i64::try_from(id).expect("small"));
        let repo = store.repos().identify(repo.id, id, &repo.name).await.expect("stored").expect("its own name");
        let clock: Arc<dyn Clock> = Arc::new(WaitingMoves::new(&emulator, None));
        let auth = match who {
            As::App => Auth::App(AppKey::new("4711", &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key")),
            As::Token | As::Nobody => Auth::Token(Secret::new(TOKEN)),
        };
        let github = GitHub::new(ClientOptions {
            api: emulator.url().parse().expect("a URL"),
            clock: Arc::clone(&clock),
            jitter: Arc::new(|| 0.0),
            ..ClientOptions::new(auth)
        });
        let github = github.expect("a client");
        let wake = Arc::new(Notify::new());
        let service = Arc::new(Service::new(ServiceParts {
            store: store.clone(),
            github: (who != As::Nobody).then(|| github.clone()),
            is_app: who == As::App,
            detectors: Arc::new(Plain::new()),
            reviewers: ReviewParts::default(),
            clock: Arc::clone(&clock),
            monthly_cost: None,
            prices: None,
            retrieval: RetrievalMode::Hybrid,
            wake_publisher: Arc::clone(&wake),
        }));
        Self { emulator, store, repo, clock, github, service, wake }
    }

    /// Does the next job that is due.
    pub(crate) async fn work(&self) -> Option<Ended> {
        let handler: Arc<dyn JobHandler> = self.service.clone();
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        let worker = Worker { store, handler, clock, caps: CAPS, tries: 3, scope: JobScope::All };
        worker.work_once("w", 0.0).await.expect("works")
    }

    /// An outbox as another process has it.
    pub(crate) async fn outbox(&self) -> Outbox {
        Outbox::open(self.store.clone(), self.github.clone(), [7; 32]).await.expect("an outbox")
    }

    /// Runs everything but the schedules.
    pub(crate) async fn serve(&self) -> Running {
        let parts = ServeParts {
            publisher: Some(self.service.clone()),
            wake_publisher: Arc::clone(&self.wake),
            ..ServeParts::new(self.service.clone())
        };
        Running::start(self.store.clone(), parts, Arc::clone(&self.clock), Schedules::Off).await
    }
}

/// A service under way.
pub(crate) struct Running {
    pub(crate) url: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<Served>>,
}

impl Running {
    pub(crate) async fn start(store: Store, parts: ServeParts, clock: Arc<dyn Clock>, schedules: Schedules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let options = ServiceOptions {
            secret: Secret::new("secret"),
            workers: 2,
            caps: CAPS,
            tries: 3,
            schedules,
            trusted_proxies: Vec::new(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let stopped = async move { stopped.await.expect("told") };
            serve(listener, store, parts, clock, options, stopped).await
        });
        Self { url, stop, task }
    }

    /// Tells it to stop, does what is to be done after that, and waits for its end.
    pub(crate) async fn stop_and(self, then: impl FnOnce()) -> Served {
        self.stop.send(()).expect("it listens");
        then();
        let ended = tokio::time::timeout(Duration::from_secs(60), self.task).await.expect("it ends");
        ended.expect("runs").expect("serves")
    }

    pub(crate) async fn stop(self) -> Served {
        self.stop_and(|| {}).await
    }
}

/// Returns when it is so.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}
