//! Kills processes at random moments while people are active, until everything is done.
#![expect(clippy::print_stdout, reason = "a soak tells how many kills there were")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use canonry_github::{Clock as _, ScaledClock};
use canonry_store::{OutboxScope, Store};
use canonry_testkit::database::{Engine, TestDatabase};
use canonry_testkit::github::{Delivery, Emulator, FaultHandle, loopback_client, loopback_client_builder};
use canonry_testkit::on_both_engines;
use canonry_testkit::proxy::Proxy;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use rand::RngExt as _;
use reqwest::Client;
use tokio::time::{Instant, sleep};

use crate::chaos::checks::check;
use crate::chaos::life::{FACTOR, Life, SECRET, faults, world};
use crate::chaos::replica::{Replica, Told};

/// Deliveries under way at once.
const AT_ONCE: usize = 6;
/// GitHub gives a webhook ten seconds.
const ANSWER: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
struct Plan {
    deliveries: usize,
    issues: usize,
    kills: usize,
    replicas: usize,
    seed: u64,
    /// How long the work may take to finish after the last kill.
    patience: Duration,
}

impl Plan {
    fn new(replicas: usize, seed: u64) -> Self {
        if std::env::var_os("CANONRY_SOAK").is_some() {
            let patience = Duration::from_secs(900);
            Self { deliveries: 2_000, issues: 150, kills: 50, replicas, seed, patience }
        } else {
            let patience = Duration::from_secs(180);
            Self { deliveries: 300, issues: 45, kills: 8, replicas, seed, patience }
        }
    }
}

/// The state after the chaos.
pub(crate) struct Aftermath {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    /// The reports that must have a suggestion: planted duplicates that stayed open until the end.
    pub(crate) expected: BTreeSet<(String, u64)>,
    pub(crate) now: Timestamp,
    pub(crate) told: Vec<(String, String)>,
}

