//! An emulated GitHub with a repository that has commits, and a service whose jobs the test does one by one.

use std::sync::Arc;
use std::time::Duration;

use canonry_domain::review::ReviewSubject;
use canonry_domain::{GithubId, ItemNumber};
use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{
    Ended, JobHandler, Publish as _, ReviewParts, Schedules, ServeParts, Service, ServiceOptions, ServiceParts, Worker,
    serve,
};
use canonry_store::{
    BrakeKind, DeliveryState, Job, JobCaps, JobFilter, JobScope, JobState, Repo, ReviewState, Store, StoredRun,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CheckRun, Emulator, NewPull, Permission, TEST_APP_PRIVATE_KEY, World};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::clocks::WaitingMoves;
use crate::plain::Plain;

pub(crate) const REPO: &str = "tide/pool";
pub(crate) const TOKEN: &str = "ghp_emulatedTokenOfCanonry0123456789abcd";
/// Code that nobody has anything to say about.
pub(crate) const PLAIN: &str = "export const depth = 3;\n";
/// Code with one line that the built-in rules remark on.
pub(crate) const REMARKABLE: &str = "export function fill(pool) {\n  debugger;\n  return pool;\n}\n";
const SECRET: &str = "the tide comes in";

/// Who Canonry is on GitHub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum As {
    App,
    Token,
}

impl As {
    pub(crate) fn login(self) -> &'static str {
        match self {
            Self::App => "canonry[bot]",
            Self::Token => "canonry-bot",
        }
    }
}

pub(crate) struct Setting {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    pub(crate) repo: Repo,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) who: As,
    service: Arc<Service>,
    intake: JoinHandle<()>,
}

impl Drop for Setting {
    fn drop(&mut self) {
        self.intake.abort();
    }
}

impl Setting {
    /// A repository with these settings on its default branch, beside those that leave triage out of it.
    pub(crate) async fn new(database: &TestDatabase, who: As, settings: &str) -> Self {
        Self::with(database, who, settings, ReviewParts::default()).await
    }

    pub(crate) async fn with(database: &TestDatabase, who: As, settings: &str, reviewers: ReviewParts) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let world = world(who, settings, &format!("http://{address}/webhooks/github"));
        let (now, id) = (world.now, world.get(REPO).id);
        let emulator = Arc::new(Emulator::start(world).await);
        let store = Store::open(&database.url().parse().expect("a URL"), now).await.expect("opens");
        let repo = store.repos().ensure(&REPO.parse().expect("a name"), now).await.expect("stored");
        let id = GithubId(i64::try_from(id).expect("small"));
        let repo = store.repos().identify(repo.id, id, &repo.name).await.expect("stored").expect("its own name");
        let clock: Arc<dyn Clock> = Arc::new(WaitingMoves::new(&emulator, None));
        let auth = match who {
            As::App => Auth::App(AppKey::new("4711", &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key")),
            As::Token => Auth::Token(Secret::new(TOKEN)),
        };
        let github = GitHub::new(ClientOptions {
            api: emulator.url().parse().expect("a URL"),
            clock: Arc::clone(&clock),
            jitter: Arc::new(|| 0.0),
            ..ClientOptions::new(auth)
        });
        let service = Arc::new(Service::new(ServiceParts {
            store: store.clone(),
            github: Some(github.expect("a client")),
            is_app: who == As::App,
            detectors: Arc::new(Plain::new()),
            reviewers,
            clock: Arc::clone(&clock),
            monthly_cost: None,
            prices: None,
            retrieval: RetrievalMode::Hybrid,
            wake_publisher: Arc::new(Notify::new()),
        }));
        // It only takes webhooks in: who works, and when, is up to the test.
        let options = ServiceOptions {
            secret: Secret::new(SECRET),
            workers: 0,
            caps: JobCaps { per_repo: 4, in_all: 8 },
            tries: 3,
            schedules: Schedules::Off,
            trusted_proxies: Vec::new(),
        };
        let parts = ServeParts::new(service.clone());
        let (served, ticking) = (store.clone(), Arc::clone(&clock));
        let intake = tokio::spawn(async move {
            serve(listener, served, parts, ticking, options, std::future::pending()).await.expect("serves");
        });
        let setting = Self { emulator, store, repo, clock, who, service, intake };
        setting.settle().await;
        setting
    }

    /// Does something as people do, a minute later.
    pub(crate) fn meanwhile<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.emulator.world();
        world.advance(60);
        act(&mut world)
    }

