//! The whole service as an App on an emulated GitHub, with a clock that the test moves.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use canonry_github::Clock as _;
use canonry_server::Schedules;
use canonry_store::{JobFilter, JobState, OutboxScope, Repo};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, World};
use jiff::{SignedDuration, Timestamp};
use tokio::net::TcpListener;

use crate::world::clocks::TestMoves;
use crate::world::{APP_ID, CAPS, Running, SECRET, ServiceWorld, WorldBuilder, service_options};

pub(crate) struct WholeService {
    world: ServiceWorld,
    pub(crate) clock: Arc<TestMoves>,
    running: Running,
    _database: TestDatabase,
}

impl Deref for WholeService {
    type Target = ServiceWorld;

    fn deref(&self) -> &ServiceWorld {
        &self.world
    }
}

impl WholeService {
    /// The App was just installed on the repositories of this world; nothing has been delivered.
    pub(crate) async fn start(
        database: TestDatabase,
        mut world: World,
        permissions: &[(&str, &str)],
        builder: WorldBuilder,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        world.rate.limit = 10_000_000;
        world.add_app(APP_ID, "canonry");
        world.send_webhooks_to(&format!("http://{address}/webhooks/github"), SECRET);
        world.install_app("tide", permissions);
        let emulator = Arc::new(Emulator::start(world).await);
        let clock = Arc::new(TestMoves::new(&emulator));
        let world = builder.topics().start(&emulator, clock.clone(), database.url()).await;
        let options = service_options(2, CAPS, Schedules::App);
        let running = Running::on(listener, world.store.clone(), world.publishing_parts(), clock.clone(), options);
        Self { world, clock, running, _database: database }
    }

    /// Delivers and runs everything until there is nothing left to do. Time moves only to the next moment that a task
    /// waits for, and not beyond a horizon, because a pause waits for people.
    pub(crate) async fn settle_within(&self, horizon: Option<SignedDuration>, is_enough: impl Fn(&World) -> bool) {
        let settling = async {
            let end = horizon.map(|horizon| self.clock.now() + horizon);
            let (mut idle, mut busy) = (0, 0);
            while idle < 3 && !is_enough(&self.emulator.world()) {
                let mut still = true;
                self.clock.tell();
                for delivery in self.emulator.deliver_pending().await {
                    assert_eq!(delivery.attempt.map(|attempt| attempt.status), Some(202), "{}", delivery.event);
                    still = false;
                }
                let now = self.clock.now();
                let running = self.store.jobs().status(now).await.expect("reads").running;
                let next = self.next_moment().await.filter(|next| end.is_none_or(|end| *next <= end));
                // A running job may itself wait for the clock: for its turn to write, or for another task's lease of
                // a write.
                let is_anybody_asleep = self.clock.is_anybody_asleep();
                busy = if running > 0 && still && (end.is_some() || is_anybody_asleep) { busy + 1 } else { 0 };
                if busy > if is_anybody_asleep { 10 } else { 100 } {
                    self.emulator.world().now += SignedDuration::from_secs(1);
                    (idle, busy) = (0, 0);
                } else if running > 0 || next.is_some_and(|next| next <= now) {
                    idle = 0;
                } else if let Some(next) = next {
                    idle = 0;
                    self.writer_rests().await;
                    if still && self.next_moment().await == Some(next) && self.is_nobody_at_a_job().await {
                        self.move_to(next);
                    }
                } else {
                    idle += usize::from(still);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(120), settling).await.is_err() {
            let jobs = self.store.jobs().list(&JobFilter::default(), 10).await.expect("reads");
            panic!("it does not settle at {}: {jobs:#?}, next {:?}", self.clock.now(), self.next_moment().await);
        }
    }

    /// The next moment at which there is something to do.
    async fn next_moment(&self) -> Option<Timestamp> {
        let queued = JobFilter { state: Some(JobState::Queued), ..JobFilter::default() };
        let jobs = self.store.jobs().list(&queued, 1_000).await.expect("reads");
        let write = self.store.outbox().next_moment(OutboxScope::Unattended).await.expect("reads");
        // Jobs of one key run one after the other: those behind a waiting one have nothing to do yet.
        let heads = jobs.iter().filter(|job| !jobs.iter().any(|other| other.key == job.key && other.id < job.id));
        heads.map(|job| job.run_after).chain(write).min()
    }

    pub(crate) async fn repo_named(&self, name: &str) -> Repo {
        self.store.repos().find(&name.parse().expect("a name")).await.expect("reads").expect("known")
    }

    /// Moves the world to this moment and wakes every sleeping task.
    pub(crate) fn move_to(&self, now: Timestamp) {
        self.emulator.world().now = now;
        self.clock.tell();
    }

    /// Waits until no write is under way, or until the writer waits for the clock: a lease looks the same as a wait,
    /// so writers get time to end.
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
        assert!(self.running.stop().await.drained);
        self.world.store.disconnect().await;
        self.world.emulator
    }
}
