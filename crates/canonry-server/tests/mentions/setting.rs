//! The whole service on an emulated GitHub with one repository: a maintainer, an author, a stranger, and bots.

use std::sync::Arc;
use std::time::Duration;

use canonry_domain::{GithubId, ItemNumber};
use canonry_github::{AppKey, Auth, ClientOptions, Clock, GitHub, Secret};
use canonry_retrieval::RetrievalMode;
use canonry_server::{ReviewParts, Schedules, ServeParts, Served, Service, ServiceOptions, ServiceParts, serve};
use canonry_store::{JobCaps, JobFilter, JobState, Mention, MentionPlace, OutboxScope, Repo, Store};
use canonry_testkit::database::TestDatabase;
use canonry_testkit::github::{Delivery, Emulator, NewIssue, NewPull, Permission, TEST_APP_PRIVATE_KEY, World};
use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;

use crate::topics::Topics;

pub(crate) const POOL: &str = "tide/pool";
pub(crate) const OWN: &str = "canonry[bot]";
pub(crate) const MAINTAINER: &str = "maint";
pub(crate) const AUTHOR: &str = "ann";
pub(crate) const STRANGER: &str = "ben";
pub(crate) const BOT: &str = "stale[bot]";
/// Issues that are there from the beginning: `topic0` is #1, and so on.
const ORIGINALS: u64 = 4;
const SECRET: &str = "the tide comes in";
const APP_ID: u64 = 77;

/// The world's time. Who sleeps waits until somebody else has moved it; loops look often.
struct WorldClock {
    emulator: Arc<Emulator>,
    moved: watch::Sender<()>,
}

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.emulator.world().now
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut moved = self.moved.subscribe();
            while self.now() < until {
                moved.changed().await.expect("the clock lives");
            }
        })
    }

    fn beat(&self, length: SignedDuration) -> BoxFuture<'_, ()> {
        Box::pin(async move { tokio::time::sleep(length.unsigned_abs() / 200).await })
    }
}

pub(crate) struct Setting {
    pub(crate) emulator: Arc<Emulator>,
    pub(crate) store: Store,
    clock: Arc<WorldClock>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<Served>>,
    _database: TestDatabase,
}

/// What Canonry answered to one comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answered {
    /// What it said under the item after the comment, without markers.
    pub(crate) replies: Vec<String>,
    /// How it reacted to the comment.
    pub(crate) reactions: Vec<String>,
}

impl Answered {
    /// The one thing that came back, whichever it was.
    pub(crate) fn only(&self) -> &str {
        let all: Vec<&String> = self.replies.iter().chain(&self.reactions).collect();
        assert_eq!(all.len(), 1, "{self:?}");
        all[0]
    }
}

impl Setting {
    /// The App is installed, with these settings on the default branch.
    pub(crate) async fn new(database: TestDatabase, settings: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let world = world(&format!("http://{address}/webhooks/github"), settings);
        let emulator = Arc::new(Emulator::start(world).await);
        let clock = Arc::new(WorldClock { emulator: Arc::clone(&emulator), moved: watch::channel(()).0 });
        let store = Store::open(&database.url().parse().expect("a URL"), clock.now()).await.expect("opens");
        let key = AppKey::new(&APP_ID.to_string(), &Secret::new(TEST_APP_PRIVATE_KEY)).expect("a key");
        let options = ClientOptions {
            api: emulator.url().parse().expect("a URL"),
            clock: clock.clone(),
            jitter: Arc::new(|| 0.0),
            request_timeout: Duration::from_secs(10),
            longest_wait: SignedDuration::from_secs(5),
            ..ClientOptions::new(Auth::App(key))
        };
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
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (served, ticking) = (store.clone(), clock.clone());
        let task = tokio::spawn(async move {
            let stopped = async move { drop(stopped.await) };
            serve(listener, served, parts, ticking, options, stopped).await
        });
        let setting = Self { emulator, store, clock, stop, task, _database: database };
        setting.settle().await;
        setting
    }

    /// Delivers what GitHub has to tell until nobody has anything left to do. Time moves only to the next moment that
    /// somebody waits for within the hour: a pause waits for people.
    pub(crate) async fn settle(&self) {
        self.settle_until(|_| false).await;
    }

