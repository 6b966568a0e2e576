//! Two services on one store, and pushes that come in the middle of their work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{AttemptEnd, Publish as _, ReviewParts, Service, ServiceParts, Worker};
use canonry_store::{JobCaps, JobScope, JobState, ReviewState, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Emulator, Fault, NewPull, TEST_APP_PRIVATE_KEY};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Notify;

use crate::on_github::outbound::assert_clean;
use crate::world::review_world::{PLAIN, REMARKABLE, REPO, ReviewWorld};
use crate::world::topics::Topics;
use crate::world::{As, until};

const SETTINGS: &str = "review: {triggers: {onSynchronize: true}}";
/// More requests than a review makes.
const MOST_STEPS: usize = 200;
/// How many times faster than the machine's clock the time passes here.
const FASTER: u32 = 20;
const SECOND: Duration = Duration::from_millis(1_000 / FASTER as u64);

/// The world's time, which only [`passing`] and the test move: a sleeping task does not end the leases of all others.
struct Watch(Arc<Emulator>);

impl Clock for Watch {
    fn now(&self) -> Timestamp {
        self.0.world().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            while self.now() < until {
                tokio::time::sleep(SECOND / 5).await;
            }
        })
    }

    fn beat(&self, length: SignedDuration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(length.unsigned_abs() / FASTER))
    }
}

/// Lets time pass until it is stopped.
async fn passing(emulator: Arc<Emulator>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::SeqCst) {
        tokio::time::sleep(SECOND).await;
        emulator.world().advance(1);
    }
}

#[derive(Clone)]
struct Replica {
    service: Arc<Service>,
    worker: Worker,
}

impl Replica {
    async fn new(setting: &ReviewWorld, database: &TestDatabase) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Watch(Arc::clone(&setting.emulator)));
        let store = Store::open(&database.url().parse().expect("a URL"), clock.now()).await.expect("opens");
        let key = AppKey::new("4711", &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key");
        let options = ClientOptions {
            api: setting.emulator.url().parse().expect("a URL"),
            clock: Arc::clone(&clock),
            jitter: Arc::new(|| 0.0),
            ..ClientOptions::new(Auth::App(key))
        };
        let service = Arc::new(Service::new(ServiceParts {
            store: store.clone(),
            github: Some(GitHub::new(options).expect("a client")),
            is_app: true,
            detectors: Arc::new(Topics::new("Both stop at the same wave.")),
            reviewers: ReviewParts::default(),
            clock: Arc::clone(&clock),
            monthly_cost: None,
            prices: None,
            retrieval: RetrievalMode::Hybrid,
            wake_publisher: Arc::new(Notify::new()),
        }));
        let caps = JobCaps { per_repo: 4, in_all: 8 };
        let worker = Worker { store, handler: service.clone(), clock, caps, tries: 3, scope: JobScope::All };
        Self { service, worker }
    }

    async fn work(&self) -> Option<AttemptEnd> {
        self.worker.work_once(&format!("{:032x}", rand::random::<u128>()), 0.0).await.expect("works")
    }

    async fn work_off(&self) {
        while self.work().await.is_some() || self.service.publish_one().await.expect("publishes") {}
    }

    /// Runs jobs until it is stopped; the current job is finished first.
    async fn run(self, stop: Arc<AtomicBool>) {
        while !stop.load(Ordering::SeqCst) {
            if self.work().await.is_none() && !self.service.publish_one().await.expect("publishes") {
                self.worker.clock.beat(SignedDuration::from_millis(100)).await;
            }
        }
    }
}

