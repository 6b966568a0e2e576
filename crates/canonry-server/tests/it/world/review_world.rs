//! A repository that has commits, and a service that accepts webhooks and whose jobs the test runs one by one.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use canonry_domain::review::ReviewSubject;
use canonry_server::{AttemptEnd, Publish as _, ReviewParts, Schedules, ServeParts};
use canonry_store::{
    BrakeKind, DeliveryState, Job, JobCaps, JobFilter, JobScope, JobState, Repo, ReviewState, StoredRun,
};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{CheckRun, Emulator, NewPull, Permission, World};
use tokio::net::TcpListener;

use crate::world::clocks::WaitingMoves;
use crate::world::{APP_ID, As, Running, SECRET, ServiceWorld, TOKEN, WorldBuilder, item, service_options};

pub(crate) const REPO: &str = "tide/pool";
/// Code without findings.
pub(crate) const PLAIN: &str = "export const depth = 3;\n";
/// Code with one line that the built-in rules report.
pub(crate) const REMARKABLE: &str = "export function fill(pool) {\n  debugger;\n  return pool;\n}\n";
const CAPS: JobCaps = JobCaps { per_repo: 4, in_all: 8 };

pub(crate) struct ReviewWorld {
    world: ServiceWorld,
    pub(crate) repo: Repo,
    pub(crate) who: As,
    _intake: Running,
}

impl Deref for ReviewWorld {
    type Target = ServiceWorld;

    fn deref(&self) -> &ServiceWorld {
        &self.world
    }
}

impl ReviewWorld {
    /// A repository with these settings on its default branch, and with triage off.
    pub(crate) async fn new(database: &TestDatabase, who: As, settings: &str) -> Self {
        Self::with(database, who, settings, ReviewParts::default()).await
    }

    pub(crate) async fn with(database: &TestDatabase, who: As, settings: &str, reviewers: ReviewParts) -> Self {
        let world = |webhooks: &str| world(who, settings, webhooks);
        Self::on(database, who, WorldBuilder::new(who).reviewers(reviewers), world).await
    }

    /// The same with a world of one's own, which gets the address for its webhooks.
    pub(crate) async fn on(
        database: &TestDatabase,
        who: As,
        builder: WorldBuilder,
        world: impl FnOnce(&str) -> World,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let emulator = Arc::new(Emulator::start(world(&format!("http://{address}/webhooks/github"))).await);
        let clock = Arc::new(WaitingMoves::new(&emulator, None));
        let world = builder.start(&emulator, clock, database.url()).await;
        let repo = world.known_repo(REPO).await;
        // It only accepts webhooks: the test decides which jobs run, and when.
        let (parts, options) = (ServeParts::new(world.service.clone()), service_options(0, CAPS, Schedules::Off));
        let intake = Running::on(listener, world.store.clone(), parts, Arc::clone(&world.clock), options);
        let review_world = Self { world, repo, who, _intake: intake };
        review_world.settle().await;
        review_world
    }

    /// Does something as people do, a minute later.
    pub(crate) fn meanwhile<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.emulator.world();
        world.advance(60);
        act(&mut world)
    }

    /// Commits a file on a branch and opens a pull request for it.
    pub(crate) fn open(&self, by: &str, branch: &str, text: &str, new: NewPull) -> u64 {
        self.meanwhile(|world| {
            world.commit(REPO, branch, &[("src/pool.js", Some(text))]);
            world.open_pull(REPO, by, branch, new)
        })
    }

    pub(crate) fn push(&self, number: u64, text: &str) -> String {
        self.meanwhile(|world| world.push_pull(REPO, number, "ann", &[("src/pool.js", Some(text))]))
    }

    /// Delivers GitHub's pending deliveries; returns their ids.
    pub(crate) async fn deliver(&self) -> Vec<String> {
        let told = self.emulator.deliver_pending().await;
        for delivery in &told {
            assert_eq!(delivery.attempt.as_ref().map(|attempt| attempt.status), Some(202), "{}", delivery.event);
        }
        told.into_iter().map(|delivery| delivery.guid).collect()
    }

    /// Delivers one event and runs its jobs, except the review; returns the delivery's state and reason.
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

    pub(crate) async fn work(&self, scope: JobScope) -> Option<AttemptEnd> {
        // A token that no other lease has.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let owner = format!("{:032x}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.work_once(&owner, CAPS, scope).await
    }

    /// Runs everything that is due now, and what it causes; returns how the tries ended.
    pub(crate) async fn work_off(&self) -> Vec<AttemptEnd> {
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

    /// Runs everything, and moves the time to the next moment that a job waits for.
    pub(crate) async fn settle(&self) -> Vec<AttemptEnd> {
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

    /// The number of submitted reviews with inline comments, and the number of these comments.
    pub(crate) fn posted(&self, number: u64) -> (usize, usize) {
        let world = self.emulator.world();
        let reviews = world.reviews_by(REPO, number, self.who.login());
        assert!(reviews.iter().all(|review| review.submitted_at.is_some()), "a review is left pending: {reviews:?}");
        (reviews.len(), world.review_comments_by(REPO, number, self.who.login()).len())
    }

    /// Canonry's texts in the conversation, each once.
    pub(crate) fn said(&self, number: u64) -> Vec<String> {
        let world = self.emulator.world();
        world.comments_by(REPO, number, self.who.login()).iter().map(|comment| comment.body.clone()).collect()
    }

    pub(crate) fn checks(&self, head: &str) -> Vec<CheckRun> {
        let world = self.emulator.world();
        world.get(REPO).check_runs.iter().filter(|check| check.head_sha == head).cloned().collect()
    }

    /// The conclusion of the only check of a commit.
    pub(crate) fn conclusion(&self, head: &str) -> Option<String> {
        let checks = self.checks(head);
        assert_eq!(checks.len(), 1, "one check: {checks:?}");
        checks[0].conclusion.clone()
    }

    /// The text of the only check of a pull request's head.
    pub(crate) fn check_text(&self, number: u64) -> String {
        let mut checks = self.checks(&self.head(number));
        assert_eq!(checks.len(), 1, "one check: {checks:?}");
        checks.remove(0).summary.unwrap_or_default()
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

/// The same settings with reviews enabled, unless they disable them or are empty.
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
    world.add_app(APP_ID, "canonry");
    world.send_webhooks_to(webhooks, SECRET);
    let permissions = ["issues", "pull_requests", "checks", "contents"].map(|area| (area, "write"));
    world.install_app("tide", &[&permissions[..], &[("metadata", "read")]].concat());
    world
}