    /// Commits a file on a branch and opens a pull request of it.
    pub(crate) fn open(&self, by: &str, branch: &str, text: &str, new: NewPull) -> u64 {
        self.meanwhile(|world| {
            world.commit(REPO, branch, &[("src/pool.js", Some(text))]);
            world.open_pull(REPO, by, branch, new)
        })
    }

    pub(crate) fn push(&self, number: u64, text: &str) -> String {
        self.meanwhile(|world| world.push_pull(REPO, number, "ann", &[("src/pool.js", Some(text))]))
    }

    /// Has GitHub tell what it has to tell; the ids of what it told.
    pub(crate) async fn deliver(&self) -> Vec<String> {
        let told = self.emulator.deliver_pending().await;
        for delivery in &told {
            assert_eq!(delivery.attempt.as_ref().map(|attempt| attempt.status), Some(202), "{}", delivery.event);
        }
        told.into_iter().map(|delivery| delivery.guid).collect()
    }

    /// Has one thing told, and does what it asks for, but for the review: how it ended, and the reason.
    pub(crate) async fn tell(&self, act: impl FnOnce(&mut World)) -> (DeliveryState, String) {
        self.meanwhile(act);
        let mut about = Vec::new();
        for id in self.deliver().await {
            while self.work(JobScope::Caused).await.is_some() {}
            let delivery = self.store.deliveries().get(&id).await.expect("reads").expect("stored");
            if delivery.event != "push" {
                about.push((delivery.state, delivery.reason.unwrap_or_default()));
            }
        }
        assert_eq!(about.len(), 1, "one webhook: {about:?}");
        about.remove(0)
    }

    /// Does the next job that is due.
    pub(crate) async fn work(&self, scope: JobScope) -> Option<Ended> {
        let handler: Arc<dyn JobHandler> = self.service.clone();
        let (store, clock) = (self.store.clone(), Arc::clone(&self.clock));
        let caps = JobCaps { per_repo: 4, in_all: 8 };
        let worker = Worker { store, handler, clock, caps, tries: 3, scope };
        let owner = format!("{:032x}", rand_token());
        worker.work_once(&owner, 0.0).await.expect("works")
    }

    /// Does everything that is due now, and what it causes: how the tries ended.
    pub(crate) async fn work_off(&self) -> Vec<Ended> {
        let mut ended = Vec::new();
        loop {
            self.deliver().await;
            match self.work(JobScope::All).await {
                Some(one) => ended.push(one),
                None if !self.service.publish_one().await.expect("publishes") => return ended,
                None => {}
            }
            assert!(ended.len() < 200, "it goes on for ever: {ended:?}");
        }
    }

    /// Does everything, moving the time to the next moment that a job waits for.
    pub(crate) async fn settle(&self) -> Vec<Ended> {
        let mut ended = Vec::new();
        for _ in 0..40 {
            ended.extend(self.work_off().await);
            let Some(next) = self.waiting().await.iter().map(|job| job.run_after).min() else { return ended };
            let mut world = self.emulator.world();
            world.now = world.now.max(next);
        }
        panic!("it does not settle: {:#?}", self.waiting().await);
    }

    pub(crate) async fn waiting(&self) -> Vec<Job> {
        let queued = JobFilter { state: Some(JobState::Queued), ..JobFilter::default() };
        self.store.jobs().list(&queued, 100).await.expect("reads")
    }

    /// The runs of a pull request, the oldest first.
    pub(crate) async fn runs(&self, number: u64) -> Vec<StoredRun> {
        let subject = ReviewSubject::Pull(item(number));
        let mut runs = self.store.review().runs(self.repo.id, Some(&subject), 100).await.expect("reads");
        runs.reverse();
        runs
    }