    /// The same, or until the world is as wanted, whatever is still to be done then.
    pub(crate) async fn settle_until(&self, is_enough: impl Fn(&World) -> bool) {
        let settling = async {
            let horizon = self.clock.now() + SignedDuration::from_hours(1);
            let (mut idle, mut busy) = (0, 0);
            while idle < 3 && !is_enough(&self.emulator.world()) {
                let mut still = true;
                self.clock.moved.send_replace(());
                for delivery in self.emulator.deliver_pending().await {
                    assert_eq!(delivery.attempt.map(|attempt| attempt.status), Some(202), "{}", delivery.event);
                    still = false;
                }
                let now = self.clock.now();
                let running = self.store.queue_status(now).await.expect("reads").running;
                let next = self.next_moment().await.filter(|next| *next <= horizon);
                busy = if running > 0 && still { busy + 1 } else { 0 };
                if busy > 100 {
                    // A job under way may itself wait for the clock, such as for its turn to write.
                    self.emulator.world().now += SignedDuration::from_secs(1);
                    (idle, busy) = (0, 0);
                } else if running > 0 || next.is_some_and(|next| next <= now) {
                    idle = 0;
                } else if let Some(next) = next {
                    // A lease that is held looks the same as a wait: give who holds it the time to end.
                    idle = 0;
                    for _ in 0..20 {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        still &= self.store.queue_status(now).await.expect("reads").running == 0;
                    }
                    if still && self.next_moment().await == Some(next) {
                        self.emulator.world().now = next;
                        self.clock.moved.send_replace(());
                    }
                } else {
                    idle += usize::from(still);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        if tokio::time::timeout(Duration::from_secs(120), settling).await.is_err() {
            let jobs = self.store.jobs(&JobFilter::default(), 10).await.expect("reads");
            panic!("it does not settle at {}: {jobs:#?}, next {:?}", self.clock.now(), self.next_moment().await);
        }
    }

    /// When somebody has something to do next.
    async fn next_moment(&self) -> Option<Timestamp> {
        let queued = JobFilter { state: Some(JobState::Queued), ..JobFilter::default() };
        let jobs = self.store.jobs(&queued, 1_000).await.expect("reads");
        let write = self.store.next_outbox_moment(OutboxScope::Unattended).await.expect("reads");
        // Jobs of one key come after each other: those behind one that waits have nothing to do yet.
        let heads = jobs.iter().filter(|job| !jobs.iter().any(|other| other.key == job.key && other.id < job.id));
        heads.map(|job| job.run_after).chain(write).min()
    }

    pub(crate) async fn repo(&self) -> Repo {
        self.store.repo(&POOL.parse().expect("a name")).await.expect("reads").expect("known")
    }

    /// Does something as people do, a minute later.
    pub(crate) fn meanwhile<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.emulator.world();
        world.advance(60);
        act(&mut world)
    }

    /// A new issue of the author's.
    pub(crate) fn issue(&self, title: &str) -> u64 {
        self.meanwhile(|world| world.open(POOL, AUTHOR, NewIssue::new(title, "It stops, and it never comes back.")))
    }

    /// A new pull request of the author's, with something that the built-in reviewer finds in it.
    pub(crate) fn pull(&self, branch: &str) -> u64 {
        self.meanwhile(|world| {
            let text = "fn tide() {}\n<<<<<<< ours\nfn ebb() {}\n=======\nfn flow() {}\n>>>>>>> theirs\n";
            world.commit(POOL, branch, &[(&format!("src/{branch}.rs"), Some(text))]);
            world.open_pull(POOL, AUTHOR, branch, NewPull::new(&format!("Let it flow: {branch}")))
        })
    }

    /// Somebody comments; nothing is delivered yet.
    pub(crate) fn say(&self, number: u64, by: &str, text: &str) -> u64 {
        self.meanwhile(|world| world.comment(POOL, number, by, text))
    }

    /// Somebody comments, and GitHub does not get it delivered; with what it would have delivered.
    pub(crate) fn say_unheard(&self, number: u64, by: &str, text: &str) -> (u64, Delivery) {
        let comment = self.say(number, by, text);
        let told = self.emulator.pending_deliveries().pop().expect("a delivery");
        self.emulator.world().deliveries.retain(|delivery| delivery.guid != told.guid);
        (comment, told)
    }

    /// GitHub delivers an hour later what it could not, and everybody does what they have to.
    pub(crate) async fn deliver_late(&self, told: Delivery) {
        {
            let mut world = self.emulator.world();
            world.advance(3_600);
            world.deliveries.push(told);
        }
        self.settle().await;
    }

    /// What Canonry wrote last on an item, if it had the last word.
    pub(crate) fn last_word(&self, number: u64) -> Option<String> {
        let world = self.emulator.world();
        let comments = world.comments(POOL, number);
        comments.last().filter(|comment| comment.author == OWN).map(|comment| plain(&comment.body))
    }

    /// Somebody comments, and everybody does what they have to.
    pub(crate) async fn ask(&self, number: u64, by: &str, text: &str) -> Answered {
        let comment = self.say(number, by, text);
        self.settle().await;
        self.answered(number, comment)
    }

    /// What Canonry wrote on an item after a comment and before the next person's, and how it reacted to it.
    pub(crate) fn answered(&self, number: u64, comment: u64) -> Answered {
        let world = self.emulator.world();
        let comments = world.comments(POOL, number);
        let at = comments.iter().position(|one| one.id == comment).expect("it is there");
        let reactions = comments[at].reactions.iter().filter(|reaction| reaction.author == OWN);
        let after = comments[at + 1..].iter().take_while(|one| one.author == OWN);
        Answered {
            replies: after.map(|one| plain(&one.body)).collect(),
            reactions: reactions.map(|reaction| reaction.content.clone()).collect(),
        }
    }

    /// What is noted about a comment of a conversation.
    pub(crate) async fn noted(&self, comment: u64) -> Option<Mention> {
        let repo = self.repo().await;
        let id = GithubId(i64::try_from(comment).expect("small"));
        self.store.mention_in(repo.id, MentionPlace::Issue, id).await.expect("reads")
    }

    pub(crate) async fn stop(self) {
        self.stop.send(()).expect("it listens");
        let served = self.task.await.expect("runs").expect("serves");
        assert!(served.drained);
        self.store.close().await;
        self.emulator.assert_no_unknown_routes();
        assert_clean(&self.emulator.bodies_sent());
    }
}

pub(crate) fn item(number: u64) -> ItemNumber {
    ItemNumber::new(i64::try_from(number).expect("small")).expect("positive")
}

/// A text without the marker at its end.
pub(crate) fn plain(body: &str) -> String {
    let end = body.find("<!-- canonry:").unwrap_or(body.len());
    body[..end].trim_end().to_owned()
}

/// Nothing that was ever sent pings anybody, renders what a stranger wrote, or tells a secret.
pub(crate) fn assert_clean(bodies: &[String]) {
    for body in bodies {
        let said = plain(body);
        assert!(body.matches("<!--").count() <= 1, "a marker of another's: {body}");
        // Canonry's own texts have folded and small parts.
        let own = ["<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>"];
        let markup = own.iter().fold(said, |text, tag| text.replace(tag, ""));
        assert!(!markup.contains('<'), "markup: {body}");
        assert!(!markup.replace("\\](", "").contains("]("), "a link: {body}");
        let calls = markup.match_indices('@').any(|(at, _)| markup[at + 1..].starts_with(char::is_alphanumeric));
        assert!(!calls, "somebody is called: {body}");
        for forbidden in ["ghp_", "\u{1b}", "\u{202e}"] {
            assert!(!body.contains(forbidden), "{forbidden:?}: {body}");
        }
        assert!(body.chars().count() < 20_000, "{} characters", body.chars().count());
    }
}

fn world(webhooks: &str, settings: &str) -> World {
    let mut world = World::new();
    world.rate.limit = 10_000_000;
    for name in [AUTHOR, STRANGER, "mallory"] {
        world.user(name);
    }
    world.bot(BOT);
    world.repo(POOL).file(".canonry.yml", settings);
    world.collaborator(POOL, MAINTAINER, Permission::Write);
    world.collaborator(POOL, "sorter", Permission::Triage);
    for topic in 0..ORIGINALS {
        world.advance(60);
        let title = format!("The tide stops: topic{topic}");
        world.open(POOL, MAINTAINER, NewIssue::new(&title, "It stops, and this is where it is looked into."));
    }
    world.add_app(APP_ID, "canonry");
    world.send_webhooks_to(webhooks, SECRET);
    let permissions = [
        ("issues", "write"),
        ("pull_requests", "write"),
        ("contents", "write"),
        ("checks", "write"),
        ("metadata", "read"),
    ];
    world.install_app("tide", &permissions);
    world
}
