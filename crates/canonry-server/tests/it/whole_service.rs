//! The whole service as an App on an emulated GitHub, in a time that the test moves.

use std::sync::Arc;
use std::time::Duration;

use canonry_github::{AppKey, Auth, ClientOptions, Clock as _, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{ReviewParts, Schedules, ServeParts, Served, Service, ServiceOptions, ServiceParts, serve};
use canonry_store::{JobCaps, OutboxScope, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, TEST_APP_PRIVATE_KEY, World};
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use crate::clocks::TestMoves;
use crate::topics::Topics;

const SECRET: &str = "the tide comes in";
const APP_ID: u64 = 77;

pub(crate) struct WholeService {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    pub(crate) clock: Arc<TestMoves>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<Served>>,
    _database: TestDatabase,
}

impl WholeService {
    /// The App is just being installed on the repositories of this world; nothing has been delivered.
    pub(crate) async fn start(
        database: TestDatabase,
        mut world: World,
        permissions: &[(&str, &str)],
        adjust: impl FnOnce(&mut ClientOptions),
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        world.rate.limit = 10_000_000;
        world.add_app(APP_ID, "canonry");
        world.send_webhooks_to(&format!("http://{address}/webhooks/github"), SECRET);
        world.install_app("tide", permissions);
        let emulator = Arc::new(Emulator::start(world).await);
        let clock = Arc::new(TestMoves::new(&emulator));
        let store = Store::open(&database.url().parse().expect("a URL"), clock.now()).await.expect("opens");
        let key = AppKey::new(&APP_ID.to_string(), &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key");
        let mut options = ClientOptions {
            api: emulator.url().parse().expect("a URL"),
            clock: clock.clone(),
            jitter: Arc::new(|| 0.0),
            request_timeout: Duration::from_secs(10),
            ..ClientOptions::new(Auth::App(key))
        };
        adjust(&mut options);
        let wake_publisher = Arc::new(Notify::new());
        let service = Arc::new(Service::new(ServiceParts {
            store: store.clone(),
            github: Some(GitHub::new(options).expect("a client")),
            is_app: true,
            detectors: Arc::new(Topics::new("Both stop at the same wave.")),
            reviewers: ReviewParts::default(),
            clock: clock.clone(),
            monthly_cost: None,
            prices: None,
            retrieval: RetrievalMode::Dense,
            wake_publisher: Arc::clone(&wake_publisher),
        }));
        let mut parts = ServeParts::new(service.clone());
        parts.publisher = Some(service);
        parts.wake_publisher = wake_publisher;
        let options = ServiceOptions {
            secret: Secret::new(SECRET),
            workers: 2,
            caps: JobCaps { per_repo: 2, in_all: 8 },
            tries: 3,
            schedules: Schedules::App,
            trusted_proxies: Vec::new(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (served, ticking) = (store.clone(), clock.clone());
        let task = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            serve(listener, served, parts, ticking, options, stopped).await
        });
        Self { emulator, store, clock, stop, task, _database: database }
    }

    /// Has everybody who sleeps see the moment that the test moved the world to.
    pub(crate) fn move_to(&self, now: Timestamp) {
        self.emulator.world().now = now;
        self.clock.tell();
    }

    /// Returns when nobody is at a write, or when who is at one waits for the clock: a lease that is held looks the same
    /// as a wait, so they get the time to end.
    pub(crate) async fn writer_rests(&self) {
        for _ in 0..20 {
            let at_work = self.store.outbox().is_sending(OutboxScope::Unattended, self.clock.now()).await;
            if !at_work.expect("reads") || self.clock.is_anybody_asleep() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) async fn is_nobody_at_a_job(&self) -> bool {
        self.store.jobs().status(self.clock.now()).await.expect("reads").running == 0
    }

    /// Does something as people do, a minute later.
    pub(crate) fn meanwhile<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.emulator.world();
        world.advance(60);
        act(&mut world)
    }

    pub(crate) async fn stop(self) -> Arc<Emulator> {
        self.stop.send(()).expect("it listens");
        let served = self.task.await.expect("runs").expect("serves");
        assert!(served.drained);
        self.store.disconnect().await;
        self.emulator
    }
}