    /// The heads of the completed reviews of a pull request, the oldest first.
    pub(crate) async fn reviewed(&self, number: u64) -> Vec<String> {
        let runs = self.runs(number).await.into_iter().filter(|run| run.state == ReviewState::Completed);
        runs.map(|run| run.head.as_str().to_owned()).collect()
    }

    /// How many reviews with comments at lines Canonry has submitted, and how many comments these have.
    pub(crate) fn posted(&self, number: u64) -> (usize, usize) {
        let world = self.emulator.world();
        let reviews = world.reviews_by(REPO, number, self.who.login());
        assert!(reviews.iter().all(|review| review.submitted_at.is_some()), "a review is left pending: {reviews:?}");
        (reviews.len(), world.review_comments_by(REPO, number, self.who.login()).len())
    }

    /// What Canonry says in the conversation, each once.
    pub(crate) fn said(&self, number: u64) -> Vec<String> {
        let world = self.emulator.world();
        world.comments_by(REPO, number, self.who.login()).iter().map(|comment| comment.body.clone()).collect()
    }

    pub(crate) fn checks(&self, head: &str) -> Vec<CheckRun> {
        let world = self.emulator.world();
        world.get(REPO).check_runs.iter().filter(|check| check.head_sha == head).cloned().collect()
    }

    /// How the one check of a commit ended.
    pub(crate) fn conclusion(&self, head: &str) -> Option<String> {
        let checks = self.checks(head);
        assert_eq!(checks.len(), 1, "one check: {checks:?}");
        checks[0].conclusion.clone()
    }

    pub(crate) fn head(&self, number: u64) -> String {
        self.emulator.world().pull(REPO, number).head_sha.clone()
    }

    pub(crate) async fn pause(&self) {
        let (now, maint) = (self.clock.now(), "maint".parse().expect("a login"));
        assert!(
            self.store
                .close()
                .set_brake(self.repo.id, BrakeKind::Pause, Some(&maint), "asked", now)
                .await
                .expect("stored")
        );
    }

    pub(crate) async fn resume(&self) {
        let (now, maint) = (self.clock.now(), "maint".parse().expect("a login"));
        assert!(
            self.store.close().lift_brake(self.repo.id, BrakeKind::Pause, Some(&maint), now).await.expect("stored")
        );
    }
}

pub(crate) fn item(number: u64) -> ItemNumber {
    ItemNumber::new(i64::try_from(number).expect("small")).expect("positive")
}

/// A number that no other call gives.
fn rand_token() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Returns when it is so.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), looking).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}

/// The same settings with reviews switched on, unless they switch them off or are none.
pub(crate) fn reviewing(settings: &str) -> String {
    match settings {
        written if written.contains("review: {enabled") || written.contains("- nonsense") => written.to_owned(),
        written if written.contains("review: {") => written.replacen("review: {", "review: {enabled: true, ", 1),
        written => format!("{}\nreview: {{enabled: true}}\n", written.trim_end()),
    }
}

fn world(who: As, settings: &str, webhooks: &str) -> World {
    let mut world = World::new();
    world.rate.limit = 1_000_000;
    let settings = reviewing(&format!("triage: {{mode: off}}\n{settings}"));
    world.repo(REPO).file("README.md", "# Pool\n").file(".canonry.yml", &settings);
    for person in ["ann", "ben", "mallory"] {
        world.user(person);
    }
    for bot in ["renovate[bot]", "dependabot[bot]", "ci[bot]"] {
        world.bot(bot);
    }
    world.collaborator(REPO, "maint", Permission::Maintain);
    if who == As::Token {
        world.token(TOKEN, who.login());
        world.collaborator(REPO, who.login(), Permission::Write);
        world.send_webhooks_to(webhooks, SECRET);
        return world;
    }
    world.add_app(4711, "canonry");
    world.send_webhooks_to(webhooks, SECRET);
    let permissions = ["issues", "pull_requests", "checks", "contents"].map(|area| (area, "write"));
    world.install_app("tide", &[&permissions[..], &[("metadata", "read")]].concat());
    world
}