on_both_engines! {
    async fn a_process_that_is_killed_again_and_again(database: TestDatabase) {
        let seed = if database.engine() == Engine::Sqlite { 1 } else { 2 };
        let aftermath = live_through(Plan::new(1, seed), &database, database.url().to_owned(), None).await;
        check(&aftermath).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_on_a_database_that_goes_away() {
    let database = TestDatabase::postgres().await;
    let (proxy, url) = database.proxied().await;
    let aftermath = live_through(Plan::new(3, 3), &database, url, Some(&proxy)).await;
    check(&aftermath).await;
}

async fn live_through(plan: Plan, database: &TestDatabase, url: String, proxy: Option<&Proxy>) -> Aftermath {
    let anchor = Timestamp::now();
    let clock = ScaledClock::new(anchor, FACTOR);
    let emulator = Arc::new(Emulator::start(world(anchor)).await);
    let faults: Vec<FaultHandle> = faults(plan.seed).into_iter().map(|fault| emulator.fault(fault)).collect();
    let store = Store::open(&database.url().parse().expect("a URL"), clock.now()).await.expect("opens");
    let folder = tempfile::tempdir().expect("a folder");
    let logs = folder.path().to_owned();
    let told = Told { database: url, api: emulator.url(), anchor: anchor.to_string(), logs };
    let addresses = Addresses::default();
    let mut replicas = Vec::new();
    for name in 0..plan.replicas {
        replicas.push(Replica::start(&told, name).await);
    }
    addresses.set(&replicas);
    let postman = tokio::spawn(deliver(Arc::clone(&emulator), addresses.clone(), plan.seed));
    let mut life = Life::new(plan.seed, plan.issues);
    let mut metrics = String::new();
    for kill in 1..=plan.kills {
        while made(&emulator) < plan.deliveries * kill / plan.kills {
            for _ in 0..5 {
                life.go_on(&mut emulator.world());
            }
            // The kill must hit a random moment: this is what the test is about.
            sleep(Duration::from_millis(life.random.random_range(0..60))).await;
        }
        sleep(Duration::from_millis(life.random.random_range(0..1_200))).await;
        let victim = life.random.random_range(0..plan.replicas);
        metrics += &metrics_of(&replicas[victim].url).await;
        replicas.remove(victim).kill();
        if let Some(proxy) = proxy.filter(|_| kill == plan.kills / 2) {
            proxy.cut();
            database.end_connections().await;
            sleep(Duration::from_millis(1_500)).await;
            proxy.restore();
        }
        replicas.insert(victim, Replica::start(&told, victim).await);
        addresses.set(&replicas);
    }
    settle(&plan, &emulator, &store, &clock).await;
    let expected = life.still_planted();
    assert!(expected.len() * 15 > plan.issues, "enough is to be said: {expected:?}");
    // People judge the comments, and one more kill happens in between.
    life.close_everything(&mut emulator.world());
    sleep(Duration::from_millis(life.random.random_range(0..600))).await;
    replicas.remove(0).kill();
    replicas.insert(0, Replica::start(&told, 0).await);
    addresses.set(&replicas);
    settle(&plan, &emulator, &store, &clock).await;
    postman.abort();
    assert!(faults.iter().all(|fault| fault.hits() > 0), "GitHub failed in every way");
    println!("SIGKILLs of serve: {}", plan.kills + 1 + replicas.len());
    for replica in replicas {
        metrics += &metrics_of(&replica.url).await;
        replica.kill();
    }
    assert!(metrics.contains("canonry_deliveries"), "the metrics were read: {metrics}");
    let mut told_of = vec![("the metrics".to_owned(), metrics)];
    for name in 0..plan.replicas {
        let log = std::fs::read_to_string(folder.path().join(format!("replica-{name}.log"))).expect("a log");
        assert!(log.contains("a job is done"), "replica {name} has worked");
        told_of.push((format!("the log of replica {name}"), log));
    }
    Aftermath { emulator, store, expected, now: clock.now(), told: told_of }
}

/// The addresses of the running processes.
#[derive(Debug, Clone, Default)]
struct Addresses(Arc<Mutex<Vec<String>>>);

impl Addresses {
    fn set(&self, replicas: &[Replica]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            replicas.iter().map(|replica| replica.url.clone()).collect();
    }

    fn nth(&self, nth: usize) -> String {
        let urls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        urls[nth % urls.len()].clone()
    }
}

fn made(emulator: &Emulator) -> usize {
    emulator.world().deliveries.len()
}

/// Sends pending deliveries to random processes, forever, in no particular order, as GitHub does.
async fn deliver(emulator: Arc<Emulator>, addresses: Addresses, seed: u64) {
    let client = loopback_client_builder().timeout(ANSWER).build().expect("a client");
    let mut turn = usize::try_from(seed).unwrap_or_default();
    loop {
        let pending = emulator.pending_deliveries();
        let posts = pending.into_iter().map(|delivery| {
            turn += 1;
            let (client, url) = (&client, addresses.nth(turn));
            let emulator = Arc::clone(&emulator);
            async move {
                let status = post(client, &url, &delivery).await;
                emulator.note_attempt(delivery.id, status);
            }
        });
        futures_util::stream::iter(posts).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) async fn post(client: &Client, url: &str, delivery: &Delivery) -> u16 {
    let (headers, body) = delivery.signed(SECRET);
    let request = client.post(format!("{url}/webhooks/github")).body(body);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
    request.send().await.map_or(0, |answer| answer.status().as_u16())
}

async fn metrics_of(url: &str) -> String {
    let Ok(answer) = loopback_client().get(format!("{url}/metrics")).timeout(ANSWER).send().await else {
        return String::new();
    };
    answer.text().await.unwrap_or_default()
}

/// Returns when every delivery is stored, no job is queued, and nothing is to be written, twice in a row.
async fn settle(plan: &Plan, emulator: &Emulator, store: &Store, clock: &ScaledClock) {
    let deadline = Instant::now() + plan.patience;
    let mut calm = 0;
    while calm < 2 {
        let waiting = emulator.pending_deliveries().len();
        let missing = missing(emulator, store).await;
        let jobs = store.jobs().status(clock.now()).await.expect("reads");
        let next_write = store.outbox().next_moment(OutboxScope::Unattended).await.expect("reads");
        let is_calm = waiting + missing + usize::from(next_write.is_some()) == 0 && jobs.queued + jobs.running == 0;
        calm = if is_calm { calm + 1 } else { 0 };
        assert!(
            Instant::now() < deadline,
            "it does not come to an end: {waiting} wait, {missing} are missing, {jobs:?}, next write {next_write:?}, now {}",
            clock.now()
        );
        sleep(Duration::from_millis(250)).await;
    }
}

/// The number of deliveries that are not stored. A stored delivery may be unanswered, which is not a loss.
async fn missing(emulator: &Emulator, store: &Store) -> usize {
    let made: BTreeSet<String> = emulator.world().deliveries.iter().map(|delivery| delivery.guid.clone()).collect();
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    let mut known = 0;
    for some in made.chunks(500) {
        known += store.deliveries().stored_ids(some).await.expect("reads").len();
    }
    made.len() - known
}