/// What must be true of a pull request with these heads, in this order, when all work is done.
async fn assert_told_once(setting: &ReviewWorld, number: u64, heads: &[String]) {
    let live = heads.last().expect("a head");
    let reviewed = setting.reviewed(number).await;
    assert_eq!(reviewed.last(), Some(live), "what stands there is what was reviewed last");
    let runs = setting.runs(number).await;
    let over = |state| matches!(state, ReviewState::Completed | ReviewState::Superseded | ReviewState::Failed);
    assert!(runs.iter().all(|run| over(run.state)), "{runs:?}");

    // Reviews, in the order of their commits, one per commit.
    let world = setting.emulator.world();
    let mut last = None;
    for review in world.reviews_by(REPO, number, setting.who.login()) {
        assert!(review.submitted_at.is_some(), "a review is left pending: {}", world.conversation(REPO, number));
        let comments = world.review_comments_by(REPO, number, setting.who.login());
        let about: Vec<usize> = comments
            .iter()
            .filter(|one| one.review == review.id)
            .map(|one| heads.iter().position(|head| *head == one.original_commit_id).expect("a commit of it"))
            .collect();
        assert!(!about.is_empty() && about.iter().all(|at| *at == about[0]), "a review of several commits: {about:?}");
        assert!(last < Some(about[0]), "a commit is reviewed twice or too late: {}", world.conversation(REPO, number));
        last = Some(about[0]);
        assert!(reviewed.contains(&heads[about[0]]), "a review that was never made");
    }

    assert!(last.is_some(), "the finding is told: {}", world.conversation(REPO, number));

    // The same finding is posted at a line once.
    let mut said: Vec<(String, Option<u64>, String)> = world
        .review_comments_by(REPO, number, setting.who.login())
        .iter()
        .filter_map(|one| Some((one.path.clone(), Some(one.line?), one.body.split("<!--").next()?.to_owned())))
        .collect();
    let all = said.len();
    said.sort();
    said.dedup();
    assert_eq!(said.len(), all, "something is said twice: {}", world.conversation(REPO, number));

    let comments = world.comments_by(REPO, number, setting.who.login());
    assert_eq!(comments.len(), 0, "no comment beside the reviews: {}", world.conversation(REPO, number));
    for head in heads {
        let checks: Vec<_> = world.get(REPO).check_runs.iter().filter(|check| check.head_sha == *head).collect();
        assert!(checks.len() <= 1, "several checks: {checks:?}");
        let green = checks.iter().any(|check| check.conclusion.as_deref() == Some("success"));
        assert!(!green || reviewed.contains(head), "green without a review: {checks:?}");
        if head == live {
            assert_eq!(checks.len(), 1, "{}", world.conversation(REPO, number));
        }
        assert!(checks.iter().all(|check| check.conclusion.is_some()), "a check that never ends: {checks:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_push_at_any_step_of_a_review_is_what_is_told_of() {
    let database = TestDatabase::postgres().await;
    let setting = ReviewWorld::new(&database, As::App, SETTINGS).await;
    let other = Replica::new(&setting, &database).await;
    let stop = Arc::new(AtomicBool::new(false));
    let passing = tokio::spawn(passing(Arc::clone(&setting.emulator), Arc::clone(&stop)));
    for step in 1..MOST_STEPS {
        let number = setting.open("ann", &format!("step-{step}"), REMARKABLE, NewPull::new("Fill the pool"));
        let first = setting.head(number);
        setting.deliver().await;
        assert_eq!(setting.work(JobScope::Caused).await, Some(AttemptEnd::Done));
        let (fault, mut gate) = Fault::on("*", "/**").nth(step).times(1).hold();
        setting.emulator.fault(fault);
        let reviewing = setting.work(JobScope::All);
        tokio::pin!(reviewing);
        let held = tokio::select! {
            _ = &mut reviewing => false,
            () = gate.arrived() => true,
        };
        if !held {
            assert!(step > 10, "a review takes more requests than {step}");
            stop.store(true, Ordering::SeqCst);
            passing.await.expect("passes");
            assert_clean(&setting.emulator);
            return;
        }
        // One process stops in the middle of a review, and the other continues.
        let visible = shown_reviews(&setting, number);
        let stopped_at =
            setting.emulator.requests().into_iter().rfind(|one| one.status.is_none()).expect("one is held");
        let second = push(&setting, number, &format!("{PLAIN}{REMARKABLE}"), false);
        setting.deliver().await;
        other.work_off().await;
        gate.release();
        reviewing.await;
        setting.emulator.clear_faults();
        tokio::join!(setting.settle(), other.work_off());
        setting.settle().await;
        assert_told_once(&setting, number, &[first.clone(), second]).await;
        // A process that sent GitHub a request after the push knew the new head, and posted nothing more about the
        // old commit.
        if !stopped_at.is_write() && visible == 0 {
            let world = setting.emulator.world();
            let late = world
                .review_comments_by(REPO, number, setting.who.login())
                .iter()
                .any(|one| one.original_commit_id == first);
            assert!(
                !late,
                "stopped at {} {}: {}",
                stopped_at.method,
                stopped_at.named_path,
                world.conversation(REPO, number)
            );
        }
    }
    panic!("a review takes more than {MOST_STEPS} requests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_services_follow_pushes_that_come_faster_than_reviews() {
    let database = TestDatabase::postgres().await;
    let setting = ReviewWorld::new(&database, As::App, SETTINGS).await;
    let (one, other) = (Replica::new(&setting, &database).await, Replica::new(&setting, &database).await);
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> =
        [&one, &one, &other, &other].map(|replica| tokio::spawn(replica.clone().run(Arc::clone(&stop)))).into();
    let over = Arc::new(AtomicBool::new(false));
    let passing = tokio::spawn(passing(Arc::clone(&setting.emulator), Arc::clone(&over)));
    let numbers: Vec<u64> = (0..3)
        .map(|at| setting.open("ann", &format!("storm-{at}"), REMARKABLE, NewPull::new("Fill the pool")))
        .collect();
    let mut heads: Vec<Vec<String>> = numbers.iter().map(|number| vec![setting.head(*number)]).collect();
    setting.deliver().await;
    for at_push in 0..12 {
        // Sometimes at once, sometimes in the middle of a review, sometimes after it.
        let (before, after) = (setting.emulator.requests().len(), [0, 7, 19, 33, 52][at_push % 5]);
        wait_for(&setting, before + after).await;
        let at = at_push % 3;
        let text = format!("// {at_push}\n{}{REMARKABLE}", PLAIN.repeat(at_push));
        heads[at].push(push(&setting, numbers[at], &text, at_push % 4 == 3));
        setting.deliver().await;
    }
    stop.store(true, Ordering::SeqCst);
    for task in tasks {
        task.await.expect("works");
    }
    over.store(true, Ordering::SeqCst);
    passing.await.expect("passes");
    setting.settle().await;
    for (number, heads) in numbers.iter().zip(&heads) {
        assert_told_once(&setting, *number, heads).await;
    }
    let dead = canonry_store::JobFilter { state: Some(JobState::Dead), ..Default::default() };
    assert_eq!(setting.store.jobs().list(&dead, 10).await.expect("reads"), []);
    assert_clean(&setting.emulator);
}

/// A push a second later: no lease expires because of it.
fn push(setting: &ReviewWorld, number: u64, text: &str, is_forced: bool) -> String {
    let mut world = setting.emulator.world();
    world.advance(1);
    let files = [("src/pool.js", Some(text))];
    match is_forced {
        true => world.force_push_pull(REPO, number, "ann", &files),
        false => world.push_pull(REPO, number, "ann", &files),
    }
}

fn shown_reviews(setting: &ReviewWorld, number: u64) -> usize {
    let world = setting.emulator.world();
    let reviews = world.reviews_by(REPO, number, setting.who.login());
    reviews.iter().filter(|review| review.submitted_at.is_some()).count()
}

/// Waits until this many requests have come, or all work is done.
async fn wait_for(setting: &ReviewWorld, requests: usize) {
    for _ in 0..500 {
        let status = setting.store.jobs().status(setting.clock.now()).await.expect("reads");
        let idle = status.running == 0 && status.queued == 0;
        if setting.emulator.requests().len() >= requests || idle {
            return;
        }
        setting.clock.beat(SignedDuration::from_millis(250)).await;
    }
    until("the services work", async || setting.emulator.requests().len() >= requests).await;
}
